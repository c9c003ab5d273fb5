# SPDX-License-Identifier: Apache-2.0
"""Summaries → one tidy table: a row per cell, a column per axis, then a column per metric with its unit in the name.

Axes have the scenario's own dotted keys as names, metrics none with a dot. The same runs give the same bytes, whoever
made them and in whatever order: no wall time, no path is in the table.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from hourglass.campaign.expand import Assignment
from hourglass.campaign.file import Grid, text
from hourglass.results.stats import known_sum

ABOUT = ("run", "status", "error")
"""Columns behind the axes: the run's folder below `runs/`, "done" or "failed", and why."""

UNITS = ("_ms", "_mbps")
LEFT_OUT = ("schema", "scenario", "engine", "seed", "virtual_s", "wall_s", "flows", "drops", "datagrams", "fetches")

Row = dict[str, Any]


def metrics(summary: dict[str, Any]) -> Row:
    """The figures of a summary under flat names: tcp_rtt_ms.p50 → tcp_rtt_p50_ms."""
    found: Row = {}
    for key, value in summary.items():
        if key not in LEFT_OUT:
            found |= dict(_flat((key,), value))
    for one in (*summary.get("datagrams", ()), *summary.get("fetches", ())):
        told = {key: value for key, value in one.items() if key not in ("id", "by_bytes")}
        found |= dict(_flat((one["id"].replace(" ", "_"),), told))
    flows = summary["flows"]
    found["flows"] = len(flows)
    found["retransmits_segments"] = known_sum([flow["retransmits"] for flow in flows])
    rates = [flow["goodput_mbps"] for flow in flows]
    found["slowest_flow_mbps"], found["fastest_flow_mbps"] = (min(rates), max(rates)) if rates else (None, None)
    return found | _drops(summary["drops"])


def _flat(path: tuple[str, ...], value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat((*path, key), inner)
    elif value is None or isinstance(value, int | float | str):
        yield _name(path), value


def _name(path: tuple[str, ...]) -> str:
    """("ping_ms", "icmp", "p50") → "ping_icmp_p50_ms"; counts have no unit; of "totals" only the rest."""
    words = [word for word in path if word != "totals"]
    unit = next((unit for word in words[:-1] for unit in UNITS if word.endswith(unit)), "")
    plain = [word.removesuffix(unit) if unit else word for word in words]
    counts = {"n": "_samples", "lost": "_packets"}
    if words[-1] in counts:
        return "_".join(plain[:-1] + (["lost"] if words[-1] == "lost" else [])) + counts[words[-1]]
    return "_".join(plain) + unit


def _drops(drops: dict[str, dict[str, dict[str, int]]]) -> Row:
    """Dropped packets of all devices together, by place."""
    counts = {"qdisc": 0, "nic": 0, "cable": 0}
    for devices in drops.values():
        for places in devices.values():
            for place, count in places.items():
                counts[place] = counts.get(place, 0) + count
    return {f"drops_{place}_packets": count for place, count in counts.items()}


def build(grid: Grid, rows: Sequence[tuple[Assignment, Row, Row]]) -> pa.Table:
    """The table of (assignment, about, metrics), in this order. Columns stand in the order they are first seen."""
    axes = {key: _axis([row[0][key] for row in rows]) for key in grid.keys}
    about = {name: pa.array([row[1].get(name) for row in rows], pa.string()) for name in ABOUT}
    names = dict.fromkeys(name for row in rows for name in row[2])
    figures = {name: _column([row[2].get(name) for row in rows]) for name in names}
    return pa.table(axes | about | figures)


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
    half = path.with_name(f".{path.name}.{os.getpid()}")
    pq.write_table(table, half, compression="zstd")
    half.rename(path)


def read(path: Path) -> pl.DataFrame:
    return pl.read_parquet(path)
