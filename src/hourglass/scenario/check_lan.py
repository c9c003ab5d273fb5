# SPDX-License-Identifier: Apache-2.0
"""Check switches and VLANs: their keys are at switches, and each end has the addresses that it needs. Switches get
their own qdisc."""

from collections import Counter
from collections.abc import Container, Iterable

from hourglass.scenario import nics
from hourglass.scenario.blame import refusal
from hourglass.scenario.device import NAME_MAX
from hourglass.scenario.lan import BRIDGE
from hourglass.scenario.stack import NodeStack, Stack
from hourglass.scenario.testbed import Link, Node, Testbed
from hourglass.scenario.values import NodeDevice

QDISC = "pfifo_fast"
"""The qdisc of a switch's ports: the kernel's default."""
PORTS_MAX = 1023
"""The most ports of a bridge: net/bridge/br_private.h, BR_MAX_PORTS, of which port 0 is none."""


def switches(nodes: Iterable[Node]) -> set[str]:
    """Return the names of the switches."""
    return {node.name for node in nodes if node.role == "switch"}


def joins_switches(link: Link, names: Container[str]) -> bool:
    """Return whether both ends of a link are ports of switches. `names`: of the switches."""
    return all(end.node in names for end in link.ends)


def default_nic(link: Link, names: Container[str]) -> str:
    """Return the NIC of a link that names none."""
    return nics.SWITCH if joins_switches(link, names) else nics.default(max(link.rate))


def check(testbed: Testbed) -> None:
    """Raise InputError for a key of switches at another node, or an impossible link of a switch."""
    names = switches(testbed.node)
    _check_count(testbed, names)
    for index, node in enumerate(testbed.node):
        if node.stp and node.name not in names:
            raise refusal(f"testbed.node.{index}.stp", "{…}", f'needs a switch; give {node.name} role = "switch"')
    for index, link in enumerate(testbed.link):
        _check_link(f"testbed.link.{index}", link, names)
    for index, cell in enumerate(testbed.wifi):
        if cell.ap.node in names:
            _check_port(f"testbed.wifi.{index}.ap", cell.ap)
        for number, station in enumerate(cell.station):
            if station.at.node in names:
                key = f"testbed.wifi.{index}.station.{number}.at"
                raise refusal(key, str(station.at), "is a switch; a station is a host or a router")


def _check_link(key: str, link: Link, names: set[str]) -> None:
    at_switches = [end for end in link.ends if end.node in names]
    for end in at_switches:
        _check_port(f"{key}.ends", end)
    if link.vlan is not None and not at_switches:
        raise refusal(f"{key}.vlan", link.model_dump()["vlan"], 'needs an end at a switch (role = "switch")')
    at_hosts = [end for end in link.ends if end.node not in names]
    vlans = link.vlan if isinstance(link.vlan, tuple) else ()
    for end in at_hosts if vlans else ():
        if len(name := f"{end.device}.{max(vlans)}") > NAME_MAX:
            reason = f"is too long: its VLANs have devices like {name}, and a name has at most {NAME_MAX} characters"
            raise refusal(f"{key}.ends", str(end), reason)
    count = len(at_hosts) * (len(vlans) or 1)
    if link.addresses is not None and len(link.addresses) != count:
        owners = " and ".join(map(str, at_hosts))
        noun = "1 address" if count == 1 else f"{count} addresses"
        allowed = f"must be {noun}, of {owners}{', one for each VLAN' if vlans else ''}; a switch has none"
        if not at_switches:
            allowed = f"must be two addresses, of {owners}"
        raise refusal(f"{key}.addresses", [*link.addresses], allowed if count else "must be absent: a switch has none")


def _check_port(key: str, port: NodeDevice) -> None:
    if port.device == BRIDGE:
        raise refusal(key, str(port), f"is the name of the switch's bridge, {BRIDGE}; rename the port")


def _check_count(testbed: Testbed, names: set[str]) -> None:
    """Refuse more ports than a bridge can have."""
    ends = [end.node for link in testbed.link for end in link.ends] + [cell.ap.node for cell in testbed.wifi]
    for name, number in Counter(end for end in ends if end in names).items():
        if number > PORTS_MAX:
            raise refusal("testbed.link", f"{number} ports", f"a switch has at most {PORTS_MAX}; give {name} fewer")


def trunks(testbed: Testbed) -> dict[NodeDevice, tuple[int, ...]]:
    """Return the ends of trunks at hosts and routers, which have a device for each VLAN, with their VLANs."""
    names = switches(testbed.node)
    return {
        end: link.vlan
        for link in testbed.link
        for end in link.ends
        if isinstance(link.vlan, tuple) and end.node not in names
    }


def resolve(stack: Stack, testbed: Testbed) -> Stack:
    """Return the stack in which switches have the qdisc `QDISC` unless the scenario names theirs. Its keys for all
    nodes apply to hosts and routers."""
    nodes = dict(stack.nodes)
    for name in sorted(switches(testbed.node)):
        node_stack = nodes.get(name, NodeStack())
        nodes[name] = node_stack.model_copy(update={"qdisc": node_stack.qdisc or QDISC})
    return stack.model_copy(update={"nodes": nodes})
