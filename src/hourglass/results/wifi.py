# SPDX-License-Identifier: Apache-2.0
"""Radios: sizes of aggregates, retries, missing acknowledgments, shares of the air time, waits for the medium.

The driver's counters (tables `radio` and `station`) are totals. A figure is their growth within the loaded window, from
the last sample at or before its start to that at or before its end. The sizes are those of all PPDUs except beacons: a
single frame is an aggregate of 1.
"""

import numpy as np
import polars as pl

from hourglass.contract import summary
from hourglass.contract.summary import CATEGORIES
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_MS, NS_PER_S, Series, Window
from hourglass.results.stats import rounded

SIZES = "aggregates."
COUNTS = {
    "ppdus": "tx_attempts",
    "dropped": "tx_dropped",
    "collisions": "tx_collisions",
}
"""Figure → the driver's counter. `ppdus` counts each transmission."""
WAITS = ("txq", "ring", "contention")
SENT, SENT_FIRST = ([f"ac.{name.lower()}.{word}" for name in CATEGORIES] for word in ("mpdus", "waited"))
"""The counters of MPDUs on the air, and of their first transmissions; the others are retries. Either hardware
repeats a PPDU that was not acknowledged, which `tx_mpdus` and `tx_retries` leave out, or software puts an MPDU into
the next one. None of them includes beacons."""

SENT_NS = [f"ac.{name.lower()}.tx_ns" for name in CATEGORIES]
GROUP = "group-addressed"
"""The name of multicast and broadcast among the shares of the air time."""
LEAST_GROUP = 0.005
"""A share of the air time. ARP and neighbour discovery have less, as have the tries whose PPDU is not complete."""
LONGEST_NS = 19 * NS_PER_MS
"""A frame of 2,346 bytes at 1 Mbit/s."""

Growth = dict[str, int]


def wifi(run: Recording, window: Window) -> dict[str, dict[str, summary.RadioFigures]]:
    """Return {node: {device: figures}} of every radio; empty without radios. Waiting packets are unknown without
    `measure.tcp`; `txq_drops` are those of CoDel and of the queues' limit."""
    radios: dict[str, dict[str, summary.RadioFigures]] = {}
    if run.radio_counters.is_empty():
        return radios
    for radio in run.radios:
        radios.setdefault(radio.node, {})[radio.device] = _figures(run, radio.node, radio.device, window)
    return radios


def _figures(run: Recording, node: str, device: str, window: Window) -> summary.RadioFigures:
    grown = _growth(_of_device(run.radio_counters, node, device), window)
    queue = _of_device(run.queues, node, device).filter(window.contains())
    return summary.RadioFigures(
        **{figure: grown.get(counter, 0) for figure, counter in COUNTS.items()},
        mpdus=sum(grown.get(name, 0) for name in SENT),
        retries=sum(grown.get(name, 0) for name in SENT) - sum(grown.get(name, 0) for name in SENT_FIRST),
        not_acked=grown.get("tx_collisions", 0) + grown.get("tx_unanswered", 0),
        subframes=_subframes(grown),
        air_percent=_percent(grown.get("tx_ns", 0), window),
        busy_percent=_percent(grown["medium_busy_ns"], window) if "medium_busy_ns" in grown else None,
        categories={name: category for name in CATEGORIES if (category := _category(grown, name, window)).ppdus},
        air_share=_shares(_of_device(run.station_counters, node, device), grown, window),
        txq=_waiting(queue, "txq_packets"),
        held=_waiting(queue, "ring_skbs"),
        txq_drops=txq_drops(run, node, device, window),
    )


def _percent(ns: int, window: Window) -> float | None:
    share = window.per_s(ns / NS_PER_S)
    return None if share is None else rounded(share * 100)


def _category(grown: Growth, name: str, window: Window) -> summary.CategoryFigures:
    counters = {
        word: grown.get(f"ac.{name.lower()}.{word}", 0) for word in ("ppdus", "failed", "mpdus", "tx_ns", "waited")
    }
    sums = [grown.get(f"ac.{name.lower()}.{wait}_ns", 0) for wait in WAITS]
    txq, ring, contention, waiting = (
        rounded(ns / counters["waited"] / NS_PER_MS) if counters["waited"] else None for ns in (*sums, sum(sums))
    )
    return summary.CategoryFigures(
        ppdus=counters["ppdus"],
        not_acked=counters["failed"],
        mpdus=counters["mpdus"],
        air_percent=_percent(counters["tx_ns"], window) or 0.0,
        txq_ms=txq,
        ring_ms=ring,
        contention_ms=contention,
        waiting_ms=waiting,
    )


def sizes(run: Recording, node: str, device: str, window: Window) -> dict[int, int]:
    """Return {MPDUs of a PPDU: PPDUs of that size} of a radio, without beacons, in order of size."""
    return _sizes(_growth(_of_device(run.radio_counters, node, device), window))


def txq_drops(run: Recording, node: str, device: str, window: Window) -> int:
    """Return packets that mac80211 dropped from a radio's queues."""
    rows = _of_device(run.station_counters, node, device)
    if rows.is_empty():
        return 0
    grown = (_growth(station_rows, window) for _, station_rows in rows.group_by("station", maintain_order=True))
    return sum(counters.get(name, 0) for counters in grown for name in ("txq.drops", "txq.overlimit"))


def given_up(run: Recording, node: str, device: str, window: Window) -> int:
    """Return MPDUs that failed in all their tries."""
    return _growth(_of_device(run.radio_counters, node, device), window).get("tx_dropped", 0)


def _waiting(queue: pl.DataFrame, column: str) -> summary.QueueLength:
    packets = queue[column].drop_nulls().cast(pl.Int64).to_numpy()
    if not packets.size:
        return summary.QueueLength(mean=None, max=None)
    return summary.QueueLength(mean=rounded(float(packets.mean())), max=int(packets.max()))


def air_share(run: Recording, node: str, window: Window) -> Series:
    """Return the share of time, in each interval between two samples, in which a node's radios sent."""
    rows = run.radio_counters.filter((pl.col("node") == node) & (pl.col("name") == "tx_ns") & window.contains())
    sums = rows.group_by("t_ns").agg(pl.col("value").sum()).sort("t_ns")
    t_ns, sent_ns = sums["t_ns"].to_numpy(), sums["value"].to_numpy()
    return Series(t_ns[1:] / NS_PER_S, np.diff(sent_ns) / np.diff(t_ns))


def _of_device(table: pl.DataFrame, node: str, device: str) -> pl.DataFrame:
    return table.filter((pl.col("node") == node) & (pl.col("device") == device))


def _growth(rows: pl.DataFrame, window: Window) -> Growth:
    """Return the growth of each counter; a new counter began at 0."""
    if rows.is_empty():
        return {}
    before, upto = (_at(rows, t_ns) for t_ns in (window.start_ns, window.end_ns))
    return {name: value - before.get(name, 0) for name, value in upto.items()}


def _at(rows: pl.DataFrame, t_ns: int) -> Growth:
    """Return the counters' values at the last sample that is not after a time."""
    so_far = rows.filter(pl.col("t_ns") <= t_ns)
    last = so_far.filter(pl.col("t_ns") == so_far["t_ns"].max())
    return dict(zip(last["name"], last["value"], strict=True))


def _sizes(grown: Growth) -> dict[int, int]:
    ppdus_by_size = {int(name.removeprefix(SIZES)): count for name, count in grown.items() if name.startswith(SIZES)}
    ppdus_by_size[1] = ppdus_by_size.get(1, 0) - grown.get("tx_beacons", 0)
    return {size: count for size, count in sorted(ppdus_by_size.items()) if count > 0}


def _subframes(grown: Growth) -> summary.Subframes:
    present = _sizes(grown)
    if not present:
        return summary.Subframes(mean=None, p50=None, p90=None, max=None)
    values, counts = np.array(list(present)), np.array(list(present.values()))
    below = np.cumsum(counts)

    def percentile(share: float) -> int:
        """Return the smallest size that this many PPDUs do not exceed."""
        return int(values[np.searchsorted(below, share * below[-1])])

    mean = rounded(float((values * counts).sum() / below[-1]))
    return summary.Subframes(mean=mean, p50=percentile(0.5), p90=percentile(0.9), max=int(values[-1]))


def _shares(rows: pl.DataFrame, radio: Growth, window: Window) -> dict[str, float | None]:
    if rows.is_empty():
        return {}
    stations = {
        str(station): _growth(station_rows, window)
        for (station,), station_rows in rows.group_by("station", maintain_order=True)
    }
    air = {station: _ns(grown, "tx_ns", "rx_ns") for station, grown in sorted(stations.items())}
    group = _group_ns(radio, sum(_ns(grown, "tx_ns") for grown in stations.values()))
    if group >= LEAST_GROUP * (sum(air.values()) + group) > 0:
        air[GROUP] = group
    total = sum(air.values())
    return {receiver: rounded(ns / total) if total else None for receiver, ns in air.items()}


def _ns(station: Growth, *prefixes: str) -> int:
    return sum(ns for name, ns in station.items() if name.startswith(prefixes))


def _group_ns(radio: Growth, to_stations_ns: int) -> int:
    """Return the air time of group-addressed frames without beacons. No counter has it: it is what a radio sent, and
    not to a station. RTS that collide remain in it, so their number limits it."""
    frames = radio.get("tx_mpdus", 0) - sum(radio.get(name, 0) for name in ("tx_acked", "tx_failed", "tx_beacons"))
    return max(0, min(sum(radio.get(name, 0) for name in SENT_NS) - to_stations_ns, frames * LONGEST_NS))
