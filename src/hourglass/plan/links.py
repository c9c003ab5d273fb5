# SPDX-License-Identifier: Apache-2.0
"""Devices: the steps that make NICs, set them, bring them up with addresses and routes, and plug their cables in.

The `ip` lines of a node are one batch: the NIC comes up without a cable, addresses and routes do not mind, and the
carrier follows when the cable is plugged. Where `ethtool` is to set something it has to come before the NIC is up
(changing a ring restarts the NIC, which drops its routes), and the node's `ip` lines are two batches.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from hourglass.contract.plan import BatchStep, EpochStep, EthtoolStep, Step, WriteStep
from hourglass.plan import qdiscs, reals
from hourglass.plan.edge import edge
from hourglass.plan.network import Network, Port
from hourglass.plan.seeds import link_seed
from hourglass.plan.traces import trace_text
from hourglass.scenario import Link, Stack, Testbed, nics
from hourglass.scenario.blame import dotted, refusal
from hourglass.scenario.device import OF_NICS
from hourglass.scenario.edge import away
from hourglass.scenario.testbed import GIGABIT
from hourglass.scenario.values import Place

Nic = Literal["wire", "veth", "real"]
NO_SUCH = "a link made as a veth pair has none"
OWN_METRIC = 7
"""Of routes on a machine that may have one to the same subnet."""

CHANGEABLE = ("rate", "delay", "jitter", "loss", "corrupt", "duplicate", "reorder")
"""Keys of a link with a value per direction, which the driver takes at any time."""
ATTRIBUTE_DEFAULTS = {"rate_bps": GIGABIT}
"""What the driver begins with where it is not 0."""

_RINGS = {"rx_ring": "rx", "tx_ring": "tx"}
_MODERATION = {"rx_usecs": "rx-usecs", "rx_frames": "rx-frames", "tx_usecs": "tx-usecs", "tx_frames": "tx-frames"}
_CHIP = ("vectors", "moderation", "tx_fifo", "tx_wake", "rx_copy", "rx_buffer", "rx_large")
_BEGINS = nics.defaults(nics.DEFAULT, nics.STANDARD_MTU, {})
"""The driver's own NIC."""
_OFFLOADS = {"checksum": ("rx", "tx"), "tso": ("tso",), "gso": ("gso",), "gro": ("gro",)}


def key(link: int, name: str = "") -> str:
    """The scenario's key of a link or of one of its settings."""
    return dotted(["testbed", "link", link, *([name] if name else [])])


def make(testbed: Testbed, stack: Stack, network: Network, node: str, nic: Nic) -> list[Step]:
    """The node's NICs, up, with addresses and routes. Veth pairs are there already."""
    ports = [(port, testbed.link[port.link]) for port in network.wires(node)]
    steps: list[Step] = [
        BatchStep(do="ip", node=node, lines=[line], origin=key(port.link))
        for port, link in ports
        if (line := reals.mtu(port, link) if nic == "veth" and reals.of(testbed, port) else _device(port, link, nic))
    ]
    for port, link in ports:
        steps += ethtool(port, link, stack, nic)
        steps += chip(port, link) if nic == "wire" else []
    return steps + up(testbed, stack, network, node, there=nic == "real")


def pairs(testbed: Testbed, stack: Stack, network: Network) -> Iterator[Step]:
    """All links as veth pairs, but for those whose ends interfaces of the machine play. Refuses what neither can do."""
    for link, (a, b) in enumerate(network.ports):
        if reals.is_real(testbed, a, b):
            yield from reals.take(testbed, a, b)
            continue
        _refuse_for_veth(link, testbed.link[link])
        for port in (a, b):
            _refuse_ring_for_veth(stack, Place(port.node, port.device))
        pair = f"link add dev {a.device} type veth peer name {b.device} netns {b.node}"
        yield BatchStep(do="ip", node=a.node, lines=[pair], origin=key(link))


def mac(port: Port) -> str:
    """A locally administered address that tells link and side."""
    return f"02:00:00:{port.link >> 8:02x}:{port.link & 255:02x}:{port.side + 1:02x}"


def _device(port: Port, link: Link, nic: Nic) -> str:
    mtu = f" mtu {link.mtu}" if _changed(link, "mtu") else ""
    if nic == "real":
        return f"link set dev {port.device}{mtu}" if mtu else ""
    settings = f"dev {port.device} address {mac(port)}{mtu}"
    return f"link add {settings} type wire" if nic == "wire" else f"link set {settings}"


def up(testbed: Testbed, stack: Stack, network: Network, node: str, there: bool = False) -> list[Step]:
    """Brings the node's devices up, then gives addresses, then routes. `there`: the node is a machine, which may have
    them already."""
    act = "replace" if there else "add"
    steps: list[Step] = []
    for port in network.of(node):
        place = Place(node, port.device)
        if mtu := stack.at(place).mtu:
            line = f"link set dev {port.device} mtu {mtu}"
            steps.append(BatchStep(do="ip", node=node, lines=[line], origin=stack.device_origin(place, "mtu")))
        nodad = " nodad" if port.address.version == 6 else ""
        lines = [f"link set dev {port.device} up", f"addr {act} {port.address} dev {port.device}{nodad}"]
        origin = "testbed.wifi" if port.radio else key(port.link, "addresses")
        steps.append(BatchStep(do="ip", node=node, lines=lines, origin=origin))
    steps += qdiscs.ifb(stack, network, node, testbed.ip)
    least = f" metric {OWN_METRIC}" if there else ""  # the machine's own route to the same comes first
    routes = [f"route {act} {route.subnet} via {route.via}{least}" for route in network.routes(node)]
    if routes:
        steps.append(BatchStep(do="ip", node=node, lines=routes, origin="testbed"))
    return steps


def ethtool(port: Port, link: Link, stack: Stack, nic: Nic) -> list[Step]:
    """The NIC's settings, one call for rings, one for moderation, one for offloads. Each is a process, and what the
    scenario declares as a default is what our driver begins with; a veth pair's offloads begin otherwise."""
    place = Place(port.node, port.device)
    own = stack.at(place)
    nic_own = {name: value for name in OF_NICS if (value := getattr(own, name)) is not None}
    if nic_own.get("checksum") is False:
        nic_own["tso"] = False
    wanted = link.model_copy(update=nic_own)

    def step(option: str, names: Iterable[str], arguments: list[str]) -> list[Step]:
        args = [option, port.device, *arguments]
        origin = stack.device_origin(place) if nic_own.keys() & set(names) else key(port.link)
        return [EthtoolStep(do="ethtool", node=port.node, args=args, origin=origin)] if arguments else []

    offloads = [
        word
        for name, features in _OFFLOADS.items()
        for feature in features
        if nic == "veth" or _changed(wanted, name)  # a cable's NIC is as it is where nothing else is asked for
        for word in (feature, "on" if getattr(wanted, name) else "off")
    ]
    if nic == "real":  # what the link says of rings and moderation describes them
        rings = [word for name, option in _RINGS.items() if name in nic_own for word in (option, str(nic_own[name]))]
        return [*step("-G", _RINGS, rings), *step("-K", _OFFLOADS, offloads)]
    return [
        *step("-G", _RINGS, _numbers(wanted, _RINGS)),
        *step("-C", _MODERATION, _numbers(wanted, _MODERATION)),
        *step("-K", _OFFLOADS, offloads),
    ]


def chip(port: Port, link: Link) -> list[Step]:
    """What the NIC is, where it is not what the driver begins with; set while it is down."""
    folder = f"/sys/class/net/{port.device}/wire"
    return [
        WriteStep(
            do="write",
            node=port.node,
            path=f"{folder}/{name}",
            value=str(getattr(link, name)),
            origin=key(port.link, name if link.nic == nics.DEFAULT else "nic"),
        )
        for name in _CHIP
        if _changed(link, name)
    ]


def _numbers(link: Link, names: dict[str, str]) -> list[str]:
    return [
        word for name, option in names.items() if _changed(link, name) for word in (option, str(getattr(link, name)))
    ]


def _changed(link: Link, name: str) -> bool:
    """Whether a setting of both NICs is another than what the driver begins with."""
    return bool(getattr(link, name) != _BEGINS.get(name, Link.model_fields[name].default))


def plug(testbed: Testbed, stack: Stack, seed: int, port: Port) -> Iterator[Step]:
    """The wire driver's parameters of the direction away from the port; last, the cable."""
    link, side = testbed.link[port.link], port.side
    folder = f"/sys/class/net/{port.device}/wire"

    def write(name: str, value: object, origin: str) -> WriteStep:
        return WriteStep(do="write", node=port.node, path=f"{folder}/{name}", value=str(value), origin=origin)

    yield write("seed", link_seed(seed, port.link, side), "seed")
    for name in CHANGEABLE:
        for attribute, value in attributes(link, side, name):
            if value != ATTRIBUTE_DEFAULTS.get(attribute, 0):
                yield write(attribute, value, key(port.link, name))
    if text := trace_text(link, side):
        origin = key(port.link, "trace" if link.trace else "outage")
        yield write("trace", text, origin)
        yield EpochStep(do="epoch", node=port.node, path=f"{folder}/epoch_ns", origin=origin)
    for name, value, origin in edge(testbed, stack, port):
        yield write(name, value, key(port.link, origin))
    if (shaper := away(link.shaper, side)) and shaper.grant_cycle:
        origin = key(port.link, "shaper")
        yield EpochStep(do="epoch", node=port.node, path=f"{folder}/shaper_grant_epoch_ns", origin=origin)
    yield write("cable", port.link, key(port.link, "ends"))


def attributes(link: Link, side: int, name: str) -> Iterator[tuple[str, int]]:
    """A link's key as the driver's attributes of the direction away from `side`."""
    value = getattr(link, name)[side]
    match name:
        case "rate":
            yield "rate_bps", value
        case "delay" | "jitter":
            yield f"{name}_ns", value
        case "loss":
            yield "loss_ppb", value.rate
            yield "loss_burst_milli", value.burst or 0
        case "reorder":
            yield "reorder_ppb", value
            yield "reorder_ns", link.reorder_delay if value else 0
        case _:
            yield f"{name}_ppb", value


def _refuse_ring_for_veth(stack: Stack, place: Place) -> None:
    for name in _RINGS:
        if (value := getattr(stack.at(place), name)) is not None:
            raise refusal(stack.device_origin(place, name), value, NO_SUCH)


def refuse_for_cable(index: int, link: Link) -> None:
    """A cable that is there has the impairments it has: what asks for others cannot be obeyed."""
    nothing = Link(ends=link.ends)
    for name in (*CHANGEABLE, "trace", "outage", "duplex", "medium", "policer", "shaper"):
        if name not in ("rate", "delay") and getattr(link, name) != getattr(nothing, name):
            raise refusal(key(index, name), link.model_dump()[name], "a real cable has none; use netem or a shaper")


def _refuse_for_veth(index: int, link: Link) -> None:
    """A veth pair has no rate, no delay, no faults, no ring: what asks for one cannot be obeyed."""
    nothing = Link(ends=link.ends).model_copy(update=_BEGINS)
    able = {"ends", "addresses", "mtu", *_OFFLOADS}
    for name in Link.model_fields:
        if name not in able and getattr(link, name) != getattr(nothing, name):
            raise refusal(key(index, name), link.model_dump()[name], NO_SUCH)
