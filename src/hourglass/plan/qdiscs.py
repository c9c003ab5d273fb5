# SPDX-License-Identifier: Apache-2.0
"""The steps of tc: HTB for a shaper, with the stack's qdisc below it or as the root; netem for a delay; an ifb to queue
arriving packets.

HTB: one class, rate = ceil. `quantum` is one full frame, since the kernel warns about the one it derives at high rates;
with a single class it has no effect.

A qdisc queues packets that leave. A home router queues arriving packets for its line. To do so, each packet that a
device receives is redirected to an ifb, which queues it and returns it to the device (drivers/net/ifb.c):

    wire -> wan: ingress, matchall, mirred -> ifb4wan: root qdisc -> wan: the stack continues
"""

import re
from collections.abc import Iterator

from hourglass.contract.kernels import CHOICES
from hourglass.contract.plan import DeviceStep, IngressStep, QdiscStep, ShaperStep, Step
from hourglass.contract.plan.steps import Act
from hourglass.plan.links import Nic, queues_at
from hourglass.plan.network import Network
from hourglass.plan.port import Port
from hourglass.qdisc_line import DEFAULT_QDISC, QdiscLine
from hourglass.scenario import Stack, Testbed
from hourglass.scenario.blame import refusal
from hourglass.scenario.device import IFB
from hourglass.scenario.quantities import RATE, TIME, show
from hourglass.scenario.testbed import Shaper
from hourglass.scenario.values import NodeDevice
from hourglass.scenario.vocabulary import MULTIQUEUE_QDISCS, QDISCS_SINCE
from hourglass.scenario.wifi import CHIPS

ETHERNET_HEADER = 14
RADIO_MTU = 1500
MQ = "mq"
"""The root qdisc of a NIC with several queues: one qdisc for each."""
CLEARED = "7ff0:"
"""The handle of the qdisc that a machine's device gets before the scenario's."""


def qdisc_of(testbed: Testbed, stack: Stack, network: Network, port: Port) -> str:
    """Return the qdisc at a device, below its shaper, in tc's syntax, or mq with the qdisc of each queue."""
    device = NodeDevice(port.node, port.device)
    qdisc, _ = stack.qdisc_at(device)
    parents = [*(rule.at for rule in testbed.shaper), *(rule.at for rule in testbed.netem if rule.delay)]
    queues = port.radio and CHIPS[testbed.wifi[network.cell(port)].chip].txq
    if queues and qdisc == DEFAULT_QDISC and device not in parents:
        return "noqueue"
    return _qdisc(qdisc, queues_at(testbed, network, port), is_root=device not in parents)


def _qdisc(qdisc: str, queues: int, *, is_root: bool) -> str:
    """Return the qdisc at a device. Like the kernel's default qdisc, mq is only the root of a NIC with several queues;
    elsewhere the qdisc of each queue replaces it."""
    if is_root and queues > 1:
        return MQ if qdisc == DEFAULT_QDISC else qdisc
    return _of_queue(qdisc)


def _of_queue(qdisc: str) -> str:
    """Return the qdisc below mq, or the qdisc itself."""
    first, _, words = qdisc.partition(" ")
    return (words or DEFAULT_QDISC) if first == MQ else qdisc


def check(stack: Stack, network: Network, kernel: str) -> None:
    """Refuse a qdisc that the kernel is too old for; tc judges one with the name of the user's. Raises InputError."""
    version = re.match(r"(\d+)\.(\d+)", kernel)
    for device in (NodeDevice(port.node, port.device) for node in network.nodes for port in network.of(node)):
        lines = [stack.qdisc_at(device), (stack.at(device).ingress or "", stack.device_origin(device, "ingress"))]
        for line, origin in lines:
            since = QDISCS_SINCE.get(kind := QdiscLine(line).kind)
            if since and version and (int(version[1]), int(version[2])) < since:
                reason = (
                    f"does not exist on kernel {kernel}: {kind} came with Linux {since[0]}.{since[1]}; kernels:"
                    f" {CHOICES}"
                )
                raise refusal(origin, line, reason)


def make(testbed: Testbed, stack: Stack, network: Network, node: str, nic: Nic) -> list[Step]:
    """Return the qdiscs of the node's devices; only the wire driver's NICs have the kernel's default already. A machine
    may have qdiscs, and one of the same handle would interfere: the device first gets another."""
    act: Act = "replace" if nic == "real" else "add"
    shapers = {shaper.at: (index, shaper) for index, shaper in enumerate(testbed.shaper)}
    delays = {netem.at: (index, netem) for index, netem in enumerate(testbed.netem) if netem.delay}
    steps: list[Step] = []
    if nic == "real":
        steps += [
            qdisc_step(NodeDevice(node, port.device), "pfifo", f"testbed.link.{port.link}", act, handle=CLEARED)
            for port in network.of(node)
        ]
    for port in network.of(node):
        device = NodeDevice(node, port.device)
        shaper, delay = shapers.get(device), delays.get(device)
        qdisc, origin = stack.qdisc_at(device)
        if shaper:
            index, htb = shaper
            mtu = stack.at(device).mtu or (RADIO_MTU if port.radio else testbed.link[port.link].mtu)
            steps.append(_htb(port, htb, mtu, act, f"testbed.shaper.{index}"))
        if delay:
            index, netem = delay
            words = f"netem delay {show(netem.delay, TIME)} limit {netem.limit}"
            steps.append(qdisc_step(device, words, f"testbed.netem.{index}", act, handle="2:"))
        queues = queues_at(testbed, network, port)
        qdisc = _qdisc(qdisc, queues, is_root=not shaper and not delay)
        line = QdiscLine(qdisc)
        if line.of_each_queue:
            steps += _mq(device, qdisc, origin, act, queues, is_default=nic == "wire")
        elif shaper or nic != "wire" or qdisc != DEFAULT_QDISC:
            if line.kind in MULTIQUEUE_QDISCS:
                _check_multiqueue(port, qdisc, origin, queues, has_parent=bool(shaper or delay))
            steps.append(qdisc_step(device, qdisc, origin, act, parent="1:1" if shaper else "2:1" if delay else None))
        steps += _ingress(stack, device, act)
    return steps


def qdisc_step(
    at: NodeDevice, words: str, origin: str, act: Act, *, parent: str | None = None, handle: str | None = "10:"
) -> QdiscStep:
    """Return the step of a qdisc from tc's words: its kind and options, or a size table (stab) before them."""
    kind, _, options = words.partition(" ")
    return QdiscStep(
        do="qdisc", node=at.node, device=at.device, act=act, parent=parent, handle=handle, kind=kind, options=options,
        origin=origin,
    )  # fmt: skip


def default_step(node: str, nic: DeviceStep) -> QdiscStep:
    """Return the step that gives a machine's device the default qdisc of a guest's NIC."""
    kind = MQ if nic.queues else DEFAULT_QDISC
    return qdisc_step(NodeDevice(node, nic.device), kind, "stack.qdisc", "replace", handle=None)


def _mq(at: NodeDevice, qdisc: str, origin: str, act: Act, queues: int, *, is_default: bool) -> Iterator[Step]:
    """Yield mq and the qdisc of each queue. `is_default`: the device has mq with default qdiscs already."""
    words = qdisc.partition(" ")[2]
    if words or not is_default:
        yield qdisc_step(at, MQ, origin, act)
    for queue in range(1, queues + 1) if words else ():
        yield qdisc_step(at, words, origin, act, parent=f"10:{queue:x}", handle=f"{0x10 + queue:x}:")


def _check_multiqueue(port: Port, qdisc: str, origin: str, queues: int, *, has_parent: bool) -> None:
    """Refuse a qdisc for several queues where a device has one, or where it is not the root."""
    if has_parent:
        raise refusal(origin, qdisc, f"must be the root, but {port.node}:{port.device} has a shaper or a netem")
    if queues == 1:
        key = "" if port.radio else f"; set testbed.link.{port.link}.queues"
        raise refusal(origin, qdisc, f"needs several queues, but {port.node}:{port.device} has one{key}")


def _ingress(stack: Stack, at: NodeDevice, act: Act) -> Iterator[Step]:
    if qdisc := stack.at(at).ingress:
        ifb, origin = NodeDevice(at.node, f"{IFB}{at.device}"), stack.device_origin(at, "ingress")
        if QdiscLine(qdisc).kind in MULTIQUEUE_QDISCS:
            raise refusal(origin, qdisc, f"needs several queues, but {ifb.device} has one")
        yield IngressStep(do="ingress", node=at.node, device=at.device, ifb=ifb.device, origin=origin)
        yield qdisc_step(ifb, _of_queue(qdisc), origin, act)


def _htb(port: Port, shaper: Shaper, mtu: int, act: Act, origin: str) -> ShaperStep:
    assert shaper.burst is not None, "spelled out with the other defaults"
    return ShaperStep(
        do="shaper", node=port.node, device=port.device, act=act, rate=show(shaper.rate, RATE), burst=shaper.burst,
        quantum=mtu + ETHERNET_HEADER, origin=origin,
    )  # fmt: skip
