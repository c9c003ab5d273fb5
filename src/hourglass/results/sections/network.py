# SPDX-License-Identifier: Apache-2.0
"""What the network did: where the time went, radios, drops and their reasons, the qdiscs' own counters."""

from hourglass.contract.probe import LAYERS
from hourglass.contract.summary import Anatomy, Layer, Radio, Summary
from hourglass.results.sections.model import Column, Section, Value
from hourglass.results.stats import percent

SMALL_SHARE, SMALL_MS = 0.001, 0.001
"""Layers below both, in the mean and at p99, have no row."""


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
    """PPDUs and the MPDUs of one, air time, PPDUs that collided, MPDUs sent again and given up, packets in mac80211's
    queues; of an access point the shares of the air time to and from its stations."""
    shared = any(len(one.air_share) > 1 for devices in summary.wifi.values() for one in devices.values())
    columns = (
        Column("radio", "text"), Column("device", "text", wide=True), Column("PPDUs"), Column("MPDUs"),
        Column("p50", unit="MPDUs", wide=True), Column("max"), Column("air %"), Column("collided %"),
        Column("retried %"), Column("given up", unit="MPDUs", wide=True), Column("TXQ"),
        Column("TXQ max", unit="packets", wide=True), *([Column("shares of air, %", "text")] if shared else []),
    )  # fmt: skip
    rows = tuple(
        (
            node, device, one.ppdus, one.subframes.mean, one.subframes.p50, one.subframes.max, one.air_percent,
            percent(one.collisions, one.ppdus), percent(one.retries, one.mpdus), one.dropped, one.txq.mean,
            one.txq.max, *([_shares(one)] if shared else []),
        )
        for node, devices in summary.wifi.items()
        for device, one in devices.items()
    )  # fmt: skip
    note = "MPDUs of a PPDU: mean; TXQ: packets in mac80211's queues, mean."
    return Section("radios", "Wi-Fi", "Wi-Fi", columns, rows, note=note)


def _shares(radio: Radio) -> str:
    """ "client 75 slow 25"; of a radio that talks to one other only, nothing."""
    told = [f"{name} {100 * share:.0f}" for name, share in radio.air_share.items() if share is not None]
    return " ".join(told) if len(told) > 1 else ""


def drops(summary: Summary) -> Section:
    """The devices that dropped packets during the run."""
    columns = (Column("node", "text"), Column("device", "text"),
               *(Column(place, unit="packets") for place in ("qdisc", "nic", "cable")))  # fmt: skip
    rows = [
        (node, device, one.qdisc, one.nic, one.cable)
        for node, devices in summary.drops.items()
        for device, one in devices.items()
        if one.qdisc or one.nic or one.cable
    ]
    return Section("drops", "Drops", "drops", columns, tuple(rows), unit="packets", nothing="no drops")


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
    return Section("reasons", "Why packets were dropped", "drops", columns, tuple(rows), unit="packets", detail=True)


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


SECTIONS = (radios, layers, drops, reasons, qdiscs)
