# SPDX-License-Identifier: Apache-2.0
"""What was done to the network (events) and what it did: where the time went, radios, drops and their reasons, the
qdiscs' own counters."""

from hourglass.contract.probe import LAYERS
from hourglass.contract.summary import Anatomy, Layer, Summary
from hourglass.results.sections.model import Column, Section, Value
from hourglass.results.stats import percent
from hourglass.results.wifi import CATEGORIES

SMALL_SHARE, SMALL_MS = 0.001, 0.001
"""Layers below both, in the mean and at p99, have no row."""


EVENTS_SHOWN, EVENT_LETTERS = 12, 56
"""So many events have rows, with so much of what was done."""


def events(summary: Summary) -> Section:
    """What changed during the test."""
    columns = (
        Column("at s", "text"),
        Column("node", "text"),
        Column("event", "text"),
        Column("said", "text", wide=True),
    )
    rows = tuple(
        (f"{one.t_s:.9g}", one.node, _cut(one.name), _cut(one.said) or None) for one in summary.events[:EVENTS_SHOWN]
    )
    more = len(summary.events) - len(rows)
    note = f"... and {more} more." if more else ""
    return Section("events", "What was changed", "changed at", columns, rows, unit="s", note=note)


def _cut(text: str) -> str:
    return text if len(text) <= EVENT_LETTERS else f"{text[: EVENT_LETTERS - 3]}..."


def layers(summary: Summary) -> Section:
    """Of the flows' data from write to read, of transactions and of each ping's round trips; of the first two of them
    in a narrow table: p50 and p99, or the mean where no packets were kept one by one."""
    parts = [getattr(summary, part) for part in reversed(Summary.model_fields) if part.endswith("_layers_ms")]
    trips = {name: found for part in parts for name, found in part.items()}
    kinds = {name: found for name, found in {"data": summary.layers_ms, **trips}.items() if found}
    narrow = list(kinds)[:2]
    columns = [Column("node", "text"), Column("layer", "text")]
    for kind, found in kinds.items():
        wide, one_by_one = (
            kind not in narrow,
            any(one.p50 is not None for node in found.values() for one in node.values()),
        )
        columns += [
            Column(f"{kind} mean", "time", "ms", wide=wide or one_by_one),
            Column(f"{kind} p50", "time", "ms", wide=wide or not one_by_one),
            Column("p99", "time", "ms", wide=wide or not one_by_one),
            Column("share", "share", wide=wide),
        ]
    note = "Of the packets that were kept one by one: p50 and p99; of all: the mean and its share of the whole way."
    rows = tuple(_layer_rows(list(kinds.values())))
    return Section("layers", "Where the time goes", "time", tuple(columns), rows, unit="ms", note=note)


def _layer_rows(kinds: list[Anatomy]) -> list[tuple[Value, ...]]:
    nodes = dict.fromkeys(node for anatomy in kinds for node in anatomy)
    found = [
        (node, layer, [anatomy.get(node, {}).get(layer) for anatomy in kinds]) for node in nodes for layer in LAYERS
    ]
    return [
        (node, layer, *(value for one in figures for value in _layer(one)))
        for node, layer, figures in found
        if any(one and (one.share >= SMALL_SHARE or (one.p99 or 0) >= SMALL_MS) for one in figures)
    ]


def _layer(one: Layer | None) -> tuple[Value, ...]:
    return (one.mean, one.p50, one.p99, one.share) if one else (None,) * 4


def radios(summary: Summary) -> Section:
    """PPDUs and the MPDUs of one, what of its time the channel was busy and the radio sent, PPDUs without an
    acknowledgment, MPDUs sent again and given up, packets in mac80211's queues."""
    columns = (
        Column("radio", "text"), Column("device", "text", wide=True), Column("PPDUs"), Column("MPDUs"),
        Column("p50", unit="MPDUs", wide=True), Column("max", unit="MPDUs", wide=True), Column("busy %"),
        Column("air %"), Column("not acknowledged %"), Column("retried %"), Column("given up", unit="MPDUs", wide=True),
        Column("TXQ"), Column("TXQ max", unit="packets", wide=True),
    )  # fmt: skip
    rows = tuple(
        (
            node, device, one.ppdus, one.subframes.mean, one.subframes.p50, one.subframes.max, one.busy_percent,
            one.air_percent, percent(one.not_acked, one.ppdus), percent(one.retries, one.mpdus), one.dropped,
            one.txq.mean, one.txq.max,
        )
        for node, devices in summary.wifi.items()
        for device, one in devices.items()
    )  # fmt: skip
    note = (
        "MPDUs of a PPDU: mean; TXQ: packets in mac80211's queues, mean. Busy: the channel, with what all its radios"
        " send (air %; colliding PPDUs overlap) and with the answers; the rest is backoff, or nobody sends. Retried:"
        " of the MPDUs on the air, those that had been sent before, as their retry bit says."
    )
    return Section("radios", "Wi-Fi", "Wi-Fi", columns, rows, note=note)


def categories(summary: Summary) -> Section:
    """Of each radio and access category what it sent, and how long an MPDU waited before it was first sent, by layer.
    For whoever asks where only one category sends."""
    columns = (
        Column("radio", "text"), Column("device", "text", wide=True), Column("category", "text"), Column("PPDUs"),
        Column("air %"), Column("not acknowledged %", wide=True), Column("waiting", "time", "ms"),
        Column("txq", "time", "ms"), Column("ring", "time", "ms"), Column("contention", "time", "ms"),
    )  # fmt: skip
    sent = [
        (node, device, name, one)
        for node, devices in summary.wifi.items()
        for device, radio in devices.items()
        for name, one in radio.categories.items()
    ]
    rows = tuple(
        (
            node, device, CATEGORIES[name], one.ppdus, one.air_percent, percent(one.not_acked, one.ppdus),
            one.waiting_ms, one.txq_ms, one.ring_ms, one.contention_ms,
        )
        for node, device, name, one in sent
    )  # fmt: skip
    note = "Means of all MPDUs up to their first try: in mac80211's queue, behind others in the radio, for the medium."
    several = len({name for *_, name, _ in sent}) > 1
    title = "Who waits for the air"
    return Section("categories", title, "waits", columns, rows, unit="ms", note=note, detail=not several)


def shares(summary: Summary) -> Section:
    """Of the air time to and from the stations of an access point, where there are several, each one's share."""
    columns = (Column("radio", "text"), Column("device", "text", wide=True), Column("station", "text"),
               Column("share", "share"))  # fmt: skip
    rows = tuple(
        (node, device, station, share)
        for node, devices in summary.wifi.items()
        for device, one in devices.items()
        if len(one.air_share) > 1
        for station, share in one.air_share.items()
    )
    return Section("shares", "Whose the air was", "air time", columns, rows)


def drops(summary: Summary) -> Section:
    """The devices that dropped packets during the run. tc's own count, of skbs, where there is room, or no other."""
    found = [(node, device, one) for node, devices in summary.drops.items() for device, one in devices.items()]
    unknown = any(one.qdisc is None for *_, one in found)
    above = any(one.stack for *_, one in found)
    places = (Column("qdisc", unit="packets"), Column("skbs in qdisc", unit="skbs", wide=not unknown),
              Column("nic", unit="packets"), Column("cable", unit="packets"),
              Column("stack", unit="packets", wide=not above))  # fmt: skip
    columns = (Column("node", "text"), Column("device", "text"), *places)
    rows = [
        (node, device, *counts)
        for node, device, one in found
        if any(counts := (one.qdisc, one.qdisc_skbs, one.nic, one.cable, one.stack))
    ]
    note = "tc counts skbs, one of which may hold many packets."
    return Section("drops", "Drops", "drops", columns, tuple(rows), unit="packets", note=note, nothing="no drops")


def reasons(summary: Summary) -> Section:
    """What the packet probe saw dropped, with the kernel's own reason."""
    columns = (*(Column(title, "text") for title in ("node", "device", "place", "reason")), Column("packets"))
    rows = [
        (node, device, place, reason, packets)
        for node, devices in summary.drops_by_reason.items()
        for device, places in devices.items()
        for place, found in places.items()
        for reason, packets in found.items()
    ]
    title = "Why packets were dropped"
    note = (
        "closed: at a socket, after its stream had stopped; they are no drops of the network and not among the drops."
        " NOT_SPECIFIED: the kernel freed them without a reason of its own (Linux 5.10 has none, later ones not"
        " everywhere); place and device say where."
    )
    return Section("reasons", title, "drops", columns, tuple(rows), unit="packets", note=note, detail=True)


def marks(summary: Summary) -> Section:
    """Where packets were marked, and of which streams."""
    columns = (*(Column(title, "text") for title in ("node", "device", "place", "stream")), Column("packets"))
    rows = [
        (node, device, place, stream, packets)
        for node, devices in summary.marks.items()
        for device, places in devices.items()
        for place, found in places.items()
        for stream, packets in found.items()
    ]
    return Section("marks", "Where packets were marked", "marks", columns, tuple(rows), unit="packets")


def links(summary: Summary) -> Section:
    """What the links' policers and shapers dropped and marked of what a device sent."""
    columns = (Column("node", "text"), Column("device", "text"), Column("policed", unit="packets"),
               Column("shaper full", unit="packets"), Column("marked", unit="packets"))  # fmt: skip
    rows = [
        (node, device, one.policed, one.shaper_full, one.marked)
        for node, devices in summary.links.items()
        for device, one in devices.items()
    ]
    note = "Dropped by a policer, dropped by a full shaper (both are among the drops on the cable), marked (ECN) there."
    return Section("links", "Policers and shapers of links", "links", columns, tuple(rows), unit="packets", note=note)


def qdiscs(summary: Summary) -> Section:
    """Each qdisc's own counters, in tc's words."""
    columns = (*(Column(title, "text") for title in ("node", "device", "qdisc", "counter")), Column("value"))
    rows = [
        (node, device, qdisc, name, value)
        for node, devices in summary.qdiscs.items()
        for device, found in devices.items()
        for qdisc, counters in found.items()
        for name, value in counters.items()
    ]
    return Section("qdiscs", "The qdiscs' own counters", "qdisc", columns, tuple(rows), detail=True)


SECTIONS = (events, radios, shares, categories, layers, drops, reasons, marks, links, qdiscs)
