# SPDX-License-Identifier: Apache-2.0
"""Testbeds with switches in few words, and their plans."""

from typing import Any

from hourglass.contract.plan import Plan
from hourglass.plan import build
from hourglass.scenario import load

from .able import ALL

Switches = dict[str, dict[str, Any]]
STP: dict[str, Any] = {"stp": {}}
FAST = {"forward_delay": "2s", "hello": "1s", "max_age": "6s"}
"""The shortest times of the spanning tree protocol."""
ONE_SWITCH: Switches = {"s": {}}
LINKS: list[Any] = ["client:eth0 s:a", "s:b server:eth0"]
ON_A_STICK: list[Any] = [
    ("client:eth0 s:a", {"vlan": 10}),
    ("server:eth0 s:b", {"vlan": 20}),
    ("gw:lan s:c", {"vlan": [10, 20]}),
]
"""A router at a trunk."""


def bed(switches: Switches, links: list[Any], **tables: Any) -> dict[str, Any]:
    """Return a testbed. `switches`: name → keys. Other names are hosts, and routers if they begin with gw. A link is
    "a:x b:y", or this and more keys."""
    rows = [{"ends": row.split()} if isinstance(row, str) else {"ends": row[0].split(), **row[1]} for row in links]
    names = dict.fromkeys(end.split(":")[0] for row in rows for end in row["ends"])
    names |= dict.fromkeys(
        station["at"].split(":")[0] for cell in tables.get("wifi", ()) for station in cell["station"]
    )
    nodes = [
        {"name": name, "role": "switch", **switches[name]}
        if name in switches
        else {"name": name, "role": "router" if name.startswith("gw") else "host"}
        for name in names
    ]
    return {"node": nodes, "link": rows, **tables}


def plan_of(testbed: dict[str, Any], **tables: Any) -> Plan:
    return build(load({"testbed": testbed, "test": {"name": "ping"}} | tables), ALL)
