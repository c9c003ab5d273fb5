# SPDX-License-Identifier: Apache-2.0
"""Tabulate summaries: a row per cell, a column per axis, then a column per figure with its unit in the name.

Axes are named by the scenario's dotted keys; names of figures have no dot. The same runs give the same bytes, from any
machine and in any order: the table has no wall time and no path.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from hourglass.contract.figures import Figure, figures, plain
from hourglass.contract.summary import DropFigures, Summary
from hourglass.files import replacing
from hourglass.results.stats import known_sum
from hourglass.results.sweeps import LABELS
from hourglass.results.traffic import KINDS as TRAFFIC
from hourglass.studies.axes import Assignment
from hourglass.studies.grid import Grid, text

ABOUT = ("run", "status", "error")
"""Columns after the axes: the run's folder below `runs/`, "done" or "failed", and the reason."""

LEFT_OUT = ("flows", "drops", "qdiscs", "links")
"""Parts of a summary that the table has as sums at most: it has a row per run."""
LEFT_OUT_BELOW = {"by_bytes", "cpu_s", "waits"}
"""Words of figures that the table lacks: it has the same columns for all its runs, and nothing of the machine."""
UNITS = {
    "": "", "1/s": "per_s", "Mbit/s": "mbps", "ms": "ms", "s": "s", "%": "percent", "samples": "samples",
    "packets": "packets", "skbs": "skbs", "segments": "segments", "PPDUs": "ppdus", "MPDUs": "mpdus",
    "fetches": "fetches", "transactions": "transactions", "B": "bytes", "starts": "starts", "calls": "calls",
    "connections": "connections", "1/min": "rpm", "probes": "probes", "flows": "flows",
}  # fmt: skip
"""The suffixes of columns by unit."""

OF_A_CC = "_goodput_mbps"
"""The suffix of the goodput of all flows of one congestion control, where several compete."""

Row = dict[str, str | int | float | None]


def metrics(summary: Summary) -> Row:
    """Return the figures of a summary under flat names: tcp_rtt_ms.p50 → tcp_rtt_p50_ms."""
    row: Row = {"kernel": summary.kernel, "digest": summary.digest}
    row |= {
        _name(figure): figure.value
        for figure in figures(summary)
        if figure.path[0] not in LEFT_OUT and not LEFT_OUT_BELOW.intersection(figure.path)
    }
    rates = [flow.goodput_mbps for flow in summary.flows]
    row["flows"] = len(rates)
    row["retransmits_segments"] = known_sum([flow.retransmits for flow in summary.flows])
    row["slowest_flow_mbps"], row["fastest_flow_mbps"] = (min(rates), max(rates)) if rates else (None, None)
    ccs = list(dict.fromkeys(flow.cc for flow in summary.flows))
    if len(ccs) > 1:
        row |= {f"{cc}{OF_A_CC}": sum(flow.goodput_mbps for flow in summary.flows if flow.cc == cc) for cc in ccs}
    return row | _drops(summary)


def _name(figure: Figure) -> str:
    """Return "ping_icmp_p50_ms" for ("ping_ms", "icmp", "p50"): the unit is last, unless it is part of the last word.

    Totals and traffic other than flows and pings have no prefix."""
    part, *below = figure.path
    path = below if part == "totals" or part in TRAFFIC else [part, *below]
    path[0] = path[0].replace(" ", "_") if part in TRAFFIC else path[0]
    *before, last = [*map(plain, path[:-1]), path[-1]]
    unit = UNITS[figure.unit]
    return "_".join([*before, *([last] if last != "n" else []), *([unit] if not last.endswith(unit) else [])])


def _drops(summary: Summary) -> Row:
    """Return the drops of all devices together, by layer."""
    devices = [device for node in summary.drops.values() for device in node.values()]
    return {
        f"drops_{layer if layer == 'qdisc_skbs' else f'{layer}_packets'}": known_sum(
            [getattr(device, layer) for device in devices]
        )
        for layer in DropFigures.model_fields
    }


def build(grid: Grid, rows: Sequence[tuple[Assignment, Mapping[str, str], Row]]) -> pa.Table:
    """Return the table of (assignment, about, metrics). Columns are in the order of their first occurrence."""
    axes = {key: _axis([row[0][key] for row in rows]) for key in grid.keys}
    about = {name: pa.array([row[1].get(name) for row in rows], pa.string()) for name in ABOUT}
    names = dict.fromkeys(name for row in rows for name in row[2])
    figures = {name: _column([row[2].get(name) for row in rows]) for name in names}
    return pa.table(axes | about | figures, metadata={LABELS: json.dumps(grid.labels)} if grid.labels else None)


def _axis(values: list[Any]) -> "pa.Array[Any]":
    """Return integers, floats or booleans as they are; mixed values and lists as text."""
    for kinds, arrow in (((bool,), pa.bool_()), ((int,), pa.int64()), ((int, float), pa.float64())):
        if all(type(value) in kinds for value in values):
            return pa.array(values, arrow)
    return pa.array([text(value) for value in values], pa.string())


def _column(values: list[Any]) -> "pa.Array[Any]":
    present = [value for value in values if value is not None]
    if any(isinstance(value, str) for value in present):
        return pa.array(values, pa.string())
    if present and all(isinstance(value, int) for value in present):
        return pa.array(values, pa.int64())
    return pa.array([None if value is None else float(value) for value in values], pa.float64())


def write(table: pa.Table, path: Path) -> None:
    """Write the table: complete or not at all."""
    with replacing(path) as half:
        pq.write_table(table, half, compression="zstd")


def read(path: Path) -> pl.DataFrame:
    """Read a table."""
    return pl.read_parquet(path)
