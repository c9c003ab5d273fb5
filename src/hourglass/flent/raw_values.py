# SPDX-License-Identifier: Apache-2.0
"""Converts a run's samples to points of a Flent file (`raw_values`), and resamples them to its steps (`results`)."""

from typing import Any

import numpy as np
import polars as pl

from hourglass.contract.plan import DatagramStream, FetchStream, FlowStream, PingStream, Stream
from hourglass.flent.document import Point
from hourglass.results import traffic
from hourglass.results.connections import Connection
from hourglass.results.frames import belongs_to
from hourglass.results.gaps import GAP_STEPS
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_MS, NS_PER_S, US_PER_MS, payload_at
from hourglass.results.stats import Floats

SOCKET_KEYS = ("tcp_cwnd", "tcp_rtt", "tcp_rtt_var", "tcp_pacing_rate", "tcp_delivery_rate")

Points = list[Point]
Steps = list[float | None]
"""A value for each of the file's steps."""


def _rates(edges_ns: Floats, bytes_at: Floats) -> Points:
    """Return the rate between consecutive edges, Mbit/s; `dur` in s."""
    lengths_s = np.diff(edges_ns) / NS_PER_S
    rates = np.diff(bytes_at) * 8 / 1e6 / lengths_s
    ends_s = edges_ns[1:] / NS_PER_S
    return [Point(t=float(t), val=float(v), dur=float(d)) for t, v, d in zip(ends_s, rates, lengths_s, strict=True)]


def _edges_ns(stream: Stream, step_s: float) -> Floats:
    """Return the steps' edges from start to stop; the last step may be shorter."""
    edges = np.arange(stream.start_ns, stream.stop_ns, round(step_s * NS_PER_S), dtype=np.float64)
    return np.append(edges, float(stream.stop_ns))


def goodput(run: Recording, flow: FlowStream, step_s: float) -> Points:
    """Return the payload delivered in each step from the flow's start."""
    edges_ns = _edges_ns(flow, step_s)
    return _rates(edges_ns, payload_at(run, flow, edges_ns))


def received(run: Recording, connection: Connection, upload: bool, step_s: float) -> Points:
    """Return the payload that a program's TCP receiver got in each step between its first and last sample."""
    rows = (
        run.tcp.filter(belongs_to(connection) & (pl.col("sender") != upload)).drop_nulls("bytes_received").sort("t_ns")
    )
    if rows.height < 2:
        return []
    t_ns, received_bytes = (rows[name].cast(pl.Float64).to_numpy() for name in ("t_ns", "bytes_received"))
    edges_ns = np.append(np.arange(t_ns[0], t_ns[-1], round(step_s * NS_PER_S)), t_ns[-1])
    return _rates(edges_ns, np.interp(edges_ns, t_ns, received_bytes))


def flood(run: Recording, stream: DatagramStream, step_s: float) -> Points:
    """Return the payload of a datagram stream that arrived in each step."""
    edges_ns = _edges_ns(stream, step_s)
    return _rates(edges_ns, traffic.arrived(run, stream, edges_ns))


def sockets(run: Recording, flow: FlowStream, step_s: float) -> Points:
    """Return the values that `ss` would show for an upload's sender once per step: cwnd in packets, ms, Mbit/s."""
    if not flow.upload:
        return []
    rows = run.tcp.filter(belongs_to(flow) & pl.col("sender") & (pl.col("rtt") > 0)).sort("t_ns")
    rows = rows.group_by((pl.col("t_ns") // round(step_s * NS_PER_S)).alias("step"), maintain_order=True).last()
    rate = 8 / 1e6
    samples = rows.select(
        t=pl.col("t_ns") / NS_PER_S,
        tcp_cwnd=pl.col("snd_cwnd").cast(pl.Float64),
        tcp_rtt=pl.col("rtt") / US_PER_MS,
        tcp_rtt_var=pl.col("rttvar") / US_PER_MS,
        # all ones: not paced
        tcp_pacing_rate=pl.when(pl.col("pacing_rate").cast(pl.Float64) < 2.0**63).then(pl.col("pacing_rate") * rate),
        tcp_delivery_rate=pl.col("delivery_rate") * rate,
    )
    return [Point(**row) for row in samples.iter_rows(named=True)]


def pings(run: Recording, ping: PingStream) -> Points:
    """Return the packets of a ping, ms, with one-way delays and their changes if known."""
    points: Points = []
    previous_ms: dict[str, float] = {}
    for t_ns, seq, rtt, up, down in (
        run.rows(ping).select("t_ns", "seq", "rtt_ns", "owd_up_ns", "owd_down_ns").iter_rows()
    ):
        if rtt is None:
            points.append(_lost(t_ns, seq))
            previous_ms = {}
            continue
        delays_ms = {} if up is None else {"up": up / NS_PER_MS, "down": down / NS_PER_MS}
        points.append(_arrived(t_ns, seq, rtt / NS_PER_MS, delays_ms, previous_ms))
        previous_ms = delays_ms
    return points


def voice(run: Recording, stream: DatagramStream) -> Points:
    """Return the packets of a VoIP stream: one-way delays (`val` and `owd_up`), their changes, and losses."""
    points: Points = []
    previous_ms: dict[str, float] = {}
    for t_ns, seq, owd in traffic.packets(run, stream).select("t_ns", "seq", "owd_ns").iter_rows():
        if owd is None:
            points.append(_lost(t_ns, seq))
            continue
        delays_ms = {"up": owd / NS_PER_MS}
        points.append(_arrived(t_ns, seq, delays_ms["up"], delays_ms, previous_ms))
        previous_ms = delays_ms
    return points


def _lost(t_ns: int, seq: int) -> Point:
    return Point(t=t_ns / NS_PER_S, seq=seq, val=None, lost=True)


def _arrived(t_ns: int, seq: int, val: float, delays_ms: dict[str, float], previous_ms: dict[str, float]) -> Point:
    """Return a packet with its one-way delays, and their difference from the previous packet's."""
    keys: dict[str, Any] = {f"owd_{direction}": delay for direction, delay in delays_ms.items()}
    keys |= {
        f"ipdv_{direction}": delay - previous_ms[direction]
        for direction, delay in delays_ms.items()
        if direction in previous_ms
    }
    return Point(t=t_ns / NS_PER_S, seq=seq, val=val, **keys)


def fetches(run: Recording, client: FetchStream) -> Points:
    """Return the durations of fetches in ms, at the time of completion, with the sizes in bytes."""
    rows = run.rows(client).drop_nulls("done_ns")
    return [
        Point(t=(t_ns + done) / NS_PER_S, val=done / NS_PER_MS, bytes=size)
        for t_ns, done, size in rows.select("t_ns", "done_ns", "bytes").iter_rows()
    ]


def count_per_step(times_s: list[float], x_s: Floats, step_s: float) -> Steps:
    """Return the number of times in the step that ends at each x."""
    edges = np.append(x_s - step_s, x_s[-1:])
    return [float(count) for count in np.histogram(np.array(times_s), edges)[0]]


def resample(points: Points, key: str, x_s: Floats, step_s: float) -> Steps:
    """Return the samples interpolated at each step; null across gaps above `GAP_STEPS` steps and beyond both ends."""
    samples = [(point.t, value) for point in points if (value := getattr(point, key)) is not None]
    if not samples:
        return [None] * x_s.size
    t_s, values = np.array(sorted(samples)).T
    interpolated = np.interp(x_s, t_s, values)
    after = np.clip(np.searchsorted(t_s, x_s), 0, t_s.size - 1)
    before = np.clip(after - 1, 0, None)
    inside = (x_s >= t_s[0]) & (x_s <= t_s[-1]) & (t_s[after] - t_s[before] <= GAP_STEPS * step_s)
    near = np.minimum(abs(x_s - t_s[0]), abs(x_s - t_s[-1])) <= step_s / 2
    return [float(value) if valid else None for value, valid in zip(interpolated, inside | near, strict=True)]
