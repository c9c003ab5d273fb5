# SPDX-License-Identifier: Apache-2.0
"""Exams of congestion controls: `hourglass suite NAME`. What is run and what is judged is data (`scenarios/suites/`).

file.py      a suite's file, checked                     judge.py     values → words, against marks and a baseline
measures.py  figures of records, by name                 baseline.py  what a kernel gave before
bbr.py       the same of BBR's phases                    page.py      the matrix as HTML
study.py     parts → sweeps → values of cells            text.py      the same as Markdown and as JSON
"""
