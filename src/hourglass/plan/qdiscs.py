# SPDX-License-Identifier: Apache-2.0
"""The `tc` lines: HTB where there is a shaper, the stack's qdisc below it or as the root; netem where there is a delay;
an ifb for what arrives where that is to be queued.

HTB: one class, rate = ceil. `quantum` is one full frame, since the kernel complains of the one it derives at high
rates; with a single class it decides nothing.

A qdisc queues what leaves. To queue what arrives, as a home router does with what its line brings, every packet that a
device receives is redirected to an ifb, which queues it and gives it back to where it came from (drivers/net/ifb.c):

    wire -> wan: ingress, matchall, mirred -> ifb4wan: root qdisc -> wan: the stack goes on
"""

import re
from collections.abc import Iterator

from hourglass.contract.kernels import CHOICES
from hourglass.contract.plan import BatchStep, Step
from hourglass.plan.network import Network, Port
from hourglass.scenario import Stack, Testbed
from hourglass.scenario.blame import refusal
from hourglass.scenario.device import IFB
from hourglass.scenario.testbed import Shaper
from hourglass.scenario.units import RATE, TIME, show
from hourglass.scenario.values import Place
from hourglass.scenario.vocabulary import QDISCS_SINCE
from hourglass.scenario.wifi import CHIPS

ETHERNET_HEADER = 14
RADIO_MTU = 1500
DEFAULT = "pfifo_fast"
"""The qdisc a new device of one queue gets from the kernel itself."""


def qdisc_of(testbed: Testbed, stack: Stack, network: Network, port: Port) -> str:
    """The qdisc at a device, below its shaper, as tc would say it."""
    place = Place(port.node, port.device)
    own, _ = stack.qdisc_at(place)
    parents = [*(one.at for one in testbed.shaper), *(one.at for one in testbed.netem if one.delay)]
    queues = port.radio and CHIPS[testbed.wifi[network.cell(port)].chip].txq
    return "noqueue" if queues and own == DEFAULT and place not in parents else own


def check(stack: Stack, network: Network, kernel: str) -> None:
    """Raises InputError for a qdisc that a kernel is too old for; of one with a name of the user's `tc` tells."""
    version = re.match(r"(\d+)\.(\d+)", kernel)
    for place in (Place(port.node, port.device) for node in network.nodes for port in network.of(node)):
        wanted = [stack.qdisc_at(place), (stack.at(place).ingress or "", stack.device_origin(place, "ingress"))]
        for line, origin in wanted:
            since = QDISCS_SINCE.get(kind := line.split(" ")[0])
            if since and version and (int(version[1]), int(version[2])) < since:
                why = f"not on kernel {kernel}: {kind} came with Linux {since[0]}.{since[1]}; kernels: {CHOICES}"
                raise refusal(origin, line, why)


def make(testbed: Testbed, stack: Stack, network: Network, node: str, every: bool) -> list[Step]:
    """The qdiscs of the node's devices. `every`: also where the kernel's default is what is wanted (veth has none)."""
    shapers = {shaper.at: (index, shaper) for index, shaper in enumerate(testbed.shaper)}
    delays = {netem.at: (index, netem) for index, netem in enumerate(testbed.netem) if netem.delay}
    steps: list[Step] = []
    for port in network.of(node):
        place = Place(node, port.device)
        shaper, delay = shapers.get(place), delays.get(place)
        qdisc, origin = stack.qdisc_at(place)
        if shaper:
            index, htb = shaper
            mtu = stack.at(place).mtu or (RADIO_MTU if port.radio else testbed.link[port.link].mtu)
            lines = _htb(port, htb, mtu)
            steps.append(BatchStep(do="tc", node=node, lines=lines, origin=f"testbed.shaper.{index}"))
        if delay:
            index, netem = delay
            setting = f"delay {show(netem.delay, TIME)} limit {netem.limit}"
            line = f"qdisc add dev {port.device} root handle 2: netem {setting}"
            steps.append(BatchStep(do="tc", node=node, lines=[line], origin=f"testbed.netem.{index}"))
        if shaper or every or qdisc != DEFAULT:
            parent = "parent 1:1" if shaper else "parent 2:1" if delay else "root"
            line = f"qdisc add dev {port.device} {parent} handle 10: {qdisc}"
            steps.append(BatchStep(do="tc", node=node, lines=[line], origin=origin))
        steps += _ingress(stack, place)
    return steps


def ifb(stack: Stack, network: Network, node: str, version: int) -> Iterator[BatchStep]:
    """The node's ifbs, one for each device whose arriving packets are queued."""
    for place in (Place(node, port.device) for port in network.of(node)):
        if stack.at(place).ingress:
            name = f"{IFB}{place.device}"
            # No address of its own, so that nothing is sent there but what is redirected.
            quiet = [f"link set dev {name} addrgenmode none"] if version == 6 else []
            lines = [f"link add dev {name} type ifb", *quiet, f"link set dev {name} up"]
            yield BatchStep(do="ip", node=node, lines=lines, origin=stack.device_origin(place, "ingress"))


def _ingress(stack: Stack, place: Place) -> Iterator[BatchStep]:
    device, qdisc = place.device, stack.at(place).ingress
    if qdisc:
        lines = [
            f"qdisc add dev {device} handle ffff: ingress",
            f"filter add dev {device} parent ffff: matchall action mirred egress redirect dev {IFB}{device}",
            f"qdisc add dev {IFB}{device} root handle 10: {qdisc}",
        ]
        yield BatchStep(do="tc", node=place.node, lines=lines, origin=stack.device_origin(place, "ingress"))


def _htb(port: Port, shaper: Shaper, mtu: int) -> list[str]:
    rate, quantum = show(shaper.rate, RATE), mtu + ETHERNET_HEADER
    burst = f"burst {shaper.burst} cburst {shaper.burst}"
    return [
        f"qdisc add dev {port.device} root handle 1: htb default 1",
        f"class add dev {port.device} parent 1: classid 1:1 htb rate {rate} ceil {rate} {burst} quantum {quantum}",
    ]
