# SPDX-License-Identifier: Apache-2.0
"""A run as two tables that any tool reads, one value a row: its figures, and its series over time.

`figures`: `kind` (totals, flow, tcp_rtt, ping, datagram, fetch), `name`, `figure`, `unit`, `value`: the numbers of the
summary, all of them and nothing else. `series`: `kind`, `name`, `t_s`, `value`, `unit`: goodput per step (at the step's
end), TCP RTT samples, pings, one-way delays and fetches by the time they began; null: lost.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from hourglass.results.recording import Recording
from hourglass.results.series import Series, goodput_steps, one_way_ms, ping_ms, tcp_rtt_ms, whole
from hourglass.results.traffic import delays_ms, times_ms

FIGURES = {"kind": pl.String, "name": pl.String, "figure": pl.String, "unit": pl.String, "value": pl.Float64}
SERIES = {"kind": pl.String, "name": pl.String, "t_s": pl.Float64, "value": pl.Float64, "unit": pl.String}

UNITS = {"mbps": "Mbit/s", "ms": "ms", "s": "s"}
"""By the last word of a summary's key."""


def figures(run: Recording) -> pl.DataFrame:
    """The summary's numbers."""
    return pl.DataFrame(list(_figures(run.summary.data())), FIGURES, orient="row")


def _figures(summary: dict[str, Any]) -> Iterator[tuple[str, str, str, str, float | None]]:
    yield from _numbers("totals", "all", summary["totals"])
    yield from _numbers("tcp_rtt", "all", {"tcp_rtt_ms": summary["tcp_rtt_ms"]})
    for kind in ("flows", "datagrams", "fetches"):
        for one in summary[kind]:
            yield from _numbers(kind.removesuffix("es") if kind == "fetches" else kind[:-1], one["id"], one)
    for name, one in summary["ping_ms"].items():
        yield from _numbers(
            "ping", name, {"rtt_ms": {key: one[key] for key in one if key != "lost"}, "lost": one["lost"]}
        )


def _numbers(
    kind: str, name: str, table: dict[str, Any], head: str = "", unit: str = ""
) -> Iterator[tuple[str, str, str, str, float | None]]:
    """Every number below `table`; the figure's name is the path to it."""
    for key, value in table.items():
        path = f"{head}.{key}" if head else key
        word = "" if key in ("n", "sent", "lost") else UNITS.get(key.rsplit("_", 1)[-1], unit)
        if isinstance(value, dict):
            yield from _numbers(kind, name, value, path, word)
        elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            yield kind, name, path, word, value


def series(run: Recording) -> pl.DataFrame:
    """The series over the whole run."""
    parts = [
        pl.DataFrame(
            {
                "kind": [kind] * one.t_s.size,
                "name": [name] * one.t_s.size,
                "t_s": one.t_s,
                "value": pl.Series(one.values, dtype=pl.Float64).fill_nan(None),
                "unit": [unit] * one.t_s.size,
            },
            SERIES,
        )
        for kind, name, unit, one in _series(run)
    ]
    return pl.concat([pl.DataFrame(schema=SERIES), *parts])


def _series(run: Recording) -> Iterator[tuple[str, str, str, Series]]:
    for flow in run.flows:
        yield "goodput", flow.name, "Mbit/s", goodput_steps(run, flow, whole(run))
        yield "tcp_rtt", flow.name, "ms", tcp_rtt_ms(run, flow)
    for ping in run.pings:
        yield "ping", ping.name, "ms", ping_ms(run, ping)
        for way, one_way in (("up", one_way_ms(run, ping, "up")), ("down", one_way_ms(run, ping, "down"))):
            if np.size(one_way.values):
                yield f"one_way_{way}", ping.name, "ms", one_way
    for stream in run.datagrams:
        yield "one_way_up", stream.name, "ms", delays_ms(run, stream)
    for client in run.fetches:
        yield "fetch", client.name, "ms", times_ms(run, client)
