# SPDX-License-Identifier: Apache-2.0
"""Dropped packets, with place and reason: IP packets of at most an MTU, each of which would be a frame.

There are three counts. The packet probe sees every skb that the kernel frees as dropped, with its packets and the
kernel's reason. Qdiscs count skbs, of which one may hold dozens of packets (GSO), in tc's `dropped`. Drivers count
frames, and mac80211 the packets in its queues. For the packets of the streams, the probe's sum equals that of their
balances. At a device, its skbs in qdiscs equal tc's count. Its packets in the NIC, on the cable and in the air equal
the drivers' count (`tests/guest/accounts.py`).

If a packet arrives after its stream has stopped, the stack drops it, since the connection is closed. It has the place
`closed` in the reasons, and is not a drop of the network.
"""

from collections.abc import Iterator

import polars as pl

from hourglass.contract.summary import DropFigures, LinkFigures
from hourglass.results.recording import Recording
from hourglass.results.series import Window
from hourglass.results.wifi import given_up, txq_drops

NOWHERE = "-"
"""The device of drops that belong to no device."""
CLOSED = "closed"
INGRESS_KINDS = ("ingress", "clsact")
BY_QDISCS = ("TC_INGRESS", "TC_EGRESS")
"""Reasons of filters, whose drops belong to their qdisc (ingress, clsact)."""
NIC_DROPS = ("rx_missed", "rx_corrupted")
RING_DROPS = ("tx_no_carrier",)
CABLE_DROPS = ("tx_lost", "tx_policed", "tx_shaper_full")
"""Counters of the wire driver (`ethtool -S`) that are not in the kernel's `rx_dropped` and `tx_dropped`."""

Reasons = dict[str, dict[str, dict[str, dict[str, int]]]]
Counts = dict[tuple[str, str], dict[str, int]]


def probed_drops(run: Recording) -> pl.DataFrame:
    """Return the drops that the packet probe saw, from test time 0 on like the counters: `node, device, place,
    reason, stream, way, skbs, packets`."""
    stops = {stream.name: stream.stop_ns for stream in run.streams}
    stop_ns = pl.col("stream").cast(pl.String).replace_strict(stops, default=None, return_dtype=pl.Int64)
    location = (
        pl.when((pl.col("place") == "socket") & (pl.col("t_ns") >= stop_ns)).then(pl.lit(CLOSED))
        .when((pl.col("place") == "stack") & pl.col("reason").is_in(BY_QDISCS)).then(pl.lit("qdisc"))
        .otherwise(pl.col("place").cast(pl.String))
    )  # fmt: skip
    keys = ["node", "device", "place", "reason", "stream", "way"]
    rows = run.drops.filter(pl.col("t_ns") >= 0).with_columns(
        place=location, device=pl.col("device").fill_null(NOWHERE)
    )
    return rows.group_by(keys).agg(skbs=pl.len(), packets=pl.col("packets").sum()).sort(keys)


def drops_by_reason(run: Recording) -> Reasons:
    """Return {node: {device: {place: {reason: packets}}}} of the whole run; device "-": no device."""
    keys = ["node", "device", "place", "reason"]
    reasons: Reasons = {}
    for node, device, location, reason, packets in (
        probed_drops(run).group_by(keys).agg(pl.col("packets").sum()).sort(keys).rows()
    ):
        reasons.setdefault(node, {}).setdefault(device, {}).setdefault(location, {})[reason] = int(packets)
    return reasons


def drops(run: Recording) -> dict[str, dict[str, DropFigures]]:
    """Return {node: {device: dropped during the run}}.

    `qdisc_skbs` is the count of the qdisc at a device that counted most, plus that of ingress. The kernel adds a
    child's drops to the root, so their sum would count an skb twice. It does not add the packets into which tbf cuts an
    skb. `nic`: `rx_dropped`, `tx_dropped`, frames beyond the ring, with a wrong FCS or without a carrier. `cable`: lost
    on the way away from the device, or dropped there by the link's policer or shaper. For a radio, `qdisc` includes
    mac80211's queues (whose `overlimit` is one for up to 32 packets at a time; the probe counts each). `nic` includes
    its content when it, its interface or its peer was removed, and `cable` the MPDUs that were given up after all their
    tries.

    If a device is down, or has no carrier, the probe sees its drops in the qdisc. tc does not count them. Kernels since
    6.10 count them in `tx_dropped`, from which they are subtracted, so that each packet counts once. A VLAN's device
    counts the drops of the qdisc below it again, so its `tx_dropped` is left out.
    """
    followed = not run.balance.is_empty()
    counts: Counts = {}
    for node, device, location, count in _counted(run):
        device_counts = counts.setdefault((node, device), {})
        device_counts[location] = device_counts.get(location, 0) + count
    drops_by_device: dict[str, dict[str, DropFigures]] = {}
    for (node, device), device_counts in counts.items():
        packets = device_counts.get("qdisc", 0) if followed or not device_counts.get("qdisc_skbs") else None
        refused = max(device_counts.get("seen", 0) - device_counts.get("qdisc_skbs", 0), 0)
        device_counts["nic"] = device_counts.get("nic", 0) + max(device_counts.get("tx", 0) - refused, 0)
        fields = {name: device_counts.get(name, 0) for name in DropFigures.model_fields if name != "qdisc"}
        drops_by_device.setdefault(node, {})[device] = DropFigures(qdisc=packets, **fields)
    return drops_by_device


def links(run: Recording) -> dict[str, dict[str, LinkFigures]]:
    """Return {node: {device: counters of the link's policer and shaper}}, in name order, if any is not 0."""
    rows = run.ethtool.filter(
        pl.col("name").is_in([f"tx_{name}" for name in LinkFigures.model_fields]) & (pl.col("value") > 0)
    )
    counts_by_device: Counts = {}
    for node, device, name, value in rows.select("node", "device", "name", "value").iter_rows():
        counts_by_device.setdefault((node, device), {})[name.removeprefix("tx_")] = value
    links_by_device: dict[str, dict[str, LinkFigures]] = {}
    for (node, device), counts in sorted(counts_by_device.items()):
        links_by_device.setdefault(node, {})[device] = LinkFigures(
            **{name: counts.get(name, 0) for name in LinkFigures.model_fields}
        )
    return links_by_device


def _counted(run: Recording) -> Iterator[tuple[str, str, str, int]]:
    """Yield (node, device, field of `Drops`, count), a field once per counter; `tx`: tx_dropped; `seen`: skbs that
    the probe saw dropped in qdiscs."""
    for node, device, count in _growth(run.devices, "rx_dropped"):
        yield node, device, "nic", count
    devices = {(node, device) for node, device in run.devices.select("node", "device").unique().rows()}
    for node, device, count in _growth(run.devices, "tx_dropped"):
        parent, _, vlan = device.rpartition(".")
        if not (vlan.isdecimal() and (node, parent) in devices):
            yield node, device, "tx", count
    yield from _counted_by_tc(run)
    dropped = probed_drops(run)
    for node, device, name, value in run.ethtool.select("node", "device", "name", "value").iter_rows():
        if name in CABLE_DROPS:
            yield node, device, "cable", value
        elif name in NIC_DROPS or name in RING_DROPS:
            yield node, device, "nic", value
    if not run.radio_counters.is_empty():
        t_ns = run.radio_counters["t_ns"].to_numpy()
        sampled = Window(int(t_ns.min()), int(t_ns.max()))
        for radio in run.radios:
            followed = _probed(dropped, radio.node, radio.device, "txq")
            yield radio.node, radio.device, "qdisc", max(txq_drops(run, radio.node, radio.device, sampled), followed)
            yield radio.node, radio.device, "nic", _probed(dropped, radio.node, radio.device, "ring", "rx")
            yield radio.node, radio.device, "cable", given_up(run, radio.node, radio.device, sampled)
    fields = {"qdisc": "qdisc", "stack": "stack", "socket": "stack"}
    for row in dropped.filter(pl.col("place").is_in(list(fields))).iter_rows(named=True):
        yield row["node"], row["device"], fields[row["place"]], row["packets"]
        if row["place"] == "qdisc":
            yield row["node"], row["device"], "seen", row["skbs"]


def _probed(dropped: pl.DataFrame, node: str, device: str, *locations: str) -> int:
    """Return packets dropped at a place, from `seen`."""
    rows = dropped.filter((pl.col("node") == node) & (pl.col("device") == device) & pl.col("place").is_in(locations))
    return int(rows["packets"].sum())


def _counted_by_tc(run: Recording) -> Iterator[tuple[str, str, str, int]]:
    """Return for each device the qdisc that counted most, and ingress. Successive qdiscs at one place in the tree
    count together: an event may replace a qdisc, and the new one counts from 0."""
    ingress, is_class = pl.col("kind").is_in(INGRESS_KINDS), pl.col("kind").str.ends_with(" class")
    keys, position = ["node", "device", "parent", "kind", "handle"], ["node", "device", "parent"]
    grown = _grown(run.qdisc, "drops", keys, "bytes")
    for selection, total in ((ingress, pl.sum), (~ingress & ~is_class, pl.max)):
        by_position = grown.filter(selection).group_by(position).agg(pl.col("drops").sum())
        totals = by_position.group_by("node", "device").agg(total("drops")).sort("node", "device")
        for node, device, count in totals.iter_rows():
            yield node, device, "qdisc_skbs", int(count)


def _growth(table: pl.DataFrame, counter: str) -> list[tuple[str, str, int]]:
    """Yield (node, device, growth of a counter) of every device, in name order."""
    grown = _grown(table, counter, ["node", "device"], counter).sort("node", "device")
    return [(node, device, int(count)) for node, device, count in grown.iter_rows()]


def _grown(table: pl.DataFrame, counter: str, keys: list[str], witness: str) -> pl.DataFrame:
    """Return the growth of a counter by key: from test time 0 on, or from 0 if the key was absent then. If the counter
    or the `witness` falls, it was reset."""
    before = pl.col(counter, witness).cast(pl.Int64).shift(1).over(keys)
    now = pl.col(counter, witness).cast(pl.Int64)
    rows = table.sort("t_ns", maintain_order=True).with_columns(before.name.suffix("_before"), now)
    is_first = pl.col(f"{counter}_before").is_null()
    restarted = (pl.col(counter) < pl.col(f"{counter}_before")) | (pl.col(witness) < pl.col(f"{witness}_before"))
    step = (
        pl.when(is_first & (pl.col("t_ns") <= 0)).then(0)
        .when(is_first | restarted).then(pl.col(counter))
        .otherwise(pl.col(counter) - pl.col(f"{counter}_before"))
    )  # fmt: skip
    return rows.with_columns(step.alias(counter)).group_by(keys).agg(pl.col(counter).sum())
