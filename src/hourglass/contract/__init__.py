# SPDX-License-Identifier: Apache-2.0
"""The contracts between the parts of Hourglass, each declared once. Knows no other part.

plan.py           what is to be done: `plan/` writes it, `agent/` executes it
capabilities.py   what an engine can do: `engine/` states it, `plan/` and the runner ask
records.toml      the tables of a run: the agent writes them, `results/` reads them; records.py reads the declaration
probe.toml        the kernel's packet probe: layers, enumerations, structures; probe.py reads the declaration
summary.py        the figures of a run: what `--json` prints
figures.py        the names and units of those figures; names.py: as people write them; bounds.py: their bounds
run.py            how a run was made and what came of it: run.json
kernels.py        the kernels that have a name

`python -m hourglass.contract` writes what is generated from them: C, Rust, JSON Schemas, pages of docs/.
"""
