# SPDX-License-Identifier: Apache-2.0
"""The user's words → a checked `Scenario` with every default spelled out. Data only; knows no plan and no engine.

load.py       the door: source, preset, changes, checks      source.py     files → plain data
model.py      Scenario, Measure, Capture                      overrides.py  --set KEY=VALUE
testbed.py    nodes, links, shapers; trace.py, loss.py      wifi.py       Wi-Fi cells
stack.py      cc, tsq, gso, pacing, qdisc, sysctl             device.py     what differs at one device
test.py       the test and its parameters                   datagrams.py  streams of UDP beside it; marks.py
event.py      what changes during the test                  module.py     cc and qdiscs of one's own, c_source.py
check.py      what no single value shows: check_wifi.py of cells, check_streams.py of the test, check_events.py
app.py        programs; app_values.py, app_roots.py, check_apps.py
testkinds.py  the tests there are                             streams.py    the streams of a test
values.py     types of single values, of the kinds of kinds.py; units.py quantities
blame.py      errors as one line each                         vocabulary.py the kernel's names
reference.py  docs/scenario.md                                schema.py     JSON Schema
"""

from hourglass.scenario.event import Event, LinkChange
from hourglass.scenario.load import builtin, load, presets
from hourglass.scenario.model import Measure, Scenario
from hourglass.scenario.stack import Stack
from hourglass.scenario.test import Flow, Test
from hourglass.scenario.testbed import Link, Netem, Node, Shaper, Testbed
from hourglass.scenario.testkinds import TESTS
from hourglass.scenario.vocabulary import CONGESTION_CONTROLS, QDISCS
from hourglass.scenario.wifi import Station, Wifi

__all__ = [
    "CONGESTION_CONTROLS",
    "QDISCS",
    "TESTS",
    "Event",
    "Flow",
    "Link",
    "LinkChange",
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
