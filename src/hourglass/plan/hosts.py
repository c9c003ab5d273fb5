# SPDX-License-Identifier: Apache-2.0
"""Nodes that are machines: which they are, what of them is kept, and how what they are is made what the plan needs.

All that a plan changes of a machine stands in its `keep` steps, before the change: named devices as a whole (addresses,
routes, qdiscs, offloads, their sysctls), single sysctls, and ifbs that are made.
"""

from collections.abc import Iterable, Iterator, Sequence

from hourglass.contract.plan import BatchStep, EventStep, HostStep, KeepStep, Step, WriteStep
from hourglass.plan import links
from hourglass.plan.network import Network
from hourglass.scenario import Stack, Testbed
from hourglass.scenario.blame import refusal
from hourglass.scenario.device import IFB

ABSENT = "(nothing)"


def keep(testbed: Testbed, network: Network, steps: Sequence[Step | EventStep]) -> Iterator[Step]:
    """Which machine each node is, and what `steps` change of it. Raises InputError when a node is none."""
    for index, node in enumerate(testbed.node):
        key = f"testbed.node.{index}"
        if node.host is None:
            raise refusal(f"{key}.host", None, 'the machine that is this node, like "user@router": engine ssh needs it')
        devices = [port.device for port in network.of(node.name)]
        for device in devices:
            if device not in node.real:
                allowed = f'which interface of {node.host} it is, like real = {{ {device} = "enp3s0" }}'
                raise refusal(f"{key}.real.{device}", None, allowed)
        yield HostStep(do="host", node=node.name, destination=node.host, devices=dict(node.real), origin=f"{key}.host")
        for device in devices:
            of = f"{key}.real.{device}"
            yield KeepStep(do="keep", node=node.name, devices=[device], files=[], made=[], origin=of)
        yield from _further(node.name, steps)
    for index, link in enumerate(testbed.link):
        links.refuse_for_cable(index, link)


def _further(node: str, steps: Sequence[Step | EventStep]) -> Iterator[KeepStep]:
    """Of one machine: sysctls that are written, each once, and devices that are made."""
    written = {one.path: one.origin for one in steps if isinstance(one, WriteStep) and one.node == node}
    for path, origin in written.items():
        yield KeepStep(do="keep", node=node, devices=[], files=[path], made=[], origin=origin)
    for one in steps:
        if isinstance(one, BatchStep) and one.do == "ip" and one.node == node:
            for line in one.lines:
                match line.split(" "):
                    case ["link", "add", "dev", name, *_] if name.startswith(IFB):
                        yield KeepStep(do="keep", node=node, devices=[], files=[], made=[name], origin=one.origin)


def forwarding(testbed: Testbed, stack: Stack, network: Network, node: str) -> Iterator[WriteStep]:
    """A router passes on what comes in by the named devices, and by no others. IPv6 has one switch for all, which would
    throw away what routers have told the machine: there its owner has to have turned it on (`engine/ssh/check.py`)."""
    if testbed.ip == 4 and node in network.routers:
        for port in network.of(node):
            path = f"/proc/sys/net/ipv4/conf/{port.device}/forwarding"
            yield WriteStep(do="write", node=node, path=path, value="1", origin="testbed.node")
    for name, value in sorted(stack.of(node).sysctl.items()):
        if ".default." in name:
            path = f"/proc/sys/{name.replace('.', '/')}"
            yield WriteStep(do="write", node=node, path=path, value=value, origin=stack.origin(node, "sysctl", name))


def cleared(network: Network, node: str, steps: Iterable[Step]) -> Iterator[Step]:
    """The qdiscs of a machine's devices, in place of whatever is there: one that has the same name would be in the
    way."""
    for port in network.of(node):
        line = f"qdisc replace dev {port.device} root handle 7ff0: pfifo"
        yield BatchStep(do="tc", node=node, lines=[line], origin=links.key(port.link))
    for step in steps:
        if isinstance(step, BatchStep) and step.do == "tc":
            lines = [_replaced(line) for line in step.lines]
            yield step.model_copy(update={"lines": lines})
        else:
            yield step


def _replaced(line: str) -> str:
    words = line.split(" ")
    return " ".join(["qdisc", "replace", *words[2:]]) if words[:2] == ["qdisc", "add"] and "root" in words else line
