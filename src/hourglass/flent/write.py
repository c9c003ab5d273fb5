# SPDX-License-Identifier: Apache-2.0
"""Run → `.flent.gz`. The same run always gives the same bytes.

Test time 0 is Flent's T0, told as 1970-01-01T00:00:00Z: a run in virtual time has no date.
"""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hourglass.results.run import Run
from hourglass.results.series import NS_PER_MS, NS_PER_S, US_PER_MS, Window, goodput_mbps, is_upload, payload_at
from hourglass.results.stats import Floats
from hourglass.scenario.tests import TESTS, TestKind

VERSION = 4
EPOCH = "1970-01-01T00:00:00.000000Z"
GAP_STEPS = 5
"""Flent draws no line over a longer gap between samples."""

SOCKET_KEYS = ("tcp_cwnd", "tcp_rtt", "tcp_rtt_var", "tcp_pacing_rate", "tcp_delivery_rate")

Points = list[dict[str, Any]]


def file_name(run: Run) -> str:
    """Flent's convention: NAME-TIME.TITLE.flent.gz."""
    title = re.sub(r"[^A-Za-z0-9-]+", "_", run.scenario["name"])
    return f"{run.scenario['test']['name']}-{EPOCH.replace(':', '').rstrip('Z')}.{title}.flent.gz"


def write(run: Run, folder: Path) -> Path:
    """Writes the run's file into `folder`; the path of it."""
    place = folder / file_name(run)
    text = json.dumps(document(run), indent=2, sort_keys=True, allow_nan=False)
    place.write_bytes(gzip.compress(text.encode(), mtime=0))
    return place


def document(run: Run) -> dict[str, Any]:
    """The file's JSON object."""
    test = run.scenario["test"]
    kind = TESTS[test["name"]]
    end_s, step_s = run.plan["end_ns"] / NS_PER_S, float(test["step"])
    x_s = np.arange(0, end_s, step_s)
    raw: dict[str, Points] = {}
    meta: dict[str, dict[str, Any]] = {}
    results: dict[str, list[float | None]] = {}
    for flow in run.plan["flows"]:
        name = kind.flow_series(flow["name"])
        raw[name], meta[name] = _goodput_points(run, flow, step_s), _flow_meta(run, flow, len(meta))
        sockets = _socket_points(run, flow, step_s)
        results[name] = _resampled(raw[name], "val", x_s, step_s)
        for key in SOCKET_KEYS if sockets else ():
            results[f"{name}::{key}"] = _resampled(sockets, key, x_s, step_s)
        raw[name] = sorted(raw[name] + sockets, key=lambda point: float(point["t"]))
    for probe in run.plan["probes"]:
        name = kind.ping_series(probe["name"])
        raw[name] = _ping_points(run, probe["id"])
        meta[name] = _ping_meta(probe, raw[name], len(meta))
        results[name] = _resampled(raw[name], "val", x_s, step_s)
    return {
        "version": VERSION,
        "x_values": [round(float(x), 9) for x in x_s],
        "results": results,
        "raw_values": raw,
        "metadata": _metadata(run, kind, meta),
    }


def _metadata(run: Run, kind: TestKind, series: dict[str, dict[str, Any]]) -> dict[str, Any]:
    test = run.scenario["test"]
    return {
        "NAME": test["name"],
        "TITLE": run.scenario["name"],
        "NOTE": run.scenario["description"] or None,
        "HOST": test["server"],
        "HOSTS": [test["server"]],
        "LOCAL_HOST": test["client"],
        "TIME": EPOCH,
        "T0": EPOCH,
        "LENGTH": test["length"],
        "TOTAL_LENGTH": run.plan["end_ns"] / NS_PER_S,
        "STEP_SIZE": test["step"],
        "IP_VERSION": run.scenario["testbed"]["ip"],
        "TEST_PARAMETERS": {key: str(test[key]) for key in kind.parameters},
        "KERNEL_NAME": "Linux",
        "KERNEL_RELEASE": run.info["kernel"]["release"],
        "EGRESS_INFO": _egress(run),
        "SERIES_META": series,
        "HOURGLASS": {"seed": run.info["seed"], "digest": run.info["digest"], "scenario": run.scenario},
    }


def _egress(run: Run) -> dict[str, Any]:
    """The first NIC of the client and its qdiscs, as the guest told them."""
    rows = run.qdisc.filter(pl.col("node") == run.scenario["test"]["client"])
    if rows.is_empty():
        return {}
    device = rows["device"][0]
    last = rows.filter(pl.col("device") == device).unique(["kind", "handle"], keep="last", maintain_order=True)
    qdiscs = [
        {"name": kind, "id": handle, "parent": parent, "params": {}}
        for kind, handle, parent in last.select("kind", "handle", "parent").iter_rows()
        if not kind.endswith(" class")
    ]
    return {"iface": device, "qdiscs": qdiscs}


def _goodput_points(run: Run, flow: dict[str, Any], step_s: float) -> Points:
    """Payload delivered in each step from the flow's start, Mbit/s; `dur` in s."""
    step_ns = round(step_s * NS_PER_S)
    edges_ns: Floats = np.arange(flow["start_ns"], flow["stop_ns"] + 1, step_ns, dtype=np.float64)
    rates = np.diff(payload_at(run, flow, edges_ns)) * 8 / 1e6 / step_s
    ends_s = edges_ns[1:] / NS_PER_S
    return [{"t": float(t), "val": float(v), "dur": step_s} for t, v in zip(ends_s, rates, strict=True)]


def _socket_points(run: Run, flow: dict[str, Any], step_s: float) -> Points:
    """What `ss` would show of an upload's sender once per step: cwnd in packets, ms, Mbit/s."""
    if run.tcp.is_empty() or not is_upload(flow):
        return []
    rows = run.tcp.filter((pl.col("flow") == flow["id"]) & pl.col("sender") & (pl.col("rtt") > 0)).sort("t_ns")
    rows = rows.group_by((pl.col("t_ns") // round(step_s * NS_PER_S)).alias("step"), maintain_order=True).last()
    rate = 8 / 1e6
    return rows.select(
        t=pl.col("t_ns") / NS_PER_S,
        tcp_cwnd=pl.col("snd_cwnd").cast(pl.Float64),
        tcp_rtt=pl.col("rtt") / US_PER_MS,
        tcp_rtt_var=pl.col("rttvar") / US_PER_MS,
        # all ones: not paced
        tcp_pacing_rate=pl.when(pl.col("pacing_rate").cast(pl.Float64) < 2.0**63).then(pl.col("pacing_rate") * rate),
        tcp_delivery_rate=pl.col("delivery_rate") * rate,
    ).to_dicts()


def _ping_points(run: Run, probe: int) -> Points:
    """Answered packets of a probe, ms; with one-way delays where there are some. Lost ones: `lost`."""
    if run.pings.is_empty():
        return []
    points: Points = []
    rows = run.pings.filter(pl.col("probe") == probe).sort("t_ns", maintain_order=True)
    for t_ns, seq, rtt, up, down in rows.select("t_ns", "seq", "rtt_ns", "owd_up_ns", "owd_down_ns").iter_rows():
        point = {"t": t_ns / NS_PER_S, "seq": seq}
        if rtt is None:
            points.append({**point, "val": None, "lost": True})
            continue
        ways = {} if up is None else {"owd_up": up / NS_PER_MS, "owd_down": down / NS_PER_MS}
        points.append({**point, "val": rtt / NS_PER_MS, **ways})
    return points


def _flow_meta(run: Run, flow: dict[str, Any], place: int) -> dict[str, Any]:
    """MEAN_VALUE is the goodput from the flow's start to its stop, as netperf's THROUGHPUT."""
    mark = hex(flow["dscp"] << 2)
    whole = Window(flow["start_ns"], flow["stop_ns"])
    return {
        "UNITS": "Mbits/s",
        "IDX": place,
        "MEAN_VALUE": goodput_mbps(run, flow, whole),
        "CONG_CONTROL": flow["cc"],
        "ELAPSED_TIME": whole.length_s,
        "DATA_TOS": mark,
        "UPSTREAM_TOS": mark,
        "DOWNSTREAM_TOS": mark,
    }


def _ping_meta(probe: dict[str, Any], points: Points, place: int) -> dict[str, Any]:
    values = [point["val"] for point in points if point["val"] is not None]
    meta = {"UNITS": "ms", "IDX": place, "UPSTREAM_TOS": hex(probe["dscp"] << 2), "PACKETS_SENT": len(points)}
    meta["PACKETS_RECEIVED"] = len(values)
    if values:
        meta |= {"MEAN_VALUE": sum(values) / len(values), "MIN_VALUE": min(values), "MAX_VALUE": max(values)}
    return meta


def _resampled(points: Points, key: str, x_s: Floats, step_s: float) -> list[float | None]:
    """Linear between samples at most `GAP_STEPS` steps apart; null elsewhere, but for half a step round the ends."""
    kept = [(float(point["t"]), float(point[key])) for point in points if point.get(key) is not None]
    if not kept:
        return [None] * x_s.size
    t_s, values = np.array(kept).T
    found = np.interp(x_s, t_s, values)
    after = np.clip(np.searchsorted(t_s, x_s), 0, t_s.size - 1)
    before = np.clip(after - 1, 0, None)
    inside = (x_s >= t_s[0]) & (x_s <= t_s[-1]) & (t_s[after] - t_s[before] <= GAP_STEPS * step_s)
    near = np.minimum(abs(x_s - t_s[0]), abs(x_s - t_s[-1])) <= step_s / 2
    return [float(value) if good else None for value, good in zip(found, inside | near, strict=True)]
