# SPDX-License-Identifier: Apache-2.0
"""Conservation laws of the counts of every run: two counts of the same packets are equal.

* The dropped packets of a stream, by the probe = `dropped` of its balance.
* Sent + duplicated, by the balance = delivered + dropped + in flight.
* The skbs dropped in qdiscs, by the probe = tc's `dropped` at the device. With events tc may have fewer. tbf cuts skbs,
  so with tbf the number is between these skbs and their packets.
* The packets lost on a cable or in a NIC, by the probe = the driver's counters.
* The packets dropped in mac80211's queues, by the probe = mac80211's counters.
* The drops of the summary, all layers = the drops by reason, without those of closed sockets.
"""

import polars as pl

from hourglass.results.drops import CABLE_DROPS, CLOSED, NIC_DROPS, RING_DROPS, probed_drops
from hourglass.results.recording import Recording
from hourglass.scenario.lan import BRIDGE

ENDLESS = "outage without end"
"""The reason of drops of frames that a cable will never carry: they count as the cable's loss, though in the ring."""

Counts = dict[tuple[str, str], int]


def check_counts(run: Recording) -> None:
    """Check the counts of a run. Tables that it lacks (no probe, no samples of devices) are not compared."""
    if run.balance.is_empty():
        return
    check_balances(run)
    drops = probed_drops(run)
    if not run.qdisc.is_empty():
        counted_skbs = {(node, device): figures.qdisc_skbs for node, devices in run.summary.drops.items()
                for device, figures in devices.items()}  # fmt: skip
        in_qdiscs = drops.filter(pl.col("place") == "qdisc")
        seen_skbs, seen_packets = _sum(in_qdiscs, "skbs"), _sum(in_qdiscs, "packets")
        cutting = set(run.qdisc.filter(pl.col("kind") == "tbf").select("node", "device").rows())
        for end in {*seen_skbs, *counted_skbs}:
            count, skbs = counted_skbs.get(end, 0), seen_skbs.get(end, 0)
            assert count <= (seen_packets.get(end, 0) if end in cutting else skbs), ("skbs in qdiscs", end)
            # A qdisc that is removed, or whose device goes down, frees its skbs; so does a bridge without a carrier.
            if run.events.is_empty() and end[1] != BRIDGE:
                assert count >= skbs, ("skbs in qdiscs", end)
    for layer, names in (("wire", CABLE_DROPS), ("rx", NIC_DROPS), ("ring", RING_DROPS)):
        counted = run.ethtool.filter(pl.col("name").is_in(names))
        cables = {(node, device) for node, device in counted.select("node", "device").rows()}
        place = pl.when(pl.col("reason") == ENDLESS).then(pl.lit("wire")).otherwise(pl.col("place"))
        rows = drops.filter(place == layer)
        of_cables = {end: count for end, count in _sum(rows, "packets").items() if end in cables}
        assert of_cables == _positive(_sum(counted, "value")), layer
    _summary(run, drops)


def check_balances(run: Recording) -> None:
    """Check that no packet appears or vanishes in a run, with any events."""
    ends = pl.col("delivered") + pl.col("dropped") + pl.col("in_flight")
    assert run.balance.filter(pl.col("sent") + pl.col("duplicated") != ends).is_empty()
    assert run.balance["unmatched"].sum() == 0
    keys = ["stream", "way"]
    dropped = run.drops.filter(pl.col("stream").is_not_null()).group_by(keys).agg(pl.col("packets").sum())
    balances = run.balance.filter(pl.col("dropped") > 0).select(*keys, packets=pl.col("dropped"))
    assert sorted(dropped.rows()) == sorted(balances.rows())


def _summary(run: Recording, drops: pl.DataFrame) -> None:
    """Check that the terminal's table and the reasons count each packet once."""
    by_reason = {
        (node, device): sum(count for layer, reasons in layers.items() if layer != CLOSED for count in reasons.values())
        for node, devices in run.summary.drops_by_reason.items()
        for device, layers in devices.items()
    }
    radios = {(radio.node, radio.device) for radio in run.radios}
    listed = {
        (node, device): (figures.qdisc or 0) + figures.nic + figures.cable + figures.stack
        for node, devices in run.summary.drops.items()
        for device, figures in devices.items()
    }
    if not run.qdisc.is_empty() and not run.ethtool.is_empty():
        assert {end: count for end, count in by_reason.items() if count and end not in radios} == {
            end: count for end, count in listed.items() if count and end not in radios
        }
    for end in radios:  # mac80211 and the driver also count management frames
        assert by_reason.get(end, 0) <= listed.get(end, 0)


def _sum(rows: pl.DataFrame, column: str) -> Counts:
    sums = rows.group_by("node", "device").agg(pl.col(column).sum())
    return {(node, device): int(count) for node, device, count in sums.iter_rows()}


def _positive(counts: Counts) -> Counts:
    return {end: count for end, count in counts.items() if count}
