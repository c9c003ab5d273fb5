# SPDX-License-Identifier: Apache-2.0
"""Summaries → one tidy table: a row per cell, a column per axis, then a column per metric with its unit in the name.

Axes have the scenario's own dotted keys as names, metrics none with a dot. The same runs give the same bytes, whoever
made them and in whatever order: no wall time, no path is in the table.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from hourglass.campaign.expand import Assignment
from hourglass.campaign.file import Grid, text
from hourglass.contract.figures import Figure, figures, plain
from hourglass.contract.summary import Drops, Summary
from hourglass.files import replacing
from hourglass.results.stats import known_sum
from hourglass.results.sweeps import LABELS
from hourglass.results.traffic import KINDS as TRAFFIC

ABOUT = ("run", "status", "error")
"""Columns behind the axes: the run's folder below `runs/`, "done" or "failed", and why."""

LEFT_OUT = ("flows", "drops", "qdiscs", "links")
"""Parts of a summary of which there are sums at most: a table has a row per run."""
LEFT_OUT_BELOW = {"by_bytes", "cpu_s", "waits"}
"""Words of figures that a table has not: it has the same columns for all its runs, and nothing of the machine."""
UNITS = {
    "": "", "1/s": "per_s", "Mbit/s": "mbps", "ms": "ms", "s": "s", "%": "percent", "samples": "samples",
    "packets": "packets", "skbs": "skbs", "segments": "segments", "PPDUs": "ppdus", "MPDUs": "mpdus",
    "fetches": "fetches", "transactions": "transactions", "B": "bytes", "starts": "starts", "calls": "calls",
    "connections": "connections",
}  # fmt: skip
"""How units are written in the names of columns."""

OF_A_CC = "_goodput_mbps"
"""Ends the names of the columns of what the flows of one congestion control had together, where several compete."""

Row = dict[str, str | int | float | None]


def metrics(summary: Summary) -> Row:
    """The figures of a summary under flat names: tcp_rtt_ms.p50 → tcp_rtt_p50_ms."""
    found: Row = {"kernel": summary.kernel, "digest": summary.digest}
    found |= {
        _name(figure): figure.value
        for figure in figures(summary)
        if figure.path[0] not in LEFT_OUT and not LEFT_OUT_BELOW.intersection(figure.path)
    }
    rates = [flow.goodput_mbps for flow in summary.flows]
    found["flows"] = len(rates)
    found["retransmits_segments"] = known_sum([flow.retransmits for flow in summary.flows])
    found["slowest_flow_mbps"], found["fastest_flow_mbps"] = (min(rates), max(rates)) if rates else (None, None)
    ccs = list(dict.fromkeys(flow.cc for flow in summary.flows))
    if len(ccs) > 1:
        found |= {f"{cc}{OF_A_CC}": sum(flow.goodput_mbps for flow in summary.flows if flow.cc == cc) for cc in ccs}
    return found | _drops(summary)


def _name(figure: Figure) -> str:
    """("ping_ms", "icmp", "p50") → "ping_icmp_p50_ms": the unit comes last, unless it is the last word, or part of it;
    totals and what is sent beside flows and pings stand for themselves."""
    part, *rest = figure.path
    words = rest if part == "totals" or part in TRAFFIC else [part, *rest]
    words[0] = words[0].replace(" ", "_") if part in TRAFFIC else words[0]
    *before, last = [*map(plain, words[:-1]), words[-1]]
    unit = UNITS[figure.unit]
    return "_".join([*before, *([last] if last != "n" else []), *([unit] if not last.endswith(unit) else [])])


def _drops(summary: Summary) -> Row:
    """What all devices dropped together, by place."""
    devices = [one for found in summary.drops.values() for one in found.values()]
    return {
        f"drops_{place if place == 'qdisc_skbs' else f'{place}_packets'}": known_sum(
            [getattr(one, place) for one in devices]
        )
        for place in Drops.model_fields
    }


def build(grid: Grid, rows: Sequence[tuple[Assignment, Mapping[str, str], Row]]) -> pa.Table:
    """The table of (assignment, about, metrics), in this order. Columns stand in the order they are first seen."""
    axes = {key: _axis([row[0][key] for row in rows]) for key in grid.keys}
    about = {name: pa.array([row[1].get(name) for row in rows], pa.string()) for name in ABOUT}
    names = dict.fromkeys(name for row in rows for name in row[2])
    figures = {name: _column([row[2].get(name) for row in rows]) for name in names}
    return pa.table(axes | about | figures, metadata={LABELS: json.dumps(grid.labels)} if grid.labels else None)


def _axis(values: list[Any]) -> "pa.Array[Any]":
    """Integers, floats or booleans as they are; what is mixed or a list as text."""
    for kinds, arrow in (((bool,), pa.bool_()), ((int,), pa.int64()), ((int, float), pa.float64())):
        if all(type(value) in kinds for value in values):
            return pa.array(values, arrow)
    return pa.array([text(value) for value in values], pa.string())


def _column(values: list[Any]) -> "pa.Array[Any]":
    there = [value for value in values if value is not None]
    if any(isinstance(value, str) for value in there):
        return pa.array(values, pa.string())
    if there and all(isinstance(value, int) for value in there):
        return pa.array(values, pa.int64())
    return pa.array([None if value is None else float(value) for value in values], pa.float64())


def write(table: pa.Table, path: Path) -> None:
    """Writes the table: complete or not at all."""
    with replacing(path) as half:
        pq.write_table(table, half, compression="zstd")


def read(path: Path) -> pl.DataFrame:
    return pl.read_parquet(path)
