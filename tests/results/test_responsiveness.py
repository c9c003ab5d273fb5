# SPDX-License-Identifier: Apache-2.0
"""RPM of synthetic runs whose flows and probes have known times, and its parts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hourglass.contract.summary import ResponsivenessFigures
from hourglass.results.responsiveness import is_stable, trimmed_mean
from hourglass.results.run_directory import open_run
from hourglass.results.sections import sections

from .synthetic import MS, Flow, Recipe, S, make

PROBES = 2
"""The id of the client that probes: after the flow and the ping."""
OUTLIER = 30


def probes(loaded_ms: Callable[[float], float]) -> Callable[[Recipe], list[dict[str, Any]]]:
    """Return the table of probes: one each 100 ms, of 4 ms without load. One in 30 takes a second."""

    def table(recipe: Recipe) -> list[dict[str, Any]]:
        rows = []
        for seq in range(int(recipe.end_s * 10) - 20):
            t_s = seq / 10
            ms = loaded_ms(t_s - recipe.delay) if t_s > recipe.delay else 4
            done_ns = S if seq % OUTLIER == OUTLIER - 1 else round(ms * MS)
            rows.append({"t_ns": seq * S // 10, "stream": PROBES, "seq": seq, "bytes": 1,
                         "first_ns": done_ns, "done_ns": done_ns})  # fmt: skip
        return [{"table": "fetch", "rows": rows}]

    return table


def figures(
    path: Path, flow: Flow, loaded_ms: Callable[[float], float] = lambda t: 60, length: float = 15
) -> ResponsivenessFigures:
    """Return the figures of a run with one flow, and intervals of 1 s."""
    make(path, Recipe(flows=[flow], sizes=[1], length=length, further=probes(loaded_ms)))
    scenario = json.loads((path / "scenario.json").read_text())
    scenario["test"] |= {"name": "rpm_up", "rpm_interval": 1}
    (path / "scenario.json").write_text(json.dumps(scenario))
    summary = open_run(path).summary
    assert summary.responsiveness is not None
    assert [section.id for section in sections(summary)].count("responsiveness") == 1
    return summary.responsiveness


def test_constant_times_give_the_formula_and_the_earliest_end(tmp_path: Path) -> None:
    """Averages are complete after 4 intervals and equal after 7; four more give the responsiveness."""
    result = figures(tmp_path / "run", Flow(rtt_us=lambda t: 20_000))
    assert (result.foreign_ms, result.loaded_ms) == (30, 20), "half of 60 ms, without the outliers"
    assert (result.foreign_rpm, result.loaded_rpm, result.rpm) == (2000, 3000, 2500)
    assert result.idle_rpm == 30_000
    assert (result.saturated_s, result.stable_s) == (7, 11)
    assert (result.capacity_confidence, result.confidence) == ("high", "high")
    assert result.upload_mbps == pytest.approx(8, rel=1e-3)
    assert result.download_mbps is None
    assert result.probes == pytest.approx(40, abs=2)


def test_a_growing_goodput_is_not_saturated(tmp_path: Path) -> None:
    result = figures(tmp_path / "run", Flow(bytes_at=lambda t: int(1.3**t * 100_000), rtt_us=lambda t: 20_000))
    assert (result.saturated_s, result.stable_s) == (None, None)
    assert (result.capacity_confidence, result.confidence) == ("medium", "low")
    assert result.rpm == 2500, "of the last four intervals"


def test_growing_round_trips_are_not_stable(tmp_path: Path) -> None:
    result = figures(tmp_path / "run", Flow(rtt_us=lambda t: int(20_000 * 1.3**t)), lambda t: 60 * 1.2**t)
    assert (result.saturated_s, result.stable_s) == (7, None)
    assert (result.capacity_confidence, result.confidence) == ("high", "medium")
    assert result.rpm is not None
    assert result.rpm < 1000


def test_a_short_test_has_low_confidence(tmp_path: Path) -> None:
    result = figures(tmp_path / "run", Flow(rtt_us=lambda t: 20_000), length=3)
    assert (result.capacity_confidence, result.confidence) == ("low", "low")
    assert result.rpm == pytest.approx(2500, rel=0.02)


def test_a_test_shorter_than_an_interval_has_none(tmp_path: Path) -> None:
    make(tmp_path / "run", Recipe(flows=[Flow()], sizes=[1], length=0.8, further=probes(lambda t: 60)))
    scenario = json.loads((tmp_path / "run" / "scenario.json").read_text())
    scenario["test"] |= {"name": "rpm_up", "rpm_interval": 1}
    (tmp_path / "run" / "scenario.json").write_text(json.dumps(scenario))
    assert open_run(tmp_path / "run").summary.responsiveness is None


def test_other_tests_have_none(tmp_path: Path) -> None:
    summary = open_run(make(tmp_path / "run")).summary
    assert "responsiveness" not in summary.data()


@pytest.mark.parametrize(
    ("values", "stable"),
    [([100, 100, 100], False), ([10, 100, 102, 98, 100], True), ([100, 108, 92, 100], False), ([], False)],
)
def test_four_values_within_five_percent_are_stable(values: list[float], stable: bool) -> None:
    assert is_stable(values) == stable


def test_the_longest_twentieth_is_left_out() -> None:
    assert trimmed_mean(np.array([1000.0, *[1.0] * 19])) == 1
    assert trimmed_mean(np.array([7.0])) == 7
    assert np.isnan(trimmed_mean(np.empty(0)))
