# SPDX-License-Identifier: Apache-2.0
"""What of a suite is run."""

from pathlib import Path

from hourglass.suites import file
from hourglass.suites.study import study


def test_a_part_whose_qdisc_a_kernel_has_not_is_not_run(tmp_path: Path) -> None:
    part = {
        "id": "a", "scenario": "L100M", "set": {"stack.cc": "{cc}", "stack.qdisc": "dualpi2"},
        "axes": {"test.length": [5, 10]}, "row": [{"figure": "goodput"}],
    }  # fmt: skip
    found = study(file.suite({"part": [part]}, Path("own.toml")), tmp_path, kernel="6.1")
    assert (found.runs, found.failed, found.lines) == (0, (), ())
    assert found.why == {"a": "this version has not what it needs: stack.qdisc = 'dualpi2'"}


def test_a_part_without_a_column_tells_why_each_is_left_out(tmp_path: Path) -> None:
    part = {
        "id": "a", "scenario": "L100M", "set": {"stack.cc": "{cc}"}, "axes": {"test.length": [5]},
        "row": [{"figure": "goodput"}], "without": {"bbr": "it has no PROBE_UP"},
    }  # fmt: skip
    suite = file.suite({"part": [part]}, Path("own.toml"))
    assert study(suite, tmp_path, ccs=["bbr"], kernel="6.1").why == {"a": "bbr: it has no PROBE_UP"}
