# SPDX-License-Identifier: Apache-2.0
"""The bench's comparison with an earlier run; the measuring itself is `make bench`."""

import io
import json
from typing import Any

import pytest
from rich.console import Console

from bench import measure, table
from bench.__main__ import REFERENCE
from bench.cases import CASES, NATIVE


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


@pytest.mark.guest
def test_the_cpu_time_of_a_guest_and_its_segments_are_counted() -> None:
    spent_s, segments = measure.guest_cpu_s(NATIVE.scenario(1))
    assert spent_s > 0
    assert segments == pytest.approx(95e6 / 8 / 1448, rel=0.2)
