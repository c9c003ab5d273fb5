# SPDX-License-Identifier: Apache-2.0
"""The user's words → a checked `Scenario` with every default spelled out. Data only; knows no plan and no engine.

load.py       the door: source, preset, changes, checks      source.py     files → plain data
model.py      Scenario, Test, Flow, Measure                   overrides.py  --set KEY=VALUE
testbed.py    nodes, links, shapers; trace.py their traces    check.py      what no single value shows
wifi.py       Wi-Fi cells; cells.py what they must agree on
stack.py      cc, tsq, gso, pacing, qdisc, sysctl             blame.py      errors as one line each
values.py     types of single values; units.py quantities     reference.py  docs/scenario.md
tests.py      the tests; parameters.py, marks.py theirs
vocabulary.py the kernel's names
"""

from hourglass.scenario.load import builtin, load, presets
from hourglass.scenario.model import Flow, Measure, Scenario, Test
from hourglass.scenario.stack import Stack
from hourglass.scenario.testbed import Link, Netem, Node, Shaper, Testbed
from hourglass.scenario.testkinds import TESTS
from hourglass.scenario.vocabulary import CONGESTION_CONTROLS, QDISCS
from hourglass.scenario.wifi import Station, Wifi

__all__ = [
    "CONGESTION_CONTROLS",
    "QDISCS",
    "TESTS",
    "Flow",
    "Link",
    "Measure",
    "Netem",
    "Node",
    "Scenario",
    "Shaper",
    "Stack",
    "Station",
    "Test",
    "Testbed",
    "Wifi",
    "builtin",
    "load",
    "presets",
]
