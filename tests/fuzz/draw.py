# SPDX-License-Identifier: Apache-2.0
"""A random valid scenario for a seed: a shape, and keys strewn over it. What is refused is taken out again, by the keys
that the refusal names, so that what is left is valid whatever rules there are."""

import random
import re
from typing import Any

from hourglass import plan, scenario
from hourglass.engine.virtual import Virtual
from hourglass.errors import InputError

from .shapes import SHAPES, event
from .values import SCHEMA, Room, resolved, strew, value

REPAIRS = 60

SHORT = {"length": 0.7}
"""What a test has whose length was refused: the default would last."""

Data = dict[str, Any]


def draw(seed: str, kernel: str) -> Data:
    """The scenario of a seed. Raises ValueError if none can be made of it: a bug here."""
    for attempt in range(20):
        chance = random.Random(f"{seed} {attempt}")
        data = _strewn(chance)
        data["kernel"] = kernel
        if repaired(data):
            return data
    raise ValueError(seed)


def _strewn(chance: random.Random) -> Data:
    testbed, room = chance.choice(SHAPES)(chance)
    share = chance.choice([0.02, 0.1, 0.3])
    data: Data = {"name": f"fuzz-{chance.randrange(10**6)}", "seed": chance.randrange(1000), "testbed": testbed}
    schema = SCHEMA["properties"]
    for key, of in (("node", None), ("link", "Link"), ("wifi", "Wifi")):
        for table in testbed.get(key, []) if of else []:
            strew(table, {"$ref": f"#/$defs/{of}"}, f"testbed.{key}[]", chance, room, share)
    for cell in testbed.get("wifi", []):
        for station in cell["station"]:
            strew(station, {"$ref": "#/$defs/Station"}, "testbed.wifi[].station[]", chance, room, share)
    for key in ("shaper", "netem"):
        if chance.random() < 0.4:
            one = resolved(resolved(SCHEMA["$defs"]["Testbed"])["properties"][key]["items"])
            testbed[key] = [strew({}, one, f"testbed.{key}[]", chance, room, share)]
    data["stack"] = strew({}, schema["stack"], "stack", chance, room, share)
    if chance.random() < 0.5:
        node = chance.choice(room.nodes)
        data["stack"][node] = _node(node, chance, room, share)
    names = resolved(schema["test"])["properties"]["name"]["enum"]
    test = {"name": chance.choice([name for name in names if name != "none"])}
    test |= {key: _drawn("test", key, chance, room) for key in ("length", "delay")}
    data["test"] = strew(test, schema["test"], "test", chance, room, share / 2)
    for key in ("flow", "measure", "capture"):
        table = strew({}, schema[key], key, chance, room, share)
        if table:
            data[key] = table
    if chance.random() < 0.5:
        data["event"] = [event(chance, room) for _ in range(chance.randint(1, 3))]
    return data


def _drawn(table: str, key: str, chance: random.Random, room: Room) -> Any:
    return value(resolved(SCHEMA["properties"][table])["properties"][key], f"{table}.{key}", chance, room)


def _node(node: str, chance: random.Random, room: Room, share: float) -> Data:
    made = strew({}, {"$ref": "#/$defs/NodeStack"}, "stack.*", chance, room, share)
    if room.devices.get(node) and chance.random() < 0.5:
        device = strew({}, {"$ref": "#/$defs/DeviceStack"}, "stack.*.device.*", chance, room, max(share, 0.2))
        made["device"] = {chance.choice(room.devices[node]): device}
    return made


def repaired(data: Data) -> bool:
    """Whether the scenario is valid, once what is refused has been taken out, key by key."""
    for _ in range(REPAIRS):
        refusal = refused(data)
        if refusal is None:
            return True
        taken = [take_out(data, mistake.key) for mistake in refusal.mistakes]
        if not any(taken):
            return False
        if any(mistake.key == "test.server" for mistake in refusal.mistakes):
            take_out(data, "test.client")
        data["test"] = SHORT | data.get("test", {})
    return False


def refused(data: Data) -> InputError | None:
    """Why a scenario cannot be run, as far as that is known before."""
    try:
        plan.build(scenario.load(data), Virtual.capabilities)
    except InputError as error:
        return error
    return None


def take_out(data: Data, key: str) -> bool:
    """Removes what a dotted key names, or the nearest thing above it; whether there was any."""
    names = [name for name in re.split(r"\.", key) if name]
    for length in range(len(names), 0, -1):
        parent: Any = data
        for name in names[: length - 1]:
            parent = _inside(parent, name)
        last = names[length - 1]
        if length == 1 and last in {"testbed", "test"}:
            return False
        if isinstance(parent, dict) and last in parent and key != "test.name":
            del parent[last]
            return True
        if isinstance(parent, list) and last.isdigit() and int(last) < len(parent):
            del parent[int(last)]
            return True
    return False


def _inside(parent: Any, name: str) -> Any:
    if isinstance(parent, dict):
        return parent.get(name)
    if isinstance(parent, list) and name.isdigit() and int(name) < len(parent):
        return parent[int(name)]
    return None
