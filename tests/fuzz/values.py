# SPDX-License-Identifier: Apache-2.0
"""Random values for the keys of a scenario, from its JSON Schema.

For enumerations, whole numbers, switches, quantities with units, and lists of them, the schema is enough. `TEXTS` and
`LIMITS` have what a schema cannot express. A key without a value is an error that names it. `LIMITS` keep runs short:
they bound the cost, not the legal values.
"""

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hourglass.scenario.event import TO_PROGRAMS
from hourglass.scenario.schema import scenario_schema
from hourglass.scenario.vocabulary import CONGESTION_CONTROLS

Schema = dict[str, Any]
Path = str
"""A key with [] for the place in a list and * for a name: `testbed.link[].rate`."""

SCHEMA: Schema = scenario_schema()

LEFT_OUT = {
    "description": "says nothing",
    "kernel": "each run has its own",
    "check": "decides nothing",
    "apps": "programs need a root that is fetched",
    "app": "programs need a root that is fetched",
    **{f"event[].{act}": "there are no programs" for act in TO_PROGRAMS},
    "testbed.preset": "a separate shape",
    "testbed.node": "shapes make them",
    "stack.*.device": "of a node's devices, by `draw`",
}
"""Keys that are not drawn, with the reason."""


@dataclass
class Scope:
    """The names to which values can refer: nodes and their devices."""

    nodes: list[str]
    devices: dict[str, list[str]] = field(default_factory=dict)
    switches: list[str] = field(default_factory=list)

    def end(self, chance: random.Random) -> str:
        node = chance.choice([node for node in self.nodes if self.devices.get(node)])
        return f"{node}:{chance.choice(self.devices[node])}"


Text = Callable[[random.Random, Scope], Any]

MTUS = (68, 73, 600, 1280, 1500)
QDISCS = (
    "pfifo limit 20", "bfifo limit 30000", "fq", "fq flow_limit 10", "fq_codel", "fq_codel limit 50 target 1ms",
    "codel",
    "cake bandwidth 20mbit", "cake bandwidth 5mbit rtt 10ms ack-filter", "pie", "fq_pie", "sfq perturb 1", "sfb", "hhf",
    "red limit 100000 avpkt 1000 bandwidth 10mbit", "choke limit 100 bandwidth 10mbit", "skbprio", "prio", "pfifo_fast",
    "tbf rate 10mbit burst 5k latency 20ms", "netem delay 3ms 1ms loss 2%", "netem delay 1ms reorder 10% duplicate 5%",
    "ets bands 4 strict 2", "cake unlimited", "mq", "mq fq_codel", "mq pfifo limit 20",
)  # fmt: skip
SYSCTLS: dict[str, tuple[object, ...]] = {
    "net.ipv4.tcp_ecn": (0, 1, 2), "net.ipv4.tcp_sack": (0, 1), "net.ipv4.tcp_timestamps": (0, 1),
    "net.ipv4.tcp_window_scaling": (0, 1), "net.ipv4.tcp_rmem": ("4096 16384 65536", "4096 131072 6291456"),
    "net.ipv4.tcp_wmem": ("4096 16384 65536",), "net.ipv4.tcp_mtu_probing": (0, 1, 2), "net.ipv4.tcp_frto": (0, 2),
    "net.ipv4.tcp_recovery": (0, 1), "net.ipv4.tcp_early_retrans": (0, 3), "net.ipv4.tcp_min_tso_segs": (1, 4),
    "net.ipv4.tcp_slow_start_after_idle": (0, 1), "net.ipv4.tcp_notsent_lowat": (16384,),
    "net.ipv4.tcp_autocorking": (0, 1),
}  # fmt: skip


def _trace(chance: random.Random, _: Scope) -> Any:
    steps = [[0, rate(chance, 3e5, 1e9)]]
    for time in sorted(chance.sample(range(1, 1000), chance.randint(0, 4))):
        steps.append([time / 1000, chance.choice([0, rate(chance, 3e5, 1e9)])])
    if chance.random() < 0.5:
        return steps
    if chance.random() < 0.5:
        return {"forward": steps}
    return {
        "forward": {"rate": steps, "repeat": 1},
        "reverse": {"opportunity_ms": sorted(chance.choices(range(50), k=9))},
    }


def _outage(chance: random.Random, _: Scope) -> Any:
    first, second = sorted(chance.sample(range(1, 900), 2))
    return [[first / 1000, second / 1000]]


def _sysctls(chance: random.Random, _: Scope) -> Any:
    return {name: chance.choice(SYSCTLS[name]) for name in chance.sample(sorted(SYSCTLS), chance.randint(1, 3))}


def _device(chance: random.Random, scope: Scope) -> str:
    return chance.choice(sorted({device for devices in scope.devices.values() for device in devices}))


TEXTS: dict[str, Text] = {
    r"name": lambda chance, _: f"fuzz-{chance.randrange(10**6)}",
    r"testbed\.link\[\]\.trace": _trace,
    r"testbed\.link\[\]\.outage": _outage,
    r"testbed\.link\[\]\.medium": lambda chance, _: chance.choice(["bus", "segment", ["up", "down"]]),
    r"testbed\.link\[\]\.addresses": lambda chance, _: [f"10.{(n := chance.randint(60, 99))}.0.1/24", f"10.{n}.0.2/24"],
    r"testbed\.link\[\]\.vlan": lambda chance, _: chance.choice([1, 10, 20, [10, 20], [1, 10, 20, 300]]),
    r"stack\.(\*\.)?(device\.\*\.)?(qdisc|ingress)": lambda chance, _: chance.choice(QDISCS),
    r"(stack|stack\.\*|test\.competing\[\])\.cc": lambda chance, _: chance.choice(CONGESTION_CONTROLS),
    r"test\.(flow_cc|cc_algos|tcp_cong_control)": lambda chance, _: chance.choices(
        CONGESTION_CONTROLS, k=chance.randint(1, 3)
    ),
    r"module": lambda _chance, _room: None,
    r"(stack\.(\*\.)?|event\[\]\.)sysctl": _sysctls,
    r"test\.(labels|ping_labels|hosts)": lambda _chance, _room: None,
    r"test\.datagrams\[\]\.name": lambda chance, _: f"stream {chance.randrange(100)}",
    r"test\.(client|server|competing\[\]\.(client|server)|datagrams\[\]\.(sender|receiver))|event\[\]\.node": (
        lambda chance, scope: chance.choice(scope.nodes)
    ),
    r"testbed\.netem\[\]\.delay": lambda chance, _: f"{_log(chance, 10, 200_000)}us",
    r"event\[\]\.device": _device,
    r"event\[\]\.channel": lambda chance, _: chance.choice([36, 40, 44, 48, 52, 64, 1, 6, 9]),
    r"event\[\]\.label": lambda _chance, _room: "a label",
    r"event\[\]\.tc": lambda chance, scope: f"qdisc replace dev {_device(chance, scope)} root {chance.choice(QDISCS)}",
    r"event\[\]\.ip": lambda chance, scope: f"link set {_device(chance, scope)} mtu {chance.choice(MTUS)}",
    r"event\[\]\.bridge": lambda chance, scope: chance.choice(
        [
            f"link set dev {(device := _device(chance, scope))} cost {chance.randint(1, 200)}",
            f"link set dev {device} learning {chance.choice(['on', 'off'])}",
            f"link set dev {device} isolated on",
            f"fdb replace 02:00:00:00:99:01 dev {device} master static",
        ]
    ),
    r"event\[\]\.iw": lambda chance, scope: f"dev {_device(chance, scope)} set power_save off",
    r"event\[\]\.ethtool": lambda chance, scope: f"-K {_device(chance, scope)} tso {chance.choice(['on', 'off'])}",
    r"event\[\]\.write": lambda chance, _: {"/proc/sys/net/ipv4/tcp_ecn": chance.choice([0, 1])},
}
"""A function for each pattern of a complete key. If it returns None, the key is omitted."""

LIMITS: dict[str, tuple[float, float]] = {
    r"test\.length": (0.2, 1.0),
    r"test\.delay": (0, 0.3),
    r"test\.step": (0.01, 0.5),
    r"test\.(http|ping|udp)_interval": (0.005, 0.5),
    r"test\.(upload|download|bidir)_streams": (1, 12),
    r"test\.competing\[\]\.(upload|download)_streams": (0, 4),
    r"test\.(http_workers|rr_streams|rpm_connections|rpm_probers)": (1, 10),
    r"test\.rpm_interval": (0.05, 0.5),
    r"test\.(rr_request|rr_response)": (1, 1e5),
    r"test\.http_sizes": (1, 3e5),
    r"test\.datagrams\[\]\.burst": (1, 100),
    r"test\.datagrams\[\]\.interval": (1e6, 1e9),
    r"test\.(udp_bandwidth|stream_(rates|writes)|competing\[\]\.(rate|writes)|datagrams\[\]\.rate)": (8e3, 1e8),
    r"test\.datagrams\[\]\.size": (4, 9000),
    r"testbed\.wifi\[\]\.others\.count": (0, 4),
    r"testbed\.link\[\]\.delay|event\[\]\.set\.delay": (1e2, 1e8),
    r"(testbed\.link\[\]|event\[\]\.set|stack\.\*\.device\.\*)\.mtu": (68, 9000),
    r"testbed\.link\[\]\.([rt]x|gro)_usecs": (0, 5000),
    r"testbed\.link\[\]\.link_up": (1e3, 1e9),
    r"testbed\.shaper\[\]\.rate": (1e5, 1e9),
    r"(testbed\.link\[\]|event\[\]\.set)\.rate": (1e5, 5e9),
    r"(testbed\.link\[\]|event\[\]\.set)\.(loss|corrupt|duplicate|reorder)(\.rate)?": (1e3, 3e8),
    r"testbed\.link\[\]\.trace\.forward\.repeat": (0.01, 1),
    r"measure\.(tcp|devices)": (1e6, 1e9),
    r"event\[\]\.at": (0, 0.6),
    r"event\[\]\.every": (0.05, 1),
    r"event\[\]\.count": (2, 5),
}
"""The lowest and the highest drawn value, in base units."""

_DEFAULTS = {"bit": (1e3, 5e9), "s": (1e3, 5e8), "B": (1, 1e6), "%": (1e4, 3e8)}
_UNITS = re.compile(r"\(([A-Za-z%|]+)\)\$$")


class Unknown(Exception):
    """A key for which no value can be drawn."""


def rate(chance: random.Random, low: float, high: float) -> str:
    return f"{_log(chance, low, high)}bit"


def _log(chance: random.Random, low: float, high: float) -> int:
    """Return a whole number: as often between 10 and 100 as between 1000 and 10,000, and sometimes a bound."""
    if chance.random() < 0.1:
        return int(chance.choice([low, high]))
    return min(max(int(math.exp(chance.uniform(math.log(low + 1), math.log(high + 1)))) - 1, int(low)), int(high))


def resolved(schema: Schema) -> Schema:
    while "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


def left_out(path: Path) -> bool:
    return any(path == prefix or path.startswith((f"{prefix}.", f"{prefix}[")) for prefix in LEFT_OUT)


def value(schema: Schema, path: Path, chance: random.Random, scope: Scope) -> Any:
    """Return a value for a key, or None to omit it. Raises Unknown."""
    for pattern, text in TEXTS.items():
        if re.fullmatch(pattern, path):
            return text(chance, scope)
    schema = resolved(schema)
    if "anyOf" in schema:
        alternatives = [alternative for alternative in schema["anyOf"] if _is_specific(alternative)]
        numbers = [alternative for alternative in alternatives if alternative.get("type") == "number"]
        alternatives = numbers or alternatives  # seconds may also be a text
        if not alternatives:
            raise Unknown(path)
        return value(chance.choice(alternatives), path, chance, scope)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return chance.choice(schema["enum"])
    match schema.get("type"):
        case "boolean":
            return chance.random() < 0.5
        case "integer":
            return _log(chance, *_bounds(path, schema["minimum"], schema.get("maximum", _DEFAULTS["bit"][1])))
        case "number":
            low, high = _bounds(path, schema["minimum"], min(schema["maximum"], 2.0))
            return round(chance.uniform(low, high), 3)
        case "string":
            return _text(schema, path, chance, scope)
        case "array":
            return _list(schema, path, chance, scope)
        case "object":
            return add_random_keys({}, schema, path, chance, scope, 0.5)
    raise Unknown(path)


def _is_specific(schema: Schema) -> bool:
    """Tell whether a schema has more than the type text."""
    return schema.get("type") != "null" and (schema.get("type") != "string" or "examples" in schema or "enum" in schema)


def _bounds(path: Path, low: float, high: float) -> tuple[float, float]:
    limits = next((bounds for pattern, bounds in LIMITS.items() if re.fullmatch(pattern, path)), (low, high))
    return max(low, limits[0]), min(high, limits[1])


def _text(schema: Schema, path: Path, chance: random.Random, scope: Scope) -> str:
    units = _UNITS.search(schema.get("pattern", ""))
    if units is None:
        if schema.get("examples") == ["client:eth0"]:
            return scope.end(chance)
        raise Unknown(path)
    last = units[1].split("|")[-1]
    base = {"ns": "s", "bit": "bit", "B": "B", "%": "%"}[last]
    low, high = _bounds(path, *_DEFAULTS[base])
    number = _log(chance, low, high)
    return f"{number / 1e7:.7f}%" if last == "%" else f"{number}{last}"


def _list(schema: Schema, path: Path, chance: random.Random, scope: Scope) -> list[Any] | None:
    items = schema.get("prefixItems")
    if items is None:
        low, high = schema.get("minItems", 1), schema.get("maxItems", 3)
        items = [schema["items"]] * chance.randint(low, high)
    nested = f"{path}[]" if "properties" in resolved(items[0]) else path
    return [value(item, nested, chance, scope) for item in items]


def add_random_keys(
    table: dict[str, Any], schema: Schema, path: Path, chance: random.Random, scope: Scope, share: float
) -> dict[str, Any]:
    """Add the required keys to a table, and each other key with the probability `share`. Existing keys remain."""
    schema = resolved(schema)
    for key, key_schema in schema["properties"].items():
        inner = f"{path}.{key}" if path else key
        if key in table or left_out(inner):
            continue
        if chance.random() < share or key in schema.get("required", ()):
            drawn = value(key_schema, inner, chance, scope)
            if drawn is not None:
                table[key] = drawn
    return table


def keys(schema: Schema = SCHEMA, path: Path = "") -> list[tuple[Path, Schema]]:
    """Return every key that is drawn, with its schema, except those whose tables a shape makes."""
    drawn = []
    for key, key_schema in resolved(schema)["properties"].items():
        inner = f"{path}.{key}" if path else key
        if left_out(inner) or any(re.fullmatch(pattern, inner) for pattern in TEXTS):
            continue
        nested = resolved(key_schema)
        items = resolved(nested.get("items", {})) if nested.get("type") == "array" else {}
        if "properties" in nested:
            drawn += keys(nested, inner)
        elif "properties" in items:
            drawn += keys(items, f"{inner}[]")
        else:
            drawn.append((inner, key_schema))
    return drawn
