# SPDX-License-Identifier: Apache-2.0
"""Reproduce two papers and judge their claims: `python -m papers` (`--help` has its options).

It uses Hourglass's public interface alone (docs/reference/python.md). Each figure is a study's file in `studies/`,
claims that are computed from its runs, and a picture in the paper's form.

model.py         PaperFigure, Claim, Unknown, Evidence, Verdict   checks.py   sentences as checks, tolerances
paper_a.py       pacing and TSQ, wired: its claims                samples.py  records → facts about a mechanism
paper_a_wifi.py  the same on ath9k                                study.py    figures → runs → verdicts
rules.py         the kernel's rules, and where sentences differ   draw.py     a figure → panels
paper_b.py       Wi-Fi latency: congestion controls and qdiscs    candles.py  panels → a picture
paper_b_tsq.py   the same: sizes of TSQ, the last round           pages.py    verdicts → Markdown
kernel_changes.py  the changes of six years of kernels            beyond.py   what the papers left out
"""
