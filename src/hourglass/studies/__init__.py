# SPDX-License-Identifier: Apache-2.0
"""A study: a grid of scenarios, one axis compared with a reference, figures, criteria with a source, one table of
verdicts.

file.py      the file's models             cells.py     cells → scenarios, each with its key
reader.py    the file, checked             store.py     the folder of a study: runs, failures, lock
columns.py   the compared axis             runs.py      the missing runs: pool.py, worker.py, cluster.py
grid.py      axes.py: a part's cells       table.py     summaries → rows → Parquet; pareto.py: the best rows
measures.py  bbr.py: figures of records    lines.py     the figures of all runs; moves.py: all figures compared
study.py     `study`: all of it            verdicts.py  figures → verdicts; baseline.py: earlier figures
score.py     a candidate's runs → a number; score_formula.py: figures → the number
comparison.py  values of one key → study   causes.py    likely causes of misses
over.py      the keys that a search varies
search.py    `search`: space.py, optimiser.py, expression.py, evaluate.py, shrink.py, findings.py, finding_page.py
tuning.py    settings → the best one; tune_goals.py: figures and limits; neighbourhood.py: other links
knobs.py     an explanation → changes; what_if.py: their runs, compared
schema.py    the JSON Schema of the file   verdict_page.py, markdown_page.py, json_data.py: pages and data
run_check.py `check`: runs by bounds       junit.py    verdicts as JUnit XML
old_formats.py  sweeps, suites and cases of earlier releases
"""

from hourglass.studies.comparison import comparison
from hourglass.studies.study import StudyResult, study

__all__ = ["StudyResult", "comparison", "study"]
