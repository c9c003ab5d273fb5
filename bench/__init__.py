# SPDX-License-Identifier: Apache-2.0
"""Measure performance: `make bench`, or `python -m bench` (`--help` has its options).

figures  the rows: each with its measurement and the computation of its figure
rows     classes of rows and measurements; the rounds
cases    the scenarios to run
measure  one run, one command, and their cost
peers    ns-3 (`ns3_line.py`, `ns3_wifi.py`) and this machine's own kernel, run next to Hourglass
machine  this machine: memory, counters, load (`machine.c`)
programs the cost of programs in nodes (`programs.c`)
base     an earlier revision, run in turns with this one
spread   the median's interval
table    the figures as a table

Wall times are the least of several runs, because other work on the machine only adds time. Ratios, and CPU time, are
medians. The rounds of all measurements are interleaved, so a busy minute affects all of them.
"""
