# SPDX-License-Identifier: Apache-2.0
"""The picture of a sweep: fronts within conditions, axes that change together, values in order, numbers apart."""

import polars as pl
import pytest

from hourglass.plots import style
from hourglass.plots.sweep_overview import clusters, in_order, merged, sweep
from hourglass.studies import pareto

from .look import assert_drawn

AXES = ["testbed.shaper.0.rate", "stack.cc", "seed"]


@pytest.fixture
def table():
    """Two congestion controls on two lines. Each wins on a line; the fast line beats all settings of the slow line."""
    rows = [("10mbit", "cubic", 9.0, 50.0), ("10mbit", "bbr", 9.5, 20.0),
            ("100mbit", "cubic", 95.0, 5.0), ("100mbit", "bbr", 90.0, 9.0)]  # fmt: skip
    columns = ["testbed.shaper.0.rate", "stack.cc", "upload_mbps", "ping_icmp_p99_ms"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return frame.with_columns(seed=pl.lit(1), status=pl.lit("done"), download_mbps=pl.lit(0.0))


def test_a_line_has_its_front(table):
    points = pareto.points(table, AXES, "ping_icmp_p99_ms")
    winners = points.filter(pl.col("front")).select("testbed.shaper.0.rate", "stack.cc").rows()
    assert winners == [("10mbit", "bbr"), ("100mbit", "cubic")]


def test_without_a_choice_all_settings_have_one_front(table):
    assert pareto.conditions(["testbed.shaper.0.rate", "test.length", "seed"]) == []
    assert pareto.conditions(["scenario", "stack.cc"]) == ["scenario"]
    points = pareto.points(table.filter(pl.col("stack.cc") == "cubic"), ["testbed.shaper.0.rate"], "ping_icmp_p99_ms")
    assert points["front"].to_list() == [False, True]


def test_the_picture_is_drawn(table, tmp_path):
    points = pareto.points(table, AXES, "ping_icmp_p99_ms")
    labels = {key: points[key].to_list() for key in AXES[:2]}
    sweep("lines", points, labels, AXES[:1], pareto.THROUGHPUT, "ping_icmp_p99_ms", tmp_path / "a.png")
    assert_drawn(tmp_path / "a.png")


def test_axes_that_change_together_are_one_axis():
    assert merged({"a": ["1", "2"], "b": ["x", "x"], "c": ["1", "2"]}) == {"a\nc": ("1", "2"), "b": ("x", "x")}


@pytest.mark.parametrize(
    ("values", "ordered"),
    [
        (["bfifo limit 50000", "bfifo limit 4000000", "bfifo limit 12500"],
         ["bfifo limit 12500", "bfifo limit 50000", "bfifo limit 4000000"]),
        (["10ms", "2.5ms"], ["2.5ms", "10ms"]),
        (["500kbit", "10mbit", "1mbit"], ["500kbit", "10mbit", "1mbit"]),
        (["cubic", "bbr"], ["cubic", "bbr"]),
        (["fq 2 9", "fq 1 1"], ["fq 2 9", "fq 1 1"]),
    ],
)  # fmt: skip
def test_values_that_differ_in_a_number_are_in_its_order(values, ordered):
    assert in_order(values) == ordered


def test_numbers_of_close_points_share_a_place(tmp_path):
    with style.figure(5, 5, tmp_path / "a.png") as figure:
        axes = figure.add_subplot()
        numbers = {1: (1.0, 10.0), 2: (1.01, 10.0), 3: (9.0, 10.0)}
        axes.scatter(*zip(*numbers.values(), strict=True))
        assert clusters(axes, numbers) == [((1.0, 10.0), [1, 2]), ((9.0, 10.0), [3])]
