# SPDX-License-Identifier: Apache-2.0
"""The bench: its statistics and tables, and the functions that measure. `make bench` makes the measurements."""

import io
import json
import math
import os
import subprocess
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from bench import __main__ as program
from bench import base, cases, figures, machine, measure, peers, programs, rows, spread, table
from bench.base import Compare
from bench.rows import Measurement, Row, Samples
from hourglass import runner
from hourglass.errors import MissingError

pytestmark = pytest.mark.real_time

REFERENCE = json.loads(base.REFERENCE.read_text())


@pytest.mark.parametrize("count", range(spread.LEAST, 13))
def test_the_interval_has_the_median_as_often_as_it_says_and_is_no_wider(count: int) -> None:
    """Count all distributions of the values over the two sides of the median."""
    low, high = spread.interval(range(1, count + 1))
    rank = int(low)
    assert high == count + 1 - rank

    def share(rank: int) -> Fraction:
        inside = sum(rank <= sum(below) <= count - rank for below in product((0, 1), repeat=count))
        return Fraction(inside, 2**count)

    assert share(rank) >= spread.LEVEL > share(rank + 1)


def test_few_values_have_no_interval() -> None:
    assert spread.interval([1.0] * (spread.LEAST - 1)) == (-math.inf, math.inf)


def test_repeated_until_it_is_narrow_and_no_oftener_than_allowed() -> None:
    assert len(spread.narrowed(lambda number: 1.0, 0.1, 50)) == spread.LEAST
    assert len(spread.narrowed(lambda number: 1.0 + number % 2, 0.1, 9)) == 9
    settling = spread.narrowed(lambda number: 2.0 if number == 1 else 1.0, 0.1, 50)
    assert len(settling) == 9, "of nine the second greatest is the interval's end"


def test_a_slower_figure_in_all_pairs_is_a_regression_and_noise_is_none() -> None:
    slower, noisy = Compare("a", [1.1, 1.2, 1.3, 1.2, 1.1, 1.2]), Compare("b", [0.9, 1.2, 1.3, 1.2, 1.1, 1.2])
    slight = Compare("c", [1.02] * 6)
    assert [comparison.slower for comparison in (slower, noisy, slight)] == [True, False, False]
    assert table.regressions("v1", [slower, noisy, slight]) == [
        "regression: a takes 1.20 times as long as v1 (1.10 to 1.30 in 6 pairs; allowed: 1.03)"
    ]


@pytest.mark.parametrize(("ratio", "status"), [(1.2, 1), (1.0, 0)])
def test_a_regression_is_the_exit_status(
    ratio: float, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(program.registry, "ensure", lambda *_, **__: None)
    monkeypatch.setattr(base, "compared", lambda *_: [Compare("a", [ratio] * 6)])
    monkeypatch.setattr(figures, "rows", lambda build: [row()])
    output, errors = io.StringIO(), io.StringIO()
    options = SimpleNamespace(base="v1", only=None, build=False, quick=True, json=False)
    assert program.bench(options, Console(file=errors), Console(file=output, width=140)) == status  # type: ignore[arg-type]
    assert ("regression: a takes 1.20" in errors.getvalue()) == bool(status)
    (stored,) = (tmp_path / "runs/bench").iterdir()
    assert json.loads(stored.read_text())["base"]["ratios"]["a"]["ratio"] == ratio


def test_a_missing_revision_is_reported_and_not_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(base.NoBaseError, match="no such revision"), base.checked_out("never"):
        pass
    monkeypatch.setattr(base.shutil, "which", lambda _: None)
    with pytest.raises(base.NoBaseError, match="no git"), base.checked_out("HEAD"):
        pass


def test_the_base_is_the_newest_release_else_the_commit_of_the_reference(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(measure, "ROOT", tmp_path)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "one"], check=True)
    assert base.default() == REFERENCE["commit"].removesuffix("-dirty")
    for tag in ("v0.9.0", "v0.10.0"):
        subprocess.run([*git, "tag", tag], check=True)
        subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "next"], check=True)
    subprocess.run([*git, "tag", "v0.11.0"], check=True)
    assert base.default() == "v0.10.0", "the newest is this very commit"


def row(value: float = 2.0, name: str = "a") -> Row:
    measurement = Measurement("one", lambda samples: samples.add(a=value))
    return Row("group", name, "ms", "what it is", measurement, rows.middle("a"), interval="a")


def test_a_row_without_a_measurement_has_a_reason_and_the_others_remain() -> None:
    def fails(_: Samples) -> None:
        raise MissingError("there is no such thing", "get one")

    unmeasurable = Row("group", "b", "ms", "what is not", Measurement("other", fails), rows.least("b"))
    selection = [row(), unmeasurable]
    samples = rows.carry_out([entry.by for entry in selection], 3, lambda _: None)
    assert samples.of("a") == [2.0] * 3
    values = table.data(selection, samples, 3)
    assert values["group"] == {"a": 2.0, "b": None}
    out = io.StringIO()
    table.show(values, selection, Console(file=out, width=140))
    assert "what is not: there is no such thing" in out.getvalue()


def test_a_measurement_goes_on_until_it_is_narrow() -> None:
    measurement = Measurement("one", lambda samples: samples.add(a=1.0), rounds=1, until="a")
    assert rows.carry_out([measurement], 1, lambda _: None).of("a") == [1.0] * spread.LEAST


def test_no_figure_has_anothers_place_and_all_can_be_shown() -> None:
    entries = figures.rows(build=True)
    keys = [(entry.group, entry.name) for entry in entries]
    assert len(keys) == len(set(keys))
    out = io.StringIO()
    table.show(REFERENCE, figures.rows(), Console(file=out, width=140))
    assert "4 CUBIC, 100M" in out.getvalue()


def test_the_reference_has_every_figure() -> None:
    keys = {(entry.group, entry.name) for entry in figures.rows()}
    assert {(group, name) for group, name in keys if name in REFERENCE.get(group, {})} == keys


CALLS = {"call": range(1, 2), "clock": range(1, 2), "fault": range(2, 3), "fork": range(3, 6), "exec": range(5, 40)}
"""System calls of each operation; a child's C library adds some."""


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.parametrize("operation", programs.COUNTS)
def test_a_program_makes_the_counted_calls(operation: str, tmp_path: Path) -> None:
    """Compare with the count of system calls in the records."""
    root = programs.root(tmp_path)
    few, many = (
        runner.run(programs.repeated(root, operation, count), tmp_path / str(count)).apps["programs"].last_start
        for count in (5, 25)
    )
    assert few is not None
    assert many is not None
    assert (many["calls"] - few["calls"]) / 20 in CALLS[operation]


@pytest.mark.guest
def test_the_cpu_time_of_a_guest_and_its_segments_are_counted() -> None:
    measurement = measure.run(cases.segments(4).scenario(1))
    assert 0 < measurement.ready_s < measurement.wall_s
    assert measurement.cpu_s > 0
    assert measurement.segments == pytest.approx(95e6 / 8 / 1448, rel=0.2)
    assert measurement.flows == 4


@pytest.mark.guest
def test_the_parts_of_a_command_are_all_of_it() -> None:
    options = [option for setting in cases.PING for option in ("--set", setting)]
    spending, command = measure.spending(), None
    with spending as total:
        command = measure.command(["L100M", *options, "--no-picture", "--json"])
    assert min(command.before_s, command.guest_s, command.output_s) > 0
    assert command.after_s >= 0
    assert 0 < command.all_s < total.wall_s + 0.01


def test_segments_per_second_are_those_of_the_receivers_between_the_samples() -> None:
    import polars as pl

    samples = pl.DataFrame(
        {
            "t_ns": [10**9, 2 * 10**9, 2 * 10**9, 4 * 10**9, 4 * 10**9],
            "stream": [0, 0, 1, 0, 1],
            "sender": [False] * 5,
            "data_segs_in": [5, 10, 100, 30, 160],
        }
    )
    assert peers.segments(samples) == 190
    assert peers.segments_per_s(samples, 2) == 40


def test_memory_is_slower_the_more_of_it_is_used() -> None:
    latency = machine.latencies_ns()
    assert list(latency) == list(machine.WORKING_SETS)
    assert 0 < latency["512 KiB"] < latency["32 MiB"] < 10_000
    assert machine.copied_gb_s() > 0.1


def test_the_time_that_others_take_of_a_cpu_is_seen() -> None:
    with peers.one_cpu(), machine.busy() as busy:
        before = busy()
        while busy() - before < 0.2:
            sum(range(100_000))
    assert len(os.sched_getaffinity(0)) >= 1


def test_counters_include_children_and_report_missing_ones() -> None:
    """Count page faults: the kernel counts them itself and needs no counters of a CPU."""
    try:
        with machine.counted({"faults": 2}, machine.SOFTWARE) as counters:
            before = counters()["faults"]
            subprocess.run(["true"], check=True)
            assert counters()["faults"] - before > 20
    except MissingError:
        pytest.skip("perf_event_open is not permitted here")
    with pytest.raises(MissingError, match="no counters here"), machine.counted({"none": 99}):
        pass
