# SPDX-License-Identifier: Apache-2.0
"""Runs of random scenarios: each ends by itself, its counts agree, and it repeats to the byte.

* `values.py`: a value for every key, from the JSON Schema of the scenario's models, so new keys are included.
* `shapes.py`: testbeds whose parts fit, and events.
* `draw.py`: a scenario for a seed: a shape with random keys, without the refused ones.
* `judge.py`: makes a scenario's run twice and reports problems.
* `__main__.py`: `make fuzz N=1000 SEED=1` tries many scenarios, continues after an interrupt, and writes findings as
  TOML files.
"""
