# SPDX-License-Identifier: Apache-2.0
"""A random valid scenario for a seed: a shape with random keys. Keys that a refusal names are removed, so the remaining
scenario is valid under all rules."""

import random
import re
from typing import Any

from hourglass import plan, scenario
from hourglass.engine.virtual import Virtual
from hourglass.errors import InputError

from .shapes import SHAPES, event
from .values import SCHEMA, Scope, add_random_keys, resolved, value

REPAIRS = 60

SHORT = {"length": 0.7}
"""The length of a test whose length was refused. The default would last too long."""

Data = dict[str, Any]


def draw(seed: str, kernel: str) -> Data:
    """Return the scenario of a seed. Raises ValueError if none can be made: a bug here."""
    for attempt in range(20):
        chance = random.Random(f"{seed} {attempt}")
        data = _random_scenario(chance)
        data["kernel"] = kernel
        if repaired(data):
            return data
    raise ValueError(seed)


def _random_scenario(chance: random.Random) -> Data:
    testbed, scope = chance.choice(SHAPES)(chance)
    share = chance.choice([0.02, 0.1, 0.3])
    data: Data = {"name": f"fuzz-{chance.randrange(10**6)}", "seed": chance.randrange(1000), "testbed": testbed}
    schema = SCHEMA["properties"]
    for key, definition in (("node", None), ("link", "Link"), ("wifi", "Wifi")):
        for table in testbed.get(key, []) if definition else []:
            add_random_keys(table, {"$ref": f"#/$defs/{definition}"}, f"testbed.{key}[]", chance, scope, share)
    for cell in testbed.get("wifi", []):
        for station in cell["station"]:
            add_random_keys(station, {"$ref": "#/$defs/Station"}, "testbed.wifi[].station[]", chance, scope, share)
    for key in ("shaper", "netem"):
        if chance.random() < 0.4:
            schema_of_item = resolved(resolved(SCHEMA["$defs"]["Testbed"])["properties"][key]["items"])
            testbed[key] = [add_random_keys({}, schema_of_item, f"testbed.{key}[]", chance, scope, share)]
    data["stack"] = add_random_keys({}, schema["stack"], "stack", chance, scope, share)
    if chance.random() < 0.5:
        node = chance.choice(scope.nodes)
        data["stack"][node] = _node(node, chance, scope, share)
    names = resolved(schema["test"])["properties"]["name"]["enum"]
    test = {"name": chance.choice([name for name in names if name != "none"])}
    test |= {key: _drawn("test", key, chance, scope) for key in ("length", "delay")}
    data["test"] = add_random_keys(test, schema["test"], "test", chance, scope, share / 2)
    for key in ("flow", "measure", "capture"):
        table = add_random_keys({}, schema[key], key, chance, scope, share)
        if table:
            data[key] = table
    if chance.random() < 0.5:
        data["event"] = [event(chance, scope) for _ in range(chance.randint(1, 3))]
    return data


def _drawn(table: str, key: str, chance: random.Random, scope: Scope) -> Any:
    return value(resolved(SCHEMA["properties"][table])["properties"][key], f"{table}.{key}", chance, scope)


def _node(node: str, chance: random.Random, scope: Scope, share: float) -> Data:
    stack = add_random_keys({}, {"$ref": "#/$defs/NodeStack"}, "stack.*", chance, scope, share)
    if scope.devices.get(node) and chance.random() < 0.5:
        device = add_random_keys(
            {}, {"$ref": "#/$defs/DeviceStack"}, "stack.*.device.*", chance, scope, max(share, 0.2)
        )
        stack["device"] = {chance.choice(scope.devices[node]): device}
    return stack


def repaired(data: Data) -> bool:
    """Remove refused keys one by one. Tell whether the scenario is valid then."""
    for _ in range(REPAIRS):
        refusal = refused(data)
        if refusal is None:
            return True
        removed = [remove_key(data, mistake.key) for mistake in refusal.mistakes]
        if not any(removed):
            return False
        if any(mistake.key == "test.server" for mistake in refusal.mistakes):
            remove_key(data, "test.client")
        data["test"] = SHORT | data.get("test", {})
    return False


def refused(data: Data) -> InputError | None:
    """Return the error of a scenario that is refused before its run, or None."""
    try:
        plan.build(scenario.load(data), Virtual.capabilities)
    except InputError as error:
        return error
    return None


def remove_key(data: Data, key: str) -> bool:
    """Remove a dotted key, or the nearest table above it. Tell whether one existed."""
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
