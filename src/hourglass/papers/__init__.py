# SPDX-License-Identifier: Apache-2.0
"""The two papers, claim by claim: each figure is a sweep file (`scenarios/papers/`) and claims that are computed.

model.py      Claim, Figure, Finding, Evidence, Verdict      paper_b.py   Wi-Fi latency: what it says
paper_a.py    pacing and TSQ: what it says                   study.py     runs figures, gives verdicts
rules.py      the kernel's rules, and where sentences differ draw.py      a figure in the paper's form
samples.py    what the records say about a mechanism         report.py    Markdown and HTML
"""
