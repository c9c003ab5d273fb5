# SPDX-License-Identifier: Apache-2.0
"""Testbeds whose parts fit each other, before random keys are added; and events, each with one action."""

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from hourglass.scenario.event import ACTIONS, AT_DEVICES, TO_PROGRAMS
from hourglass.scenario.load import presets

from .lans import lan
from .values import SCHEMA, Room, resolved, value

RADIOS_ONLY = {"station", "ap", "iw", "channel"}
"""Actions that only radios have."""

Shape = tuple[dict[str, Any], Room]


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
    return {"preset": name}, Room(["client", "server"], {"client": ["eth0"], "server": ["eth0"]})


def cell(chance: random.Random) -> Shape:
    """Return stations, their access point and a server."""
    stations = ["client", *(f"station{number}" for number in range(chance.randint(0, 3)))]
    testbed, room = _cabled(["ap", "server"], [("ap", "server")])
    testbed["node"] += [{"name": name, "role": "host"} for name in stations]
    testbed["wifi"] = [{"ap": "ap:wlan0", "station": [{"at": f"{name}:wlan0"} for name in stations]}]
    room.nodes += stations
    room.devices |= {name: ["wlan0"] for name in stations}
    room.devices["ap"].append("wlan0")
    return testbed, room


SHAPES: tuple[Callable[[random.Random], Shape], ...] = (line, line, star, preset, cell, cell, lan, lan)


def _cabled(names: list[str], cables: list[tuple[str, str]]) -> Shape:
    room = Room(list(names), {name: [] for name in names})
    links = []
    for left, right in cables:
        ends = []
        for node in (left, right):
            room.devices[node].append(f"eth{len(room.devices[node])}")
            ends.append(f"{node}:{room.devices[node][-1]}")
        links.append({"ends": ends, "rate": "100mbit"})
    nodes = [{"name": name, "role": "router" if name.startswith(("router", "ap")) else "host"} for name in names]
    return {"node": nodes, "link": links}, room


def event(chance: random.Random, room: Room) -> dict[str, Any]:
    """Return a random event."""
    schema = resolved(SCHEMA["properties"]["event"]["items"])["properties"]
    radios = [name for name, devices in room.devices.items() if "wlan0" in devices]
    impossible = {*TO_PROGRAMS, *({"power"} if radios else RADIOS_ONLY)}
    impossible |= set() if room.switches else {"bridge"}
    action = chance.choice(sorted(set(ACTIONS) & set(schema) - impossible))
    nodes = room.switches if action == "bridge" else radios if action in RADIOS_ONLY else room.nodes
    node = chance.choice([name for name in nodes if room.devices.get(name)])
    local = Room([node], {node: room.devices[node]})
    change = {key: value(schema[key], f"event[].{key}", chance, local) for key in ("at", "node", action)}
    if action in AT_DEVICES and (len(room.devices[node]) > 1 or chance.random() < 0.5):
        change["device"] = chance.choice(room.devices[node])
    if chance.random() < 0.2:
        change |= {key: value(schema[key], f"event[].{key}", chance, local) for key in ("every", "count")}
    return change
