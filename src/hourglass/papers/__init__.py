# SPDX-License-Identifier: Apache-2.0
"""The two papers, claim by claim: each figure is a sweep file (`scenarios/papers/`) and claims that are computed.

model.py         Claim, Figure, Unknown, Finding, Evidence, Verdict  checks.py       what sentences mean, tolerances
paper_a.py       pacing and TSQ, wired: what it says                 samples.py      what records say of a mechanism
paper_a_wifi.py  the same on ath9k                                   study.py        runs figures, gives verdicts
rules.py         the kernel's rules, and where sentences differ      draw.py         a figure in the paper's form
paper_b.py       Wi-Fi latency: congestion controls and qdiscs       report.py       Markdown and HTML
paper_b_tsq.py   the same: sizes of TSQ, the last round              beyond.py       what the papers left out
kernels.py       what six years of kernels changed, and why
"""
