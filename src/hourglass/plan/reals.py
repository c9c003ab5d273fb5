# SPDX-License-Identifier: Apache-2.0
"""Links whose two ends interfaces of this machine play, with a real cable between them: the interfaces are moved into
the nodes, and keep their hardware addresses.

Such a link's `rate` and `delay` say what the cable is, for those who read the results; what would have to be done to
packets on it is refused.
"""

from collections.abc import Iterator

from hourglass.contract.plan import Step, TakeStep
from hourglass.plan.network import Port
from hourglass.scenario import Link, Testbed
from hourglass.scenario.blame import refusal
from hourglass.scenario.nics import STANDARD_MTU

NEVER = (
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
"""Keys of a link that ask for something to be done to packets under way."""


def of(testbed: Testbed, port: Port) -> str | None:
    """The interface that plays a device."""
    return next(node.real.get(port.device) for node in testbed.node if node.name == port.node)


def key(testbed: Testbed, port: Port) -> str:
    """The scenario's key that names it."""
    place = next(index for index, node in enumerate(testbed.node) if node.name == port.node)
    return f"testbed.node.{place}.real.{port.device}"


def is_real(testbed: Testbed, a: Port, b: Port) -> bool:
    """Whether a link is a real cable. Raises InputError if it is so at one end only."""
    for named, other in ((a, b), (b, a)):
        if (interface := of(testbed, named)) and not of(testbed, other):
            why = f"the other end of its cable, {other.node}:{other.device}, has no interface: name both, or none"
            raise refusal(key(testbed, named), interface, why)
    return of(testbed, a) is not None


def take(testbed: Testbed, a: Port, b: Port) -> Iterator[Step]:
    """Moves the interfaces of a link. Raises InputError for what cannot be done to a cable, or what is taken twice."""
    refuse(a.link, testbed.link[a.link])
    owners = [(name, node.name) for node in testbed.node for name in node.real.values()]
    for port in (a, b):
        interface = of(testbed, port)
        assert interface is not None
        if len(twice := [node for name, node in owners if name == interface]) > 1:
            raise refusal(key(testbed, port), interface, f"plays devices of {' and '.join(twice)}: each is in one node")
        yield TakeStep(do="take", node=port.node, real=interface, device=port.device, origin=key(testbed, port))


def refuse(index: int, link: Link) -> None:
    """Raises InputError for what cannot be done to a cable that is there."""
    nothing = Link(ends=link.ends)
    for name in NEVER:
        if getattr(link, name) != getattr(nothing, name):
            why = "a real cable does what it does; a shaper or netem of the testbed can be had at its ends"
            raise refusal(f"testbed.link.{index}.{name}", link.model_dump(mode="json")[name], why)


def mtu(port: Port, link: Link) -> str | None:
    """The line that sets the link's MTU, if it is not the standard's."""
    return f"link set dev {port.device} mtu {link.mtu}" if link.mtu != STANDARD_MTU else None
