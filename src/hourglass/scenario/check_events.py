# SPDX-License-Identifier: Apache-2.0
"""Checks of events across tables: that the node, the device and the link exist and support the action, and that a
tool's line begins correctly. Fills in the device if a node has only one.

The tool judges the rest of a line at the moment of the event. If it fails, the run ends and names the event.
"""

from collections.abc import Callable, Iterable
from functools import partial

from hourglass.errors import InputError, closest
from hourglass.qdisc_line import STAB_OPTIONS
from hourglass.scenario import check_lan, check_wifi
from hourglass.scenario.apps import App
from hourglass.scenario.blame import refusal, several
from hourglass.scenario.check_apps import check_placeholders
from hourglass.scenario.check_streams import check_node
from hourglass.scenario.device import IFB
from hourglass.scenario.event import ALL, Event
from hourglass.scenario.lan import BRIDGE
from hourglass.scenario.stack import Stack
from hourglass.scenario.testbed import IPV6_MTU_MIN, Testbed
from hourglass.scenario.values import NodeDevice
from hourglass.scenario.vocabulary import MULTIQUEUE_QDISCS, OTHER_QDISCS, QDISCS
from hourglass.scenario.wifi import CHANNELS

VERBS: dict[str, dict[str, tuple[str, ...]]] = {
    "tc": {
        "qdisc": ("add", "change", "replace", "delete", "del"),
        "class": ("add", "change", "replace", "delete", "del"),
        "filter": ("add", "change", "replace", "delete", "del"),
    },
    "ip": {
        "link": ("set",),
        "addr": ("add", "change", "replace", "delete", "del", "flush"),
        "address": ("add", "change", "replace", "delete", "del", "flush"),
        "route": ("add", "append", "change", "replace", "delete", "del", "flush"),
        "rule": ("add", "delete", "del", "flush"),
        "neigh": ("add", "change", "replace", "delete", "del", "flush"),
    },
    "bridge": {
        "link": ("set",),
        "fdb": ("add", "append", "replace", "delete", "del"),
        "mdb": ("add", "replace", "delete", "del"),
        "vlan": ("add", "set", "delete", "del"),
    },
}
"""Object → permitted verbs. NICs are not made, removed, renamed or moved, because their packets are followed."""

LINK_WORDS = ("name", "netns", "type", "master", "nomaster", "alias", "vf", "xdp")
"""Options of `ip link set` that would replace the device."""
SINGLE = {"root", "ingress", "clsact", "stab"}
PAIRS = {"dev", "parent", "handle", "classid", "estimator", *STAB_OPTIONS}
"""Words of a line of `tc qdisc` before the kind: alone, and with one argument."""


def resolve(
    events: tuple[Event, ...], testbed: Testbed, stack: Stack, apps: tuple[App, ...], own_qdiscs: tuple[str, ...]
) -> tuple[Event, ...]:
    """Return the events with their devices and the names of their programs. `own`: qdiscs of the scenario's modules.
    Raises InputError."""
    return tuple(
        _resolve(f"event.{index}", event, testbed, stack, apps, own_qdiscs) for index, event in enumerate(events)
    )


def _resolve(
    key: str, event: Event, testbed: Testbed, stack: Stack, apps: tuple[App, ...], own_qdiscs: tuple[str, ...]
) -> Event:
    check_node(f"{key}.node", event.node, [node.name for node in testbed.node])
    node_devices = _Devices(event.node, testbed, stack, own_qdiscs)
    match event.action:
        case "link" | "cable" | "set" as action:
            hint = "; for a radio, use station or ap" if node_devices.radios else ""
            resolved = _at(key, event, node_devices.cables, f"cable{hint}")
            if action == "set":
                _check_set(f"{key}.set", resolved, testbed)
            return resolved
        case "station":
            return _at(key, event, node_devices.stations, "radio of a station")
        case "ap":
            return _at(key, event, node_devices.access_points, "radio of an access point")
        case "channel":
            resolved = _at(key, event, node_devices.access_points, "radio of an access point")
            _check_channel(f"{key}.channel", resolved, testbed)
            return resolved
        case "bridge" if not node_devices.is_switch:
            raise refusal(f"{key}.bridge", "; ".join(event.bridge or ()), f"{event.node} is not a switch")
        case "tc" | "ip" | "bridge" | "iw" | "ethtool" as tool:
            for line in getattr(event, tool):
                check_placeholders(f"{key}.{tool}", line, testbed)
                CHECKS[tool](partial(refusal, f"{key}.{tool}", line), line.split(" "), node_devices)
        case "kill" | "pause" | "resume" | "restart" as act:
            return event.model_copy(update={act: _programs(f"{key}.{act}", event, act, apps)})
        case "power" if node_devices.radios:
            hint = "kill its programs, and have the station leave"
            raise refusal(f"{key}.power", event.power, f"{event.node} has a radio, which power cannot restart; {hint}")
    return event


def _programs(key: str, event: Event, act: str, apps: tuple[App, ...]) -> tuple[str, ...]:
    """Return the programs of that node that are meant."""
    programs = [app.name for app in apps if app.node == event.node]
    names: tuple[str, ...] = getattr(event, act)
    if names == (ALL,):
        names = tuple(programs)
    for name in names:
        if name not in programs:
            raise refusal(
                key,
                name,
                f"no such program of {event.node}. {closest(name, programs)}Programs: {several(programs) or 'none'}",
            )
    if not names:
        raise refusal(key, ALL, f"{event.node} has no program")
    return names


class _Devices:
    """The devices of a node, and the qdiscs that they may have."""

    def __init__(self, node: str, testbed: Testbed, stack: Stack, own_qdiscs: tuple[str, ...]) -> None:
        self.node = node
        self.qdiscs = (*QDISCS, *MULTIQUEUE_QDISCS, *OTHER_QDISCS, *own_qdiscs)
        self.cables = [end.device for link in testbed.link for end in link.ends if end.node == node]
        radios = [(key, position.device) for key, position in check_wifi.devices(testbed) if position.node == node]
        self.access_points = [device for key, device in radios if key.endswith(".ap")]
        self.stations = [device for key, device in radios if not key.endswith(".ap")]
        ingress = [device for device in (*self.cables, *self.radios) if stack.at(NodeDevice(node, device)).ingress]
        trunks = check_lan.trunks(testbed).items()
        tagged = [f"{end.device}.{vlan}" for end, vlans in trunks if end.node == node for vlan in vlans]
        self.is_switch = node in check_lan.switches(testbed.node)
        self.all = [
            *self.cables, *tagged, *self.radios, *(f"{IFB}{device}" for device in ingress),
            *([BRIDGE] if self.is_switch else []),
        ]  # fmt: skip

    @property
    def radios(self) -> list[str]:
        return [*self.access_points, *self.stations]


def _at(key: str, event: Event, devices: list[str], description: str) -> Event:
    """Return the event with its device, which is one of these."""
    if event.device is None:
        if len(devices) != 1:
            problem = f"has several: {several(devices)}; set device" if devices else f"has no {description}"
            raise refusal(f"{key}.device", None, f"{event.node} {problem}")
        return event.model_copy(update={"device": devices[0]})
    if event.device not in devices:
        hint = f"{closest(event.device, devices)}{event.node} has {several(devices) or 'none'}"
        raise refusal(f"{key}.device", event.device, f"is not a {description}. {hint}")
    return event


def _check_channel(key: str, event: Event, testbed: Testbed) -> None:
    cell = next(cell for cell in testbed.wifi if cell.ap == NodeDevice(event.node, str(event.device)))
    if event.channel not in CHANNELS[cell.band]:
        raise refusal(
            key, event.channel, f"must be a channel of {cell.band}: {', '.join(map(str, CHANNELS[cell.band]))}"
        )


def _check_set(key: str, event: Event, testbed: Testbed) -> None:
    device = NodeDevice(event.node, str(event.device))
    link = next(link for link in testbed.link if device in link.ends)
    change = event.set
    assert change is not None
    if change.rate is not None and (link.trace or link.outage):
        word = "trace" if link.trace else "outage"
        raise refusal(
            f"{key}.rate",
            change.model_dump()["rate"],
            f"cannot be combined with the link's {word}, which decides its rate",
        )
    if change.mtu is not None and testbed.ip == 6 and change.mtu < IPV6_MTU_MIN:
        raise refusal(f"{key}.mtu", change.mtu, f"must be at least {IPV6_MTU_MIN} for IPv6")


Refuse = Callable[[str], InputError]


def _check_tc(refuse: Refuse, tokens: list[str], node_devices: _Devices) -> None:
    _check_verb(refuse, "tc", tokens)
    _check_device(refuse, tokens, node_devices)
    if tokens[0] == "qdisc" and (kind := _kind(tokens[2:])) and kind not in node_devices.qdiscs:
        raise refuse(f"{closest(kind, node_devices.qdiscs)}A qdisc is one of {', '.join(node_devices.qdiscs)}")


def _check_ip(refuse: Refuse, tokens: list[str], node_devices: _Devices) -> None:
    _check_verb(refuse, "ip", tokens)
    if tokens[0] == "link":
        if word := next((word for word in tokens if word in LINK_WORDS), ""):
            raise refuse(f"{word} would replace, rename or move the device; a device stays the same during a run")
        device = tokens[2] if len(tokens) > 2 and tokens[2] not in ("dev", "group") else ""
        if device and device not in node_devices.all:
            raise _no_such(refuse, device, node_devices.all, node_devices)
    if tokens[0] != "route" or "dev" in tokens:
        _check_device(refuse, tokens, node_devices, needed=tokens[0] in ("addr", "address", "neigh"))


def _check_iw(refuse: Refuse, tokens: list[str], node_devices: _Devices) -> None:
    if tokens[0] != "dev" or len(tokens) < 3:
        raise refuse("must begin with dev DEVICE")
    if tokens[1] not in node_devices.radios:
        raise _no_such(refuse, tokens[1], node_devices.radios, node_devices)


def _check_ethtool(refuse: Refuse, tokens: list[str], node_devices: _Devices) -> None:
    if not tokens[0].startswith("-") or len(tokens) < 2:
        raise refuse("must begin with an option and the device, like -K eth0 tso off")
    if tokens[1] not in node_devices.all:
        raise _no_such(refuse, tokens[1], node_devices.all, node_devices)


def _check_bridge(refuse: Refuse, tokens: list[str], node_devices: _Devices) -> None:
    _check_verb(refuse, "bridge", tokens)
    _check_device(refuse, tokens, node_devices)


CHECKS = {"tc": _check_tc, "ip": _check_ip, "bridge": _check_bridge, "iw": _check_iw, "ethtool": _check_ethtool}


def _check_verb(refuse: Refuse, tool: str, tokens: list[str]) -> None:
    objects = VERBS[tool]
    if tokens[0] == tool:
        raise refuse(f"must be the text after {tool}")
    if tokens[0] not in objects:
        raise refuse(f"{closest(tokens[0], objects)}The first word is one of {', '.join(objects)}")
    verbs = objects[tokens[0]]
    verb = tokens[1] if len(tokens) > 1 else ""
    if verb not in verbs:
        raise refuse(f"{closest(verb, verbs)}{tokens[0]} is followed by {', '.join(verbs)}")


def _check_device(refuse: Refuse, tokens: list[str], node_devices: _Devices, needed: bool = True) -> None:
    position = tokens.index("dev") + 1 if "dev" in tokens[:-1] else 0
    if not position:
        if needed:
            raise refuse(f"names no device; add dev {node_devices.all[0] if node_devices.all else 'DEVICE'}")
    elif tokens[position] not in [*node_devices.all, "lo"]:
        raise _no_such(refuse, tokens[position], node_devices.all, node_devices)


def _no_such(refuse: Refuse, device: str, devices: Iterable[str], node_devices: _Devices) -> InputError:
    known_devices = list(devices)
    return refuse(
        f"no such device: {device}. {closest(device, known_devices)}"
        f"Devices of {node_devices.node}: {several(known_devices) or 'none'}"
    )


def _kind(tokens: list[str]) -> str:
    """Return the kind in a line of `tc qdisc`, after the verb; "" without one."""
    tokens_left = iter(tokens)
    for word in tokens_left:
        if word in PAIRS:
            next(tokens_left, "")
        elif word not in SINGLE:
            return word
    return ""
