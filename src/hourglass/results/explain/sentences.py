# SPDX-License-Identifier: Apache-2.0
"""The explanation of a run: a dozen sentences, each computed, with its figures and their sources."""

from dataclasses import asdict, dataclass, field
from typing import Any

from hourglass.contract.summary import CpuFigures
from hourglass.results.explain.bottleneck import Bottleneck, bottlenecks
from hourglass.results.explain.latency import LatencyPart, Victim, latency_parts, victims
from hourglass.results.explain.loads import HopLoad, Loads
from hourglass.results.explain.size_rules import SizeRule, Values, hop_of, size_of, size_rule
from hourglass.results.recording import Recording
from hourglass.results.sections import value_text
from hourglass.results.stats import short

SHARE = 0.03
"""The share of the latency from which a part has its words."""
MOST_PARTS = 3
MOST_OTHERS = 3
MOST_WARNINGS = 2
QUEUE_SHARE = 0.1
"""The share of the latency below which no queue needs a rule."""
FAIR = 0.9
"""Jain's index below which shares are uneven."""


@dataclass(frozen=True)
class Sentence:
    """A computed sentence. `values`: its figures; `sources`: the figures of `--json` and the tables that they are
    from."""

    id: str
    text: str
    values: Values = field(default_factory=dict)
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """The meaning of the records of a run. `queue`: the part of the latency that its rule is about, if any. `missing`:
    the records that would say more."""

    bottleneck: Bottleneck
    others: tuple[Bottleneck, ...]
    victims: tuple[Victim, ...]
    parts: tuple[LatencyPart, ...]
    queue: LatencyPart | None
    hop: HopLoad | None
    """Where the queue is."""
    rule: SizeRule | None
    sentences: tuple[Sentence, ...]
    missing: tuple[str, ...]

    def data(self) -> dict[str, Any]:
        """Return the explanation as plain data."""
        return {
            "bottleneck": {"kind": self.bottleneck.kind, "where": self.bottleneck.where},
            "others": [{"kind": each.kind, "where": each.where} for each in self.others],
            "rule": self.rule.rule if self.rule else None,
            "queue": asdict(self.queue) if self.queue else None,
            "sentences": [asdict(sentence) for sentence in self.sentences],
            "missing": list(self.missing),
        }


def explanation_of(run: Recording) -> Explanation:
    """Return the explanation of a run."""
    loads = Loads(run)
    felt = victims(loads)
    parts = latency_parts(loads, [victim.name for victim in felt])
    first, *further = bottlenecks(loads, parts)
    queue = _longest_queue(loads, parts)
    rule = size_rule(loads, queue) if queue else None
    hop = hop_of(loads, queue)[0] if queue else first.hop
    missing = tuple(_missing(loads, felt))
    sentences = [
        _bottleneck(first, "bottleneck"),
        *(_bottleneck(each, "also") for each in further[:MOST_OTHERS]),
        *_latency(felt),
        *_parts(parts, felt),
        *([_size(hop)] if hop and hop.backlog_bytes else []),
        *([Sentence("rule", rule.text, rule.values, rule.sources)] if rule else []),
        *_data(loads, parts, felt),
        *_losses(loads, first),
        *_radio(first),
        *_shares(run),
        *_warnings(run),
    ]
    return Explanation(first, tuple(further), tuple(felt), tuple(parts), queue, hop, rule, tuple(sentences), missing)


def _longest_queue(loads: Loads, parts: list[LatencyPart]) -> LatencyPart | None:
    """Return the longest wait at the device with the longest waits in all its layers, of those that a load passes. On
    a shared channel, packets also wait at devices without a load."""
    waits = [part for part in parts if part.is_queue]
    waits = [part for part in waits if hop_of(loads, part)[0] is not None] or waits
    shares: dict[str, float] = {}
    for part in waits:
        shares[part.place] = shares.get(part.place, 0) + part.share
    place = max(shares, key=lambda name: shares[name], default="")
    if shares.get(place, 0) < QUEUE_SHARE:
        return None
    return next(part for part in waits if part.place == place)


def _bottleneck(each: Bottleneck, id: str) -> Sentence:
    start = "The bottleneck is" if id == "bottleneck" else "Another limit is"
    if each.hop is not None:
        return _full_hop(each, start, id)
    if each.cpu is not None:
        return _busy_cpu(each, each.cpu, start, id)
    shares, load = each.shares, each.load
    ends = f" (from {load.name})" if load else ""
    lost = sum(hop.lost for hop in load.hops) if load else 0
    values: Values = {"kind": each.kind}
    texts: dict[str, tuple[str, Values]] = {
        "nothing": ("nothing: no stream loads the path", {}),
        "unknown": (f"unknown{ends}: the run has no path and no account of its senders", {}),
    }  # fmt: skip
    if shares is not None:
        cc = ", ".join(shares.ccs) or "its congestion control"
        texts |= {
            "application": (f"the application at {each.where}{ends}: it has data to send"
                            f" {(shares.busy or 0):.0%} of the time", {"busy": shares.busy}),
            "pacing": (f"the rate to which the sender is limited{ends} (SO_MAX_PACING_RATE)", {"share": shares.pacing}),
            "receive window": (f"the receive window{ends}: it is full {(shares.rwnd or 0):.0%} of the time",
                               {"share": shares.rwnd}),
            "send buffer": (f"the send buffer{ends}: it is full {(shares.sndbuf or 0):.0%} of the time",
                            {"share": shares.sndbuf}),
            "small queues": (f"TCP Small Queues at the sender{ends}: they hold data {(shares.tsq or 0):.0%} of the"
                             " time, and no hop is full", {"share": shares.tsq}),
            "loss": (f"loss{ends}: {lost} packets were lost on the way, and {cc} takes them for congestion",
                     {"lost": lost}),
            "late acknowledgements": (f"late acknowledgements{ends}: they wait in a queue of the other direction", {}),
            "congestion control": (f"the congestion window of {cc}{ends}: no hop is full, and data waits for it"
                                   f" {(shares.cwnd or 0):.0%} of the time", {"share": shares.cwnd}),
        }  # fmt: skip
    text, figures = texts.get(each.kind, (f"the application at {each.where}{ends}: it sends at its own rate", {}))
    sources = {"loss": ("drops.*.cable", "table drop"), "nothing": (), "unknown": ()}
    return Sentence(id, f"{start} {text}", values | figures, sources.get(each.kind, ("table tcp",)))


def _busy_cpu(each: Bottleneck, cpu: CpuFigures, start: str, id: str) -> Sentence:
    kinds = {"received frames": cpu.received_percent, "skbs to send": cpu.sent_percent,
             "programs' calls": cpu.calls_percent}  # fmt: skip
    work = _joined([f"{name} {short(percent)} %" for name, percent in kinds.items() if percent])
    text = f"{start} the CPU of {each.node}: it is busy {short(cpu.busy_percent)} % of the time ({work})"
    if each.weight_ms:
        text += f", and packets wait {_ms(each.weight_ms)} for it"
    if each.before_stack_ms > each.weight_ms / 2:
        text += ", most of it before the stack, where no qdisc controls the queue"
    values: Values = {"kind": each.kind, "where": each.node, "busy_percent": cpu.busy_percent, "ms": each.weight_ms}
    return Sentence(id, text, values, ("table cpu", "table layer"))


def _full_hop(each: Bottleneck, start: str, id: str) -> Sentence:
    hop = each.hop
    assert hop is not None
    values: Values = {"kind": each.kind, "where": hop.name, "rate_bps": hop.hop.rate_bps}
    if hop.radio is not None:
        radio = hop.radio
        text = (
            f"{start} the air at {hop.name} ({hop.limit}): the channel is busy {short(radio.busy_percent or 0)} % of"
            f" the time, {hop.name} itself sends {short(radio.air_percent or 0)} %, and frames wait in"
            f" {hop.waiting or 0:.0%} of the samples"
        )
        values |= {"busy_percent": radio.busy_percent, "air_percent": radio.air_percent, "waiting": hop.waiting}
        return Sentence(id, text, values, (f"wifi.{hop.hop.node}.{hop.hop.device}", "table queue"))
    evidence = []
    if hop.utilisation is not None:
        evidence.append(f"it carries {hop.utilisation:.0%} of its rate")
    if hop.waiting is not None and not hop.delays:
        evidence.append(f"packets wait there in {hop.waiting:.0%} of the samples")
    if hop.congested:
        marks = f" and marked {hop.marks}" if hop.marks else ""
        evidence.append(f"it dropped {hop.drops + hop.policed} packets{marks}")
    values |= {"utilisation": hop.utilisation, "waiting": hop.waiting, "dropped": hop.drops, "marked": hop.marks}
    text = f"{start} {hop.name}, {hop.limit}: {_joined(evidence)}"
    return Sentence(id, text, values, ("table device", "table queue", f"drops.{hop.hop.node}.{hop.hop.device}"))


def _latency(felt: list[Victim]) -> list[Sentence]:
    """Say who suffers: the most delayed stream, then the others."""
    if not felt:
        return []
    first, *further = felt
    text = (
        f"{_stream(first)} takes {_ms(first.p50)} in the median and {_ms(first.p99)} at p99; its shortest"
        f" time is {_ms(first.idle)}"
    )
    values: Values = {"p50": first.p50, "p99": first.p99, "idle": first.idle}
    sentences = [Sentence("latency", text, values, (f"{first.figure}.p50", f"{first.figure}.p99"))]
    if further:
        listed = [f"{each.name} {_ms(each.p50)} and {_ms(each.p99)}" for each in further[:MOST_PARTS]]
        more = f", and {len(further) - MOST_PARTS} more" if len(further) > MOST_PARTS else ""
        figures: Values = {f"{each.name}.p50": each.p50 for each in further}
        sources = tuple(f"{each.figure}.p50" for each in further)
        sentences.append(Sentence("victims", f"The others (p50 and p99): {', '.join(listed)}{more}", figures, sources))
    return sentences


def _stream(victim: Victim) -> str:
    kinds = {"ping": "The ping {}", "one way": "A packet of {}", "transaction": "A transaction of {}",
             "fetch": "A fetch of {}"}  # fmt: skip
    return kinds[victim.kind].format(victim.name)


def _parts(parts: list[LatencyPart], felt: list[Victim]) -> list[Sentence]:
    """Say which layers hold which share of the latency."""
    largest = [part for part in parts[:MOST_PARTS] if part.share >= SHARE]
    if not largest:
        return []
    reference = "of the time of pings and requests" if felt else "of the time below the sockets"
    first, *further = largest
    text = f"{first.share:.0%} {reference} is spent in the {first.layer} of {first.place} ({_ms(first.ms)} on average)"
    if further:
        text += f"; then {_joined([f'{part.layer} of {part.place} {part.share:.0%}' for part in further])}"
    values: Values = {f"{part.place}.{part.layer}": part.ms for part in largest}
    sources = tuple(f"ping_layers.{felt[0].name}.{part.node}.{part.layer}.share" for part in largest) if felt else ()
    return [Sentence("layers", text, values, sources or ("table layer",))]


def _size(hop: HopLoad) -> Sentence:
    text = f"In the median, {size_of(hop)}"
    return Sentence("queue", text, {"bytes": hop.backlog_bytes, "skbs": hop.backlog_skbs}, ("table queue",))


def _data(loads: Loads, parts: list[LatencyPart], felt: list[Victim]) -> list[Sentence]:
    """Say where the flows' own data waits, if it waits in its socket: that delays no other stream."""
    layers = [
        (node, layer, figures)
        for node, anatomy in loads.run.summary.layers_ms.items()
        for layer, figures in anatomy.items()
    ]
    if not layers or not felt:
        return []
    node, layer, figures = max(layers, key=lambda each: each[2].share)
    if layer not in ("cwnd", "tsq", "rwnd", "pacing", "push"):
        return []
    text = (
        f"The flows' own data spends {figures.share:.0%} of its time in the socket of {node} ({layer},"
        f" {_ms(figures.mean)}): that delays no other stream"
    )
    return [Sentence("socket", text, {"share": figures.share, "ms": figures.mean}, (f"layers.{node}.{layer}.share",))]


def _losses(loads: Loads, first: Bottleneck) -> list[Sentence]:
    """Say what was dropped and sent again."""
    summary = loads.run.summary
    again = [flow.retransmits for flow in summary.flows if flow.retransmits is not None]
    if not again:
        return []
    drops = {
        f"{node}:{device}": (each.qdisc if each.qdisc is not None else each.qdisc_skbs) + each.nic + each.cable
        for node, devices in summary.drops.items()
        for device, each in devices.items()
    }
    worst = sorted(((count, place) for place, count in drops.items() if count), reverse=True)[:MOST_PARTS]
    if not worst and not sum(again):
        return [Sentence("losses", "Nothing was dropped and nothing was sent again", {"retransmits": 0}, ("drops",))]
    places = _joined([f"{count} at {place}" for count, place in worst]) or "none"
    text = f"Drops: {places}; the flows sent {sum(again)} segments again"
    return [Sentence("losses", text, {"retransmits": sum(again)}, ("drops", "flows.*.retransmits"))]


def _radio(first: Bottleneck) -> list[Sentence]:
    hop = first.hop
    if hop is None or hop.radio is None or not hop.radio.ppdus:
        return []
    radio = hop.radio
    text = (
        f"{hop.name} sends {short(radio.subframes.mean or 0)} MPDUs per PPDU; {radio.not_acked / radio.ppdus:.1%} of"
        " the PPDUs were not acknowledged"
    )
    name = f"wifi.{hop.hop.node}.{hop.hop.device}"
    return [
        Sentence("radio", text, {"aggregate": radio.subframes.mean}, (f"{name}.subframes.mean", f"{name}.not_acked"))
    ]


def _shares(run: Recording) -> list[Sentence]:
    """Say what the flows get."""
    flows, totals = run.summary.flows, run.summary.totals
    if not flows:
        return []
    low, high = (choose(flows, key=lambda flow: flow.goodput_mbps) for choose in (min, max))
    text = (
        f"{len(flows)} flows have {short(totals.mbps)} Mbit/s together"
        if len(flows) > 1
        else f"The flow has {short(totals.mbps)} Mbit/s"
    )
    fairness = [each for each in (totals.upload_fairness, totals.download_fairness) if each is not None] or [
        each for each in (totals.fairness,) if each is not None
    ]
    if len(flows) > 1:
        text += f", from {short(low.goodput_mbps)} ({low.id}) to {short(high.goodput_mbps)} ({high.id})"
        text += (
            f"; shares are uneven (Jain's index {short(min(fairness))})" if fairness and min(fairness) < FAIR else ""
        )
    values: Values = {"goodput_mbps": totals.mbps, "least": low.goodput_mbps, "most": high.goodput_mbps}
    return [Sentence("goodput", text, values, ("totals.upload_mbps", "totals.download_mbps"))]


def _warnings(run: Recording) -> list[Sentence]:
    """Repeat the warnings about queues and limits: they may change the answer."""
    listed = [warning for warning in run.summary.warnings if warning.remedy][:MOST_WARNINGS]
    return [Sentence("warning", f"[{each.id}] {each.text}", {}, ("warnings",)) for each in listed]


def _missing(loads: Loads, felt: list[Victim]) -> list[str]:
    """Return the records that are missing, and what they would say."""
    run, missing = loads.run, []
    if run.layer_totals.is_empty() and (run.flows or felt):
        missing.append("no packet probe: the layers of the latency are unknown")
    if not run.paths:
        missing.append("no paths: the hops and their rates are unknown")
    if run.flows and run.tcp["hold_cwnd_ns"].is_null().all():
        missing.append("no account of held data: tcp_info has only receive window and send buffer")
    if run.queues.is_empty() and run.qdisc.is_empty():
        missing.append("no samples of queues: their sizes are unknown")
    if not felt:
        missing.append("no ping, call or request: the latency is that of the flows' own data")
    return missing


def _ms(value: float) -> str:
    return f"{value_text(value, 'time', '-')} ms"


def _joined(texts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1] if texts else "")))
