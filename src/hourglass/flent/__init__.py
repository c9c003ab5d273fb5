# SPDX-License-Identifier: Apache-2.0
"""Flent data files, version 4 (Flent's doc/data-format.rst), which stock Flent 2.3.0 opens and plots.

`write` exports a run, with `raw_values` and `meta`; it never guesses a value. `read` turns a file that was measured
elsewhere into a recording, for `compare` and `report`. `data_file` opens and checks it, `versions` converts older
versions, `measurement` has its series and their times, `contradictions` finds doubts, and `rows` converts points to
rows of the record tables. `document` declares the keys that both use.
"""
