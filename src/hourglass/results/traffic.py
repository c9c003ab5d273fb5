# SPDX-License-Identifier: Apache-2.0
"""Traffic other than bulk flows and pings: one-way datagrams (floods, VoIP), fetches (the web), transactions.

A packet, fetch or transaction belongs to the window in which it began. A packet that does not fit into the sender's
socket is `refused`, and lost like the others. Jitter is the mean absolute difference of the delays of successive
packets (RFC 3393). A VoIP stream's MOS is the E-model's (`emodel`) of the mean delay, twice the jitter for the
receiver's buffer, and the share of lost packets. Flent computes it in the same way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl

from hourglass.contract import summary
from hourglass.contract.plan import DatagramStream, FetchStream, StreamBase, TransactionStream
from hourglass.results.anatomy import trip_layers_ms
from hourglass.results.emodel import mos
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_MS, NS_PER_S, Series, Window, by_time, floats
from hourglass.results.stats import Floats, rounded, statistics

VOICE = "voip"
"""The name of the VoIP stream."""


def packets(run: Recording, stream: DatagramStream) -> pl.DataFrame:
    """Return the packets of a datagram stream, by time, without those in flight at the run's end. These did not arrive,
    and the time from their sending to the end is shorter than the slowest delay."""
    rows = run.rows(stream)
    slowest = rows["owd_ns"].max()
    last_ns = run.end_ns - (slowest if isinstance(slowest, int) else 0)
    return rows.filter(pl.col("owd_ns").is_not_null() | pl.col("refused") | (pl.col("t_ns") <= last_ns))


def delays_ms(run: Recording, stream: DatagramStream) -> Series:
    """Return one-way delays of a datagram stream by the time of sending, ms; NaN = lost."""
    return by_time(packets(run, stream), "owd_ns")


def times_ms(run: Recording, client: FetchStream | TransactionStream) -> Series:
    """Return completion times of fetches or transactions by the time they began, ms; NaN = not finished."""
    return by_time(run.rows(client), "done_ns")


def arrived(run: Recording, stream: DatagramStream, edges_ns: Floats) -> Floats:
    """Return the payload bytes of a datagram stream that had arrived at each edge."""
    rows = run.rows(stream).drop_nulls("owd_ns")
    arrival_ns = np.sort((rows["t_ns"] + rows["owd_ns"]).to_numpy())
    packets = np.searchsorted(arrival_ns, edges_ns, side="right").astype(np.float64)
    return np.asarray(packets * stream.payload_bytes, dtype=np.float64)


def goodput_steps(run: Recording, stream: DatagramStream, window: Window) -> Series:
    """Return the payload of a datagram stream that arrived in each full step of the window, Mbit/s; times are the
    steps' ends."""
    step = round(run.test.step_s * NS_PER_S)
    edges_ns = np.arange(window.start_ns, window.end_ns + 1, step, dtype=np.float64)
    grown = np.diff(arrived(run, stream, edges_ns))
    return Series(edges_ns[1:] / NS_PER_S, grown * 8 / 1e6 / (step / NS_PER_S))


def delays_are_absolute(run: Recording, stream: DatagramStream, delays: Floats) -> bool:
    """Return true if the delays (ms) of a stream between two machines exceed the uncertainty of their clocks. They are
    then right except for a constant."""
    clocks = run.table("clock").filter(pl.col("node").is_in([stream.client, stream.server]))
    if clocks.is_empty() or np.isnan(delays).all():
        return True
    synchronized = clocks["set_ns"].abs().max() == 0
    return synchronized and float(np.nanmedian(delays)) * NS_PER_MS >= clocks["uncertainty_ns"].sum()


def jitter_ms(delays: Floats) -> float | None:
    """Return the mean absolute difference of neighbouring delays, without lost ones."""
    delivered = delays[~np.isnan(delays)]
    return float(np.abs(np.diff(delivered)).mean()) if delivered.size > 1 else None


def datagrams(run: Recording, stream: DatagramStream, window: Window) -> summary.DatagramFigures:
    """Return the figures of a datagram stream in the window."""
    delays = delays_ms(run, stream).within(window).values
    first, last = arrived(run, stream, np.array([window.start_ns, window.end_ns], dtype=np.float64))
    jitter = jitter_ms(delays)
    comparable = delays if delays_are_absolute(run, stream, delays) else delays[:0]
    figures = summary.DatagramFigures(
        id=stream.name,
        goodput_mbps=rounded(window.per_s((last - first) * 8 / 1e6) or 0.0),
        sent=delays.size,
        lost=int(np.isnan(delays).sum()),
        refused=run.rows(stream).filter(window.contains() & pl.col("refused")).height,
        owd_ms=statistics(comparable),
        jitter_ms=None if jitter is None else rounded(jitter),
    )
    if stream.name != VOICE:
        return figures
    return figures.model_copy(update={"mos": None if jitter is None or not comparable.size else rounded(score(delays))})


def score(delays: Floats) -> float:
    """Return the MOS of a VoIP stream whose packets had these delays (ms, NaN = lost); at least two arrived."""
    jitter = jitter_ms(delays)
    assert jitter is not None
    return mos(float(np.nanmean(delays)) + 2 * jitter, float(np.isnan(delays).mean()))


def fetches(run: Recording, client: FetchStream, window: Window) -> summary.FetchFigures:
    """Return the figures of a client of the web in the window, of all sizes and by size (B)."""
    rows = run.rows(client).filter(window.contains())
    done = floats(rows["done_ns"]) / NS_PER_MS
    size_of = rows["bytes"].to_numpy()
    return summary.FetchFigures(
        id=client.name,
        begun=rows.height,
        unfinished=int(np.isnan(done).sum()),
        first_byte_ms=statistics(floats(rows["first_ns"]) / NS_PER_MS),
        done_ms=statistics(done),
        by_bytes={str(size): statistics(done[size_of == size]) for size in sorted(set(client.sizes))},
    )


def transactions(run: Recording, client: TransactionStream, window: Window) -> summary.TransactionFigures:
    """Return the figures of a connection with requests in the window."""
    done = floats(run.rows(client).filter(window.contains())["done_ns"]) / NS_PER_MS
    unfinished = int(np.isnan(done).sum())
    return summary.TransactionFigures(
        id=client.name,
        rate_per_s=rounded(window.per_s(done.size - unfinished) or 0.0),
        begun=done.size,
        unfinished=unfinished,
        done_ms=statistics(done),
    )


Model = TypeVar("Model", bound=StreamBase)


@dataclass(frozen=True)
class TrafficView(Generic[Model]):
    """A kind of traffic as results show it.

    `figures`: of one stream. `series`: a stream's over time, ms; NaN = lost, or not finished; tables call it
    `series_kind`, pictures `title`. `compared`: the figures of a comparison, by their names there; a median is that of
    the series. `layers`: whether the summary's part `TABLE_layers_ms` has the time of its data by layer.
    """

    model: type[Model]
    figures: Callable[[Recording, Model, Window], summary.SummaryPart]
    series: Callable[[Recording, Model], Series]
    series_kind: str
    title: str
    compared: Mapping[str, str]
    layers: bool = False

    @property
    def unanswered_label(self) -> str:
        """Return the word for packets or fetches without a time."""
        return "unfinished" if "unfinished" in self.compared else "lost"


KINDS: dict[str, TrafficView[Any]] = {
    "datagrams": TrafficView(
        DatagramStream, datagrams, delays_ms, "one_way_up", "one-way delay",
        {"goodput": "goodput_mbps", "one way p50": "owd.p50", "one way p99": "owd.p99", "jitter": "jitter_ms",
         "lost": "lost", "MOS": "mos"},
    ),
    "fetches": TrafficView(
        FetchStream, fetches, times_ms, "fetch", "time of a fetch",
        {"done p50": "done.p50", "done p99": "done.p99", "unfinished": "unfinished"},
    ),
    "transactions": TrafficView(
        TransactionStream, transactions, times_ms, "transaction", "time of a transaction",
        {"rate": "rate_per_s", "done p50": "done.p50", "done p99": "done.p99", "unfinished": "unfinished"},
        layers=True,
    ),
}  # fmt: skip
"""The kinds by their parts of the summary, in the order of display. All code that shows traffic other than flows and
pings uses them."""


def parts(run: Recording, window: Window) -> dict[str, Any]:
    """Their parts of the summary."""
    figures_by_part: dict[str, Any] = {}
    for part, kind in KINDS.items():
        figures_by_part[part] = [kind.figures(run, stream, window) for stream in run.of_kind(kind.model)]
        if kind.layers:
            figures_by_part[f"{kind.model.table}_layers_ms"] = trip_layers_ms(run, run.of_kind(kind.model), window)
    return figures_by_part


def stream_series(run: Recording) -> list[tuple[TrafficView[Any], dict[str, Series]]]:
    """Return the kinds of the run, each with the series of its streams by name."""
    series_by_kind = [
        (kind, {stream.name: kind.series(run, stream) for stream in run.of_kind(kind.model)}) for kind in KINDS.values()
    ]
    return [(kind, series) for kind, series in series_by_kind if series]
