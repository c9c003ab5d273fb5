# SPDX-License-Identifier: Apache-2.0
"""The settings that may help a run, as its explanation suggests: each changes one key of the scenario.

A knob is about one queue, or about the senders. Knobs of different queues can help together.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from hourglass.contract.plan import Hop
from hourglass.qdisc_line import CAKES, FRAME_BYTES
from hourglass.results.explain import Explanation
from hourglass.results.explain.bottleneck import Bottleneck
from hourglass.results.explain.size_rules import AQMS, BIG_SKB
from hourglass.results.lint.context import line_of
from hourglass.scenario import Scenario
from hourglass.scenario.values import NodeDevice
from hourglass.scenario.wifi import CHIPS

SENDERS = "senders"
BELOW_LINE_PERCENT = 95
"""A shaper's rate in percent of the line's: its queue is then in the shaper, not below it."""
BELOW_AIR_PERCENT = 85
"""The same of the rate that the air carried, which varies more."""
BELOW_CPU_PERCENT = 90
"""The same of the rate that a router with a busy CPU carried."""
BQL_MS = 1
"""The time of the data in a NIC's ring that a knob permits."""
LEAST_FRAMES = 10
"""The shortest queue of a knob in packets."""
BUFFER = 4
"""The factor by which a knob enlarges a socket's buffer."""
DEFAULT_BUFFERS = {"tcp_rmem": "4096 131072 6291456", "tcp_wmem": "4096 16384 4194304"}
NO_RTT_LOG = ("5.10",)
"""Kernels without tcp_tso_rtt_log."""
MOST_QUEUES = 2


@dataclass(frozen=True)
class Knob:
    """A change of the scenario. `place`: the hop whose queue it is about, or the senders. `reason`: why it may help."""

    name: str
    settings: dict[str, Any]
    place: str
    reason: str = ""
    node: str = field(default="", compare=False)
    """The node that it configures; "": all."""


def knobs(explanation: Explanation, scenario: Scenario) -> list[Knob]:
    """Return the knobs that follow from an explanation, the most specific first."""
    listed: dict[str, Knob] = {}
    limits = [explanation.bottleneck, *explanation.others]
    full = [each for each in limits if each.hop is not None or each.cpu is not None][:MOST_QUEUES]
    for each in (
        *_sender_knobs(explanation, scenario),
        *(knob for limit in full for knob in (_queue(limit, explanation, scenario) if limit.hop else _cpu(limit))),
    ):
        listed.setdefault(each.name, each)
    return list(listed.values())


def _knob(key: str, value: Any, place: str, reason: str) -> Knob:
    node = key.split(".")[1] if ".device." in key else ""
    return Knob(f"{key}={value}", {key: value}, place, reason, node)


def _cpu(limit: Bottleneck) -> Iterator[Knob]:
    """Yield the knob of a busy CPU: rates that it can carry, so that the queues are in qdiscs."""
    settings = {
        f"stack.{limit.node}.device.{hop.hop.device}.qdisc": "cake bandwidth"
        f" {_rate(int(hop.carried_bps) * BELOW_CPU_PERCENT // 100)} no-split-gso"
        for hop in limit.exits
        if hop.hop.medium == "cable" and hop.carried_bps
    }
    if settings:
        name = " and ".join(f"{key}={value}" for key, value in settings.items())
        reason = f"a rate that the CPU of {limit.node} carries"
        yield Knob(name, settings, limit.node, reason, limit.node)


def _queues(scenario: Scenario, hop: Hop) -> int:
    """Return the number of queues of a NIC that together serve its line."""
    device = NodeDevice(hop.node, hop.device)
    return next((link.queues or 1 for link in scenario.testbed.link if device in link.ends), 1)


def _queue(limit: Bottleneck, explanation: Explanation, scenario: Scenario) -> Iterator[Knob]:
    """Yield the knobs of a full hop."""
    hop = limit.hop
    assert hop is not None
    key = f"stack.{hop.hop.node}.device.{hop.hop.device}.qdisc"
    line = line_of(hop.hop)
    kind, of_each = line.kind, "mq " if line.of_each_queue else ""
    if hop.hop.medium == "air":
        yield from _aql(limit, scenario)
        if hop.carried_bps:
            rate = int(hop.carried_bps) * BELOW_AIR_PERCENT // 100
            yield _knob(key, f"cake bandwidth {_rate(rate)}", hop.name, "a queue above the radio")
        return
    if explanation.rule and explanation.rule.rule == "bql" and explanation.hop == hop:
        queues = _queues(scenario, hop.hop)
        size = max(2 * FRAME_BYTES, hop.hop.rate_bps * BQL_MS // 8000 // queues)
        key_bql = f"stack.{hop.hop.node}.device.{hop.hop.device}.bql_max"
        yield _knob(key_bql, f"{size}B", hop.name, f"BQL permits the data of {BQL_MS} ms")
    shaped = hop.hop.shaper_bps is not None and not hop.after_line
    if kind not in AQMS and not hop.after_line:
        yield _knob(key, f"{of_each}fq_codel", hop.name, "a queue per flow that does not fill")
    if shaped:
        if kind not in CAKES:
            yield _knob(key, "cake", hop.name, "a queue per flow that does not fill")
    elif kind not in CAKES or hop.after_line:
        rate = hop.hop.rate_bps * BELOW_LINE_PERCENT // 100
        yield _knob(key, f"cake bandwidth {_rate(rate)}", hop.name, "a queue just above the line")
    if kind in AQMS:
        yield _knob("stack.sysctl.net.ipv4.tcp_ecn", 1, hop.name, "marks instead of drops")
    elif kind in ("pfifo", "pfifo_fast", "bfifo", "fifo") and not hop.after_line:
        idle = max((victim.idle for victim in explanation.victims), default=0)
        frames = max(LEAST_FRAMES, ceil(hop.hop.rate_bps * idle / 8000 / FRAME_BYTES))
        yield _knob(key, f"{of_each}pfifo limit {frames}", hop.name, "a queue of one bandwidth-delay product")
    if limit.load is not None and hop.hop.node != limit.load.sender and hop.hop.ingress is None:
        rate = hop.hop.rate_bps * BELOW_LINE_PERCENT // 100
        ingress = f"stack.{hop.hop.to_node}.device.{hop.hop.to_device}.ingress"
        yield _knob(ingress, f"cake bandwidth {_rate(rate)}", hop.name, "the same, from the other end of the link")


def _aql(limit: Bottleneck, scenario: Scenario) -> Iterator[Knob]:
    """Yield the knob of airtime queue limits: on, or off for longer aggregates."""
    assert limit.hop is not None
    hop = limit.hop.hop
    for number, cell in enumerate(scenario.testbed.wifi):
        ends = [cell.ap, *(station.at for station in cell.station)]
        if CHIPS[cell.chip].txq and any(str(end) == f"{hop.node}:{hop.device}" for end in ends):
            reason = "longer aggregates" if cell.aql else "less data below mac80211"
            yield _knob(f"testbed.wifi.{number}.aql", not cell.aql, limit.hop.name, reason)


def _rate(bps: int) -> str:
    return f"{bps // 10**6}mbit" if bps % 10**6 == 0 else f"{max(1, bps // 1000)}kbit"


def _sender_knobs(explanation: Explanation, scenario: Scenario) -> Iterator[Knob]:
    """Yield the knobs of the senders' sockets."""
    shares, rule = explanation.bottleneck.shares, explanation.rule.rule if explanation.rule else None
    if shares is None:
        return
    kind = explanation.bottleneck.kind
    if rule == "tsq" or kind == "small queues":
        if shares.tsq_term == "floor" and (shares.skb_bytes or 0) >= BIG_SKB and scenario.kernel not in NO_RTT_LOG:
            yield _knob("stack.sysctl.net.ipv4.tcp_tso_rtt_log", 0, SENDERS, "smaller skbs, so a lower floor of TSQ")
        else:
            yield _knob("stack.tsq", "1ms", SENDERS, "less data below TCP")
    if kind == "small queues":
        yield _knob("stack.tsq", "16ms", SENDERS, "more data below TCP, for larger aggregates")
    if shares.tsq_term == "off":
        yield _knob("stack.tsq", "default", SENDERS, "TCP Small Queues")
    for bottleneck, name in (("receive window", "tcp_rmem"), ("send buffer", "tcp_wmem")):
        if kind == bottleneck:
            key = f"net.ipv4.{name}"
            low, middle, high = scenario.stack.sysctl.get(key, DEFAULT_BUFFERS[name]).split()
            yield _knob(f"stack.sysctl.{key}", f"{low} {middle} {BUFFER * int(high)}", SENDERS, "a larger buffer")
    if kind in ("link", "radio", "cpu", "loss", "congestion control"):
        other = "bbr" if shares.loss_based else "cubic"
        yield _knob("stack.cc", other, SENDERS, "another congestion control")
