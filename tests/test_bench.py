# SPDX-License-Identifier: Apache-2.0
"""The bench's comparison with an earlier run; the measuring itself is `make bench`."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench import measure, programs, table
from bench.__main__ import REFERENCE
from bench.cases import CASES, NATIVE
from hourglass import runner


def figures(ours_ms: float, ns3_ms: float) -> dict[str, Any]:
    return {
        "ms_per_loaded_second": {"a": ours_ms, "b": 3.0},
        "ns3_ms_per_loaded_second": {"a": ns3_ms, "other": 1.0},
    }


def test_a_machine_that_is_half_as_fast_is_no_regression() -> None:
    then, now = figures(10, 100), figures(20, 200)
    assert table.pace(now, then) == pytest.approx(2**0.5)  # "other" takes as long as before
    then["ns3_ms_per_loaded_second"].pop("other")
    assert table.changes(now, then) == pytest.approx({"a": 1.0, "b": 0.5})


def test_more_time_than_ns3_tells_is_a_regression() -> None:
    assert table.changes(figures(15, 100), figures(10, 100))["a"] == pytest.approx(1.5)


def test_the_reference_has_every_case_and_can_be_shown() -> None:
    reference = json.loads(REFERENCE.read_text())
    assert set(reference["ms_per_loaded_second"]) == {case.name for case in CASES}
    out = io.StringIO()
    table.show(reference, reference, Console(file=out, width=120))
    assert "1.00" in out.getvalue()
    assert reference["commit"] in out.getvalue()


def test_what_programs_cost_is_told() -> None:
    reference = json.loads(REFERENCE.read_text())
    cost = {"call": 11.04, "clock": 0.16, "fault": 91.4, "fork": 1124.0, "exec": 2946.0, "iperf3": 3e5, "flow": 1e5}
    out = io.StringIO()
    table.show(reference | {"program_us": cost}, reference, Console(file=out, width=120))
    assert "11.0 us of CPU a system call, 0.2 us a look at a clock, 91 us mmap(), fault and munmap()" in out.getvalue()
    assert "1.12 ms fork() and exit, 2.95 ms with an exec(); iperf3 x 3.0 of a built-in flow" in out.getvalue()
    assert set(programs.COUNTS) | {"iperf3", "flow"} == set(cost)


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
    spent_s, segments = measure.guest_cpu_s(NATIVE.scenario(1))
    assert spent_s > 0
    assert segments == pytest.approx(95e6 / 8 / 1448, rel=0.2)
