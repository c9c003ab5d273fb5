# SPDX-License-Identifier: Apache-2.0
"""What was dropped, where and why, in packets: IP packets of at most an MTU, each of which would be a frame.

Three things count. The packet probe sees every skb that the kernel frees as dropped, with its packets and the kernel's
reason. Qdiscs count skbs, of which one may hold dozens of packets (GSO), in tc's `dropped`. Drivers count frames, and
mac80211 the packets in its queues. For the packets of the streams the probe's sum is that of their balances; at a
device its skbs in qdiscs are tc's count, and its packets in the NIC, on the cable and in the air the drivers'
(`tests/guest/accounts.py`).

A packet that comes to a socket after its stream has stopped is dropped by a stack that has closed the connection: the
place `closed` in the reasons, and no drop of the network.
"""

from collections.abc import Iterator

import polars as pl

from hourglass.contract.summary import Drops, Link
from hourglass.results.recording import Recording
from hourglass.results.series import Window
from hourglass.results.wifi import given_up, txq_drops

NOWHERE = "-"
"""In place of a device: none has to do with it."""
CLOSED = "closed"
INGRESS_KINDS = ("ingress", "clsact")
BY_QDISCS = ("TC_INGRESS", "TC_EGRESS")
"""Reasons of filters, whose drops are those of their qdisc (ingress, clsact)."""
NIC_DROPS = ("rx_missed", "rx_corrupted")
CABLE_DROPS = ("tx_lost", "tx_policed", "tx_shaper_full")
"""Counters of the wire driver (`ethtool -S`) that the kernel's own `rx_dropped` and `tx_dropped` do not hold."""

Reasons = dict[str, dict[str, dict[str, dict[str, int]]]]
Counts = dict[tuple[str, str], dict[str, int]]


def seen(run: Recording) -> pl.DataFrame:
    """What the packet probe saw dropped from test time 0 on, from where counters count: `node, device, place, reason,
    stream, way, skbs, packets`."""
    stops = {stream.name: stream.stop_ns for stream in run.streams}
    stop_ns = pl.col("stream").cast(pl.String).replace_strict(stops, default=None, return_dtype=pl.Int64)
    place = (
        pl.when((pl.col("place") == "socket") & (pl.col("t_ns") >= stop_ns)).then(pl.lit(CLOSED))
        .when((pl.col("place") == "stack") & pl.col("reason").is_in(BY_QDISCS)).then(pl.lit("qdisc"))
        .otherwise(pl.col("place").cast(pl.String))
    )  # fmt: skip
    keys = ["node", "device", "place", "reason", "stream", "way"]
    rows = run.drops.filter(pl.col("t_ns") >= 0).with_columns(place=place, device=pl.col("device").fill_null(NOWHERE))
    return rows.group_by(keys).agg(skbs=pl.len(), packets=pl.col("packets").sum()).sort(keys)


def drops_by_reason(run: Recording) -> Reasons:
    """{node: {device: {place: {reason: packets}}}} of the whole run; device "-": no device has to do with it."""
    keys = ["node", "device", "place", "reason"]
    found: Reasons = {}
    for node, device, place, reason, packets in seen(run).group_by(keys).agg(pl.col("packets").sum()).sort(keys).rows():
        found.setdefault(node, {}).setdefault(device, {}).setdefault(place, {})[reason] = int(packets)
    return found


def drops(run: Recording) -> dict[str, dict[str, Drops]]:
    """{node: {device: dropped during the run}}.

    `qdisc_skbs` is the count of the qdisc at a device that counted most, and that of ingress: the kernel passes a
    child's drops up to the root, so that adding them would count an skb twice, but not those of the packets into which
    tbf cuts an skb. `nic`: `rx_dropped`, `tx_dropped`, frames beyond the ring and frames with a wrong FCS. `cable`:
    lost on the way away from the device, or dropped there by the link's policer or shaper. Of a radio `qdisc` has
    mac80211's queues too (whose own `overlimit` is one for up to 32 packets at a time; the probe counts each), `nic`
    what it held when it, its interface or its peer went, `cable` the MPDUs that were given up after all their tries.

    What a device refuses that is down, or has no carrier, the probe sees in its qdisc. tc does not count it; kernels
    since 6.10 do in `tx_dropped`, from which it is taken, so that each packet is there once."""
    followed = not run.balance.is_empty()
    counts: Counts = {}
    for node, device, place, count in _counted(run):
        places = counts.setdefault((node, device), {})
        places[place] = places.get(place, 0) + count
    made: dict[str, dict[str, Drops]] = {}
    for (node, device), places in counts.items():
        packets = places.get("qdisc", 0) if followed or not places.get("qdisc_skbs") else None
        refused = max(places.get("seen", 0) - places.get("qdisc_skbs", 0), 0)
        places["nic"] = places.get("nic", 0) + max(places.get("tx", 0) - refused, 0)
        further = {name: places.get(name, 0) for name in Drops.model_fields if name != "qdisc"}
        made.setdefault(node, {})[device] = Drops(qdisc=packets, **further)
    return made


def links(run: Recording) -> dict[str, dict[str, Link]]:
    """{node: {device: what the link's policer and shaper did}}, in name order, where they did something."""
    rows = run.ethtool.filter(
        pl.col("name").is_in([f"tx_{name}" for name in Link.model_fields]) & (pl.col("value") > 0)
    )
    found: Counts = {}
    for node, device, name, value in rows.select("node", "device", "name", "value").iter_rows():
        found.setdefault((node, device), {})[name.removeprefix("tx_")] = value
    made: dict[str, dict[str, Link]] = {}
    for (node, device), counts in sorted(found.items()):
        made.setdefault(node, {})[device] = Link(**{name: counts.get(name, 0) for name in Link.model_fields})
    return made


def _counted(run: Recording) -> Iterator[tuple[str, str, str, int]]:
    """(node, device, field of `Drops`, count), a field as often as it is counted; `tx`: tx_dropped; `seen`: skbs
    that the probe saw dropped in qdiscs."""
    for counter, field in (("rx_dropped", "nic"), ("tx_dropped", "tx")):
        for node, device, count in _growth(run.devices, counter):
            yield node, device, field, count
    yield from _counted_by_tc(run)
    dropped = seen(run)
    for node, device, name, value in run.ethtool.select("node", "device", "name", "value").iter_rows():
        if name in NIC_DROPS or name in CABLE_DROPS:
            yield node, device, "nic" if name in NIC_DROPS else "cable", value
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


def _probed(dropped: pl.DataFrame, node: str, device: str, *places: str) -> int:
    """Packets dropped there, of what `seen` gives."""
    rows = dropped.filter((pl.col("node") == node) & (pl.col("device") == device) & pl.col("place").is_in(places))
    return int(rows["packets"].sum())


def _counted_by_tc(run: Recording) -> Iterator[tuple[str, str, str, int]]:
    """Of each device the qdisc that counted most, and ingress. Those that followed one another at one place in the tree
    count together: an event may replace a qdisc, or make it anew, and a new one counts from 0."""
    ingress, a_class = pl.col("kind").is_in(INGRESS_KINDS), pl.col("kind").str.ends_with(" class")
    keys, at = ["node", "device", "parent", "kind", "handle"], ["node", "device", "parent"]
    grown = _grown(run.qdisc, "drops", keys, "bytes")
    for which, total in ((ingress, pl.sum), (~ingress & ~a_class, pl.max)):
        places = grown.filter(which).group_by(at).agg(pl.col("drops").sum())
        totals = places.group_by("node", "device").agg(total("drops")).sort("node", "device")
        for node, device, count in totals.iter_rows():
            yield node, device, "qdisc_skbs", int(count)


def _growth(table: pl.DataFrame, counter: str) -> list[tuple[str, str, int]]:
    """(node, device, growth of a counter) of every device, in name order."""
    grown = _grown(table, counter, ["node", "device"], counter).sort("node", "device")
    return [(node, device, int(count)) for node, device, count in grown.iter_rows()]


def _grown(table: pl.DataFrame, counter: str, keys: list[str], witness: str) -> pl.DataFrame:
    """By how much a counter grew, by key: from the first sample on, or from 0 of what was not there at the first
    instant; where the counter or the `witness` falls, it began anew."""
    before = pl.col(counter, witness).cast(pl.Int64).shift(1).over(keys)
    now = pl.col(counter, witness).cast(pl.Int64)
    rows = table.sort("t_ns", maintain_order=True).with_columns(before.name.suffix("_before"), now)
    born = pl.col(f"{counter}_before").is_null()
    anew = (pl.col(counter) < pl.col(f"{counter}_before")) | (pl.col(witness) < pl.col(f"{witness}_before"))
    step = (
        pl.when(born & (pl.col("t_ns") == pl.col("t_ns").min())).then(0)
        .when(born | anew).then(pl.col(counter))
        .otherwise(pl.col(counter) - pl.col(f"{counter}_before"))
    )  # fmt: skip
    return rows.with_columns(step.alias(counter)).group_by(keys).agg(pl.col(counter).sum())
