# SPDX-License-Identifier: Apache-2.0
"""`Scenario` → `Plan`: namespaces, addresses, routes, `ip` and `tc` lines, flows, probes. Knows no engine
and no result.

build.py    the whole, and the order of the set-up    model.py     the plan's contract
network.py  addresses, routes                          links.py     NICs and cables; traces.py, seeds.py theirs
qdiscs.py   tc                                         sysctls.py   /proc/sys
tests.py    flows and probes                           radios.py   Wi-Fi
"""

from hourglass.plan.build import build
from hourglass.plan.model import Plan

__all__ = ["Plan", "build"]
