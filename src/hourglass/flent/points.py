# SPDX-License-Identifier: Apache-2.0
"""A run's samples as the points of a Flent file (`raw_values`), and resampled to its steps (`results`)."""

from typing import Any

import numpy as np
import polars as pl

from hourglass.contract.plan import Datagrams, Fetches, Flow, Ping, Stream
from hourglass.flent.form import Point
from hourglass.results import traffic
from hourglass.results.connections import Connection
from hourglass.results.frames import of
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_MS, NS_PER_S, US_PER_MS, payload_at
from hourglass.results.stats import Floats

GAP_STEPS = 5
"""Flent draws no line over a longer gap between samples."""

SOCKET_KEYS = ("tcp_cwnd", "tcp_rtt", "tcp_rtt_var", "tcp_pacing_rate", "tcp_delivery_rate")

Points = list[Point]
Steps = list[float | None]
"""A value for each of the file's steps."""


def _rates(edges_ns: Floats, bytes_at: Floats) -> Points:
    """What was delivered from edge to edge, Mbit/s; `dur` in s."""
    lengths_s = np.diff(edges_ns) / NS_PER_S
    rates = np.diff(bytes_at) * 8 / 1e6 / lengths_s
    ends_s = edges_ns[1:] / NS_PER_S
    return [Point(t=float(t), val=float(v), dur=float(d)) for t, v, d in zip(ends_s, rates, lengths_s, strict=True)]


def _edges_ns(planned: Stream, step_s: float) -> Floats:
    """Step by step from start to stop; the last step may be shorter."""
    edges = np.arange(planned.start_ns, planned.stop_ns, round(step_s * NS_PER_S), dtype=np.float64)
    return np.append(edges, float(planned.stop_ns))


def goodput(run: Recording, flow: Flow, step_s: float) -> Points:
    """Payload delivered in each step from the flow's start."""
    edges_ns = _edges_ns(flow, step_s)
    return _rates(edges_ns, payload_at(run, flow, edges_ns))


def received(run: Recording, opened: Connection, upload: bool, step_s: float) -> Points:
    """Payload of a TCP connection of programs that its receiver had in each step between its first and last sample."""
    rows = run.tcp.filter(of(opened) & (pl.col("sender") != upload)).drop_nulls("bytes_received").sort("t_ns")
    if rows.height < 2:
        return []
    t_ns, known = (rows[name].cast(pl.Float64).to_numpy() for name in ("t_ns", "bytes_received"))
    edges_ns = np.append(np.arange(t_ns[0], t_ns[-1], round(step_s * NS_PER_S)), t_ns[-1])
    return _rates(edges_ns, np.interp(edges_ns, t_ns, known))


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
    told = rows.select(
        t=pl.col("t_ns") / NS_PER_S,
        tcp_cwnd=pl.col("snd_cwnd").cast(pl.Float64),
        tcp_rtt=pl.col("rtt") / US_PER_MS,
        tcp_rtt_var=pl.col("rttvar") / US_PER_MS,
        # all ones: not paced
        tcp_pacing_rate=pl.when(pl.col("pacing_rate").cast(pl.Float64) < 2.0**63).then(pl.col("pacing_rate") * rate),
        tcp_delivery_rate=pl.col("delivery_rate") * rate,
    )
    return [Point(**row) for row in told.iter_rows(named=True)]


def pings(run: Recording, ping: Ping) -> Points:
    """Packets of a ping, ms; with one-way delays and their changes where there are some."""
    points: Points = []
    last: dict[str, float] = {}
    for t_ns, seq, rtt, up, down in (
        run.rows(ping).select("t_ns", "seq", "rtt_ns", "owd_up_ns", "owd_down_ns").iter_rows()
    ):
        if rtt is None:
            points.append(_lost(t_ns, seq))
            last = {}
            continue
        ways = {} if up is None else {"up": up / NS_PER_MS, "down": down / NS_PER_MS}
        points.append(_arrived(t_ns, seq, rtt / NS_PER_MS, ways, last))
        last = ways
    return points


def voice(run: Recording, stream: Datagrams) -> Points:
    """Packets of a VoIP stream: one-way delays (`val` and `owd_up`), changes of them, losses."""
    points: Points = []
    last: dict[str, float] = {}
    for t_ns, seq, owd in traffic.packets(run, stream).select("t_ns", "seq", "owd_ns").iter_rows():
        if owd is None:
            points.append(_lost(t_ns, seq))
            continue
        ways = {"up": owd / NS_PER_MS}
        points.append(_arrived(t_ns, seq, ways["up"], ways, last))
        last = ways
    return points


def _lost(t_ns: int, seq: int) -> Point:
    return Point(t=t_ns / NS_PER_S, seq=seq, val=None, lost=True)


def _arrived(t_ns: int, seq: int, val: float, ways: dict[str, float], last: dict[str, float]) -> Point:
    """A packet with its delay each way, and how it differs from the last one's."""
    told: dict[str, Any] = {f"owd_{way}": delay for way, delay in ways.items()}
    told |= {f"ipdv_{way}": delay - last[way] for way, delay in ways.items() if way in last}
    return Point(t=t_ns / NS_PER_S, seq=seq, val=val, **told)


def fetches(run: Recording, client: Fetches) -> Points:
    """Completion times in ms, at the time of completion; with the sizes in bytes."""
    rows = run.rows(client).drop_nulls("done_ns")
    return [
        Point(t=(t_ns + done) / NS_PER_S, val=done / NS_PER_MS, bytes=size)
        for t_ns, done, size in rows.select("t_ns", "done_ns", "bytes").iter_rows()
    ]


def counted(times_s: list[float], x_s: Floats, step_s: float) -> Steps:
    """How many fall into the step that ends at each x."""
    edges = np.append(x_s - step_s, x_s[-1:])
    return [float(count) for count in np.histogram(np.array(times_s), edges)[0]]


def resampled(points: Points, key: str, x_s: Floats, step_s: float) -> Steps:
    """Linear between samples at most `GAP_STEPS` steps apart; null elsewhere, but for half a step round the ends."""
    kept = [(point.t, value) for point in points if (value := getattr(point, key)) is not None]
    if not kept:
        return [None] * x_s.size
    t_s, values = np.array(sorted(kept)).T
    found = np.interp(x_s, t_s, values)
    after = np.clip(np.searchsorted(t_s, x_s), 0, t_s.size - 1)
    before = np.clip(after - 1, 0, None)
    inside = (x_s >= t_s[0]) & (x_s <= t_s[-1]) & (t_s[after] - t_s[before] <= GAP_STEPS * step_s)
    near = np.minimum(abs(x_s - t_s[0]), abs(x_s - t_s[-1])) <= step_s / 2
    return [float(value) if good else None for value, good in zip(found, inside | near, strict=True)]
