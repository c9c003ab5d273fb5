# SPDX-License-Identifier: Apache-2.0
"""Links between two interfaces of this machine with a real cable: the interfaces are moved into the nodes and keep
their hardware addresses.

The `rate` and `delay` of such a link describe the cable for readers of the results. Impairments are refused.
"""

from collections.abc import Iterator

from hourglass.contract.plan import Step, TakeStep
from hourglass.plan.port import Port
from hourglass.scenario import Link, Testbed
from hourglass.scenario.blame import refusal

IMPOSSIBLE = (
    "jitter",
    "loss",
    "corrupt",
    "duplicate",
    "reorder",
    "trace",
    "outage",
    "duplex",
    "medium",
    "policer",
    "shaper",
)
"""Keys of a link that change packets on it."""


def interface_of(testbed: Testbed, port: Port) -> str | None:
    """Return the interface that is a device of the node."""
    return next(node.real.get(port.device) for node in testbed.node if node.name == port.node)


def key(testbed: Testbed, port: Port) -> str:
    """Return the scenario's key that names it."""
    number = next(index for index, node in enumerate(testbed.node) if node.name == port.node)
    return f"testbed.node.{number}.real.{port.device}"


def is_real(testbed: Testbed, a: Port, b: Port) -> bool:
    """Return true if a link is a real cable. Raises InputError if only one end is."""
    for named_port, other in ((a, b), (b, a)):
        if (interface := interface_of(testbed, named_port)) and not interface_of(testbed, other):
            reason = f"the other end of its cable, {other.node}:{other.device}, has no interface; name both, or none"
            raise refusal(key(testbed, named_port), interface, reason)
    return interface_of(testbed, a) is not None


def take(testbed: Testbed, a: Port, b: Port) -> Iterator[Step]:
    """Yield the steps that move the interfaces of a link. Raises InputError for impairments, and for an interface
    that is taken twice."""
    refuse(a.link, testbed.link[a.link])
    owners = [(name, node.name) for node in testbed.node for name in node.real.values()]
    for port in (a, b):
        interface = interface_of(testbed, port)
        assert interface is not None
        if len(nodes := [node for name, node in owners if name == interface]) > 1:
            raise refusal(
                key(testbed, port), interface, f"is a device of {' and '.join(nodes)}; an interface is in one node"
            )
        yield TakeStep(do="take", node=port.node, real=interface, device=port.device, origin=key(testbed, port))


def refuse(index: int, link: Link) -> None:
    """Refuse impairments of an existing cable."""
    defaults = Link(ends=link.ends)
    for name in IMPOSSIBLE:
        if getattr(link, name) != getattr(defaults, name):
            reason = "a real cable does not support this; use a shaper or netem of the testbed at its ends"
            raise refusal(f"testbed.link.{index}.{name}", link.model_dump(mode="json")[name], reason)
