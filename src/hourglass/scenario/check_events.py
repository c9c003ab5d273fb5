# SPDX-License-Identifier: Apache-2.0
"""What no single value of an event shows: that its node, its device and its link are there and can do it, and that a
line of a tool begins as the tool's lines do. Fills in the device where there is but one.

The rest of a line is the tool's to judge, at the moment of the event: a run that it ends names the event.
"""

from collections.abc import Callable, Iterable
from functools import partial

from hourglass.errors import InputError, closest
from hourglass.scenario import check_wifi
from hourglass.scenario.app import App
from hourglass.scenario.blame import refusal, several
from hourglass.scenario.check_streams import check_node
from hourglass.scenario.device import IFB
from hourglass.scenario.event import ALL, Event
from hourglass.scenario.stack import Stack
from hourglass.scenario.testbed import IPV6_MTU_MIN, Testbed
from hourglass.scenario.values import Place
from hourglass.scenario.vocabulary import CLASSFUL_QDISCS, QDISCS
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
}
"""Object → what may be done with it. NICs are not made, unmade, renamed or moved: their packets are followed."""

LINK_WORDS = ("name", "netns", "type", "master", "nomaster", "alias", "vf", "xdp")
"""Of `ip link set`, what makes another device of it."""
SINGLE = {"root", "ingress", "clsact"}
PAIRS = {"dev", "parent", "handle", "classid", "estimator"}
"""Words of a line of `tc qdisc` before the kind: alone, and with one more."""


def resolve(
    events: tuple[Event, ...], testbed: Testbed, stack: Stack, apps: tuple[App, ...], own: tuple[str, ...]
) -> tuple[Event, ...]:
    """Each with its device, and its programs by their names. `own`: qdiscs of the scenario's modules. Raises
    InputError."""
    return tuple(_resolve(f"event.{index}", event, testbed, stack, apps, own) for index, event in enumerate(events))


def _resolve(
    key: str, event: Event, testbed: Testbed, stack: Stack, apps: tuple[App, ...], own: tuple[str, ...]
) -> Event:
    check_node(f"{key}.node", event.node, [node.name for node in testbed.node])
    here = _Devices(event.node, testbed, stack, own)
    match event.action:
        case "link" | "cable" | "set" as action:
            hint = "; a radio leaves and returns: station, ap" if here.radios else ""
            made = _at(key, event, here.cables, f"cable{hint}")
            if action == "set":
                _check_set(f"{key}.set", made, testbed)
            return made
        case "station":
            return _at(key, event, here.stations, "radio of a station")
        case "ap":
            return _at(key, event, here.access_points, "radio of an access point")
        case "channel":
            made = _at(key, event, here.access_points, "radio of an access point")
            _check_channel(f"{key}.channel", made, testbed)
            return made
        case "tc" | "ip" | "iw" | "ethtool" as tool:
            for line in getattr(event, tool):
                CHECKS[tool](partial(refusal, f"{key}.{tool}", line), line.split(" "), here)
        case "kill" | "pause" | "resume" | "restart" as act:
            return event.model_copy(update={act: _programs(f"{key}.{act}", event, act, apps)})
        case "power" if here.radios:
            hint = "kill its programs, and have the station leave"
            raise refusal(
                f"{key}.power", event.power, f"{event.node} has a radio, which needs more to begin anew: {hint}"
            )
    return event


def _programs(key: str, event: Event, act: str, apps: tuple[App, ...]) -> tuple[str, ...]:
    """The programs that are meant: of that node."""
    here = [one.name for one in apps if one.node == event.node]
    wanted: tuple[str, ...] = getattr(event, act)
    if wanted == (ALL,):
        wanted = tuple(here)
    for one in wanted:
        if one not in here:
            raise refusal(
                key, one, f"no program of {event.node}. {closest(one, here)}Programs there: {several(here) or 'none'}"
            )
    if not wanted:
        raise refusal(key, ALL, f"{event.node} has no program")
    return wanted


class _Devices:
    """The devices of a node, and the qdiscs that they may have."""

    def __init__(self, node: str, testbed: Testbed, stack: Stack, own: tuple[str, ...]) -> None:
        self.node = node
        self.qdiscs = (*QDISCS, *CLASSFUL_QDISCS, *own)
        self.cables = [end.device for link in testbed.link for end in link.ends if end.node == node]
        radios = [(key, place.device) for key, place in check_wifi.devices(testbed) if place.node == node]
        self.access_points = [device for key, device in radios if key.endswith(".ap")]
        self.stations = [device for key, device in radios if not key.endswith(".ap")]
        ingress = [device for device in (*self.cables, *self.radios) if stack.at(Place(node, device)).ingress]
        self.all = [*self.cables, *self.radios, *(f"{IFB}{device}" for device in ingress)]

    @property
    def radios(self) -> list[str]:
        return [*self.access_points, *self.stations]


def _at(key: str, event: Event, devices: list[str], what: str) -> Event:
    """The event with its device, which is one of these."""
    if event.device is None:
        if len(devices) != 1:
            found = f"has several: {several(devices)}; name one" if devices else f"has no {what}"
            raise refusal(f"{key}.device", None, f"{event.node} {found}")
        return event.model_copy(update={"device": devices[0]})
    if event.device not in devices:
        known = f"{closest(event.device, devices)}{event.node} has {several(devices) or 'none'}"
        raise refusal(f"{key}.device", event.device, f"is no {what}. {known}")
    return event


def _check_channel(key: str, event: Event, testbed: Testbed) -> None:
    cell = next(cell for cell in testbed.wifi if cell.ap == Place(event.node, str(event.device)))
    if event.channel not in CHANNELS[cell.band]:
        raise refusal(key, event.channel, f"at {cell.band}: {', '.join(map(str, CHANNELS[cell.band]))}")


def _check_set(key: str, event: Event, testbed: Testbed) -> None:
    place = Place(event.node, str(event.device))
    link = next(link for link in testbed.link if place in link.ends)
    change = event.set
    assert change is not None
    if change.rate is not None and (link.trace or link.outage):
        word = "trace" if link.trace else "outage"
        raise refusal(f"{key}.rate", change.model_dump()["rate"], f"the link has {word}, which says what its rate is")
    if change.mtu is not None and testbed.ip == 6 and change.mtu < IPV6_MTU_MIN:
        raise refusal(f"{key}.mtu", change.mtu, f"at least {IPV6_MTU_MIN} for IPv6")


Refuse = Callable[[str], InputError]


def _check_tc(refuse: Refuse, words: list[str], here: _Devices) -> None:
    _check_verb(refuse, "tc", words)
    _check_device(refuse, words, here)
    if words[0] == "qdisc" and (kind := _kind(words[2:])) and kind not in here.qdiscs:
        raise refuse(f"{closest(kind, here.qdiscs)}A qdisc is one of {', '.join(here.qdiscs)}")


def _check_ip(refuse: Refuse, words: list[str], here: _Devices) -> None:
    _check_verb(refuse, "ip", words)
    if words[0] == "link":
        if word := next((word for word in words if word in LINK_WORDS), ""):
            raise refuse(f"{word}: a device stays what and where it is during a run")
        named = words[2] if len(words) > 2 and words[2] not in ("dev", "group") else ""
        if named and named not in here.all:
            raise _no_such(refuse, named, here.all, here)
    if words[0] != "route" or "dev" in words:
        _check_device(refuse, words, here, needed=words[0] in ("addr", "address", "neigh"))


def _check_iw(refuse: Refuse, words: list[str], here: _Devices) -> None:
    if words[0] != "dev" or len(words) < 3:
        raise refuse("begins with dev DEVICE")
    if words[1] not in here.radios:
        raise _no_such(refuse, words[1], here.radios, here)


def _check_ethtool(refuse: Refuse, words: list[str], here: _Devices) -> None:
    if not words[0].startswith("-") or len(words) < 2:
        raise refuse("begins with an option and the device, like -K eth0 tso off")
    if words[1] not in here.all:
        raise _no_such(refuse, words[1], here.all, here)


CHECKS = {"tc": _check_tc, "ip": _check_ip, "iw": _check_iw, "ethtool": _check_ethtool}


def _check_verb(refuse: Refuse, tool: str, words: list[str]) -> None:
    objects = VERBS[tool]
    if words[0] == tool:
        raise refuse(f"what follows {tool}")
    if words[0] not in objects:
        raise refuse(f"{closest(words[0], objects)}The first word is one of {', '.join(objects)}")
    verbs = objects[words[0]]
    verb = words[1] if len(words) > 1 else ""
    if verb not in verbs:
        raise refuse(f"{closest(verb, verbs)}{words[0]} is followed by {', '.join(verbs)}")


def _check_device(refuse: Refuse, words: list[str], here: _Devices, needed: bool = True) -> None:
    place = words.index("dev") + 1 if "dev" in words[:-1] else 0
    if not place:
        if needed and words[0] != "link":
            raise refuse(f"names no device: dev {here.all[0] if here.all else 'DEVICE'}")
    elif words[place] not in [*here.all, "lo"]:
        raise _no_such(refuse, words[place], here.all, here)


def _no_such(refuse: Refuse, device: str, devices: Iterable[str], here: _Devices) -> InputError:
    known = list(devices)
    return refuse(
        f"no such device: {device}. {closest(device, known)}Devices of {here.node}: {several(known) or 'none'}"
    )


def _kind(words: list[str]) -> str:
    """The kind in a line of `tc qdisc`, behind the verb; "" without one."""
    rest = iter(words)
    for word in rest:
        if word in PAIRS:
            next(rest, "")
        elif word not in SINGLE:
            return word
    return ""
