# SPDX-License-Identifier: Apache-2.0
"""Traces of delays: steps of the plan at their times."""

from pathlib import Path
from typing import Any

import pytest

from hourglass.contract.plan import WriteStep
from hourglass.errors import InputError
from hourglass.scenario import load

from .test_plan_builder import graph, writes


def test_a_trace_of_delays_is_steps_at_its_times() -> None:
    delay = [[0, "10ms"], [0.5, "12.5ms"]]
    trace = {"forward": {"delay": delay, "repeat": 1}, "reverse": {"rate": [[0, "1mbit"]], "delay": [[1, "3ms"]]}}
    plan = graph([{"ends": ["a:0", "b:0"], "trace": trace}])
    assert writes(plan, "trace") == ["rate 0\n0 1000000\n"]
    listed = [(event.at_ns, event.node, event.name, step.value) for event in plan.events[:5] for step in event.steps
              if isinstance(step, WriteStep) and step.path == "/sys/class/net/d0/wire/delay_ns"]  # fmt: skip
    assert listed == [
        (0, "a", "", "10000000"), (5 * 10**8, "a", "", "12500000"), (10**9, "a", "", "10000000"),
        (10**9, "b", "", "3000000"), (15 * 10**8, "a", "", "12500000"),
    ]  # fmt: skip
    assert plan.events[-1].at_ns < plan.end_ns


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ({"repeat": 3}, "needs either rate"),
        ({"delay": [[0, "1ms"], [2, "2ms"]], "repeat": 1}, "must not be before its last step"),
        ({"delay": [[0, "1ms"], [2, "2ms"]], "repeat": 2}, "repeat must be after the last step of delay"),
        ({"delay": [[2, "1ms"], [1, "2ms"]]}, "increasing times"),
        ({"delay": [[2, "1mbit"]]}, "a time like"),
    ],
)
def test_wrong_traces_of_delays_are_refused(trace: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        graph([{"ends": ["a:0", "b:0"], "trace": {"forward": trace}}])


def test_a_file_has_the_delays_of_a_trace(tmp_path: Path) -> None:
    (tmp_path / "delays.txt").write_text("0 20\n0.25 31.5\n")
    for key in ("testbed.link.1.trace.delay", "testbed.link.1.trace.reverse.delay"):
        trace = load("L100M", [(key, "delays.txt")], folder=tmp_path).testbed.link[1].trace
        assert trace is not None
        assert trace.reverse is not None
        assert trace.reverse.delay == ((0, 20_000_000), (0.25, 31_500_000))
    (tmp_path / "delays.txt").write_text("0 20 3\n")
    with pytest.raises(InputError, match="a line SECONDS MS each"):
        load("L100M", [("testbed.link.1.trace.delay", "delays.txt")], folder=tmp_path)
