# SPDX-License-Identifier: Apache-2.0
"""Checks across tables: that names refer to something, that keys fit each other. Fills in defaults that depend on
others."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from ipaddress import ip_interface

from hourglass.errors import InputError, closest
from hourglass.scenario import check_apps, check_events, check_lan, check_streams, check_wifi, nics
from hourglass.scenario.blame import refusal, several, together
from hourglass.scenario.c_source import QDISC
from hourglass.scenario.check_streams import check_node
from hourglass.scenario.device import IFB, INGRESS_NAME_MAX, NAME_MAX, OF_NICS, DeviceStack
from hourglass.scenario.edge import DIRECTIONS, LinkShaper, LinkShapers, away
from hourglass.scenario.quantities import SIZE, show
from hourglass.scenario.scenario_model import Scenario
from hourglass.scenario.stack import STACK_KEYS, Stack
from hourglass.scenario.testbed import BITS, IPV6_MTU_MIN, LINKS_MAX, NODES_MAX, Link, Shaper, Testbed
from hourglass.scenario.values import NodeDevice

RADIO_MTU_MAX = 2304
"""mac80211's bound, IEEE80211_MAX_DATA_LEN."""
ETHERNET_BYTES = 14
TC_MTU, TC_HZ = 1600, 1000
"""tc's default for HTB's burst (q_htb.c): the bytes of one tick of the kernel's timers, and a packet."""


def resolve(scenario: Scenario) -> Scenario:
    """Return the scenario with every default spelled out. Raises InputError."""
    scenario = check_wifi.write_out(scenario)
    testbed = scenario.testbed
    switches = check_lan.switches(testbed.node)
    names = [node.name for node in testbed.node]
    _check_nodes(names, switches, alone=scenario.test.name == check_apps.NONE)
    _check_links(testbed, names)
    _check_all(
        partial(_check_radios, testbed, names),
        partial(_check_places, "shaper", testbed, [str(shaper.at) for shaper in testbed.shaper]),
        partial(_check_places, "netem", testbed, [str(netem.at) for netem in testbed.netem]),
        partial(check_wifi.check, testbed, scenario.kernel),
        partial(check_lan.check, testbed),
        partial(_check_captures, scenario.capture.pcap, testbed),
        partial(_check_real, testbed),
        *(partial(_check_stack_of, scenario.stack, name, names) for name in scenario.stack.nodes),
        partial(_check_device_stacks, scenario.stack, testbed),
        partial(check_streams.resolve, scenario.test, testbed.node),
        partial(check_apps.resolve, scenario.apps, scenario.app, testbed),
    )
    apps = check_apps.resolve(scenario.apps, scenario.app, testbed)
    events = check_events.resolve(scenario.event, testbed, scenario.stack, apps, _own_qdiscs(scenario))
    test = check_streams.resolve(scenario.test, testbed.node)
    _check_joined(testbed)
    check_wifi.check_access_points(testbed, test)
    links = tuple(_resolve_link(link, scenario.kernel, switches) for link in _resolve_edges(testbed, scenario.stack))
    shapers = tuple(_resolve_shaper(shaper) for shaper in testbed.shaper)
    resolved = testbed.model_copy(update={"link": links, "shaper": shapers})
    stack = check_lan.resolve(scenario.stack, testbed)
    changed = {"testbed": resolved, "stack": stack, "test": test, "event": events, "app": apps}
    return scenario.model_copy(update=changed)


def _own_qdiscs(scenario: Scenario) -> tuple[str, ...]:
    return tuple(module.name for module in scenario.module if module.kind == QDISC)


def _check_all(*checks: Callable[[], object]) -> None:
    """Run independent checks, and raise their mistakes together."""
    mistakes: list[InputError] = []
    for check in checks:
        try:
            check()
        except InputError as error:
            mistakes.append(error)
    if mistakes:
        raise together(mistakes)


def _check_stack_of(stack: Stack, name: str, names: list[str]) -> None:
    if name not in names:
        hint = closest(name, (*STACK_KEYS, *names))
        allowed = (
            f"is neither a key of the stack nor a node. {hint}Keys: {', '.join(STACK_KEYS)}; nodes: {several(names)}"
        )
        raise refusal(f"stack.{name}", stack.nodes[name].model_dump(exclude_unset=True), allowed)


def _check_joined(testbed: Testbed) -> None:
    """Check that each of several nodes has a link or a radio."""
    joined = {end.node for link in testbed.link for end in link.ends}
    joined |= {device.node for _, device in check_wifi.devices(testbed)}
    for index, node in enumerate(testbed.node):
        if node.name not in joined and len(testbed.node) > 1:
            raise refusal(f"testbed.node.{index}", node.name, "has no link and is in no cell; add a link")


def _check_nodes(names: list[str], switches: set[str], alone: bool) -> None:
    """`alone`: a single node suffices, since only programs run."""
    least = 1 if alone else 2
    if not least <= len(names) <= NODES_MAX:
        raise refusal("testbed.node", names, f"must be {least} to {NODES_MAX} nodes")
    if len(names) - len(switches) < least:
        raise refusal("testbed.node", names, f"must have at least {least} that are not switches; add a host")
    for index, name in enumerate(names):
        if name in STACK_KEYS:
            raise refusal(
                f"testbed.node.{index}.name", name, f"is a key of [stack] ({', '.join(STACK_KEYS)}); rename the node"
            )
        if name in names[:index]:
            raise refusal(f"testbed.node.{index}.name", name, "is already the name of another node")


def _check_links(testbed: Testbed, names: list[str]) -> None:
    least = 1 if len(names) > 1 and not testbed.wifi else 0
    if not least <= len(testbed.link) <= LINKS_MAX:
        raise refusal("testbed.link", [link.model_dump() for link in testbed.link], f"must be 1 to {LINKS_MAX} links")
    devices: set[NodeDevice] = set()
    for index, link in enumerate(testbed.link):
        key = f"testbed.link.{index}"
        for end in link.ends:
            check_node(f"{key}.ends", end.node, names)
            if end in devices:
                raise refusal(f"{key}.ends", str(end), "already has a cable; a device is an end of one link")
            devices.add(end)
        if link.ends[0].node == link.ends[1].node:
            raise refusal(f"{key}.ends", [str(end) for end in link.ends], "must join two nodes, not a node to itself")
        if testbed.ip == 6 and link.mtu < IPV6_MTU_MIN:
            raise refusal(f"{key}.mtu", link.mtu, f"must be at least {IPV6_MTU_MIN} for IPv6")
        nic = link.nic or nics.default(max(link.rate))
        if link.queues and link.queues > nics.PROFILES[nic].queues_max:
            raise refusal(f"{key}.queues", link.queues, _too_many_queues(nic))
        if (link.queues or 1) > 1 and (link.medium or link.duplex == "half"):
            raise refusal(f"{key}.queues", link.queues, "must be 1 on a shared line (medium, duplex)")
        for name in nics.TIMED:
            if (value := getattr(link, name)) and (link.queues or 1) == 1:
                raise refusal(f"{key}.{name}", value, f"needs several queues; set {key}.queues")
            if value and link.phc == 0:
                raise refusal(f"{key}.{name}", value, "needs phc, which is 0")
        for address in link.addresses or ():
            if ip_interface(address).version != testbed.ip:
                raise refusal(
                    f"{key}.addresses",
                    address,
                    f"must be addresses of IPv{testbed.ip}, since testbed.ip = {testbed.ip}",
                )


def _too_many_queues(nic: str) -> str:
    most = nics.PROFILES[nic].queues_max
    several = [
        f'nic = "{name}" (up to {profile.queues_max})'
        for name, profile in nics.PROFILES.items()
        if profile.queues_max > most
    ]
    remedy = f"; use {' or '.join(several)}" if several else ""
    return f"the NIC {nic} has {'one queue' if most == 1 else f'at most {most} queues'}{remedy}"


def _check_radios(testbed: Testbed, names: list[str]) -> None:
    devices = {end for link in testbed.link for end in link.ends}
    for key, device in check_wifi.devices(testbed):
        check_node(key, device.node, names)
        if device in devices:
            raise refusal(key, str(device), "already has a cable, or is in a cell; a radio is in one cell")
        devices.add(device)
    for index, cell in enumerate(testbed.wifi):
        members = [str(cell.ap), *(str(station.at) for station in cell.station)]
        nodes = [member.split(":")[0] for member in members]
        for number, node in enumerate(nodes):
            if node in nodes[:number]:
                key = f"testbed.wifi.{index}.station.{number - 1}.at"
                raise refusal(key, members[number], "already has a station in this cell")


def _check_places(kind: str, testbed: Testbed, devices: list[str]) -> None:
    """Check shapers and delays: one at each device, and never both. netem has no classes, and HTB's leaf is the
    stack's qdisc."""
    known_devices = _devices(testbed)
    shaped = [str(shaper.at) for shaper in testbed.shaper]
    for index, device in enumerate(devices):
        key = f"testbed.{kind}.{index}.at"
        if device not in known_devices:
            raise refusal(
                key, device, f"no such device. {closest(device, known_devices)}Devices: {several(known_devices)}"
            )
        if Counter(devices[: index + 1])[device] > 1:
            raise refusal(key, device, f"already has a {kind}")
        if kind == "netem" and device in shaped:
            raise refusal(key, device, "already has a shaper; give the next cable a delay instead")


def _devices(testbed: Testbed) -> list[str]:
    cables = [end for link in testbed.link for end in link.ends]
    return [str(device) for device in (*cables, *(radio for _, radio in check_wifi.devices(testbed)))]


def _check_real(testbed: Testbed) -> None:
    """Check that a machine plays one node, and an interface one device."""
    hosts: dict[str, str] = {}
    for index, node in enumerate(testbed.node):
        if node.host is not None and (other := hosts.setdefault(node.host, node.name)) != node.name:
            raise refusal(
                f"testbed.node.{index}.host", node.host, f"is already the node {other}; a machine is one node"
            )
        if not node.real:
            continue
        devices = [device.split(":")[1] for device in _devices(testbed) if device.startswith(f"{node.name}:")]
        for device in node.real:
            if device not in devices:
                hint = f"{closest(device, devices)}Devices of {node.name}: {several(devices)}"
                raise refusal(f"testbed.node.{index}.real.{device}", node.real[device], f"no such device. {hint}")


def _check_device_stacks(stack: Stack, testbed: Testbed) -> None:
    """Check that the devices of `[stack.NODE.device.DEVICE]` exist and support their settings."""
    radios = {device for _, device in check_wifi.devices(testbed)}
    devices_of_node: dict[str, list[str]] = {}
    for device in [*(end for link in testbed.link for end in link.ends), *radios]:
        devices_of_node.setdefault(device.node, []).append(device.device)
    node_stacks = (
        (node, node_stack)
        for node, node_stack in stack.nodes.items()
        if any(testbed_node.name == node for testbed_node in testbed.node)
    )
    for device, device_stack in (
        (NodeDevice(node, name), device_stack) for node, at in node_stacks for name, device_stack in at.device.items()
    ):
        devices = sorted(devices_of_node.get(device.node, []))
        if device.device not in devices:
            hint = f"{closest(device.device, devices)}Devices of {device.node}: {several(devices)}"
            raise refusal(
                stack.device_origin(device), device_stack.model_dump(exclude_none=True), f"no such device. {hint}"
            )
        _check_device_stack(stack, testbed, device, device_stack, device in radios)


def _check_device_stack(
    stack: Stack, testbed: Testbed, device: NodeDevice, device_stack: DeviceStack, radio: bool
) -> None:
    def refuse(name: str, allowed: str) -> InputError:
        return refusal(stack.device_origin(device, name), getattr(device_stack, name), allowed)

    if radio and (name := next((name for name in OF_NICS if getattr(device_stack, name) is not None), None)):
        raise refuse(
            name,
            "is not a setting of a radio, where mac80211 and the chip decide (testbed.wifi); a radio has"
            " qdisc, ingress, mtu, gso_max_segs",
        )
    if radio and device_stack.bql_max is not None:
        raise refuse("bql_max", "is a setting of a cable's NIC; no driver of a radio has BQL")
    if device_stack.gso_max_segs is not None and not radio:
        raise refuse("gso_max_segs", "is a setting of radios; a cable's NIC has gso and tso")
    if device_stack.tso and not (
        device_stack.checksum if device_stack.checksum is not None else _link_at(testbed, device).checksum
    ):
        raise refuse("tso", "needs checksum")
    if device_stack.ingress and len(device.device) > INGRESS_NAME_MAX:
        raise refuse(
            "ingress",
            f"makes a device {IFB}{device.device}, which is longer than {NAME_MAX} letters; rename the device",
        )
    if device_stack.mtu and testbed.ip == 6 and device_stack.mtu < IPV6_MTU_MIN:
        raise refuse("mtu", f"must be at least {IPV6_MTU_MIN} for IPv6")
    if device_stack.mtu and radio and device_stack.mtu > RADIO_MTU_MAX:
        raise refuse("mtu", f"must be at most {RADIO_MTU_MAX} on a radio (802.11)")


def _link_at(testbed: Testbed, device: NodeDevice) -> Link:
    return next(link for link in testbed.link if device in link.ends)


def _check_captures(devices: tuple[NodeDevice, ...], testbed: Testbed) -> None:
    """Check that each is a device, and that no two write the same file, as a-b:c and a:b-c would."""
    known_devices = _devices(testbed)
    files: dict[str, NodeDevice] = {}
    for index, device in enumerate(devices):
        key = f"capture.pcap.{index}"
        if str(device) not in known_devices:
            allowed = f"no such device. {closest(str(device), known_devices)}Devices: {several(known_devices)}"
            raise refusal(key, str(device), allowed)
        if other := files.get(capture_file(device)):
            raise refusal(
                key, str(device), f"would write the same file as {other}, {capture_file(device)}; rename a node"
            )
        files[capture_file(device)] = device


def capture_file(device: NodeDevice) -> str:
    """Return the name of a device's capture file."""
    return f"{device.node}-{device.device}.pcapng"


def _resolve_link(link: Link, kernel: str, switches: set[str]) -> Link:
    """Fill in the NIC and its defaults. TSO needs checksums."""
    nic = link.nic or check_lan.default_nic(link, switches)
    written = {key: value for key in nics.KEYS if (value := getattr(link, key)) is not None}
    values = nics.defaults(nic, link.mtu, written, kernel) | {"nic": nic}
    return link.model_copy(update=values if link.checksum else {**values, "tso": False})


def _resolve_shaper(shaper: Shaper) -> Shaper:
    burst = shaper.rate // BITS // TC_HZ + TC_MTU
    return shaper if shaper.burst else shaper.model_copy(update={"burst": burst})


def medium(link: Link, index: int, side: int) -> str | None:
    """Return the medium on which frames leave that end of a link. A half-duplex link has a private one."""
    if link.duplex == "half":
        return f"link {index}"
    return link.medium[side] if link.medium else None


def frame_bytes(link: Link, stack: Stack) -> int:
    """Return the largest frame of either end, as buckets count it."""
    mtus = (stack.at(end).mtu for end in link.ends)
    return max(link.mtu, *(mtu or 0 for mtu in mtus)) + ETHERNET_BYTES


def _resolve_edges(testbed: Testbed, stack: Stack) -> tuple[Link, ...]:
    """Return the links with bursts spelled out. Raises InputError."""
    _check_media(testbed)
    return tuple(_resolve_buckets(index, link, frame_bytes(link, stack)) for index, link in enumerate(testbed.link))


def _resolve_buckets(index: int, link: Link, frame: int) -> Link:
    """Refuse a bucket that cannot hold a frame: no frame would pass."""
    for name in ("policer", "shaper"):
        for side, direction in enumerate(DIRECTIONS):
            limiter = away(getattr(link, name), side)
            for key in ("burst", "limit"):
                size = getattr(limiter, key, None)
                if size is not None and size < frame:
                    key_path = f"testbed.link.{index}.{name}.{direction}.{key}"
                    raise refusal(
                        key_path,
                        show(size, SIZE),
                        f"must be at least a whole frame, MTU + {ETHERNET_BYTES} B: {frame}B",
                    )
    if not link.shaper:
        return link
    forward, reverse = (_with_burst(away(link.shaper, side), frame) for side in (0, 1))
    return link.model_copy(update={"shaper": LinkShapers.model_construct(forward=forward, reverse=reverse)})


def _with_burst(shaper: LinkShaper | None, frame: int) -> LinkShaper | None:
    return shaper if shaper is None or shaper.burst else shaper.model_copy(update={"burst": frame})


def _check_media(testbed: Testbed) -> None:
    """Refuse a shared line with two rates, or with a rate that changes: it has one rate and one scheduler."""
    first: dict[str, tuple[int, int]] = {}
    for index, link in enumerate(testbed.link):
        key = f"testbed.link.{index}"
        if link.duplex == "half" and link.medium:
            raise refusal(
                f"{key}.medium",
                link.model_dump()["medium"],
                'needs duplex = "full"; a medium name shares a line between links, in each direction',
            )
        names = [medium(link, index, side) for side in (0, 1)]
        if any(names) and (link.trace or link.outage):
            shared = "duplex" if link.duplex == "half" else "medium"
            raise refusal(f"{key}.{shared}", getattr(link, shared), "cannot be combined with trace or outage")
        for side, name in enumerate(names):
            if name is None:
                continue
            other, at = first.setdefault(name, (index, side))
            if testbed.link[other].rate[at] != link.rate[side]:
                members = "both directions" if link.duplex == "half" else f"all that share {name}"
                raise refusal(
                    f"{key}.rate", link.model_dump()["rate"], f"must be the same for {members}: they share a line"
                )
