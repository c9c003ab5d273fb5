# SPDX-License-Identifier: Apache-2.0
"""A run as a Flent data file, version 4 (Flent's doc/data-format.rst), which stock Flent 2.3.0 opens and plots.

`write` makes the file; it is exported, not made by every run. What the guest was not asked (its whole sysctl tree,
TCPI_* of the connection's end, driver and BQL limits) is not in it: no value is guessed.
"""
