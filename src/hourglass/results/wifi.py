# SPDX-License-Identifier: Apache-2.0
"""What the radios did: sizes of aggregates, retries, collisions, and whose the air was.

The driver's counters (tables `radio` and `station`) are totals; a figure is their growth within the loaded window, from
the last sample at or before its start to the last at or before its end. The sizes are those of all PPDUs but beacons: a
frame sent by itself is an aggregate of 1.
"""

from typing import Any

import numpy as np
import polars as pl

from hourglass.results.run import Run
from hourglass.results.series import NS_PER_S, Series, Window
from hourglass.results.stats import rounded

SIZES = "aggregates."
COUNTS = {
    "ppdus": "tx_attempts",
    "mpdus": "tx_mpdus",
    "retries": "tx_retries",
    "dropped": "tx_dropped",
    "collisions": "tx_collisions",
}
"""Figure → the driver's counter. `ppdus` counts each time one was sent, `retries` MPDUs sent once more."""

Growth = dict[str, int]


def wifi(run: Run, window: Window) -> dict[str, dict[str, dict[str, Any]]]:
    """{node: {device: figures}} of every radio; empty without radios.

    Figures: those of `COUNTS`; `subframes` with mean, p50, p90 and max; `air_percent`, the share of the window in which
    this radio sent; `air_share`, {node: share of the air time that went to and from it} of the stations it talked to;
    `txq` and `held`, mean and max packets in mac80211's queues and MPDUs below them (null without `measure.tcp`);
    `txq_drops`, those of CoDel and of the queues' limit.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    if run.radios.is_empty():
        return found
    for radio in run.plan["radios"]:
        node, device = radio["node"], radio["device"]
        grown = _growth(_of(run.radios, node, device), window)
        figures: dict[str, Any] = {figure: grown.get(counter, 0) for figure, counter in COUNTS.items()}
        figures["subframes"] = _subframes(grown)
        figures["air_percent"] = rounded(grown.get("tx_ns", 0) / NS_PER_S / window.length_s * 100)
        figures["air_share"] = _shares(_of(run.stations, node, device), window)
        queue = _of(run.queues, node, device).filter(window.holds())
        figures |= {"txq": _waiting(queue, "txq_packets"), "held": _waiting(queue, "ring_skbs")}
        figures["txq_drops"] = txq_drops(run, node, device, window)
        found.setdefault(node, {})[device] = figures
    return found


def sizes(run: Run, node: str, device: str, window: Window) -> dict[int, int]:
    """{MPDUs of a PPDU: PPDUs of that size} of a radio, beacons left out, in order of size."""
    return _sizes(_growth(_of(run.radios, node, device), window))


def txq_drops(run: Run, node: str, device: str, window: Window) -> int:
    """Packets that mac80211 dropped from a radio's queues."""
    rows = _of(run.stations, node, device)
    if rows.is_empty():
        return 0
    grown = (_growth(own, window) for _, own in rows.group_by("station", maintain_order=True))
    return sum(one.get(name, 0) for one in grown for name in ("txq.drops", "txq.overlimit"))


def given_up(run: Run, node: str, device: str, window: Window) -> int:
    """MPDUs that a radio did not get through in all their tries."""
    return _growth(_of(run.radios, node, device), window).get("tx_dropped", 0)


def _waiting(queue: pl.DataFrame, column: str) -> dict[str, float | int | None]:
    if queue.is_empty():
        return {"mean": None, "max": None}
    packets = queue[column].cast(pl.Int64).to_numpy()
    return {"mean": rounded(float(packets.mean())), "max": int(packets.max())}


def air_share(run: Run, node: str, window: Window) -> Series:
    """The share of its time, in each interval between two samples, in which a node's radios sent."""
    rows = run.radios.filter((pl.col("node") == node) & (pl.col("name") == "tx_ns") & window.holds())
    sums = rows.group_by("t_ns").agg(pl.col("value").sum()).sort("t_ns")
    t_ns, sent_ns = sums["t_ns"].to_numpy(), sums["value"].to_numpy()
    return Series(t_ns[1:] / NS_PER_S, np.diff(sent_ns) / np.diff(t_ns))


def _of(table: pl.DataFrame, node: str, device: str) -> pl.DataFrame:
    if table.is_empty():
        return table
    return table.filter((pl.col("node") == node) & (pl.col("device") == device))


def _growth(rows: pl.DataFrame, window: Window) -> Growth:
    """By how much each counter grew; one that was not there yet began at 0."""
    if rows.is_empty():
        return {}
    before, upto = (_at(rows, t_ns) for t_ns in (window.start_ns, window.end_ns))
    return {name: value - before.get(name, 0) for name, value in upto.items()}


def _at(rows: pl.DataFrame, t_ns: int) -> Growth:
    """The counters' values at the last sample that is not after a time."""
    so_far = rows.filter(pl.col("t_ns") <= t_ns)
    last = so_far.filter(pl.col("t_ns") == so_far["t_ns"].max())
    return dict(zip(last["name"], last["value"], strict=True))


def _sizes(grown: Growth) -> dict[int, int]:
    found = {int(name.removeprefix(SIZES)): count for name, count in grown.items() if name.startswith(SIZES)}
    found[1] = found.get(1, 0) - grown.get("tx_beacons", 0)
    return {size: count for size, count in sorted(found.items()) if count > 0}


def _subframes(grown: Growth) -> dict[str, float | None]:
    present = _sizes(grown)
    if not present:
        return dict.fromkeys(("mean", "p50", "p90", "max"))
    values, counts = np.array(list(present)), np.array(list(present.values()))
    below = np.cumsum(counts)

    def percentile(share: float) -> int:
        """The least size that so many PPDUs do not exceed."""
        return int(values[np.searchsorted(below, share * below[-1])])

    mean = rounded(float((values * counts).sum() / below[-1]))
    return {"mean": mean, "p50": percentile(0.5), "p90": percentile(0.9), "max": int(values[-1])}


def _shares(rows: pl.DataFrame, window: Window) -> dict[str, float | None]:
    if rows.is_empty():
        return {}
    air = {}
    for (station,), own in rows.group_by("station", maintain_order=True):
        grown = _growth(own, window)
        air[str(station)] = sum(ns for name, ns in grown.items() if name.startswith(("tx_ns", "rx_ns")))
    total = sum(air.values())
    return {station: rounded(ns / total) if total else None for station, ns in sorted(air.items())}
