# SPDX-License-Identifier: Apache-2.0
"""A grid of runs: a sweep file → cells → runs → one tidy table. Every run is made by `runner.run`.

file.py     the sweep file, checked                      pool.py      worker processes on this machine
expand.py   axes → assignments                           worker.py    what such a process does
cells.py    assignments → scenarios, each with its key   cluster.py   the same on a Dask cluster
store.py    the folder of a sweep: runs, failures, lock  table.py     summaries → rows → Parquet
sweep.py    the conductor                                pareto.py    which rows no other row beats
"""

from hourglass.campaign.sweep import Result, sweep

__all__ = ["Result", "sweep"]
