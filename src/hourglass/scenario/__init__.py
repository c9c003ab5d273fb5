# SPDX-License-Identifier: Apache-2.0
"""Turn the user's input into a checked `Scenario` that spells out every default. Pure data: no plan, no engine.

load.py            entry point: source, preset, overrides (`--set KEY=VALUE`), checks
source_files.py    reads files as plain data; decides which files a scenario may name
scenario_model.py  Scenario, Measure, Capture; toml_table.py is the base of all tables
testbed.py         nodes, links, shapers; edge.py, trace.py, loss.py, nics.py, wifi.py, real_hosts.py
stack.py           cc, tsq, gso, pacing, qdisc, sysctl; device.py: overrides for one device
test.py            the test and its parameters; datagrams.py: UDP streams next to it; ip_marks.py: DSCP and ECN
event.py           changes during the test
module.py          custom congestion controls and qdiscs; c_source.py and makefile.py read them
apps.py            programs; app_values.py, app_roots.py
bounds.py          [check]
check_scenario.py  checks across tables; check_wifi.py, check_streams.py, check_events.py, check_apps.py
testkinds.py       the declared tests; streams.py: the streams of a test
values.py          types of single values; value_kinds.py: their kinds; quantities.py: rates, times, sizes, shares
blame.py           errors as one line each
vocabulary.py      names of the kernel
schema.py          the JSON Schema            mistakes.py: what pydantic refuses
"""

from hourglass.scenario.event import Event, LinkChange
from hourglass.scenario.load import builtin, load, presets
from hourglass.scenario.scenario_model import Measure, Scenario
from hourglass.scenario.stack import Stack
from hourglass.scenario.test import FlowSettings, Test
from hourglass.scenario.testbed import Link, Netem, Node, Shaper, Testbed
from hourglass.scenario.testkinds import TESTS
from hourglass.scenario.vocabulary import CONGESTION_CONTROLS, MULTIQUEUE_QDISCS, QDISCS
from hourglass.scenario.wifi import Station, Wifi

__all__ = [
    "CONGESTION_CONTROLS",
    "MULTIQUEUE_QDISCS",
    "QDISCS",
    "TESTS",
    "Event",
    "FlowSettings",
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
