# SPDX-License-Identifier: Apache-2.0
"""The contracts between the parts of Hourglass, each declared once. Knows no other part.

plan/             the steps and streams of a run: `hourglass.plan` writes a plan, `agent/` executes it
capabilities.py   the abilities of an engine: `engine/` states them, `plan/` and the runner read them
records.toml      the tables of a run: the agent writes them, `results/` reads them; read by record_tables.py
probe.toml        the kernel's packet probe: layers, enumerations, structures; read by probe.py
summary.py        the figures of a run, as `--json` prints them
figures.py        the names and units of those figures; names.py resolves names that users write; bounds.py: bounds
run_json.py       run.json: the engine, kernel and outcome of a run
kernels.py        the named kernels
errors.toml       the codes and messages of errors; read by error_codes.py
kernel_module.py  custom congestion controls and qdiscs: a scenario names them, `builders/` builds them
system_calls.py   the names of the system calls

`python -m hourglass.contract` writes the generated files: C, Rust, pages of docs/.
"""
