# SPDX-License-Identifier: Apache-2.0
"""Name the limit of each load, a full hop, a busy CPU or its sender, and the one on which the run's latency depends.

A full hop limits all that pass it, and so does the CPU of a node if packets take time there. Of several, the one with
the longest wait has the queue, unless it only overflows now and then. Without one, the sender is limited: by its
application, its pacing, the receive window, the send buffer, TCP Small Queues, or its congestion window. The congestion
window is small because the path loses packets, because acknowledgements come late, or because the congestion control
wants it so.
"""

from dataclasses import dataclass
from typing import Literal

from hourglass.contract.summary import CpuFigures
from hourglass.results.explain.latency import LatencyPart
from hourglass.results.explain.loads import AIR_BUSY, HopLoad, Load, Loads
from hourglass.results.explain.senders import SenderShares, sender_shares

Kind = Literal[
    "link", "radio", "cpu", "application", "pacing", "receive window", "send buffer", "small queues", "loss",
    "late acknowledgements", "congestion control", "unknown", "nothing",
]  # fmt: skip

SHARE = 0.3
"""The share of time from which a limit of a sender counts."""
BUSY = 0.9
"""A sender with data for less of the time waits for its application."""
RATE_NEARLY = 0.9
"""The share of its limited rate from which a flow is limited by it."""
USED_UP = 0.95
"""The share of its rate from which a full hop is the limit, independent of the senders' limits."""
CPU_BUSY = 0.85
"""The share of time from which a node's CPU is used up: like a cable, it idles while a congestion control drains."""


@dataclass(frozen=True)
class Bottleneck:
    """The limit of a load. `hop`: of a full hop; `shares`: of its senders, if it has flows. `node`, `cpu`: of a CPU."""

    kind: Kind
    load: Load | None
    hop: HopLoad | None = None
    shares: SenderShares | None = None
    node: str = ""
    cpu: CpuFigures | None = None
    weight_ms: float = 0.0
    """The wait of the victims for the hop or the CPU."""
    before_stack_ms: float = 0.0
    """Of a CPU: the part of that wait before the stack."""
    exits: tuple[HopLoad, ...] = ()
    """Of a CPU: the hops by which loads leave its node, each once."""

    @property
    def where(self) -> str:
        """Return the place: a device, a node, or the sender."""
        if self.hop is not None:
            return self.hop.name
        return self.node or (self.load.sender if self.load else "")


def bottlenecks(loads: Loads, parts: list[LatencyPart]) -> list[Bottleneck]:
    """Return what limits the run, first that on which the latency depends most, then the others."""
    limits = [_of_load(loads, load, parts) for load in loads.listed]
    limited = {each.node for each in limits}
    busy = _busy_cpus(loads, None)
    limits += [_of_cpu(loads, None, node, cpu, parts) for node, cpu in busy.items() if node not in limited]
    waiting = {each.hop.name for each in limits if each.hop}
    limits = [_late_acks(each, loads, waiting) for each in limits]
    unique: dict[tuple[str, str], Bottleneck] = {}
    for each in limits:
        key = (each.kind, each.where)
        if key not in unique or unique[key].weight_ms < each.weight_ms:
            unique[key] = each
    ranked = sorted(unique.values(), key=_rank)
    return ranked or [Bottleneck("nothing", None)]


def _rank(each: Bottleneck) -> tuple[int, float]:
    """A full hop or CPU of a load comes first, then senders, loads without flows, and other CPUs."""
    if each.load is None:
        return 3, -each.weight_ms
    order = 0 if each.hop is not None or each.cpu is not None else 1 if each.load.flows else 2
    return order, -each.weight_ms


def _of_load(loads: Loads, load: Load, parts: list[LatencyPart]) -> Bottleneck:
    shares = sender_shares(loads, load.flows) if load.flows else None
    busy = _busy_cpus(loads, load)
    full = [hop for hop in load.hops if hop.full and (hop.hop.node not in busy or _used_up(hop))]
    if busy:
        cpus = (_of_cpu(loads, load, node, cpu, parts, shares) for node, cpu in busy.items())
        limit = max(cpus, key=lambda each: each.weight_ms)
        if not full or limit.weight_ms > max(_weight(hop, load, parts) for hop in full):
            return limit
    if full:
        hop = max(full, key=lambda each: (each.is_steady, each.wait_ms or 0, -each.hop.rate_bps))
        if shares is not None and (kind := _stronger(loads, load, hop, shares)):
            return Bottleneck(kind, load, shares=shares)
        kind = "radio" if hop.hop.medium == "air" else "link"
        return Bottleneck(kind, load, hop, shares, weight_ms=_weight(hop, load, parts))
    if not load.hops and load.flows:
        return Bottleneck((shares and _sender_kind(loads, load, shares)) or "unknown", load, shares=shares)
    if shares is None:
        return Bottleneck("application", load)
    kind = _sender_kind(loads, load, shares)
    return Bottleneck(kind or _why_cwnd(load), load, shares=shares)


def _stronger(loads: Loads, load: Load, hop: HopLoad, shares: SenderShares) -> Kind | None:
    """Return a limit of the sender that holds it while the hop is not quite used up, or None."""
    if hop.utilisation is None or _used_up(hop) or hop.congested:
        return None
    if max(shares.rwnd or 0, shares.sndbuf or 0) >= 2 * SHARE:
        return _sender_kind(loads, load, shares)
    lost = sum(each.lost for each in load.hops) > sum(each.congested for each in load.hops)
    return "loss" if lost and shares.loss_based and (shares.cwnd or 0) >= 2 * SHARE else None


def _weight(hop: HopLoad, load: Load, parts: list[LatencyPart]) -> float:
    """Return the wait of the victims at the hop; of the load itself if they do not pass it."""
    felt = sum(part.ms for part in parts if part.is_queue and part.node == hop.hop.node
               and (not part.device or part.device == hop.hop.device))  # fmt: skip
    return felt or 1e-3 * (hop.wait_ms or 0)


def _sender_kind(loads: Loads, load: Load, shares: SenderShares) -> Kind | None:
    """Return what limits the senders, unless it is the congestion window."""
    flows = [flow for flow in loads.run.flows if flow.name in load.flows]
    goodput = sum(flow.goodput_mbps for flow in loads.run.summary.flows if flow.id in load.flows) * 1e6
    paced = [flow.pace_bps for flow in flows if flow.pace_bps]
    if len(paced) == len(flows) > 0 and goodput >= RATE_NEARLY * sum(paced):
        return "pacing"
    if (shares.rwnd or 0) >= SHARE and (shares.rwnd or 0) >= (shares.cwnd or 0):
        return "receive window"
    if (shares.sndbuf or 0) >= SHARE and (shares.sndbuf or 0) >= (shares.cwnd or 0):
        return "send buffer"
    written = [flow.writes.rate_bps for flow in flows if flow.writes]
    if written and len(written) == len(flows) and goodput >= RATE_NEARLY * sum(written):
        return "application"
    if shares.busy is not None and shares.busy < BUSY:
        return "application"
    if (shares.tsq or 0) >= WAITS_FOR_TSQ:
        return "small queues"
    return None


WAITS_FOR_TSQ = 0.8
"""The share of time above which TCP Small Queues alone hold a sender."""


def _why_cwnd(load: Load) -> Kind:
    """Return the reason of a small congestion window."""
    lost = sum(hop.lost for hop in load.hops)
    congested = sum(hop.congested for hop in load.hops)
    return "loss" if lost > congested else "congestion control"


def _late_acks(each: Bottleneck, loads: Loads, full: set[str]) -> Bottleneck:
    """A sender whose acknowledgements wait at a hop that others fill is limited by it."""
    if each.kind != "congestion control" or each.load is None:
        return each
    load = each.load
    back = loads.path(load.receiver, load.sender, "down" if load.way == "up" else "up")
    if any(f"{hop.node}:{hop.device}" in full for hop in back):
        return Bottleneck("late acknowledgements", load, shares=each.shares)
    return each


def _busy_cpus(loads: Loads, load: Load | None) -> dict[str, CpuFigures]:
    """Return the CPUs that are used up, by node; of a load, those on which its packets or its programs' calls take
    time."""
    cpus = loads.cpus(load.window if load else loads.window)
    busy = {node: cpu for node, cpu in cpus.items() if cpu.busy_percent >= 100 * CPU_BUSY}
    return {node: cpu for node, cpu in busy.items() if load is None or _takes_time(load, node, cpu)}


def _takes_time(load: Load, node: str, cpu: CpuFigures) -> bool:
    packets = node in load.nodes and cpu.received_percent + cpu.sent_percent > 0
    return packets or (load.has_programs and node in (load.sender, load.receiver) and cpu.calls_percent > 0)


def _of_cpu(
    loads: Loads,
    load: Load | None,
    node: str,
    cpu: CpuFigures,
    parts: list[LatencyPart],
    shares: SenderShares | None = None,
) -> Bottleneck:
    """Return a CPU as a limit. Received frames wait for it before the stack, and skbs in the qdisc of a device."""
    exits = {hop.name: hop for each in loads.listed for hop in each.hops if hop.hop.node == node}
    full = {hop.hop.device for hop in exits.values() if _used_up(hop)}
    before_ms = qdisc_ms = 0.0
    for part in parts:
        if cpu.received_percent and (part.node, part.layer) == (node, "rx"):
            before_ms += part.ms
        if cpu.sent_percent and (part.node, part.layer) == (node, "qdisc") and part.device not in full:
            qdisc_ms += part.ms
    return Bottleneck("cpu", load, None, shares, node, cpu, before_ms + qdisc_ms, before_ms, tuple(exits.values()))


def _used_up(hop: HopLoad) -> bool:
    """Tell if a cable carries its rate, or the channel of a radio is busy."""
    if hop.radio is not None:
        return (hop.radio.busy_percent or 0) >= 100 * AIR_BUSY
    return (hop.utilisation or 0) >= USED_UP
