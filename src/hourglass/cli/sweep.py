# SPDX-License-Identifier: Apache-2.0
"""`hourglass sweep`: a grid of runs → its table, printed and as Parquet, and its picture."""

import sys
from pathlib import Path
from typing import cast

import polars as pl
from rich.table import Table

from hourglass.campaign import pareto
from hourglass.campaign import sweep as conductor
from hourglass.campaign.file import text
from hourglass.campaign.store import Keep
from hourglass.campaign.sweep import Result
from hourglass.campaign.table import OF_A_CC
from hourglass.cli import output, pictures
from hourglass.cli.progress import shown
from hourglass.results.labels import short_names
from hourglass.results.stats import short

SOME_FAILED = 3
MOST_ROWS = 40
"""More settings than this are not printed; the table has them."""

COLUMNS = {
    "upload_mbps": "up Mbit/s",
    "download_mbps": "down Mbit/s",
    "tcp_rtt_p50_ms": "RTT ms",
    "ping_icmp_p50_ms": "ping p50 ms",
    "ping_icmp_p99_ms": "p99 ms",
    "fairness": "fairness",
    "upload_fairness": "fair up",
    "download_fairness": "fair down",
}
LATENCIES = ("ping_icmp_p99_ms", "ping_icmp_p50_ms", "tcp_rtt_p50_ms")


def run_sweep(
    source: Path,
    out: Path | None,
    jobs: int | None,
    dask: str | None,
    keep: str,
    engine: str,
    kernel: str | None,
    picture: bool,
) -> int:
    """Makes what is missing, prints the medians; the exit status."""
    with shown() as progress:
        result = conductor(
            source, out, jobs=jobs, dask=dask, keep=cast(Keep, keep), engine=engine, kernel=kernel, progress=progress
        )
    done = result.table.filter(pl.col("status") == "done")
    if len(done):
        output.show(medians(result, done))
    lines = ["", f"runs     {counts(result)}", f"table    {result.path}"]
    if picture and len(done):
        drawn = draw(result, done)
        lines.append(f"picture  {drawn}")
    output.show("\n".join(lines), whole_lines=True)
    for failure in result.failures:
        print(f"hourglass: failed: {failure.cell}: console log: {failure.log}", file=sys.stderr)
    return SOME_FAILED if result.failures else 0


def counts(result: Result) -> str:
    """ "2 made, 1 failed, 4 cached"."""
    failed = f"{result.failed} failed, " if result.failed else ""
    return f"{result.made} made, {failed}{result.there} cached"


def medians(result: Result, done: pl.DataFrame) -> Table | str:
    """A row per setting: medians over the seeds; * marks the Pareto front of throughput and ping p99."""
    settings = [key for key in result.grid.keys if key != "seed"]
    told = [name for name in COLUMNS if name in done.columns and (done[name].fill_null(0) != 0).any()]
    left_out = ("fairness",) if set(pareto.WAYS) <= set(told) else pareto.WAYS
    shares = {name: f"{name.removesuffix(OF_A_CC)} Mbit/s" for name in done.columns if name.endswith(OF_A_CC)}
    titles = COLUMNS | shares
    shown_columns = [*(name for name in told if name not in left_out), *shares]
    grouped = done.group_by(settings, maintain_order=True) if settings else None
    figures = [pl.col(name).median() for name in shown_columns]
    rows = grouped.agg(figures) if grouped is not None else done.select(figures)
    if len(rows) > MOST_ROWS:
        return f"{len(rows)} settings; the table holds them"
    table = output.bare()
    for name in short_names([tuple(key.split(".")) for key in settings]).values():
        table.add_column(name, overflow="fold")
    for name in shown_columns:
        table.add_column(titles[name], justify="right")
    for row in rows.iter_rows(named=True):
        names = [result.grid.label(key, row[key]) for key in settings]
        table.add_row(*names, *("-" if row[name] is None else short(row[name]) for name in shown_columns))
    return table


def draw(result: Result, done: pl.DataFrame) -> Path:
    """The picture of the whole sweep beside its table."""
    latency = next(name for name in LATENCIES if name in done.columns)
    points = pareto.points(result.table, list(result.grid.keys), latency)
    settings = [key for key in result.grid.keys if key != "seed"]
    labels = {key: [result.grid.label(key, text(value)) for value in points[key]] for key in settings}
    path = result.out / "sweep.png"
    pictures.plots().sweep(result.grid.name, points, labels, pareto.THROUGHPUT, latency, path)
    return path
