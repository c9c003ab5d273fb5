# SPDX-License-Identifier: Apache-2.0
"""What no single value shows: that names refer to something, that keys fit each other. Fills defaults
that depend on others."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from ipaddress import ip_interface

from hourglass.errors import InputError, closest
from hourglass.scenario import check_apps, check_edge, check_events, check_streams, check_wifi, nics
from hourglass.scenario.blame import refusal, several, together
from hourglass.scenario.c_source import QDISC
from hourglass.scenario.check_streams import check_node
from hourglass.scenario.device import IFB, INGRESS_NAME_MAX, NAME_MAX, OF_NICS, DeviceStack
from hourglass.scenario.model import Scenario
from hourglass.scenario.stack import STACK_KEYS, Stack
from hourglass.scenario.testbed import BITS, IPV6_MTU_MIN, LINKS_MAX, NODES_MAX, Link, Shaper, Testbed
from hourglass.scenario.values import Place

RADIO_MTU_MAX = 2304
"""mac80211's own bound, IEEE80211_MAX_DATA_LEN."""
TC_MTU, TC_HZ = 1600, 1000
"""Of tc's default for HTB's burst (q_htb.c): what passes in a tick of the kernel's timers, and a packet."""


def resolve(scenario: Scenario) -> Scenario:
    """The scenario with every default spelled out. Raises InputError."""
    scenario = check_wifi.write_out(scenario)
    testbed = scenario.testbed
    names = [node.name for node in testbed.node]
    _check_nodes(names)
    _check_links(testbed, names)
    _all(
        partial(_check_radios, testbed, names),
        partial(_check_places, "shaper", testbed, [str(shaper.at) for shaper in testbed.shaper]),
        partial(_check_places, "netem", testbed, [str(netem.at) for netem in testbed.netem]),
        partial(check_wifi.check, testbed, scenario.kernel),
        partial(_check_captures, scenario.capture.pcap, testbed),
        partial(_check_real, testbed),
        *(partial(_check_stack_of, scenario.stack, name, names) for name in scenario.stack.nodes),
        partial(_check_own_devices, scenario.stack, testbed),
        partial(check_streams.resolve, scenario.test, testbed.node),
        partial(check_apps.resolve, scenario.apps, scenario.app, testbed),
    )
    apps = check_apps.resolve(scenario.apps, scenario.app, testbed)
    events = check_events.resolve(scenario.event, testbed, scenario.stack, apps, _own_qdiscs(scenario))
    test = check_streams.resolve(scenario.test, testbed.node)
    _check_joined(testbed)
    check_wifi.check_access_points(testbed, test)
    links = tuple(_resolve_link(link) for link in check_edge.resolve(testbed, scenario.stack))
    shapers = tuple(_resolve_shaper(shaper) for shaper in testbed.shaper)
    resolved = testbed.model_copy(update={"link": links, "shaper": shapers})
    changed = {"testbed": resolved, "test": test, "event": events, "app": apps}
    return scenario.model_copy(update=changed)


def _own_qdiscs(scenario: Scenario) -> tuple[str, ...]:
    return tuple(one.name for one in scenario.module if one.kind == QDISC)


def _all(*checks: Callable[[], object]) -> None:
    """Carries out checks that do not need one another, and raises their mistakes together."""
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
        known = closest(name, (*STACK_KEYS, *names))
        allowed = (
            f"neither a key of the stack nor a node. {known}Keys: {', '.join(STACK_KEYS)}; nodes: {several(names)}"
        )
        raise refusal(f"stack.{name}", stack.nodes[name].model_dump(exclude_unset=True), allowed)


def _check_joined(testbed: Testbed) -> None:
    """Every node has a link or a radio."""
    joined = {end.node for link in testbed.link for end in link.ends}
    joined |= {place.node for _, place in check_wifi.devices(testbed)}
    for index, node in enumerate(testbed.node):
        if node.name not in joined:
            raise refusal(f"testbed.node.{index}", node.name, "has no link and is in no cell: nothing reaches it")


def _check_nodes(names: list[str]) -> None:
    if not 2 <= len(names) <= NODES_MAX:
        raise refusal("testbed.node", names, f"2 to {NODES_MAX} nodes")
    for index, name in enumerate(names):
        if name in STACK_KEYS:
            raise refusal(f"testbed.node.{index}.name", name, f"is a key of [stack] ({', '.join(STACK_KEYS)})")
        if name in names[:index]:
            raise refusal(f"testbed.node.{index}.name", name, "is the name of another node")


def _check_links(testbed: Testbed, names: list[str]) -> None:
    if not (1 <= len(testbed.link) <= LINKS_MAX or (testbed.wifi and not testbed.link)):
        raise refusal("testbed.link", [link.model_dump() for link in testbed.link], f"1 to {LINKS_MAX} links")
    seen: set[Place] = set()
    for index, link in enumerate(testbed.link):
        key = f"testbed.link.{index}"
        for end in link.ends:
            check_node(f"{key}.ends", end.node, names)
            if end in seen:
                raise refusal(f"{key}.ends", str(end), "has a cable already: a device is an end of one link")
            seen.add(end)
        if link.ends[0].node == link.ends[1].node:
            raise refusal(f"{key}.ends", [str(end) for end in link.ends], "joins two nodes, not a node to itself")
        if testbed.ip == 6 and link.mtu < IPV6_MTU_MIN:
            raise refusal(f"{key}.mtu", link.mtu, f"at least {IPV6_MTU_MIN} for IPv6")
        for address in link.addresses or ():
            if ip_interface(address).version != testbed.ip:
                raise refusal(
                    f"{key}.addresses", address, f"addresses of IPv{testbed.ip}, since testbed.ip = {testbed.ip}"
                )


def _check_radios(testbed: Testbed, names: list[str]) -> None:
    seen = {end for link in testbed.link for end in link.ends}
    for key, place in check_wifi.devices(testbed):
        check_node(key, place.node, names)
        if place in seen:
            raise refusal(key, str(place), "has a cable already, or is in a cell: a radio is in one cell")
        seen.add(place)
    for index, cell in enumerate(testbed.wifi):
        members = [str(cell.ap), *(str(one.at) for one in cell.station)]
        nodes = [member.split(":")[0] for member in members]
        for number, node in enumerate(nodes):
            if node in nodes[:number]:
                key = f"testbed.wifi.{index}.station.{number - 1}.at"
                raise refusal(key, members[number], "its node is in this cell already")


def _check_places(kind: str, testbed: Testbed, places: list[str]) -> None:
    """Shapers and delays: at a device, one each, and never both (netem has no classes, HTB's leaf is the stack's)."""
    devices = _devices(testbed)
    shaped = [str(shaper.at) for shaper in testbed.shaper]
    for index, place in enumerate(places):
        key = f"testbed.{kind}.{index}.at"
        if place not in devices:
            raise refusal(key, place, f"no such device. {closest(place, devices)}Devices: {several(devices)}")
        if Counter(places[: index + 1])[place] > 1:
            raise refusal(key, place, f"has a {kind} already")
        if kind == "netem" and place in shaped:
            raise refusal(key, place, "has a shaper: give the next cable a delay instead")


def _devices(testbed: Testbed) -> list[str]:
    cables = [end for link in testbed.link for end in link.ends]
    return [str(place) for place in (*cables, *(radio for _, radio in check_wifi.devices(testbed)))]


def _check_real(testbed: Testbed) -> None:
    """What plays a node is one machine, and a device one interface of it."""
    hosts: dict[str, str] = {}
    for index, node in enumerate(testbed.node):
        if node.host is not None and (other := hosts.setdefault(node.host, node.name)) != node.name:
            raise refusal(f"testbed.node.{index}.host", node.host, f"is the node {other}: a machine is one node")
        devices = [str(place).split(":")[1] for place in _devices(testbed) if place.startswith(f"{node.name}:")]
        for device in node.real:
            if device not in devices:
                known = f"{closest(device, devices)}Devices of {node.name}: {several(devices)}"
                raise refusal(f"testbed.node.{index}.real.{device}", node.real[device], f"no such device. {known}")


def _check_own_devices(stack: Stack, testbed: Testbed) -> None:
    """What `[stack.NODE.device.DEVICE]` says of devices: that they are there, and can do it."""
    radios = {place for _, place in check_wifi.devices(testbed)}
    of_node: dict[str, list[str]] = {}
    for place in [*(end for link in testbed.link for end in link.ends), *radios]:
        of_node.setdefault(place.node, []).append(place.device)
    named = ((node, at) for node, at in stack.nodes.items() if any(one.name == node for one in testbed.node))
    for place, own in ((Place(node, name), own) for node, at in named for name, own in at.device.items()):
        devices = sorted(of_node.get(place.node, []))
        if place.device not in devices:
            known = f"{closest(place.device, devices)}Devices of {place.node}: {several(devices)}"
            raise refusal(stack.device_origin(place), own.model_dump(exclude_none=True), f"no such device. {known}")
        _check_own(stack, testbed, place, own, place in radios)


def _check_own(stack: Stack, testbed: Testbed, place: Place, own: DeviceStack, radio: bool) -> None:
    def refuse(name: str, allowed: str) -> InputError:
        return refusal(stack.device_origin(place, name), getattr(own, name), allowed)

    if radio and (name := next((name for name in OF_NICS if getattr(own, name) is not None), None)):
        raise refuse(name, "a radio has none: mac80211 and its chip decide (testbed.wifi); qdisc, ingress, mtu it has")
    if own.tso and not (own.checksum if own.checksum is not None else _link_at(testbed, place).checksum):
        raise refuse("tso", "needs checksum")
    if own.ingress and len(place.device) > INGRESS_NAME_MAX:
        raise refuse(
            "ingress", f"{IFB}{place.device} is no name of a device: {NAME_MAX} letters are the most; rename it"
        )
    if own.mtu and testbed.ip == 6 and own.mtu < IPV6_MTU_MIN:
        raise refuse("mtu", f"at least {IPV6_MTU_MIN} for IPv6")
    if own.mtu and radio and own.mtu > RADIO_MTU_MAX:
        raise refuse("mtu", f"at most {RADIO_MTU_MAX} on a radio (802.11)")


def _link_at(testbed: Testbed, place: Place) -> Link:
    return next(link for link in testbed.link if place in link.ends)


def _check_captures(places: tuple[Place, ...], testbed: Testbed) -> None:
    """Each is a device, and no two would be written to one file: a-b:c and a:b-c."""
    devices = _devices(testbed)
    files: dict[str, Place] = {}
    for index, place in enumerate(places):
        key = f"capture.pcap.{index}"
        if str(place) not in devices:
            allowed = f"no such device. {closest(str(place), devices)}Devices: {several(devices)}"
            raise refusal(key, str(place), allowed)
        if other := files.get(capture_file(place)):
            raise refusal(key, str(place), f"its file {capture_file(place)} would be that of {other}; rename a node")
        files[capture_file(place)] = place


def capture_file(place: Place) -> str:
    """Where the frames of a device are written."""
    return f"{place.node}-{place.device}.pcapng"


def _resolve_link(link: Link) -> Link:
    """What is not written is as the NIC has it. TSO goes with checksums."""
    written = {key: value for key in nics.KEYS if (value := getattr(link, key)) is not None}
    values: dict[str, object] = {**nics.defaults(link.nic, link.mtu, written)}
    return link.model_copy(update=values if link.checksum else {**values, "tso": False})


def _resolve_shaper(shaper: Shaper) -> Shaper:
    burst = shaper.rate // BITS // TC_HZ + TC_MTU
    return shaper if shaper.burst else shaper.model_copy(update={"burst": burst})
