# SPDX-License-Identifier: Apache-2.0
"""Sections on the network: events, time by layer, radios, drops and their reasons, the qdiscs' counters."""

from hourglass.contract.probe import LAYERS
from hourglass.contract.summary import CATEGORIES, Anatomy, LayerFigures, Summary
from hourglass.results.sections.section import Column, Section, Value
from hourglass.results.stats import percent

SMALL_SHARE, SMALL_MS = 0.001, 0.001
"""A layer has no row if its share and its p99 are below these in all columns."""


EVENTS_SHOWN, EVENT_TEXT_MAX = 12, 200
"""The most events with rows, and the most characters of a text."""


def events(summary: Summary) -> Section:
    """Build the section of the changes during the test."""
    columns = (
        Column("at s", "text"),
        Column("node", "text"),
        Column("event", "text"),
        Column("said", "text", wide=True),
    )
    rows = tuple(
        (f"{event.t_s:.9g}", event.node, _cut(event.name), _cut(event.said) or None)
        for event in summary.events[:EVENTS_SHOWN]
    )
    hidden = len(summary.events) - len(rows)
    more = f"... and {hidden} more." if hidden else ""
    return Section("events", "Event", "changed at", columns, rows, unit="s", more=more)


def _cut(text: str) -> str:
    return text if len(text) <= EVENT_TEXT_MAX else f"{text[: EVENT_TEXT_MAX - 3]}..."


def layers(summary: Summary) -> Section:
    """Build the section of times by layer: of the flows' data from write to read, of programs' connections, of
    transactions and of each ping's round trips. A narrow table has at least the first two kinds. It shows p50 and
    p99, or the mean if no packets were stored individually."""
    parts = [getattr(summary, part) for part in reversed(Summary.model_fields) if part.endswith("_layers_ms")]
    trips = {name: anatomy for part in parts for name, anatomy in part.items()}
    kinds = {name: anatomy for name, anatomy in {"data": summary.layers_ms, **trips}.items() if anatomy}
    columns = [Column("node", "text"), Column("layer", "text")]
    for index, (kind, anatomy) in enumerate(kinds.items()):
        group = max(index - 1, 0)
        has_percentiles = any(layer.p50 is not None for node in anatomy.values() for layer in node.values())
        columns += [
            Column(f"{kind} mean", "time", "ms", wide=has_percentiles, group=group),
            Column(f"{kind} p50", "time", "ms", wide=not has_percentiles, group=group),
            Column("p99", "time", "ms", wide=not has_percentiles, group=group),
            Column("share", "share", group=group),
        ]
    note = "p50 and p99: packets stored individually. Mean and share of the whole path: all packets."
    rows = tuple(_layer_rows(list(kinds.values())))
    named = [name for name in [*kinds][2:] if name in summary.connection_layers_ms]
    hidden = len(summary.connections) - len(summary.connection_layers_ms)
    more = f"... and {hidden} more connections of programs, with less payload." if hidden > 0 else ""
    return Section("layers", "Time by layer", "time", tuple(columns), rows, unit="ms", note=note,
                   groups=("", *named), more=more)  # fmt: skip


def _layer_rows(kinds: list[Anatomy]) -> list[tuple[Value, ...]]:
    nodes = dict.fromkeys(node for anatomy in kinds for node in anatomy)
    layer_rows = [
        (node, layer, [anatomy.get(node, {}).get(layer) for anatomy in kinds]) for node in nodes for layer in LAYERS
    ]
    return [
        (node, layer, *(value for figures_of_layer in figures for value in _layer_cells(figures_of_layer)))
        for node, layer, figures in layer_rows
        if any(
            figures_of_layer and (figures_of_layer.share >= SMALL_SHARE or (figures_of_layer.p99 or 0) >= SMALL_MS)
            for figures_of_layer in figures
        )
    ]


def _layer_cells(layer: LayerFigures | None) -> tuple[Value, ...]:
    return (layer.mean, layer.p50, layer.p99, layer.share) if layer else (None,) * 4


def radios(summary: Summary) -> Section:
    """Build the section of radios: PPDUs and their MPDUs, the channel's busy time, the radio's air time, PPDUs
    without an acknowledgment, MPDUs retried and given up, packets in mac80211's queues."""
    columns = (
        Column("radio", "text"), Column("device", "text", wide=True), Column("PPDUs"), Column("MPDUs"),
        Column("p50", unit="MPDUs", wide=True), Column("max", unit="MPDUs", wide=True), Column("busy %"),
        Column("air %"), Column("not acknowledged %"), Column("retried %"), Column("given up", unit="MPDUs", wide=True),
        Column("TXQ"), Column("TXQ max", unit="packets", wide=True),
    )  # fmt: skip
    rows = tuple(
        (
            node, device, radio.ppdus, radio.subframes.mean, radio.subframes.p50, radio.subframes.max,
            radio.busy_percent, radio.air_percent, percent(radio.not_acked, radio.ppdus),
            percent(radio.retries, radio.mpdus), radio.dropped, radio.txq.mean, radio.txq.max,
        )
        for node, devices in summary.wifi.items()
        for device, radio in devices.items()
    )  # fmt: skip
    note = (
        "MPDUs of a PPDU: mean. TXQ: packets in mac80211's queues, mean. Busy: the channel's time with"
        " transmissions of all its radios (air %; colliding PPDUs overlap) and with the answers."
        " Retried: MPDUs on the air with the retry bit."
    )
    return Section("radios", "Wi-Fi", "Wi-Fi", columns, rows, note=note)


def categories(summary: Summary) -> Section:
    """Build the section of each radio and access category: its transmissions, and the wait of an MPDU before its
    first transmission, by layer. Shown only on request if only one category sends."""
    columns = (
        Column("radio", "text"), Column("device", "text", wide=True), Column("category", "text"), Column("PPDUs"),
        Column("air %"), Column("not acknowledged %", wide=True), Column("waiting", "time", "ms"),
        Column("txq", "time", "ms"), Column("ring", "time", "ms"), Column("contention", "time", "ms"),
    )  # fmt: skip
    sent = [
        (node, device, name, figures)
        for node, devices in summary.wifi.items()
        for device, radio in devices.items()
        for name, figures in radio.categories.items()
    ]
    rows = tuple(
        (
            node, device, CATEGORIES[name], figures.ppdus, figures.air_percent,
            percent(figures.not_acked, figures.ppdus), figures.waiting_ms, figures.txq_ms, figures.ring_ms,
            figures.contention_ms,
        )
        for node, device, name, figures in sent
    )  # fmt: skip
    note = (
        "Mean waits of all MPDUs before their first transmission. txq: in mac80211's queue. ring: after"
        " others in the radio. contention: for the medium."
    )
    several = len({name for *_, name, _ in sent}) > 1
    title = "Waits for the air"
    return Section("categories", title, "waits", columns, rows, unit="ms", note=note, detail=not several)


def shares(summary: Summary) -> Section:
    """Build the section of an access point's air time by station and for group-addressed frames, if there are several
    shares."""
    columns = (Column("radio", "text"), Column("device", "text", wide=True), Column("station", "text"),
               Column("share", "share"))  # fmt: skip
    rows = tuple(
        (node, device, station, share)
        for node, devices in summary.wifi.items()
        for device, radio in devices.items()
        if len(radio.air_share) > 1
        for station, share in radio.air_share.items()
    )
    return Section("shares", "Shares of the air time", "air time", columns, rows)


def cpus(summary: Summary) -> Section:
    """Build the section of nodes with a CPU: the share of the time in which it is busy, and with what."""
    columns = (Column("node", "text"), Column("busy %"), Column("received %"), Column("sent %"), Column("calls %"))
    rows = tuple(
        (node, cpu.busy_percent, cpu.received_percent, cpu.sent_percent, cpu.calls_percent)
        for node, cpu in summary.cpu.items()
    )
    note = "Received: frames from a NIC. Sent: skbs on their way to a NIC. Calls: of programs."
    return Section("cpus", "CPU", "CPU", columns, rows, note=note)


def drops(summary: Summary) -> Section:
    """Build the section of devices that dropped packets during the run. tc counts skbs: wide tables show this, and
    narrow ones only if there is no other count."""
    devices_with_drops = [
        (node, device, counts_of_device)
        for node, devices in summary.drops.items()
        for device, counts_of_device in devices.items()
    ]
    without_probe = any(counts_of_device.qdisc is None for *_, counts_of_device in devices_with_drops)
    in_stack = any(counts_of_device.stack for *_, counts_of_device in devices_with_drops)
    place_columns = (Column("qdisc", unit="packets"), Column("skbs in qdisc", unit="skbs", wide=not without_probe),
              Column("nic", unit="packets"), Column("cable", unit="packets"),
              Column("stack", unit="packets", wide=not in_stack))  # fmt: skip
    columns = (Column("node", "text"), Column("device", "text"), *place_columns)
    rows = [
        (node, device, *counts)
        for node, device, counts_of_device in devices_with_drops
        if any(
            counts := (
                counts_of_device.qdisc,
                counts_of_device.qdisc_skbs,
                counts_of_device.nic,
                counts_of_device.cable,
                counts_of_device.stack,
            )
        )
    ]
    note = "tc counts skbs, each of which may hold many packets."
    return Section("drops", "Drops", "drops", columns, tuple(rows), unit="packets", note=note, nothing="no drops")


def reasons(summary: Summary) -> Section:
    """Build the section of dropped packets with the kernel's reason."""
    columns = (
        *(Column(title, "text") for title in ("node", "device", "place", "reason")),
        Column("packets"),
    )
    rows = [
        (node, device, place, reason, packets)
        for node, devices in summary.drops_by_reason.items()
        for device, places in devices.items()
        for place, by_reason in places.items()
        for reason, packets in by_reason.items()
    ]
    title = "Drops by reason"
    note = (
        "closed: at a socket after its stream had stopped; this is no drop of the network, and not counted"
        " as one. NOT_SPECIFIED: the kernel gave no reason (Linux 5.10 has none, later releases"
        " not everywhere); place and device tell more."
    )
    return Section("reasons", title, "drops", columns, tuple(rows), unit="packets", note=note, detail=True)


def marks(summary: Summary) -> Section:
    """Build the section of marked packets, by place and stream."""
    columns = (
        *(Column(title, "text") for title in ("node", "device", "place", "stream")),
        Column("packets"),
    )
    rows = [
        (node, device, place, stream, packets)
        for node, devices in summary.marks.items()
        for device, places in devices.items()
        for place, by_stream in places.items()
        for stream, packets in by_stream.items()
    ]
    return Section("marks", "Marks by place", "marks", columns, tuple(rows), unit="packets")


def links(summary: Summary) -> Section:
    """Build the section of packets that links' policers and shapers dropped or marked."""
    columns = (Column("node", "text"), Column("device", "text"), Column("policed", unit="packets"),
               Column("shaper full", unit="packets"), Column("marked", unit="packets"))  # fmt: skip
    rows = [
        (node, device, link.policed, link.shaper_full, link.marked)
        for node, devices in summary.links.items()
        for device, link in devices.items()
    ]
    note = (
        "Dropped by a policer, dropped by a full shaper (both count as drops on the cable), marked (ECN) by a shaper."
    )
    return Section("links", "Policers and shapers of links", "links", columns, tuple(rows), unit="packets", note=note)


def qdiscs(summary: Summary) -> Section:
    """Build the section of each qdisc's counters, in tc's words."""
    columns = (
        *(Column(title, "text") for title in ("node", "device", "qdisc", "counter")),
        Column("value"),
    )
    rows = [
        (node, device, qdisc, name, value)
        for node, devices in summary.qdiscs.items()
        for device, by_qdisc in devices.items()
        for qdisc, counters in by_qdisc.items()
        for name, value in counters.items()
    ]
    return Section("qdiscs", "Counters of the qdiscs", "qdisc", columns, tuple(rows), detail=True)


SECTIONS = (events, radios, shares, categories, cpus, layers, drops, reasons, marks, links, qdiscs)
