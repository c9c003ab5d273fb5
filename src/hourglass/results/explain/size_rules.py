# SPDX-License-Identifier: Apache-2.0
"""The rule that decides the size of a queue.

A queue has the size at which something stops its senders. From the queue outwards, these are its own limit or AQM, and
the rule of the device (BQL, airtime queue limits). TCP Small Queues follow for senders on the same host, then
congestion window, receive window, send buffer or pacing rate of the sockets. The first that acted is the rule.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from hourglass.qdisc_line import AQM_TARGET_US
from hourglass.results.explain.latency import LatencyPart
from hourglass.results.explain.loads import MAC80211_TARGET_MS, HopLoad, Load, Loads
from hourglass.results.explain.senders import SenderShares, sender_shares
from hourglass.results.lint.context import line_of, rate_text, size_text
from hourglass.results.stats import short

RuleName = Literal[
    "aqm", "qdisc limit", "shaper limit", "bql", "ring", "hardware queue", "airtime", "tsq", "cwnd",
    "receive window", "send buffer", "pacing", "application", "unknown",
]  # fmt: skip
Values = dict[str, float | int | str | None]
HOLDS = 0.5
"""The share of time from which TCP Small Queues hold a sender."""
BIG_SKB = 20_000
"""Payload of an skb that autosizing makes only for a very short round trip (tcp_tso_rtt_log)."""
NOTABLE = 0.1
"""The share of time from which a second reason has its words."""
AQMS = (*AQM_TARGET_US, "dualpi2", "red", "fq_pie")
TERMS = {
    "floor": "two skbs (the floor of the rule)",
    "rate": "the data of about a millisecond at the pacing rate",
    "cap": "tcp_limit_output_bytes",
    "bytes": "a size",
    "none": "not known",
    "off": "none",
}
"""The limit by the term of the rule that decided it."""


@dataclass(frozen=True)
class SizeRule:
    """The rule with its sentence. `values`: the figures in it; `sources`: the tables and figures that they are from."""

    rule: RuleName
    text: str
    values: Values = field(default_factory=dict)
    sources: tuple[str, ...] = ()


def hop_of(loads: Loads, part: LatencyPart) -> tuple[HopLoad | None, list[Load]]:
    """Return the hop at which a part of the latency waits, and the loads that pass it."""
    passing: list[Load] = []
    match: HopLoad | None = None
    for load in loads.listed:
        for each in load.hops:
            if each.hop.node == part.node and (not part.device or each.hop.device == part.device):
                match = each if match is None or (each.wait_ms or 0) > (match.wait_ms or 0) else match
                passing.append(load)
    return match, passing


def size_rule(loads: Loads, part: LatencyPart) -> SizeRule:
    """Return the rule that decides the size of the queue in which the victims wait longest."""
    hop, passing = hop_of(loads, part)
    if hop is None:
        return SizeRule("unknown", f"No load is known to pass {part.place}, so the rule for its queue is unknown")
    if part.layer == "shaper":
        return _link_shaper(hop)
    if part.layer in ("contention", "retry"):
        return _airtime(hop, part)
    flows = tuple(dict.fromkeys(name for load in passing for name in load.flows))
    local = bool(flows) and all(load.sender == hop.hop.node for load in passing)
    if part.layer == "ring":
        shares = sender_shares(loads, flows) if local else None
        if shares is not None and (shares.tsq or 0) >= HOLDS and _only_ring(loads, hop):
            return _tsq(shares)
        return _radio_ring(hop) if hop.hop.medium == "air" else _ring(loads, hop)
    aqm = part.layer == "txq" or line_of(hop.hop).kind in AQMS
    if hop.congested and aqm:
        return _aqm(hop, part)
    if hop.drops:
        return _limit(hop)
    if not flows:
        return SizeRule("application", f"Applications without congestion control fill the queue of {hop.name}")
    return _senders(sender_shares(loads, flows), local)


def _only_ring(loads: Loads, hop: HopLoad) -> bool:
    """Tell if the limit of a NIC's ring does not act: nothing waits in the qdisc above it. A radio's packets are all
    below TCP, in mac80211's queue or in the hardware."""
    return not loads.median(hop.hop, "qdisc_bytes")


def _link_shaper(hop: HopLoad) -> SizeRule:
    text = next((each for each in hop.hop.impairments if each.startswith("shaper")), "")
    drops = f"it dropped {hop.policed} packets" if hop.policed else "it dropped nothing, so the senders decide"
    return SizeRule(
        "shaper limit",
        f"The limit of the link's shaper behind {hop.name} decides the size ({text}): {drops}",
        {"dropped": hop.policed},
        (f"links.{hop.hop.node}.{hop.hop.device}.shaper_full",),
    )


def _airtime(hop: HopLoad, part: LatencyPart) -> SizeRule:
    radio = hop.radio
    if radio is None:
        return SizeRule("airtime", f"Frames of other links keep the shared line of {hop.name} busy", {"ms": part.ms})
    return SizeRule(
        "airtime",
        f"The air decides: its channel is busy {short(radio.busy_percent or 0)} % of the time, and {hop.name} itself"
        f" sends {short(radio.air_percent or 0)} %",
        {"busy_percent": radio.busy_percent, "air_percent": radio.air_percent},
        (f"wifi.{hop.hop.node}.{hop.hop.device}.busy_percent",),
    )


def _radio_ring(hop: HopLoad) -> SizeRule:
    held_mpdus = hop.radio.held.mean if hop.radio else None
    aggregate = hop.radio.subframes.mean if hop.radio else None
    return SizeRule(
        "hardware queue",
        f"Driver and hardware of {hop.name} decide: they hold {short(held_mpdus or 0)} MPDUs on average, and an"
        f" aggregate has {short(aggregate or 0)}",
        {"held": held_mpdus, "aggregate": aggregate},
        (f"wifi.{hop.hop.node}.{hop.hop.device}.held", f"wifi.{hop.hop.node}.{hop.hop.device}.subframes"),
    )


def _ring(loads: Loads, hop: HopLoad) -> SizeRule:
    limit, inside = (loads.median(hop.hop, name) for name in ("bql_limit", "bql_inflight"))
    if not limit:
        return SizeRule("ring", f"The NIC's ring at {hop.name} decides: it has no byte queue limit", {})
    return SizeRule(
        "bql",
        f"BQL decides: its limit at {hop.name} is {size_text(limit)} in the median, of which {size_text(inside or 0)}"
        f" are used, {short(limit * 8000 / hop.hop.rate_bps)} ms at {rate_text(hop.hop.rate_bps)}",
        {"bql_limit": limit, "bql_inflight": inside},
        ("table queue",),
    )


def _aqm(hop: HopLoad, part: LatencyPart) -> SizeRule:
    if part.layer == "txq":
        kind, target_ms = "FQ-CoDel of mac80211", float(MAC80211_TARGET_MS)
        source = f"wifi.{hop.hop.node}.{hop.hop.device}.txq_drops"
    else:
        kind = line_of(hop.hop).kind
        target_us = line_of(hop.hop).target_us or 0
        target_ms, source = target_us / 1000, f"drops.{hop.hop.node}.{hop.hop.device}.qdisc"
    target = f", its target is {target_ms:g} ms" if target_ms else ""
    return SizeRule(
        "aqm",
        f"The AQM decides: {kind} at {hop.name} dropped {hop.drops} packets and marked {hop.marks}{target}",
        {"dropped": hop.drops, "marked": hop.marks, "target_ms": target_ms},
        (source, f"qdiscs.{hop.hop.node}.{hop.hop.device}"),
    )


def _limit(hop: HopLoad) -> SizeRule:
    size = hop.backlog_bytes or 0
    return SizeRule(
        "qdisc limit",
        f"The limit of {hop.hop.qdisc} at {hop.name} decides: it overflowed and dropped {hop.drops} packets",
        {"dropped": hop.drops, "backlog_bytes": size},
        (f"drops.{hop.hop.node}.{hop.hop.device}.qdisc",),
    )


def _senders(shares: SenderShares, local: bool) -> SizeRule:
    rules: dict[str, Callable[[SenderShares], SizeRule]] = {
        "rwnd": _rwnd, "sndbuf": _sndbuf, "pacing": _pacing, "cwnd": _cwnd, "tsq": _tsq,
    }  # fmt: skip
    largest = "tsq" if local and (shares.tsq or 0) >= HOLDS else shares.largest
    if largest is None:
        return SizeRule("unknown", "The kernel does not say what holds the senders back")
    return rules[largest](shares)


def _tsq(shares: SenderShares) -> SizeRule:
    owner = "a flow" if shares.flows == 1 else f"each of the {shares.flows} flows"
    size = f", and it has {size_text(shares.below_tcp)} below TCP in the median" if shares.below_tcp else ""
    text = (
        f"TCP Small Queues decide: the limit of {owner} is {TERMS[shares.tsq_term or 'none']}{size}; data waits for it"
        f" {shares.tsq or 0:.0%} of the time"
    )
    if shares.tsq_term == "floor" and (shares.skb_bytes or 0) >= BIG_SKB:
        size = size_text(shares.skb_bytes or 0)
        text += f". An skb holds {size}, since the round trip without queues is very short (tcp_tso_rtt_log)"
    values: Values = {
        "share": shares.tsq,
        "term": shares.tsq_term,
        "limit_bytes": shares.tsq_limit,
        "below_tcp_bytes": shares.below_tcp,
        "skb_bytes": shares.skb_bytes,
    }
    return SizeRule("tsq", text, values, ("table tcp: hold_tsq_ns, tsq_term, sk_wmem_alloc",))


def _cwnd(shares: SenderShares) -> SizeRule:
    cc = ", ".join(shares.ccs) or "the congestion control"
    segments = "" if shares.cwnd_segments is None else f" (median {shares.cwnd_segments:.0f} segments)"
    grows = f"{cc} grows until a loss, and nothing was dropped here" if shares.loss_based else f"{cc} chooses them"
    text = f"The congestion windows{segments} decide: data waits for them {shares.cwnd or 0:.0%} of the time; {grows}"
    if (shares.sndbuf or 0) >= NOTABLE:
        text += f". The send buffers are full {shares.sndbuf:.0%} of the time"
    if shares.tsq_term == "off":
        text += ". TCP Small Queues are off"
    values: Values = {"share": shares.cwnd, "segments": shares.cwnd_segments, "term": shares.tsq_term}
    return SizeRule("cwnd", text, values, ("table tcp: hold_cwnd_ns, snd_cwnd",))


def _rwnd(shares: SenderShares) -> SizeRule:
    size = f" (median {size_text(shares.window_bytes)})" if shares.window_bytes else ""
    text = f"The receive windows{size} decide: they are full {shares.rwnd or 0:.0%} of the time"
    values: Values = {"share": shares.rwnd, "window_bytes": shares.window_bytes}
    return SizeRule("receive window", text, values, ("table tcp: rwnd_limited, snd_wnd",))


def _sndbuf(shares: SenderShares) -> SizeRule:
    text = f"The send buffers decide: they are full {shares.sndbuf or 0:.0%} of the time"
    return SizeRule("send buffer", text, {"share": shares.sndbuf}, ("table tcp: sndbuf_limited",))


def _pacing(shares: SenderShares) -> SizeRule:
    cc = ", ".join(shares.ccs) or "the congestion control"
    text = f"The pacing rate of {cc} decides: data waits for its time {shares.pacing or 0:.0%} of the time"
    return SizeRule("pacing", text, {"share": shares.pacing}, ("table tcp: hold_pacing_ns",))


def size_of(hop: HopLoad) -> str:
    """Return the median backlog of a hop as text: bytes, skbs and time."""
    size, skbs = hop.backlog_bytes or 0, hop.backlog_skbs
    counted = f"{skbs:.0f} skbs, " if skbs else ""
    time = f"{short(size * 8000 / hop.hop.rate_bps)} ms at {rate_text(hop.hop.rate_bps)}"
    return f"{size_text(size)} wait at {hop.name} ({counted}{time})"
