# SPDX-License-Identifier: Apache-2.0
"""Flent data files, version 4 (Flent's doc/data-format.rst), which stock Flent 2.3.0 opens and plots.

`write` makes one of a run, from `points` and `meta`: it is exported, not made by every run, and no value is guessed.
`read` makes a recording of one that was measured elsewhere, for `compare` and `report`; `rows` turns its points into
rows of our tables. `form` has the keys that both know.
"""
