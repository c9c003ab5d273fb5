# SPDX-License-Identifier: Apache-2.0
"""Devices: the steps that make NICs, set them, bring them up with addresses and routes, and plug their cables in.

The `ip` steps of a node are adjacent, so they are one batch. The NIC comes up without a cable, which does not affect
addresses and routes. The carrier follows when the cable is plugged. If `ethtool` sets something, it must run before the
NIC is up, because changing a ring restarts the NIC, which drops its routes. The node then has two batches.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from hourglass.contract.plan import (
    AddressStep,
    BatchStep,
    DeviceStep,
    EpochStep,
    EthtoolStep,
    LinkStep,
    RouteStep,
    Step,
    VethStep,
    WriteStep,
)
from hourglass.contract.plan.steps import Act
from hourglass.plan import real_cables, switches
from hourglass.plan.network import Network, Route
from hourglass.plan.port import Port
from hourglass.plan.seeds import link_seed
from hourglass.scenario import Link, Stack, Testbed, nics
from hourglass.scenario.blame import dotted, refusal
from hourglass.scenario.check_lan import joins_switches
from hourglass.scenario.check_scenario import frame_bytes, medium
from hourglass.scenario.device import IFB, OF_NICS
from hourglass.scenario.edge import away
from hourglass.scenario.lan import BRIDGE
from hourglass.scenario.quantities import seconds_ns
from hourglass.scenario.trace import Trace
from hourglass.scenario.values import NodeDevice

Nic = Literal["wire", "veth", "real"]
VETH_HAS_NONE = "a link that is a veth pair does not support this"
MACHINE_METRIC = 7
"""The metric of routes on a machine that may already have one to the same subnet."""

CHANGEABLE = ("rate", "delay", "jitter", "loss", "corrupt", "duplicate", "reorder")
"""Keys of a link with a value per direction, which the driver accepts at any time."""
ATTRIBUTE_DEFAULTS = {"rate_bps": nics.GIGABIT}
"""The driver's initial values that are not 0."""

OPPORTUNITY_BYTES = 1538
"""A Mahimahi opportunity lets one 1500-byte packet pass: on the cable, with header, preamble, FCS and gap, 1538."""
NS_PER_MS = 10**6

BQL_MAX = "/sys/class/net/{}/queues/tx-{}/byte_queue_limits/limit_max"
_RINGS = {"rx_ring": "rx", "tx_ring": "tx"}
_MODERATION = {"rx_usecs": "rx-usecs", "rx_frames": "rx-frames", "tx_usecs": "tx-usecs", "tx_frames": "tx-frames"}
_CHIP = (
    "vectors", "moderation", "tx_fifo", "tx_wake", "tx_context", "bql_headers", "rx_copy", "rx_buffer", "rx_large",
    "phc", "launch_time", "gates",
)  # fmt: skip
_DRIVER_DEFAULTS, _SWITCH_DEFAULTS = (
    nics.defaults(nic, nics.STANDARD_MTU, {}) | {"nic": nic} for nic in (nics.DEFAULT, nics.SWITCH)
)
"""The driver's default NIC, and a port of a switch."""
_NAPI = {"gro_usecs": ("gro_flush_timeout", 1000), "defer_irqs": ("napi_defer_hard_irqs", 1)}
"""Key of a link → file of the device, and its unit."""
_OFFLOADS = {"checksum": ("rx", "tx"), "sg": ("sg",), "tso": ("tso",), "gso": ("gso",), "gro": ("gro",)}


def key(link: int, name: str = "") -> str:
    """Return the scenario's key of a link or of one of its settings."""
    return dotted(["testbed", "link", link, *([name] if name else [])])


def make(testbed: Testbed, stack: Stack, network: Network, node: str, nic: Nic) -> list[Step]:
    """Yield the steps for the node's NICs, up, with addresses and routes. Veth pairs exist already."""
    ports = [(port, _link(testbed, network, port)) for port in network.wires(node)]
    steps: list[Step] = [
        step
        for port, link in ports
        if (step := _device(port, link, "real" if nic == "veth" and real_cables.interface_of(testbed, port) else nic))
    ]
    for port, link in ports:
        steps += ethtool(port, link, stack, nic)
        steps += chip(port, link) if nic == "wire" else []
    return steps + up(testbed, stack, network, node, on_machine=nic == "real")


def _link(testbed: Testbed, network: Network, port: Port) -> Link:
    """Return a port's link with the settings of its NIC: a switch's port towards a host has those of switches."""
    link = testbed.link[port.link]
    if port.node not in network.lans.switches or joins_switches(link, network.lans.switches):
        return link
    return link.model_copy(update=_SWITCH_DEFAULTS if link.checksum else {**_SWITCH_DEFAULTS, "tso": False})


def queues_at(testbed: Testbed, network: Network, port: Port) -> int:
    """Return the number of transmit queues of a device; 1 for a radio."""
    return 1 if port.radio else _link(testbed, network, port).queues or 1


def pairs(testbed: Testbed, stack: Stack, network: Network) -> Iterator[Step]:
    """Yield the steps that make all links veth pairs, except links between interfaces of the machine. Refuses what
    neither supports."""
    for link, (a, b) in enumerate(network.ports):
        if real_cables.is_real(testbed, a, b):
            yield from real_cables.take(testbed, a, b)
            continue
        _refuse_for_veth(link, testbed.link[link])
        for port in (a, b):
            _refuse_ring_for_veth(stack, NodeDevice(port.node, port.device))
        yield VethStep(do="veth", node=a.node, device=a.device, peer=b.device, peer_node=b.node, origin=key(link))


def _device(port: Port, link: Link, nic: Nic) -> Step | None:
    mtu, origin = (link.mtu if _differs_from_driver(link, "mtu") else None), key(port.link)
    if nic == "real":
        return change(port.node, port.device, origin, mtu=mtu) if mtu else None
    if nic == "veth":
        return change(port.node, port.device, origin, mac=port.mac, mtu=mtu)
    return DeviceStep(
        do="device", node=port.node, device=port.device, kind="wire", mac=port.mac, mtu=mtu, origin=origin,
        queues=link.queues if _differs_from_driver(link, "queues") else None,
    )  # fmt: skip


def change(node: str | None, device: str, origin: str, **settings: Any) -> LinkStep:
    """Return the step that changes only these settings of a device."""
    unchanged = dict.fromkeys(("mac", "mtu", "addrgenmode", "name", "state"))
    return LinkStep(do="link", node=node, device=device, origin=origin, **unchanged | settings)


def address(port: Port, act: Act, origin: str) -> AddressStep:
    """Return the step that gives a device its address."""
    text, nodad = str(port.address), port.address.version == 6
    return AddressStep(
        do="address", node=port.node, device=port.name, act=act, address=text, nodad=nodad, origin=origin
    )


def route(node: str, entry: Route, act: Act, origin: str, metric: int | None = None) -> RouteStep:
    """Return the step that gives a node a route."""
    subnet = None if entry.subnet is None else str(entry.subnet)
    return RouteStep(do="route", node=node, act=act, subnet=subnet, via=entry.via, metric=metric, origin=origin)


def up(testbed: Testbed, stack: Stack, network: Network, node: str, on_machine: bool = False) -> list[Step]:
    """Return the steps that bring the node's devices up and set addresses and routes. `on_machine`: the node is a
    machine, which may have them already."""
    act: Act = "replace" if on_machine else "add"
    steps: list[Step] = []
    for port in network.of(node):
        device = NodeDevice(node, port.device)
        if mtu := stack.at(device).mtu:
            steps.append(change(node, port.device, stack.device_origin(device, "mtu"), mtu=mtu))
        if bql_max := stack.at(device).bql_max:
            origin = stack.device_origin(device, "bql_max")
            steps += [
                WriteStep(
                    do="write", node=node, path=BQL_MAX.format(port.device, queue), value=str(bql_max), origin=origin
                )
                for queue in range(queues_at(testbed, network, port))
            ]
        if segments := stack.at(device).gso_max_segs:
            line, origin = f"link set dev {port.device} gso_max_segs {segments}", "gso_max_segs"
            steps.append(BatchStep(do="ip", node=node, lines=[line], origin=stack.device_origin(device, origin)))
        origin = "testbed.wifi" if port.radio else key(port.link, "addresses")
        steps.append(change(node, port.device, origin, state="up"))
        steps += [address(port, act, origin)] if port.own_address else []
        for vlan in network.vlan_devices(port):
            steps += [*switches.tag(vlan), change(node, vlan.name, origin, state="up"), address(vlan, act, origin)]
    if node in network.lans.switches:
        steps += [*switches.join(network, node), change(node, BRIDGE, "testbed.node", state="up")]
        steps += [step for port in network.lans.ports[node] for step in switches.vlans(network, port)]
    steps += _ifbs(stack, network, node, testbed.ip)
    metric = MACHINE_METRIC if on_machine else None  # the machine's route to the same subnet comes first
    return [*steps, *(route(node, entry, act, "testbed", metric) for entry in network.routes(node))]


def _ifbs(stack: Stack, network: Network, node: str, version: int) -> Iterator[Step]:
    """Yield the node's ifbs, one for each device whose arriving packets are queued."""
    for device in (NodeDevice(node, port.device) for port in network.of(node)):
        if stack.at(device).ingress:
            name, origin = f"{IFB}{device.device}", stack.device_origin(device, "ingress")
            yield DeviceStep(
                do="device", node=node, device=name, kind="ifb", mac=None, mtu=None, queues=None, origin=origin
            )
            # It has no address, so that only redirected packets pass it.
            if version == 6:
                yield change(node, name, origin, addrgenmode="none")
            yield change(node, name, origin, state="up")


def ethtool(port: Port, link: Link, stack: Stack, nic: Nic) -> list[Step]:
    """Yield the NIC's settings: one call for rings, one for moderation, one for offloads. Each is a process. The
    scenario's defaults equal the driver's initial values; a veth pair's offloads start differently."""
    device = NodeDevice(port.node, port.device)
    device_stack = stack.at(device)
    overrides = {name: value for name in OF_NICS if (value := getattr(device_stack, name)) is not None}
    if overrides.get("checksum") is False:
        overrides["tso"] = False
    if overrides.get("tso"):
        overrides["sg"] = True
    settings = link.model_copy(update=overrides)

    def step(option: str, names: Iterable[str], arguments: list[str]) -> list[Step]:
        args = [option, port.device, *arguments]
        origin = stack.device_origin(device) if overrides.keys() & set(names) else key(port.link)
        return [EthtoolStep(do="ethtool", node=port.node, args=args, origin=origin)] if arguments else []

    offloads = [
        word
        for name, features in _OFFLOADS.items()
        for feature in features
        if nic == "veth"
        or _differs_from_driver(settings, name)  # a cable's NIC stays unchanged unless the scenario changes it
        for word in (feature, "on" if getattr(settings, name) else "off")
    ]
    if nic == "real":  # the link's rings and moderation describe the NICs
        rings = [
            word for name, option in _RINGS.items() if name in overrides for word in (option, str(overrides[name]))
        ]
        return [*step("-G", _RINGS, rings), *step("-K", _OFFLOADS, offloads)]
    return [
        *step("-G", _RINGS, _numbers(settings, _RINGS)),
        *step("-C", _MODERATION, _numbers(settings, _MODERATION)),
        *step("-K", _OFFLOADS, offloads),
    ]


def chip(port: Port, link: Link) -> list[Step]:
    """Return the steps that set the NIC where it differs from the driver's defaults; they run while it is down."""
    folder = f"/sys/class/net/{port.device}"
    values = {name: (f"wire/{name}", getattr(link, name)) for name in _CHIP}
    values |= {name: (file, getattr(link, name) * unit) for name, (file, unit) in _NAPI.items()}
    return [
        WriteStep(
            do="write",
            node=port.node,
            path=f"{folder}/{file}",
            value=str(value),
            origin=key(port.link, name if link.nic == nics.DEFAULT else "nic"),
        )
        for name, (file, value) in values.items()
        if _differs_from_driver(link, name)
    ]


def _numbers(link: Link, names: dict[str, str]) -> list[str]:
    return [
        word
        for name, option in names.items()
        if _differs_from_driver(link, name)
        for word in (option, str(getattr(link, name)))
    ]


def _differs_from_driver(link: Link, name: str) -> bool:
    """Return true if a setting of both NICs differs from the driver's default."""
    return bool(getattr(link, name) != _DRIVER_DEFAULTS.get(name, Link.model_fields[name].default))


def plug(testbed: Testbed, stack: Stack, seed: int, port: Port) -> Iterator[Step]:
    """Yield the wire driver's parameters of the direction away from the port; the cable is last."""
    link, side = testbed.link[port.link], port.side
    folder = f"/sys/class/net/{port.device}/wire"

    def write(name: str, value: object, origin: str) -> WriteStep:
        return WriteStep(do="write", node=port.node, path=f"{folder}/{name}", value=str(value), origin=origin)

    yield write("seed", link_seed(seed, port.link, side), "seed")
    for name in CHANGEABLE:
        for attribute, value in attributes(link, side, name):
            if value != ATTRIBUTE_DEFAULTS.get(attribute, 0):
                yield write(attribute, value, key(port.link, name))
    if text := _trace_text(link, side):
        origin = key(port.link, "trace" if link.trace else "outage")
        yield write("trace", text, origin)
        yield EpochStep(do="epoch", node=port.node, path=f"{folder}/epoch_ns", origin=origin)
    for name, value, origin in _edge(testbed, stack, port):
        yield write(name, value, key(port.link, origin))
    if (shaper := away(link.shaper, side)) and shaper.grant_cycle:
        origin = key(port.link, "shaper")
        yield EpochStep(do="epoch", node=port.node, path=f"{folder}/shaper_grant_epoch_ns", origin=origin)
    yield write("cable", port.link, key(port.link, "ends"))


def attributes(link: Link, side: int, name: str) -> Iterator[tuple[str, int]]:
    """Return a link's key as the driver's attributes of the direction away from `side`."""
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


def _edge(testbed: Testbed, stack: Stack, port: Port) -> Iterator[tuple[str, int, str]]:
    """Yield (attribute, value, key of the link) of all settings; buckets come before their rates."""
    link, side = testbed.link[port.link], port.side
    if name := medium(link, port.link, side):
        yield "medium", _media(testbed).index(name), "duplex" if link.duplex == "half" else "medium"
    if policer := away(link.policer, side):
        yield "policer_burst", policer.burst, "policer"
        yield "policer_bps", policer.rate, "policer"
    if shaper := away(link.shaper, side):
        assert shaper.burst is not None, "spelled out with the other defaults"
        yield "shaper_burst", shaper.burst, "shaper"
        for name, value in (
            ("limit", shaper.limit),
            ("latency_ns", shaper.latency),
            ("ce_threshold_ns", shaper.ce_threshold),
            ("grant_cycle_ns", shaper.grant_cycle),
            ("grant_delay_ns", shaper.grant_delay),
        ):
            if value is not None:
                yield f"shaper_{name}", value, "shaper"
        if shaper.peak is not None:
            yield "shaper_mtu", frame_bytes(link, stack), "shaper"
            yield "shaper_peak_bps", shaper.peak, "shaper"
        yield "shaper_bps", shaper.rate, "shaper"


def _media(testbed: Testbed) -> list[str]:
    """Return the names of all media; a name's index is the medium's number."""
    names = (medium(link, index, side) for index, link in enumerate(testbed.link) for side in (0, 1))
    return list(dict.fromkeys(name for name in names if name))


def _trace_text(link: Link, side: int) -> str:
    """Return the rate of the direction away from `side` (0 or 1), including outages; "" if it does not change.

    The driver's syntax (kernel/drivers/wire/wire_sysfs.c) is a head line, then a line per step:

        rate PERIOD                 then lines "TIME BPS"; PERIOD 0: no repetition
        opportunity PERIOD BYTES    then lines "TIME"

    Times are ns after the epoch, which is test time 0. Before it, and before the first step, the link's rate holds.
    """
    trace = away(link.trace, side)
    if link.outage:
        return _rates(0, _with_outages(link, side, trace))
    if trace is None:
        return ""
    if trace.opportunity_ms is not None:
        times = trace.opportunity_ms
        head = f"opportunity {times[-1] * NS_PER_MS} {OPPORTUNITY_BYTES}"
        return "\n".join([head, *(str(time * NS_PER_MS) for time in times)]) + "\n"
    if trace.rate is None:
        return ""
    return _rates(seconds_ns(trace.repeat), _steps(trace))


def _rates(period_ns: int, steps: list[tuple[int, int]]) -> str:
    return "\n".join([f"rate {period_ns}", *(f"{at_ns} {rate_bps}" for at_ns, rate_bps in steps)]) + "\n"


def _steps(trace: Trace | None) -> list[tuple[int, int]]:
    """Return (ns, bit/s) of a trace of rates; empty without one."""
    return [(seconds_ns(step.at_s), step.rate_bps) for step in trace.rate or ()] if trace else []


def _with_outages(link: Link, side: int, trace: Trace | None) -> list[tuple[int, int]]:
    steps = _steps(trace)
    times = [at_ns for at_ns, _ in steps]
    spans = [(seconds_ns(start), seconds_ns(end)) for start, end in link.outage]
    starts = [start for start, _ in spans]

    def rate_bps(at_ns: int) -> int:
        span = bisect_right(starts, at_ns) - 1
        if span >= 0 and at_ns < spans[span][1]:
            return 0
        index = bisect_right(times, at_ns) - 1
        return steps[index][1] if index >= 0 else link.rate[side]

    return [(at_ns, rate_bps(at_ns)) for at_ns in sorted({*times, *(end for span in spans for end in span)})]


def _refuse_ring_for_veth(stack: Stack, device: NodeDevice) -> None:
    for name in _RINGS:
        if (value := getattr(stack.at(device), name)) is not None:
            raise refusal(stack.device_origin(device, name), value, VETH_HAS_NONE)


def refuse_for_cable(index: int, link: Link) -> None:
    """Refuse impairments of an existing cable."""
    defaults = Link(ends=link.ends)
    for name in (*CHANGEABLE, "trace", "outage", "duplex", "medium", "policer", "shaper"):
        if name not in ("rate", "delay") and getattr(link, name) != getattr(defaults, name):
            raise refusal(
                key(index, name), link.model_dump()[name], "a real cable does not support this; use netem or a shaper"
            )


def _refuse_for_veth(index: int, link: Link) -> None:
    """Refuse settings that a veth pair lacks: rate, delay, faults, rings."""
    values = _SWITCH_DEFAULTS if link.nic == nics.SWITCH else _DRIVER_DEFAULTS
    defaults = Link(ends=link.ends).model_copy(update=values)
    supported = {"ends", "addresses", "vlan", "mtu", *_OFFLOADS}
    for name in Link.model_fields:
        if name not in supported and getattr(link, name) != getattr(defaults, name):
            raise refusal(key(index, name), link.model_dump()[name], VETH_HAS_NONE)
