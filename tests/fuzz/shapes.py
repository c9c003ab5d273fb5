# SPDX-License-Identifier: Apache-2.0
"""Testbeds whose parts fit each other, before random keys are added; and events, each with one action."""

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from hourglass.scenario.event import ACTIONS, AT_DEVICES, TO_PROGRAMS
from hourglass.scenario.load import presets

from .lans import lan
from .values import SCHEMA, Scope, resolved, value

RADIOS_ONLY = {"station", "ap", "iw", "channel"}
"""Actions that only radios have."""

Shape = tuple[dict[str, Any], Scope]


def line(chance: random.Random) -> Shape:
    """Return client and server with up to three routers between them."""
    names = ["client", *(f"router{number}" for number in range(chance.randint(0, 3))), "server"]
    return _cabled(names, list(pairwise(names)))


def star(chance: random.Random) -> Shape:
    """Return several clients and servers around one router."""
    outer = ["client", "server", *(f"host{number}" for number in range(chance.randint(1, 4)))]
    return _cabled([*outer, "router"], [(name, "router") for name in outer])


def preset(chance: random.Random) -> Shape:
    """Return a built-in testbed."""
    name = chance.choice([name for name, _ in presets()])
    return {"preset": name}, Scope(["client", "server"], {"client": ["eth0"], "server": ["eth0"]})


def cell(chance: random.Random) -> Shape:
    """Return stations, their access point and a server."""
    stations = ["client", *(f"station{number}" for number in range(chance.randint(0, 3)))]
    testbed, scope = _cabled(["ap", "server"], [("ap", "server")])
    testbed["node"] += [{"name": name, "role": "host"} for name in stations]
    testbed["wifi"] = [{"ap": "ap:wlan0", "station": [{"at": f"{name}:wlan0"} for name in stations]}]
    scope.nodes += stations
    scope.devices |= {name: ["wlan0"] for name in stations}
    scope.devices["ap"].append("wlan0")
    return testbed, scope


SHAPES: tuple[Callable[[random.Random], Shape], ...] = (line, line, star, preset, cell, cell, lan, lan)


def _cabled(names: list[str], cables: list[tuple[str, str]]) -> Shape:
    scope = Scope(list(names), {name: [] for name in names})
    links = []
    for left, right in cables:
        ends = []
        for node in (left, right):
            scope.devices[node].append(f"eth{len(scope.devices[node])}")
            ends.append(f"{node}:{scope.devices[node][-1]}")
        links.append({"ends": ends, "rate": "100mbit"})
    nodes = [{"name": name, "role": "router" if name.startswith(("router", "ap")) else "host"} for name in names]
    return {"node": nodes, "link": links}, scope


def event(chance: random.Random, scope: Scope) -> dict[str, Any]:
    """Return a random event."""
    schema = resolved(SCHEMA["properties"]["event"]["items"])["properties"]
    radios = [name for name, devices in scope.devices.items() if "wlan0" in devices]
    impossible = {*TO_PROGRAMS, *({"power"} if radios else RADIOS_ONLY)}
    impossible |= set() if scope.switches else {"bridge"}
    action = chance.choice(sorted(set(ACTIONS) & set(schema) - impossible))
    nodes = scope.switches if action == "bridge" else radios if action in RADIOS_ONLY else scope.nodes
    node = chance.choice([name for name in nodes if scope.devices.get(name)])
    local = Scope([node], {node: scope.devices[node]})
    change = {key: value(schema[key], f"event[].{key}", chance, local) for key in ("at", "node", action)}
    if action in AT_DEVICES and (len(scope.devices[node]) > 1 or chance.random() < 0.5):
        change["device"] = chance.choice(scope.devices[node])
    if chance.random() < 0.2:
        change |= {key: value(schema[key], f"event[].{key}", chance, local) for key in ("every", "count")}
    return change
