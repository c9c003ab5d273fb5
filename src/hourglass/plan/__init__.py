# SPDX-License-Identifier: Apache-2.0
"""`Scenario` and capabilities → `contract.plan.Plan`: namespaces, addresses, routes, `ip` and `tc` lines, streams.
Knows no engine and no result.

    plan_builder.py  the whole plan, and the order of the set-up
    network.py  addresses, routes                          links.py    NICs and cables; seeds.py
    paths.py    devices between client and server          radios.py   Wi-Fi
    streams.py  flows, pings and other traffic             qdiscs.py   tc
    measure.py  samples, captures                          sysctls.py  /proc/sys
    events.py   changes during the test                    apps.py     programs
"""

from hourglass.plan.plan_builder import build

__all__ = ["build"]
