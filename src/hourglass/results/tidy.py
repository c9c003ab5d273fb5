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

from hourglass.results.run import Run
from hourglass.results.series import Series, Window, goodput_steps, one_way_ms, ping_ms, tcp_rtt_ms
from hourglass.results.traffic import delays_ms, times_ms

FIGURES = {"kind": pl.String, "name": pl.String, "figure": pl.String, "unit": pl.String, "value": pl.Float64}
SERIES = {"kind": pl.String, "name": pl.String, "t_s": pl.Float64, "value": pl.Float64, "unit": pl.String}

UNITS = {"mbps": "Mbit/s", "ms": "ms", "s": "s"}
"""By the last word of a summary's key."""


def figures(run: Run) -> pl.DataFrame:
    """The summary's numbers."""
    return pl.DataFrame(list(_figures(run.summary)), FIGURES, orient="row")


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


def series(run: Run) -> pl.DataFrame:
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


def _series(run: Run) -> Iterator[tuple[str, str, str, Series]]:
    whole = Window(0, int(run.plan["end_ns"]))
    for flow in run.plan["flows"]:
        yield "goodput", flow["name"], "Mbit/s", goodput_steps(run, flow, whole)
        yield "tcp_rtt", flow["name"], "ms", tcp_rtt_ms(run, flow["id"])
    for probe in run.plan["probes"]:
        yield "ping", probe["name"], "ms", ping_ms(run, probe["id"])
        for way in ("up", "down"):
            one_way = one_way_ms(run, probe["id"], way)
            if np.size(one_way.values):
                yield f"one_way_{way}", probe["name"], "ms", one_way
    for stream in run.plan.get("datagrams", []):
        yield "one_way_up", stream["name"], "ms", delays_ms(run, stream["id"])
    for client in run.plan.get("fetches", []):
        yield "fetch", client["name"], "ms", times_ms(run, client["id"])
