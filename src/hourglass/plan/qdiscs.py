# SPDX-License-Identifier: Apache-2.0
"""The `tc` lines: HTB where there is a shaper, the stack's qdisc below it or as the root; netem where there is a delay.

HTB: one class, rate = ceil. `quantum` is one full frame, since the kernel complains of the one it derives at high
rates; with a single class it decides nothing.
"""

from hourglass.contract.plan import BatchStep, Step
from hourglass.plan.network import Network, Port
from hourglass.scenario import Stack, Testbed
from hourglass.scenario.testbed import Shaper
from hourglass.scenario.units import RATE, TIME, show
from hourglass.scenario.values import Place
from hourglass.scenario.wifi import CHIPS

ETHERNET_HEADER = 14
RADIO_MTU = 1500
DEFAULT = "pfifo_fast"
"""The qdisc a new device of one queue gets from the kernel itself."""


def qdisc_of(testbed: Testbed, stack: Stack, network: Network, port: Port) -> str:
    """The qdisc at a device, below its shaper, as tc would say it."""
    own, place = stack.of(port.node).qdisc, Place(port.node, port.device)
    parents = [*(one.at for one in testbed.shaper), *(one.at for one in testbed.netem if one.delay)]
    queues = port.radio and CHIPS[testbed.wifi[network.cell(port)].chip].txq
    return "noqueue" if queues and own == DEFAULT and place not in parents else own


def make(testbed: Testbed, stack: Stack, network: Network, node: str, every: bool) -> list[Step]:
    """The qdiscs of the node's devices. `every`: also where the kernel's default is what is wanted (veth has none)."""
    shapers = {shaper.at: (index, shaper) for index, shaper in enumerate(testbed.shaper)}
    delays = {netem.at: (index, netem) for index, netem in enumerate(testbed.netem) if netem.delay}
    qdisc = stack.of(node).qdisc
    origin = stack.origin(node, "qdisc")
    steps: list[Step] = []
    for port in network.of(node):
        shaper, delay = shapers.get(Place(node, port.device)), delays.get(Place(node, port.device))
        if shaper:
            index, htb = shaper
            lines = _htb(port, htb, RADIO_MTU if port.radio else testbed.link[port.link].mtu)
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
    return steps


def _htb(port: Port, shaper: Shaper, mtu: int) -> list[str]:
    rate, quantum = show(shaper.rate, RATE), mtu + ETHERNET_HEADER
    burst = f"burst {shaper.burst} cburst {shaper.burst}"
    return [
        f"qdisc add dev {port.device} root handle 1: htb default 1",
        f"class add dev {port.device} parent 1: classid 1:1 htb rate {rate} ceil {rate} {burst} quantum {quantum}",
    ]
