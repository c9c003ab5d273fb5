# SPDX-License-Identifier: Apache-2.0
"""Switches: the steps that make a bridge, its ports and their VLANs, and the devices of VLANs at hosts and routers.

br0 -> (radios, NICs) -> up -> ports of br0, their costs -> br0 up -> VLANs
"""

from collections.abc import Iterator

from hourglass.contract.plan import CostStep, PortStep, Step, SwitchStep, TagStep, VlanStep
from hourglass.plan.network import Network
from hourglass.plan.port import Port
from hourglass.scenario.blame import refusal
from hourglass.scenario.lan import BRIDGE, TICK_NS

NO_VLAN = 0
"""The VLAN of new ports where each port's VLANs are listed."""


def make(network: Network, node: str) -> Iterator[Step]:
    """Yield the step that makes a switch's bridge. hostapd makes a radio its port, so the bridge comes first."""
    if node in network.lans.switches:
        stp = network.lans.switches[node].stp
        yield SwitchStep(
            do="switch",
            node=node,
            device=BRIDGE,
            mac=network.lans.ports[node][0].mac,
            stp_priority=stp.priority if stp else None,
            forward_delay=stp.forward_delay // TICK_NS if stp else None,
            hello=stp.hello // TICK_NS if stp else None,
            max_age=stp.max_age // TICK_NS if stp else None,
            pvid=NO_VLAN if network.lans.has_vlans(node) else None,
            origin=_origin(network, node),
        )


def join(network: Network, node: str) -> Iterator[Step]:
    """Yield the steps by which a switch's cables become ports of its bridge, with their costs."""
    for port in network.wires(node):
        origin = f"testbed.link.{port.link}"
        yield PortStep(do="port", node=node, device=port.device, bridge=BRIDGE, origin=origin)
        if network.lans.switches[node].stp:
            cost = network.lans.cost(port.link)
            yield CostStep(do="cost", node=node, device=port.device, cost=cost, origin=origin)


def vlans(network: Network, port: Port, origin: str | None = None) -> Iterator[VlanStep]:
    """Yield the VLANs of a port, if its node is a switch that separates them. `origin`: default, the port's key."""
    lans = network.lans
    if port.node in lans.switches and lans.has_vlans(port.node):
        key = f"testbed.wifi.{network.cell(port)}" if port.radio else f"testbed.link.{port.link}.vlan"
        for vlan, tagged in lans.memberships(port.link):
            yield VlanStep(
                do="vlan",
                node=port.node,
                device=port.device,
                vlan=vlan,
                pvid=not tagged,
                untagged=not tagged,
                origin=origin or key,
            )


def tag(port: Port) -> Iterator[Step]:
    """Yield the step that makes the device of a VLAN."""
    assert port.vlan is not None, port
    origin = f"testbed.link.{port.link}.vlan"
    yield TagStep(do="tag", node=port.node, device=port.name, parent=port.device, vlan=port.vlan, origin=origin)


def _origin(network: Network, node: str) -> str:
    return f"testbed.node.{network.nodes.index(node)}.role"


def forwarding_ns(network: Network) -> int:
    """Return the longest time until the ports of switches forward: a root is agreed on, then two delays pass."""
    stps = [node.stp for node in network.lans.switches.values() if node.stp]
    return max((stp.max_age + stp.hello + 2 * stp.forward_delay for stp in stps), default=0)


def refuse(network: Network) -> None:
    """Refuse switches on real machines: their switches are no nodes."""
    for node in network.lans.switches:
        reason = "this engine has none: the real switches between machines are no nodes; remove it"
        raise refusal(_origin(network, node), "switch", reason)
