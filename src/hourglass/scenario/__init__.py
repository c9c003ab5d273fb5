# SPDX-License-Identifier: Apache-2.0
"""The user's words → a checked `Scenario` with every default spelled out. Data only; knows no plan and no engine.

load.py       the door: source, preset, changes, checks      source.py     files → plain data
model.py      Scenario, Test, Measure                         overrides.py  --set KEY=VALUE
testbed.py    nodes, links, shapers; trace.py their traces    check.py      what no single value shows
stack.py      cc, tsq, gso, pacing, qdisc, sysctl             blame.py      errors as one line each
values.py     types of single values; units.py quantities     reference.py  docs/scenario.md
tests.py, vocabulary.py   the tests, and the kernel's names   paths.py      where built-ins lie
"""

from hourglass.scenario.load import builtin, load, presets
from hourglass.scenario.model import Measure, Scenario, Test
from hourglass.scenario.stack import Stack
from hourglass.scenario.testbed import Link, Node, Shaper, Testbed
from hourglass.scenario.tests import TESTS
from hourglass.scenario.vocabulary import CONGESTION_CONTROLS, QDISCS

__all__ = [
    "CONGESTION_CONTROLS",
    "QDISCS",
    "TESTS",
    "Link",
    "Measure",
    "Node",
    "Scenario",
    "Shaper",
    "Stack",
    "Test",
    "Testbed",
    "builtin",
    "load",
    "presets",
]
