# SPDX-License-Identifier: Apache-2.0
"""The bench: what it makes of what it measures, and the parts that measure; the measuring itself is `make bench`."""

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

REFERENCE = json.loads(base.REFERENCE.read_text())


@pytest.mark.parametrize("count", range(spread.LEAST, 13))
def test_the_interval_has_the_median_as_often_as_it_says_and_is_no_wider(count: int) -> None:
    """By all ways in which so many values can lie on the two sides of the median."""
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


def test_what_takes_longer_in_all_pairs_is_a_regression_and_noise_is_none() -> None:
    slower, noisy = Compare("a", [1.1, 1.2, 1.3, 1.2, 1.1, 1.2]), Compare("b", [0.9, 1.2, 1.3, 1.2, 1.1, 1.2])
    slight = Compare("c", [1.02] * 6)
    assert [one.slower for one in (slower, noisy, slight)] == [True, False, False]
    assert table.regressions("v1", [slower, noisy, slight]) == [
        "regression: a takes 1.20 times as long as v1 (1.10 to 1.30 in 6 pairs; allowed: 1.03)"
    ]


@pytest.mark.parametrize(("ratio", "status"), [(1.2, 1), (1.0, 0)])
def test_a_regression_is_the_exit_status(
    ratio: float, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(program.store, "ensure", lambda *_, **__: None)
    monkeypatch.setattr(base, "compared", lambda *_: [Compare("a", [ratio] * 6)])
    monkeypatch.setattr(figures, "rows", lambda build: [row()])
    told, aside = io.StringIO(), io.StringIO()
    options = SimpleNamespace(base="v1", only=None, build=False, quick=True, json=False)
    assert program.bench(options, Console(file=aside), Console(file=told, width=140)) == status  # type: ignore[arg-type]
    assert ("regression: a takes 1.20" in aside.getvalue()) == bool(status)
    (kept,) = (tmp_path / "runs/bench").iterdir()
    assert json.loads(kept.read_text())["base"]["ratios"]["a"]["ratio"] == ratio


def test_a_revision_that_is_not_there_is_said_and_not_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(base.NoBaseError, match="no such revision"), base.checked_out("never"):
        pass
    monkeypatch.setattr(base.shutil, "which", lambda _: None)
    with pytest.raises(base.NoBaseError, match="no git"), base.checked_out("HEAD"):
        pass


def test_the_base_is_the_newest_release_else_the_commit_of_the_reference(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(measure, "ROOT", tmp_path)
    one = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    subprocess.run([*one, "commit", "--quiet", "--allow-empty", "-m", "one"], check=True)
    assert base.default() == REFERENCE["commit"].removesuffix("-dirty")
    for tag in ("v0.9.0", "v0.10.0"):
        subprocess.run([*one, "tag", tag], check=True)
        subprocess.run([*one, "commit", "--quiet", "--allow-empty", "-m", "next"], check=True)
    subprocess.run([*one, "tag", "v0.11.0"], check=True)
    assert base.default() == "v0.10.0", "the newest is this very commit"


def row(value: float = 2.0, name: str = "a") -> Row:
    by = Measurement("one", lambda samples: samples.add(a=value))
    return Row("group", name, "ms", "what it is", by, rows.middle("a"), interval="a")


def test_a_row_that_cannot_be_measured_says_why_and_the_others_are_there() -> None:
    def fails(_: Samples) -> None:
        raise MissingError("there is no such thing", "get one")

    lacking = Row("group", "b", "ms", "what is not", Measurement("other", fails), rows.least("b"))
    wanted = [row(), lacking]
    samples = rows.carry_out([one.by for one in wanted], 3, lambda _: None)
    assert samples.of("a") == [2.0] * 3
    made = table.data(wanted, samples, 3)
    assert made["group"] == {"a": 2.0, "b": None}
    out = io.StringIO()
    table.show(made, wanted, Console(file=out, width=140))
    assert "what is not: there is no such thing" in out.getvalue()


def test_a_measurement_goes_on_until_it_is_narrow() -> None:
    by = Measurement("one", lambda samples: samples.add(a=1.0), rounds=1, until="a")
    assert rows.carry_out([by], 1, lambda _: None).of("a") == [1.0] * spread.LEAST


def test_no_figure_has_anothers_place_and_all_can_be_shown() -> None:
    made = figures.rows(build=True)
    places = [(one.group, one.name) for one in made]
    assert len(places) == len(set(places))
    out = io.StringIO()
    table.show(REFERENCE, figures.rows(), Console(file=out, width=140))
    assert "4 CUBIC, 100M" in out.getvalue()


def test_the_reference_has_every_figure() -> None:
    there = {(one.group, one.name) for one in figures.rows()}
    assert {(group, name) for group, name in there if name in REFERENCE.get(group, {})} == there


CALLS = {"call": range(1, 2), "clock": range(1, 2), "fault": range(2, 3), "fork": range(3, 6), "exec": range(5, 40)}
"""System calls of each; a child's C library makes some of its own."""


@pytest.mark.guest
@pytest.mark.parametrize("what", programs.COUNTS)
def test_a_program_does_what_is_counted(what: str, tmp_path: Path) -> None:
    """By the records' own count of its system calls."""
    root = programs.root(tmp_path)
    few, many = (
        runner.run(programs.repeated(root, what, count), tmp_path / str(count)).apps["programs"].last
        for count in (5, 25)
    )
    assert few is not None
    assert many is not None
    assert (many["calls"] - few["calls"]) / 20 in CALLS[what]


@pytest.mark.guest
def test_the_cpu_time_of_a_guest_and_its_segments_are_counted() -> None:
    done = measure.run(cases.segments(4).scenario(1))
    assert 0 < done.ready_s < done.wall_s
    assert done.cpu_s > 0
    assert done.segments == pytest.approx(95e6 / 8 / 1448, rel=0.2)
    assert done.flows == 4


@pytest.mark.guest
def test_the_parts_of_a_command_are_all_of_it() -> None:
    words = [word for setting in cases.PING for word in ("--set", setting)]
    spent, took = measure.spending(), None
    with spent as whole:
        took = measure.command(["L100M", *words, "--no-picture", "--json"])
    assert min(took.before_s, took.guest_s, took.told_s) > 0
    assert took.after_s >= 0
    assert took.all_s == pytest.approx(whole.wall_s, abs=0.3)


def test_segments_per_second_are_those_of_the_receivers_between_the_samples() -> None:
    import polars as pl

    told = pl.DataFrame(
        {
            "t_ns": [10**9, 2 * 10**9, 2 * 10**9, 4 * 10**9, 4 * 10**9],
            "stream": [0, 0, 1, 0, 1],
            "sender": [False] * 5,
            "data_segs_in": [5, 10, 100, 30, 160],
        }
    )
    assert peers.segments(told) == 190
    assert peers.segments_per_s(told, 2) == 40


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


def test_counters_count_what_children_do_and_say_where_there_are_none() -> None:
    """Page faults, which the kernel counts itself, in place of what needs a CPU's counters."""
    try:
        with machine.counted({"faults": 2}, machine.SOFTWARE) as counters:
            before = counters()["faults"]
            subprocess.run(["true"], check=True)
            assert counters()["faults"] - before > 20
    except MissingError:
        pytest.skip("perf_event_open is not permitted here")
    with pytest.raises(MissingError, match="no counters here"), machine.counted({"none": 99}):
        pass
