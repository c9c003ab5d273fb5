# SPDX-License-Identifier: Apache-2.0
"""A run's samples as the points of a Flent file (`raw_values`), and resampled to its steps (`results`)."""

from typing import Any

import numpy as np
import polars as pl

from hourglass.contract.plan import Datagrams, Fetches, Flow, Ping, Stream
from hourglass.results import traffic
from hourglass.results.frames import of
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_MS, NS_PER_S, US_PER_MS, payload_at
from hourglass.results.stats import Floats

GAP_STEPS = 5
"""Flent draws no line over a longer gap between samples."""

SOCKET_KEYS = ("tcp_cwnd", "tcp_rtt", "tcp_rtt_var", "tcp_pacing_rate", "tcp_delivery_rate")

Points = list[dict[str, Any]]
Column = list[float | None]


def _rates(edges_ns: Floats, bytes_at: Floats) -> Points:
    """What was delivered from edge to edge, Mbit/s; `dur` in s."""
    lengths_s = np.diff(edges_ns) / NS_PER_S
    rates = np.diff(bytes_at) * 8 / 1e6 / lengths_s
    ends_s = edges_ns[1:] / NS_PER_S
    return [{"t": float(t), "val": float(v), "dur": float(d)} for t, v, d in zip(ends_s, rates, lengths_s, strict=True)]


def _edges_ns(planned: Stream, step_s: float) -> Floats:
    """Step by step from start to stop; the last step may be shorter."""
    edges = np.arange(planned.start_ns, planned.stop_ns, round(step_s * NS_PER_S), dtype=np.float64)
    return np.append(edges, float(planned.stop_ns))


def goodput(run: Recording, flow: Flow, step_s: float) -> Points:
    """Payload delivered in each step from the flow's start."""
    edges_ns = _edges_ns(flow, step_s)
    return _rates(edges_ns, payload_at(run, flow, edges_ns))


def flood(run: Recording, stream: Datagrams, step_s: float) -> Points:
    """Payload of a datagram stream that arrived in each step."""
    edges_ns = _edges_ns(stream, step_s)
    return _rates(edges_ns, traffic.arrived(run, stream, edges_ns))


def sockets(run: Recording, flow: Flow, step_s: float) -> Points:
    """What `ss` would show of an upload's sender once per step: cwnd in packets, ms, Mbit/s."""
    if not flow.upload:
        return []
    rows = run.tcp.filter(of(flow) & pl.col("sender") & (pl.col("rtt") > 0)).sort("t_ns")
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


def pings(run: Recording, ping: Ping) -> Points:
    """Packets of a ping, ms; with one-way delays and their changes where there are some. Lost ones: `lost`."""
    points: Points = []
    last: dict[str, float] = {}
    for t_ns, seq, rtt, up, down in (
        run.rows(ping).select("t_ns", "seq", "rtt_ns", "owd_up_ns", "owd_down_ns").iter_rows()
    ):
        point = {"t": t_ns / NS_PER_S, "seq": seq}
        if rtt is None:
            points.append({**point, "val": None, "lost": True})
            last = {}
            continue
        ways = {} if up is None else {"owd_up": up / NS_PER_MS, "owd_down": down / NS_PER_MS}
        changes = {f"ipdv{key[3:]}": value - last[key] for key, value in ways.items() if key in last}
        points.append({**point, "val": rtt / NS_PER_MS, **ways, **changes})
        last = ways
    return points


def voice(run: Recording, stream: Datagrams) -> Points:
    """Packets of a VoIP stream: one-way delays (`val` and `owd_up`), changes of them, losses."""
    points: Points = []
    last = None
    for t_ns, seq, owd in traffic.packets(run, stream).select("t_ns", "seq", "owd_ns").iter_rows():
        point = {"t": t_ns / NS_PER_S, "seq": seq}
        if owd is None:
            points.append({**point, "val": None, "lost": True})
            continue
        delay = owd / NS_PER_MS
        change: dict[str, float] = {} if last is None else {"ipdv_up": delay - last}
        points.append({**point, "val": delay, "owd_up": delay, **change})
        last = delay
    return points


def fetches(run: Recording, client: Fetches) -> Points:
    """Completion times in ms, at the time of completion; with the sizes in bytes."""
    rows = run.rows(client).drop_nulls("done_ns")
    return [
        {"t": (t_ns + done) / NS_PER_S, "val": done / NS_PER_MS, "bytes": size}
        for t_ns, done, size in rows.select("t_ns", "done_ns", "bytes").iter_rows()
    ]


def counted(times_s: list[float], x_s: Floats, step_s: float) -> Column:
    """How many fall into the step that ends at each x."""
    edges = np.append(x_s - step_s, x_s[-1:])
    return [float(count) for count in np.histogram(np.array(times_s), edges)[0]]


def resampled(points: Points, key: str, x_s: Floats, step_s: float) -> Column:
    """Linear between samples at most `GAP_STEPS` steps apart; null elsewhere, but for half a step round the ends."""
    kept = [(float(point["t"]), float(point[key])) for point in points if point.get(key) is not None]
    if not kept:
        return [None] * x_s.size
    t_s, values = np.array(sorted(kept)).T
    found = np.interp(x_s, t_s, values)
    after = np.clip(np.searchsorted(t_s, x_s), 0, t_s.size - 1)
    before = np.clip(after - 1, 0, None)
    inside = (x_s >= t_s[0]) & (x_s <= t_s[-1]) & (t_s[after] - t_s[before] <= GAP_STEPS * step_s)
    near = np.minimum(abs(x_s - t_s[0]), abs(x_s - t_s[-1])) <= step_s / 2
    return [float(value) if good else None for value, good in zip(found, inside | near, strict=True)]
