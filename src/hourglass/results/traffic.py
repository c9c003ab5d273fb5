# SPDX-License-Identifier: Apache-2.0
"""What tests send beside bulk flows and pings: one-way datagrams (floods, telephones) and fetches (the web).

A packet or fetch belongs to the window in which it began. A packet that the sender's socket had no room for is
`refused`, and lost like the others. Jitter is the mean absolute difference of the delays of packets that follow each
other (RFC 3393). A telephone's MOS is the E-model's (`emodel`) of the mean delay and twice the jitter, which a buffer
at the receiver has to add, and of the share of lost packets; Flent reckons so too.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from hourglass.results.emodel import mos
from hourglass.results.series import NS_PER_MS, NS_PER_S, Series, Window
from hourglass.results.stats import Floats, rounded, statistics

if TYPE_CHECKING:
    from hourglass.results.run import Run

VOICE = "voip"
"""The stream that is a telephone's."""


def rows(table: pl.DataFrame, key: str, number: int) -> pl.DataFrame:
    """The packets or fetches of one stream, by time."""
    return table.filter(pl.col(key) == number).sort("t_ns", "seq")


def packets(run: "Run", number: int) -> pl.DataFrame:
    """The packets of a datagram stream, by time, without those that were still on their way when the run ended: not
    arrived, and sent later before the end than the slowest one took."""
    found = rows(run.datagrams, "datagram", number)
    slowest = found["owd_ns"].max()
    last_ns = int(run.plan["end_ns"]) - (slowest if isinstance(slowest, int) else 0)
    return found.filter(pl.col("owd_ns").is_not_null() | pl.col("refused") | (pl.col("t_ns") <= last_ns))


def delays_ms(run: "Run", number: int) -> Series:
    """One-way delays of a datagram stream by the time of sending, ms; NaN = lost."""
    return _series(packets(run, number), "owd_ns")


def times_ms(run: "Run", number: int, column: str = "done_ns") -> Series:
    """Completion times (or times to the first byte, `first_ns`) of fetches, ms; NaN = not finished."""
    return _series(rows(run.fetches, "fetch", number), column)


def _series(found: pl.DataFrame, column: str) -> Series:
    values = found[column].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return Series(found["t_ns"].cast(pl.Float64).to_numpy() / NS_PER_S, values / NS_PER_MS)


def arrived(run: "Run", stream: dict[str, Any], edges_ns: Floats) -> Floats:
    """Payload bytes of a datagram stream that had arrived at each edge."""
    found = rows(run.datagrams, "datagram", stream["id"]).drop_nulls("owd_ns")
    at_ns = np.sort((found["t_ns"] + found["owd_ns"]).to_numpy())
    packets = np.searchsorted(at_ns, edges_ns, side="right").astype(np.float64)
    return np.asarray(packets * stream["payload_bytes"], dtype=np.float64)


def jitter_ms(delays: Floats) -> float | None:
    """Mean absolute difference of neighbouring delays, lost ones left out."""
    there = delays[~np.isnan(delays)]
    return float(np.abs(np.diff(there)).mean()) if there.size > 1 else None


def datagrams(run: "Run", window: Window) -> list[dict[str, Any]]:
    """The figures of each datagram stream in the window."""
    return [_datagrams(run, stream, window) for stream in run.plan.get("datagrams", [])]


def _datagrams(run: "Run", stream: dict[str, Any], window: Window) -> dict[str, Any]:
    delays = delays_ms(run, stream["id"]).within(window).values
    first, last = arrived(run, stream, np.array([window.start_ns, window.end_ns], dtype=np.float64))
    refused = rows(run.datagrams, "datagram", stream["id"]).filter(window.holds() & pl.col("refused")).height
    lost = int(np.isnan(delays).sum())
    jitter = jitter_ms(delays)
    figures = {
        "id": stream["name"],
        "goodput_mbps": rounded((last - first) * 8 / 1e6 / window.length_s),
        "sent": int(delays.size),
        "lost": lost,
        "refused": refused,
        "owd_ms": statistics(delays),
        "jitter_ms": None if jitter is None else rounded(jitter),
    }
    if stream["name"] == VOICE:
        figures["mos"] = None if jitter is None else rounded(score(delays))
    return figures


def score(delays: Floats) -> float:
    """MOS of a telephone whose packets had these delays (ms, NaN = lost); at least two arrived."""
    jitter = jitter_ms(delays)
    assert jitter is not None
    return mos(float(np.nanmean(delays)) + 2 * jitter, float(np.isnan(delays).mean()))


def fetches(run: "Run", window: Window) -> list[dict[str, Any]]:
    """The figures of each client of the web in the window, of all sizes and by size (B)."""
    return [_fetches(run, client, window) for client in run.plan.get("fetches", [])]


def _fetches(run: "Run", client: dict[str, Any], window: Window) -> dict[str, Any]:
    found = rows(run.fetches, "fetch", client["id"]).filter(window.holds())
    done = found["done_ns"].cast(pl.Float64) / NS_PER_MS
    sizes = sorted(set(client["sizes"]))
    return {
        "id": client["name"],
        "begun": found.height,
        "unfinished": int(done.null_count()),
        "first_byte_ms": statistics(_floats(found["first_ns"].cast(pl.Float64) / NS_PER_MS)),
        "done_ms": statistics(_floats(done)),
        "by_bytes": {str(size): statistics(_floats(done.filter(found["bytes"] == size))) for size in sizes},
    }


def _floats(column: pl.Series) -> Floats:
    return column.fill_null(float("nan")).to_numpy()
