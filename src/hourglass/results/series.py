# SPDX-License-Identifier: Apache-2.0
"""Cut series from a recording's tables: the loaded window, goodput per step, TCP RTT, pings.

Times are int64 ns of test time in the tables and float seconds in the series given to plots and statistics.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from hourglass.contract.plan import FlowStream, PingStream
from hourglass.results.recording import Recording
from hourglass.results.stats import Floats

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
US_PER_MS = 1_000


@dataclass(frozen=True)
class Window:
    """A span of test time, both ends included, in ns."""

    start_ns: int
    end_ns: int

    @property
    def length_s(self) -> float:
        return (self.end_ns - self.start_ns) / NS_PER_S

    def per_s(self, amount: float) -> float | None:
        """Return an amount of the window per second; None if the window has no length: programs that end at once."""
        return amount / self.length_s if self.length_s > 0 else None

    def contains(self, column: str = "t_ns") -> pl.Expr:
        """Return the polars condition "this row's time is in the window"."""
        return pl.col(column).is_between(self.start_ns, self.end_ns)


@dataclass(frozen=True)
class Series:
    """Values over test time: `t_s` in seconds, `values` in the unit of their function. Equal lengths."""

    t_s: Floats
    values: Floats

    def within(self, window: Window) -> "Series":
        """Return the part of the series inside the window, ends included."""
        inside = (self.t_s >= window.start_ns / NS_PER_S) & (self.t_s <= window.end_ns / NS_PER_S)
        return Series(self.t_s[inside], self.values[inside])


def loaded_window(run: Recording) -> Window:
    """Return [delay, delay + length] of the test; the whole run if it has no flow and no datagram stream. For a run of
    another tool, return the time from the first flow's start to the last one's end."""
    if run.info.elsewhere and run.flows:
        return Window(min(flow.start_ns for flow in run.flows), max(flow.stop_ns for flow in run.flows))
    if run.info.elsewhere or not (run.flows or run.datagrams):
        return whole_run(run)
    start_ns = round(run.test.delay_s * NS_PER_S)
    return Window(start_ns, start_ns + round(run.test.length_s * NS_PER_S))


def whole_run(run: Recording) -> Window:
    """Return the whole run as a window."""
    return Window(0, run.end_ns)


def window_ends(rows: pl.DataFrame, window: Window) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the last samples at or before both ends of a window, from samples in order of time. Without a sample
    before the window, its first one; None if no time is between the two."""
    upto = rows.filter(pl.col("t_ns") <= window.end_ns)
    if upto.is_empty():
        return None
    before = upto.filter(pl.col("t_ns") <= window.start_ns)
    first, last = before.row(-1, named=True) if before.height else upto.row(0, named=True), upto.row(-1, named=True)
    return (first, last) if first["t_ns"] < last["t_ns"] else None


def payload_at(run: Recording, flow: FlowStream, edges_ns: Floats) -> Floats:
    """Return the payload bytes that a flow had delivered at each edge: 0 at its start, linear between samples,
    constant after."""
    t_ns, received = run.sockets.payload(flow)
    if t_ns.size == 0:
        return np.zeros_like(edges_ns)
    if t_ns[0] > flow.start_ns:
        t_ns, received = np.insert(t_ns, 0, flow.start_ns), np.insert(received, 0, 0.0)
    return np.interp(edges_ns, t_ns, received)


def goodput_mbps(run: Recording, flow: FlowStream, window: Window | None = None) -> float:
    """Return the mean goodput of a flow over a window, Mbit/s of payload. Default: the loaded window; for a run of
    another tool the mean that it reported, or else that over the flow's own time."""
    if window is None:
        if flow.name in run.reported_goodputs_mbps:
            return run.reported_goodputs_mbps[flow.name]
        window = Window(flow.start_ns, flow.stop_ns) if run.info.elsewhere else loaded_window(run)
    first, last = payload_at(run, flow, np.array([window.start_ns, window.end_ns], dtype=np.float64))
    return window.per_s(float(last - first) * 8 / 1e6) or 0.0


def goodput_steps(run: Recording, flow: FlowStream, window: Window) -> Series:
    """Return the goodput of a flow in each full step of the window, Mbit/s; times are the steps' ends."""
    step = round(run.test.step_s * NS_PER_S)
    edges_ns = np.arange(window.start_ns, window.end_ns + 1, step, dtype=np.float64)
    delivered = np.diff(payload_at(run, flow, edges_ns))
    return Series(edges_ns[1:] / NS_PER_S, delivered * 8 / 1e6 / (step / NS_PER_S))


def goodput_total(run: Recording, flows: Sequence[FlowStream], window: Window) -> Series:
    """Return the goodput of several flows together in each full step of the window, Mbit/s. `flows` must not be
    empty."""
    parts = [goodput_steps(run, flow, window) for flow in flows]
    return Series(parts[0].t_s, np.sum([part.values for part in parts], axis=0))


def tcp_rtt_ms(run: Recording, flow: FlowStream | None = None) -> Series:
    """Return the senders' smoothed RTT samples (`tcpi_rtt`), ms, of one flow or of all. Zeros mean "not measured
    yet" and are left out."""
    t_ns, rtt_us = run.sockets.samples(flow, True, "rtt")
    measured = rtt_us > 0
    return Series(t_ns[measured] / NS_PER_S, rtt_us[measured] / US_PER_MS)


def retransmits(run: Recording, flow: FlowStream, window: Window) -> int | None:
    """Return the segments that the sender retransmitted within the window (difference of `tcpi_total_retrans`);
    None: unknown."""
    t_ns, counts = run.sockets.samples(flow, True, "total_retrans")
    valid = ~np.isnan(counts)
    if not valid.any():
        return None
    before, upto = (counts[valid & (t_ns <= end_ns)] for end_ns in (window.start_ns, window.end_ns))
    return int(upto[-1] if upto.size else 0) - int(before[-1] if before.size else 0)


def ping_ms(run: Recording, ping: PingStream) -> Series:
    """Return round-trip times of one ping by the time of sending, ms; NaN = lost."""
    return by_time(run.rows(ping), "rtt_ns")


def one_way_ms(run: Recording, ping: PingStream, direction: Literal["up", "down"]) -> Series:
    """Return one-way delays of one ping by the time of sending, ms, without lost packets."""
    column = f"owd_{direction}_ns"
    return by_time(run.rows(ping).drop_nulls(column), column)


def by_time(rows: pl.DataFrame, column: str) -> Series:
    """Return a column of ns over time, in ms; nulls become NaN."""
    return Series(rows["t_ns"].cast(pl.Float64).to_numpy() / NS_PER_S, floats(rows[column]) / NS_PER_MS)


def floats(column: pl.Series) -> Floats:
    """Return a column as an array, null as NaN."""
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
