# SPDX-License-Identifier: Apache-2.0
"""What tests send beside bulk flows and pings: one-way datagrams (floods, VoIP), fetches (the web), transactions.

A packet, fetch or transaction belongs to the window in which it began. A packet that the sender's socket had no room
for is `refused`, and lost like the others. Jitter is the mean absolute difference of the delays of packets that follow
each other (RFC 3393). A VoIP stream's MOS is the E-model's (`emodel`) of the mean delay and twice the jitter, which a
buffer at the receiver has to add, and of the share of lost packets; Flent reckons so too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import polars as pl

from hourglass.contract import summary
from hourglass.contract.plan import Datagrams, Fetches, StreamBase, Transactions
from hourglass.results.anatomy import trip_layers_ms
from hourglass.results.emodel import mos
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_MS, NS_PER_S, Series, Window, by_time, floats
from hourglass.results.stats import Floats, rounded, statistics

VOICE = "voip"
"""The name of the VoIP stream."""


def packets(run: Recording, stream: Datagrams) -> pl.DataFrame:
    """The packets of a datagram stream, by time, without those that were still on their way when the run ended: not
    arrived, and sent later before the end than the slowest one took."""
    found = run.rows(stream)
    slowest = found["owd_ns"].max()
    last_ns = run.end_ns - (slowest if isinstance(slowest, int) else 0)
    return found.filter(pl.col("owd_ns").is_not_null() | pl.col("refused") | (pl.col("t_ns") <= last_ns))


def delays_ms(run: Recording, stream: Datagrams) -> Series:
    """One-way delays of a datagram stream by the time of sending, ms; NaN = lost."""
    return by_time(packets(run, stream), "owd_ns")


def times_ms(run: Recording, client: Fetches | Transactions) -> Series:
    """Completion times of fetches or transactions by the time they began, ms; NaN = not finished."""
    return by_time(run.rows(client), "done_ns")


def arrived(run: Recording, stream: Datagrams, edges_ns: Floats) -> Floats:
    """Payload bytes of a datagram stream that had arrived at each edge."""
    found = run.rows(stream).drop_nulls("owd_ns")
    at_ns = np.sort((found["t_ns"] + found["owd_ns"]).to_numpy())
    packets = np.searchsorted(at_ns, edges_ns, side="right").astype(np.float64)
    return np.asarray(packets * stream.payload_bytes, dtype=np.float64)


def goodput_steps(run: Recording, stream: Datagrams, window: Window) -> Series:
    """Payload of a datagram stream that arrived in each full step of the window, Mbit/s; times are the steps' ends."""
    step = round(run.test.step_s * NS_PER_S)
    edges_ns = np.arange(window.start_ns, window.end_ns + 1, step, dtype=np.float64)
    grown = np.diff(arrived(run, stream, edges_ns))
    return Series(edges_ns[1:] / NS_PER_S, grown * 8 / 1e6 / (step / NS_PER_S))


def by_one_clock(run: Recording, stream: Datagrams, delays: Floats) -> bool:
    """Whether the delays (ms) of a stream between two machines are longer than their clocks are uncertain: else they
    are right but for a constant."""
    clocks = run.table("clock").filter(pl.col("node").is_in([stream.client, stream.server]))
    if clocks.is_empty() or np.isnan(delays).all():
        return True
    certain = clocks["set_ns"].abs().max() == 0
    return certain and float(np.nanmedian(delays)) * NS_PER_MS >= clocks["uncertainty_ns"].sum()


def jitter_ms(delays: Floats) -> float | None:
    """Mean absolute difference of neighbouring delays, lost ones left out."""
    there = delays[~np.isnan(delays)]
    return float(np.abs(np.diff(there)).mean()) if there.size > 1 else None


def datagrams(run: Recording, stream: Datagrams, window: Window) -> summary.Datagrams:
    """The figures of a datagram stream in the window."""
    delays = delays_ms(run, stream).within(window).values
    first, last = arrived(run, stream, np.array([window.start_ns, window.end_ns], dtype=np.float64))
    jitter = jitter_ms(delays)
    known = delays if by_one_clock(run, stream, delays) else delays[:0]
    figures = summary.Datagrams(
        id=stream.name,
        goodput_mbps=rounded((last - first) * 8 / 1e6 / window.length_s),
        sent=delays.size,
        lost=int(np.isnan(delays).sum()),
        refused=run.rows(stream).filter(window.holds() & pl.col("refused")).height,
        owd_ms=statistics(known),
        jitter_ms=None if jitter is None else rounded(jitter),
    )
    if stream.name != VOICE:
        return figures
    return figures.model_copy(update={"mos": None if jitter is None or not known.size else rounded(score(delays))})


def score(delays: Floats) -> float:
    """MOS of a VoIP stream whose packets had these delays (ms, NaN = lost); at least two arrived."""
    jitter = jitter_ms(delays)
    assert jitter is not None
    return mos(float(np.nanmean(delays)) + 2 * jitter, float(np.isnan(delays).mean()))


def fetches(run: Recording, client: Fetches, window: Window) -> summary.Fetches:
    """The figures of a client of the web in the window, of all sizes and by size (B)."""
    found = run.rows(client).filter(window.holds())
    done = floats(found["done_ns"]) / NS_PER_MS
    size_of = found["bytes"].to_numpy()
    return summary.Fetches(
        id=client.name,
        begun=found.height,
        unfinished=int(np.isnan(done).sum()),
        first_byte_ms=statistics(floats(found["first_ns"]) / NS_PER_MS),
        done_ms=statistics(done),
        by_bytes={str(size): statistics(done[size_of == size]) for size in sorted(set(client.sizes))},
    )


def transactions(run: Recording, client: Transactions, window: Window) -> summary.Transactions:
    """The figures of a connection with requests in the window."""
    done = floats(run.rows(client).filter(window.holds())["done_ns"]) / NS_PER_MS
    unfinished = int(np.isnan(done).sum())
    return summary.Transactions(
        id=client.name,
        rate_per_s=rounded((done.size - unfinished) / window.length_s),
        begun=done.size,
        unfinished=unfinished,
        done_ms=statistics(done),
    )


Model = TypeVar("Model", bound=StreamBase)


@dataclass(frozen=True)
class Kind(Generic[Model]):
    """A kind of traffic as results show it.

    `figures`: of one stream. `series`: a stream's over time, ms; NaN = lost, or not finished; tables call it
    `series_kind`, pictures `title`. `compared`: the figures of a comparison, by what they are called there; a median is
    that of the series. `layers`: whether the summary's part `TABLE_layers_ms` tells where the time of its data goes.
    """

    model: type[Model]
    figures: Callable[[Recording, Model, Window], summary.Figures]
    series: Callable[[Recording, Model], Series]
    series_kind: str
    title: str
    compared: Mapping[str, str]
    layers: bool = False

    @property
    def without_time(self) -> str:
        """What those are called that have none."""
        return "unfinished" if "unfinished" in self.compared else "lost"


KINDS: dict[str, Kind[Any]] = {
    "datagrams": Kind(
        Datagrams, datagrams, delays_ms, "one_way_up", "one-way delay",
        {"goodput": "goodput_mbps", "one way p50": "owd.p50", "one way p99": "owd.p99", "jitter": "jitter_ms",
         "lost": "lost", "MOS": "mos"},
    ),
    "fetches": Kind(
        Fetches, fetches, times_ms, "fetch", "time of a fetch",
        {"done p50": "done.p50", "done p99": "done.p99", "unfinished": "unfinished"},
    ),
    "transactions": Kind(
        Transactions, transactions, times_ms, "transaction", "time of a transaction",
        {"rate": "rate_per_s", "done p50": "done.p50", "done p99": "done.p99", "unfinished": "unfinished"},
        layers=True,
    ),
}  # fmt: skip
"""By their parts of the summary, in the order in which they are shown. Whoever shows what is sent beside flows and
pings finds it here."""


def parts(run: Recording, window: Window) -> dict[str, Any]:
    """Their parts of the summary."""
    made: dict[str, Any] = {}
    for part, kind in KINDS.items():
        made[part] = [kind.figures(run, one, window) for one in run.of(kind.model)]
        if kind.layers:
            made[f"{kind.model.table}_layers_ms"] = trip_layers_ms(run, run.of(kind.model), window)
    return made


def stream_series(run: Recording) -> list[tuple[Kind[Any], dict[str, Series]]]:
    """The kinds that the run has, each with the series of its streams by name."""
    found = [(kind, {one.name: kind.series(run, one) for one in run.of(kind.model)}) for kind in KINDS.values()]
    return [(kind, series) for kind, series in found if series]
