# SPDX-License-Identifier: Apache-2.0
"""The performance figures: `make bench`, or `python -m bench` (`--help` has its options).

figures  the rows: what each is, what is carried out for it, how its figure comes of that
rows     what a row and a measurement are; the rounds
cases    what is run
measure  one run, one command, and what it cost
peers    ns-3 (`ns3_line.py`, `ns3_wifi.py`) and this machine's own kernel, run beside ours
machine  this machine: memory, counters, how busy it is (`machine.c`)
programs what programs in nodes cost (`programs.c`)
base     an earlier revision, run beside this one pair by pair
spread   the median's interval
table    the figures as a table

Wall times are the least of several runs: other work on the machine only ever adds. Ratios, and CPU time, are medians.
The rounds of all measurements are interleaved, so a busy minute hits all of them.
"""
