# SPDX-License-Identifier: Apache-2.0
"""Nodes that are machines: their identity, the state that is restored, and the steps that prepare them.

Before any change, the `keep` steps name everything that a plan changes of a machine. These are devices (addresses,
routes, qdiscs, offloads, their sysctls), single sysctls, and new ifbs.
"""

from collections.abc import Iterator, Sequence

from hourglass.contract.plan import DeviceStep, EventStep, HostStep, KeepStep, Step, WriteStep
from hourglass.plan import links
from hourglass.plan.network import Network
from hourglass.scenario import Stack, Testbed
from hourglass.scenario.blame import refusal

ABSENT = "(nothing)"


def keep(testbed: Testbed, network: Network, steps: Sequence[Step | EventStep]) -> Iterator[Step]:
    """Return the machine of each node, and the state that `steps` change. Raises InputError for a node without a
    machine."""
    for index, node in enumerate(testbed.node):
        key = f"testbed.node.{index}"
        if node.host is None:
            raise refusal(
                f"{key}.host", None, 'is missing; engine ssh needs the machine that is this node, like "user@router"'
            )
        devices = [port.device for port in network.of(node.name)]
        for device in devices:
            if device not in node.real:
                allowed = f'is missing; name the interface of {node.host}, like real = {{ {device} = "enp3s0" }}'
                raise refusal(f"{key}.real.{device}", None, allowed)
        yield HostStep(do="host", node=node.name, destination=node.host, devices=dict(node.real), origin=f"{key}.host")
        for device in devices:
            origin = f"{key}.real.{device}"
            yield KeepStep(do="keep", node=node.name, devices=[device], files=[], made=[], origin=origin)
        yield from _keep_steps(node.name, steps)
    for index, link in enumerate(testbed.link):
        links.refuse_for_cable(index, link)


def _keep_steps(node: str, steps: Sequence[Step | EventStep]) -> Iterator[KeepStep]:
    """The changed state of one machine: sysctls, each once, and devices that are made."""
    written = {step.path: step.origin for step in steps if isinstance(step, WriteStep) and step.node == node}
    for path, origin in written.items():
        yield KeepStep(do="keep", node=node, devices=[], files=[path], made=[], origin=origin)
    for step in steps:
        if isinstance(step, DeviceStep) and step.node == node:
            yield KeepStep(do="keep", node=node, devices=[], files=[], made=[step.device], origin=step.origin)


def forwarding(testbed: Testbed, stack: Stack, network: Network, node: str) -> Iterator[WriteStep]:
    """A router forwards packets from the named devices, and from no others. IPv6 has one switch for all devices,
    which would discard what routers have announced to the machine. Its owner has to turn it on
    (`ssh/inspection.py`)."""
    if testbed.ip == 4 and node in network.routers:
        for port in network.of(node):
            path = f"/proc/sys/net/ipv4/conf/{port.device}/forwarding"
            yield WriteStep(do="write", node=node, path=path, value="1", origin="testbed.node")
    for name, value in sorted(stack.of(node).sysctl.items()):
        if ".default." in name:
            path = f"/proc/sys/{name.replace('.', '/')}"
            yield WriteStep(do="write", node=node, path=path, value=value, origin=stack.origin(node, "sysctl", name))
