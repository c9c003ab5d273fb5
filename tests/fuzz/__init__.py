# SPDX-License-Identifier: Apache-2.0
"""Random scenarios, as runs: each ends by itself, its counts agree, and it repeats to the byte.

values.py    a value for every key, from the JSON Schema of the scenario's models: a new key is fuzzed by itself
shapes.py    testbeds whose parts fit, and events
draw.py      a scenario for a seed: a shape, keys strewn over it; what is refused is taken out again
judge.py     makes a scenario's run, twice, and says what is wrong with it
shrink.py    less of a scenario that is as wrong
__main__.py  `make fuzz N=1000 SEED=1`: many, resumed where it was left; findings as TOML files
"""
