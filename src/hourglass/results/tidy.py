# SPDX-License-Identifier: Apache-2.0
"""A run as two tables that any tool reads, one value a row: its figures, and its series over time.

`figures`: `kind` (totals, flow, tcp_rtt, ping, datagram, fetch, transaction, wifi, …), `name` (of the stream, radio or
device), `figure`, `unit`, `value`: exactly the numbers of the summary. `series`: `kind`, `name`, `t_s`, `value`,
`unit`: goodput per step (at the step's end), TCP RTT samples, pings, one-way delays, fetches and transactions by the
time they began; null: lost.
"""

from collections.abc import Iterator

import polars as pl

from hourglass.contract.figures import Figure, plain
from hourglass.contract.figures import figures as all_figures
from hourglass.results.recording import Recording
from hourglass.results.series import Series, goodput_steps, one_way_ms, ping_ms, tcp_rtt_ms, whole_run
from hourglass.results.traffic import KINDS as TRAFFIC
from hourglass.results.traffic import stream_series

FIGURES = {"kind": pl.String, "name": pl.String, "figure": pl.String, "unit": pl.String, "value": pl.Float64}
SERIES = {"kind": pl.String, "name": pl.String, "t_s": pl.Float64, "value": pl.Float64, "unit": pl.String}

KINDS = {"flows": "flow"} | {part: kind.model.table for part, kind in TRAFFIC.items()}
"""The name of one row of a part."""
NAME_PARTS = {
    "totals": 0,
    "tcp_rtt_ms": 0,
    "wifi": 2,
    "drops": 2,
    "drops_by_reason": 2,
    "marks": 2,
    "ecn": 1,
    "qdiscs": 2,
    "links": 2,
    "layers_ms": 1,
}
"""How many keys of a part identify the owner of a figure, if it is not one."""
PREFIXES = {"tcp_rtt_ms": "tcp_rtt_ms.", "ping_ms": "rtt_ms."}
"""The prefix of the statistics of a whole part."""


def figures(run: Recording) -> pl.DataFrame:
    """Return the summary's numbers."""
    return pl.DataFrame([_row(figure) for figure in all_figures(run.summary)], FIGURES, orient="row")


def _row(figure: Figure) -> tuple[str, str, str, str, float | None]:
    part, *rest = figure.path
    name_parts = NAME_PARTS.get(part, 1)
    name, last = " ".join(rest[:name_parts]) or "all", ".".join(rest[name_parts:])
    head = "" if last == "lost" else PREFIXES.get(part, "")
    return KINDS.get(part, plain(part)), name, head + last, figure.unit, figure.value


def series(run: Recording) -> pl.DataFrame:
    """Return the series over the whole run."""
    parts = [
        pl.DataFrame(
            {
                "kind": [kind] * samples.t_s.size,
                "name": [name] * samples.t_s.size,
                "t_s": samples.t_s,
                "value": pl.Series(samples.values, dtype=pl.Float64).fill_nan(None),
                "unit": [unit] * samples.t_s.size,
            },
            SERIES,
        )
        for kind, name, unit, samples in _series(run)
    ]
    return pl.concat([pl.DataFrame(schema=SERIES), *parts])


def _series(run: Recording) -> Iterator[tuple[str, str, str, Series]]:
    for flow in run.flows:
        yield "goodput", flow.name, "Mbit/s", goodput_steps(run, flow, whole_run(run))
        yield "tcp_rtt", flow.name, "ms", tcp_rtt_ms(run, flow)
    for ping in run.pings:
        yield "ping", ping.name, "ms", ping_ms(run, ping)
        for direction, one_way in (("up", one_way_ms(run, ping, "up")), ("down", one_way_ms(run, ping, "down"))):
            if one_way.values.size:
                yield f"one_way_{direction}", ping.name, "ms", one_way
    for kind, by_name in stream_series(run):
        for name, series in by_name.items():
            yield kind.series_kind, name, "ms", series
