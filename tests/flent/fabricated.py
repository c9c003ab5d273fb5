# SPDX-License-Identifier: Apache-2.0
"""Flent files of every version, with plausible points for the series of a test. The same test gives the same file.

Before version 4, a UDP ping of netperf has transactions/s and a fetch has s. Before version 3, times lack their zone.
Version 1 has no key `version` and keeps points in the metadata, or has no points at all.
"""

import gzip
import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np

STEP_S = 0.5
ZERO = datetime(2015, 7, 13, 19, 38, 48, 250000, tzinfo=UTC)
"""The time of x = 0 (T0). Flent sets its TIME some seconds before."""
SERIES_MAX = 8
"""The most series of a kind in a file: a thousand flows of one kind show no more than a few."""

SETTINGS = {"LENGTH": 10, "STEP_SIZE": STEP_S, "HOSTS": [f"server{number}.example" for number in range(6)]}
PARAMETERS = {"upload_streams": "3", "download_streams": "3", "bidir_streams": "3", "data_directions": "u,d,ud,u,d,ud"}

COMPUTED = ("avg", "total", "totals")
"""Endings of computed series that the files of versions 2 and 4 have. Stock Flent computes those that a file lacks."""

Points = list[dict[str, Any]]


@dataclass(frozen=True)
class Format:
    """A version of the format. `irtt`: UDP pings and VoIP are of irtt, otherwise of netperf and D-ITG.
    `zone_h`: the zone of its times, None: UTC with a Z. `points`: whether it has points."""

    name: str
    version: int
    irtt: bool = False
    zone_h: int | None = None
    points: bool = True


FORMATS = (
    Format("4-irtt", 4, irtt=True),
    Format("4-netperf", 4),
    Format("3", 3),
    Format("2", 2, zone_h=2),
    Format("1", 1, zone_h=-5),
    Format("1-steps", 1, zone_h=9, points=False),
)


def kind(keys: dict[str, Any]) -> str | None:
    """Return what a series measures, from its keys in stock Flent's test: flow, ping, fetch, voice or None."""
    runner, test = keys["runner"], keys.get("test", "")
    if runner in ("ping", "udp_rtt") or (runner == "netperf_demo" and test.endswith("_RR")):
        return "ping"
    if runner in ("netperf_demo", "iperf_csv", "process"):
        return "flow" if test.startswith("TCP_") else None
    return {"http_getter": "fetch", "voip": "voice"}.get(runner)


def write(path: Path, name: str, test: dict[str, Any], form: Format) -> None:
    """Write a file of the test, as stock Flent describes it, in the format."""
    total_s = test["total_length"] or test["length"]
    x_s = np.arange(0, total_s, STEP_S)
    raw: dict[str, Points] = {}
    meta: dict[str, Any] = {}
    results: dict[str, Any] = {}
    for series, keys in selected(test).items():
        points, figures = ([], {}) if series in failed(test) else measured(series, keys, total_s, form)
        raw[series] = [{**point, "t": ZERO.timestamp() + point["t"]} for point in points]
        meta[series] = {"UNITS": keys["units"], **figures}
        results |= repeated(series, x_s) if keys["runner"] == "process" else steps(series, points, x_s, form)
    for series in test["computed"] if form.version in (2, 4) else ():
        if series.endswith(COMPUTED):
            results[series] = [1.0] * len(x_s)
            meta[series] = {"RUNNER": "SumRunner"} if form.version == 4 else {}
    if form.version < 4:
        raw = {series: [older(series, point) for point in points] for series, points in raw.items()}
    metadata = {"NAME": name, "TITLE": "fabricated", "HOST": "server0.example", "LOCAL_HOST": "client",
                "HOSTS": SETTINGS["HOSTS"], "LENGTH": test["length"], "TOTAL_LENGTH": test["total_length"],
                "STEP_SIZE": STEP_S, "T0": date(ZERO, form), "TIME": date(ZERO - timedelta(seconds=16), form),
                "SERIES_META": meta}  # fmt: skip
    content = {"x_values": x_s.tolist(), "results": results, "metadata": metadata}
    if form.version > 1:
        content |= {"version": form.version, "raw_values": raw}
    elif form.points:
        for series, points in raw.items():
            meta[series]["RAW_VALUES"] = points
    else:
        del metadata["SERIES_META"]
    path.write_bytes(gzip.compress(json.dumps(content).encode(), compresslevel=1, mtime=0))


def selected(test: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the series that the file has: the measured ones, at most `SERIES_MAX` of each kind."""
    series_by_kind: dict[str | None, list[str]] = {}
    for series, keys in test["series"].items():
        if keys["runner"] not in ("null", "silent_process") and series not in test["computed"]:
            series_by_kind.setdefault(kind(keys), []).append(series)
    return {name: test["series"][name] for names in series_by_kind.values() for name in names[:SERIES_MAX]}


def failed(test: dict[str, Any]) -> set[str]:
    """Return the series whose program failed: the last flow and the last ping, if the test has several."""
    kinds = [(kind(keys), series) for series, keys in selected(test).items()]
    groups = [[series for kind_of, series in kinds if kind_of == group] for group in ("flow", "ping")]
    return {group[-1] for group in groups if len(group) > 2}


def date(time: datetime, form: Format) -> str:
    if form.zone_h is None:
        return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return time.astimezone(timezone(timedelta(hours=form.zone_h))).strftime("%Y-%m-%dT%H:%M:%S.%f")


def older(series: str, point: dict[str, Any]) -> dict[str, Any]:
    """Return a point in the units before version 4."""
    if "UDP" in series and "dur" in point:
        return {**point, "val": 0.0 if point["val"] is None else 1000 / point["val"]}
    if series == "HTTP latency":
        return {**point, "val": point["val"] / 1000}
    return point


def measured(series: str, keys: dict[str, Any], total_s: float, form: Format) -> tuple[Points, dict[str, Any]]:
    """Return the points of a series, t in s since x = 0, and its figures in the metadata."""
    chance = random.Random(series)
    start_s = keys.get("delay", 0)
    stop_s = start_s + min(keys.get("length", total_s), total_s)
    runner = keys["runner"]
    if runner == "process":
        return [], {}
    if kind(keys) == "flow":
        return flow(chance, start_s, stop_s, keys, form)
    if runner == "iperf_csv":
        return flood(chance, start_s, stop_s)
    if runner == "http_getter":
        return [{"t": t, "val": chance.uniform(5, 40)} for t in times(chance, STEP_S, stop_s, STEP_S)], {}
    if runner in ("udp_rtt", "voip") and form.irtt:
        step_s, spread_ms, loss = (STEP_S / 10, 5, 0.02) if runner == "voip" else (STEP_S / 2, 35, 0.08)
        sent_s = times(chance, start_s, stop_s, step_s)
        return irtt(chance, sent_s, spread_ms, loss)
    if runner == "voip":
        sent = enumerate(times(chance, start_s, stop_s, STEP_S / 10))
        packets = [{"t": t, "val": chance.uniform(20, 25), "seq": seq, "size": 160} for seq, t in sent]
        return without_lost(chance, packets, 0.02), {}
    if runner == "ping":
        sent = enumerate(times(chance, start_s, stop_s, STEP_S / 2), start=1)
        packets = [{"t": t, "val": chance.uniform(10, 60), "seq": seq} for seq, t in sent]
        return without_lost(chance, packets, 0.08), {"MEAN_VALUE": mean(packets)}
    if runner in ("udp_rtt", "netperf_demo"):
        points: Points = [{"t": t, "val": chance.uniform(10, 60), "dur": STEP_S}
                          for t in times(chance, start_s, stop_s, STEP_S)]  # fmt: skip
        if runner == "udp_rtt":
            points[len(points) // 2]["val"] = None  # no transaction in this interval
        return points, {"MEAN_VALUE": mean(points), "RUNNER": "NetperfDemoRunner"}
    return [{"t": t, "val": chance.uniform(1, 9)} for t in times(chance, start_s, stop_s, STEP_S)], {}


def times(chance: random.Random, start_s: float, stop_s: float, step_s: float) -> list[float]:
    """Return times between start and stop, about a step apart."""
    return [float(t) + chance.uniform(0.1, 0.9) * step_s for t in np.arange(start_s, stop_s - step_s / 2, step_s)]


def mean(points: Points) -> float:
    return float(np.mean([point["val"] for point in points if point.get("val") is not None]))


def without_lost(chance: random.Random, packets: Points, loss: float) -> Points:
    """Return the packets without some in the middle: the first and the last arrive."""
    return [packet for packet in packets if packet in (packets[0], packets[-1]) or chance.random() > loss]


def flow(
    chance: random.Random, start_s: float, stop_s: float, keys: dict[str, Any], form: Format
) -> tuple[Points, dict[str, Any]]:
    """Return the rates of a TCP flow, Mbit/s: netperf's of uneven intervals, iperf's without their length."""
    rate, t, points = chance.uniform(1, 50), float(start_s), []
    even = keys["runner"] == "iperf_csv"
    while stop_s - t > 1e-6:
        dur = min(STEP_S * (1 if even else chance.uniform(0.7, 1.4)), stop_s - t)
        t += dur
        points.append({"t": t, "val": rate * chance.uniform(0.95, 1.05), "dur": dur})
    figures = {"MEAN_VALUE": sum(point["val"] * point["dur"] for point in points) / (stop_s - start_s)}
    if even:
        return [{"t": point["t"], "val": point["val"]} for point in points], figures
    if keys["test"] == "TCP_STREAM" and form.version > 2:
        samples = times(chance, start_s, stop_s, STEP_S)
        points += [{"t": t, "tcp_cwnd": 40.0, "tcp_rtt": 30.0, "tcp_rtt_var": 2.0} for t in samples]
    return sorted(points, key=lambda point: point["t"]), {**figures, "RUNNER": "NetperfDemoRunner"}


def flood(chance: random.Random, start_s: float, stop_s: float) -> tuple[Points, dict[str, Any]]:
    """Return the rates of iperf's UDP flood, Mbit/s."""
    points = [{"t": t, "val": chance.uniform(8, 12)} for t in times(chance, start_s, stop_s, STEP_S)]
    return points, {"MEAN_VALUE": mean(points)}


def irtt(chance: random.Random, sent_s: list[float], spread_ms: float, loss: float) -> tuple[Points, dict[str, Any]]:
    """Return irtt's packets, some of them lost, and its own figures. One-way delays are up to `spread_ms` apart."""
    packets: Points = []
    for seq, t in enumerate(sent_s):
        up, down = 5 + chance.uniform(0, spread_ms), 5 + chance.uniform(0, spread_ms)
        if chance.random() < loss:
            packets.append({"t": t, "seq": seq, "lost": True, "lost_dir": "up"})
            continue
        packet = {"t": t, "seq": seq, "val": up + down, "owd_up": up, "owd_down": down}
        if packets and "owd_up" in packets[-1]:
            packet |= {"ipdv_up": up - packets[-1]["owd_up"], "ipdv_down": down - packets[-1]["owd_down"]}
        packets.append(packet)
    delays = [packet["owd_up"] for packet in packets if "owd_up" in packet]
    changes = [abs(packet["ipdv_up"]) for packet in packets if "ipdv_up" in packet]
    figures = {"RUNNER": "IrttRunner", "MEAN_VALUE": mean(packets), "OWD_UP_MEAN": float(np.mean(delays)),
               "IPDV_UP_MEAN": float(np.mean(changes)), "PACKET_LOSS_RATE": 1 - len(delays) / len(packets)}  # fmt: skip
    return packets, figures


def steps(series: str, points: Points, x_s: Any, form: Format) -> dict[str, list[float | None]]:
    """Return the series of `results`: values interpolated at the steps, and those of ss or of a VoIP stream."""
    keys = {"tcp_cwnd": "tcp_cwnd", "tcp_rtt": "tcp_rtt"} if any("tcp_rtt" in point for point in points) else {}
    if series == "VoIP":
        keys = {"delay": "owd_up" if form.irtt else "val"}
    names = {f"{series}::{name}": key for name, key in keys.items()} | ({} if series == "VoIP" else {series: "val"})
    return {name: interpolated([(p["t"], p[key]) for p in points if p.get(key) is not None], x_s)
            for name, key in names.items()}  # fmt: skip


def repeated(series: str, x_s: Any) -> dict[str, list[float]]:
    """Return the results of a test that repeats a measurement: a number for each repetition."""
    chance = random.Random(series)
    return {series: [chance.uniform(19, 21) for _ in x_s]}


def interpolated(samples: list[tuple[float, float]], x_s: Any) -> list[float | None]:
    """Return the values at the steps, None before the first and after the last sample."""
    if not samples:
        return [None] * len(x_s)
    t_s, values = np.array(samples).T
    inside = (x_s >= t_s[0]) & (x_s <= t_s[-1])
    return [float(v) if valid else None for v, valid in zip(np.interp(x_s, t_s, values), inside, strict=True)]
