# SPDX-License-Identifier: Apache-2.0
"""Cuts series out of a run's tables: the loaded window, goodput per step, TCP RTT and ping samples.

Times are int64 ns of test time in the tables and float seconds in the series given to plots and statistics.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from hourglass.results.stats import Floats

if TYPE_CHECKING:
    from hourglass.results.run import Run

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

    def holds(self, column: str = "t_ns") -> pl.Expr:
        """The polars condition "this row's time is in the window"."""
        return pl.col(column).is_between(self.start_ns, self.end_ns)


@dataclass(frozen=True)
class Series:
    """Values over test time: `t_s` seconds, `values` in the unit the maker says. Equal lengths."""

    t_s: Floats
    values: Floats

    def within(self, window: Window) -> "Series":
        """The part of the series inside the window, ends included."""
        keep = (self.t_s >= window.start_ns / NS_PER_S) & (self.t_s <= window.end_ns / NS_PER_S)
        return Series(self.t_s[keep], self.values[keep])


def loaded_window(run: "Run") -> Window:
    """[delay, delay + length] of the scenario's test; the whole run when the plan sends nothing but pings (`ping`)."""
    if not run.plan["flows"] and not run.plan.get("datagrams"):
        return Window(0, int(run.plan["end_ns"]))
    test = run.scenario["test"]
    start_ns = round(test["delay"] * NS_PER_S)
    return Window(start_ns, start_ns + round(test["length"] * NS_PER_S))


def step_ns(run: "Run") -> int:
    """The resampling step of series, ns."""
    step: float = run.scenario["test"]["step"]
    return round(step * NS_PER_S)


def is_upload(flow: dict[str, Any]) -> bool:
    """Whether the data of a planned flow goes from its client to its server."""
    return bool(flow["sender"] == flow["client"])


class _Samples:
    """The samples of a run's sockets as arrays, null as NaN: every figure of the run asks for the same rows."""

    COLUMNS = ("t_ns", "flow", "sender", "rtt", "bytes_acked", "bytes_received", "total_retrans")
    """What series are cut from, of the 90 columns of `tcp`."""

    def __init__(self, run: "Run") -> None:
        rows = run.tables.columns("tcp", self.COLUMNS) if "tcp" in run.tables else pl.DataFrame()
        floats = rows.select(pl.all().cast(pl.Float64).fill_null(float("nan")))
        self._columns = {name: floats[name].to_numpy() for name in floats.columns}
        self._payloads: dict[int, tuple[Floats, Floats]] = {}
        self._places: dict[tuple[int | None, bool], Any] = {}
        if rows.is_empty():
            return
        t_ns, flow, sender = (self._columns[name] for name in self.COLUMNS[:3])
        order = np.lexsort((t_ns, sender, flow))
        for part in np.split(order, np.flatnonzero(np.diff(2 * flow[order] + sender[order])) + 1):
            self._places[int(flow[part[0]]), bool(sender[part[0]])] = part
        by_time = np.argsort(t_ns, kind="stable")
        self._places[None, True] = by_time[sender[by_time] == 1]

    def of(self, flow: int | None, sender: bool, column: str) -> tuple[Floats, Floats]:
        """(t_ns, column) of one side of a flow, or of all flows, by time; empty when there is no such column."""
        places = self._places.get((flow, sender))
        if places is None or column not in self._columns:
            return np.empty(0), np.empty(0)
        return self._columns["t_ns"][places], self._columns[column][places]

    def payload(self, flow: int) -> tuple[Floats, Floats]:
        """(t_ns, payload bytes so far): what the receiver got, or without its samples what the sender saw acked."""
        if flow not in self._payloads:
            self._payloads[flow] = self._find_payload(flow)
        return self._payloads[flow]

    def _find_payload(self, flow: int) -> tuple[Floats, Floats]:
        for sender, column in ((False, "bytes_received"), (True, "bytes_acked")):
            t_ns, received = self.of(flow, sender, column)
            known = ~np.isnan(received)
            if known.any():
                return t_ns[known], received[known]
        return np.empty(0), np.empty(0)


_SAMPLES: "WeakKeyDictionary[Run, _Samples]" = WeakKeyDictionary()
_PINGS: "WeakKeyDictionary[Run, dict[int, Series]]" = WeakKeyDictionary()


def _samples(run: "Run") -> _Samples:
    found = _SAMPLES.get(run)
    if found is None:
        found = _SAMPLES[run] = _Samples(run)
    return found


def payload_at(run: "Run", flow: dict[str, Any], edges_ns: Floats) -> Floats:
    """Payload bytes a planned flow had delivered at each edge: 0 at its start, linear between samples, level after."""
    t_ns, received = _samples(run).payload(flow["id"])
    if t_ns.size == 0:
        return np.zeros_like(edges_ns)
    if t_ns[0] > flow["start_ns"]:
        t_ns, received = np.insert(t_ns, 0, flow["start_ns"]), np.insert(received, 0, 0.0)
    return np.interp(edges_ns, t_ns, received)


def goodput_mbps(run: "Run", flow: dict[str, Any], window: Window) -> float:
    """Mean goodput of a planned flow over the window, Mbit/s of payload."""
    first, last = payload_at(run, flow, np.array([window.start_ns, window.end_ns], dtype=np.float64))
    return float(last - first) * 8 / 1e6 / window.length_s


def goodput_steps(run: "Run", flow: dict[str, Any], window: Window) -> Series:
    """Goodput of a planned flow in each full step of the window, Mbit/s; times are the steps' ends."""
    step = step_ns(run)
    edges_ns = np.arange(window.start_ns, window.end_ns + 1, step, dtype=np.float64)
    delivered = np.diff(payload_at(run, flow, edges_ns))
    return Series(edges_ns[1:] / NS_PER_S, delivered * 8 / 1e6 / (step / NS_PER_S))


def goodput_total(run: "Run", flows: list[dict[str, Any]], window: Window) -> Series:
    """Goodput of several planned flows together in each full step of the window, Mbit/s. `flows` must not be empty."""
    parts = [goodput_steps(run, flow, window) for flow in flows]
    return Series(parts[0].t_s, np.sum([part.values for part in parts], axis=0))


def tcp_rtt_ms(run: "Run", flow: int | None = None) -> Series:
    """The senders' smoothed RTT samples (`tcpi_rtt`), ms, of one flow or of all; without 0, "not measured yet"."""
    t_ns, rtt_us = _samples(run).of(flow, True, "rtt")
    measured = rtt_us > 0
    return Series(t_ns[measured] / NS_PER_S, rtt_us[measured] / US_PER_MS)


def retransmits(run: "Run", flow: int, window: Window) -> int | None:
    """Segments the sender retransmitted within the window (difference of `tcpi_total_retrans`); None: not known."""
    t_ns, counts = _samples(run).of(flow, True, "total_retrans")
    known = ~np.isnan(counts)
    if not known.any():
        return None
    before, upto = (counts[known & (t_ns <= end_ns)] for end_ns in (window.start_ns, window.end_ns))
    return int(upto[-1] if upto.size else 0) - int(before[-1] if before.size else 0)


def ping_ms(run: "Run", probe: int) -> Series:
    """Round-trip times of one probe by the time of sending, ms; NaN = lost."""
    if run.pings.is_empty():
        return Series(np.empty(0), np.empty(0))
    known = _PINGS.setdefault(run, {})
    if probe not in known:
        rows = run.pings.filter(pl.col("probe") == probe).sort("t_ns", maintain_order=True)
        known[probe] = _series(rows, "rtt_ns", NS_PER_MS)
    return known[probe]


def one_way_ms(run: "Run", probe: int, way: str) -> Series:
    """One-way delays ("up" or "down") of one probe by the time of sending, ms, without lost packets."""
    column = f"owd_{way}_ns"
    if run.pings.is_empty() or column not in run.pings.columns:
        return Series(np.empty(0), np.empty(0))
    rows = run.pings.filter((pl.col("probe") == probe) & pl.col(column).is_not_null())
    return _series(rows.sort("t_ns", maintain_order=True), column, NS_PER_MS)


def _series(rows: pl.DataFrame, column: str, divisor: int) -> Series:
    """One column over time in a bigger unit; nulls become NaN."""
    values = rows[column].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return Series(rows["t_ns"].cast(pl.Float64).to_numpy() / NS_PER_S, values / divisor)
