# SPDX-License-Identifier: Apache-2.0
"""Summaries → rows → Parquet, and the Pareto front."""

from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from hourglass.contract.summary import Summary
from hourglass.results.run_directory import open_run
from hourglass.studies import pareto, table
from hourglass.studies.grid import Grid
from studies.grids import grid_of
from tests.clocks import limited_cpu
from tests.results import synthetic


def summary(tmp_path: Path) -> Summary:
    return open_run(synthetic.make(tmp_path / "run")).summary


def test_metrics_are_flat_with_their_units(tmp_path: Path) -> None:
    figures = table.metrics(summary(tmp_path))
    assert figures["upload_mbps"] == 8
    assert figures["ping_icmp_p50_ms"] == 1
    assert figures["ping_icmp_lost_packets"] == 0
    assert figures["tcp_rtt_samples"] == 1001
    assert figures["drops_qdisc_packets"] == 14
    assert figures["drops_qdisc_skbs"] == 7
    assert figures["drops_nic_packets"] == 3
    assert figures["flows"] == 1
    assert "wall_s" not in figures
    assert not [name for name in figures if "." in name]


def grid(cells: int) -> Grid:
    data = {"scenario": "L100M", "axes": {"stack.tsq": ["off", "default"], "seed": {"from": 1, "to": cells // 2}}}
    return grid_of(data)


def test_five_thousand_runs_open_at_once_and_have_the_same_bytes(tmp_path: Path) -> None:
    large, figures = grid(5000), table.metrics(summary(tmp_path))
    rows = [(cell, {"run": f"{i:016x}", "status": "done"}, figures) for i, cell in enumerate(large.cells)]
    for name in ("a", "b"):
        table.write(table.build(large, rows), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with limited_cpu(1):
        opened = table.read(tmp_path / "a")
    assert opened.shape == (5000, 2 + 3 + len(figures))
    assert opened["seed"].to_list() == [cell["seed"] for cell in large.cells]


def test_a_failed_cell_is_a_row_without_figures(tmp_path: Path) -> None:
    small, figures = grid(2), table.metrics(summary(tmp_path))
    about = {"run": "0", "status": "failed", "error": "the guest stopped"}
    rows = pl.from_arrow(
        table.build(small, [(small.cells[0], about, {}), (small.cells[1], {"run": "1", "status": "done"}, figures)])
    )
    assert rows["error"].to_list() == ["the guest stopped", None]
    assert rows["upload_mbps"].to_list() == [None, 8.0]


POINT = st.tuples(st.integers(0, 6), st.integers(0, 6))


@given(st.lists(POINT, min_size=1, max_size=30))
def test_the_front_has_the_cells_that_no_cell_beats(points: list[tuple[int, int]]) -> None:
    beaten = [
        any(t >= goodput and d <= delay and (t, d) != (goodput, delay) for t, d in points) for goodput, delay in points
    ]
    throughput, latency = ([float(point[column]) for point in points] for column in (0, 1))
    assert pareto.front(throughput, latency) == [not is_beaten for is_beaten in beaten]
