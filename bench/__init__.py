# SPDX-License-Identifier: Apache-2.0
"""The performance figures: `make bench`, or `python -m bench [--quick] [--json]`.

cases    what is run
measure  one run, the least of several, the cost of a second
peers    ns-3 (`ns3_line.py`, `ns3_wifi.py`) and this machine's own kernel, run beside ours
table    the figures as a table

Every figure is the least of several runs: other work on the machine only ever adds. The repetitions of all cases are
interleaved, so a busy minute hits all of them, and ratios are of runs made side by side.
"""
