# SPDX-License-Identifier: Apache-2.0
"""The complete comparison of engines: runs on both sides, figures with intervals, a page. `scenarios/agree/veth.toml`
compares the figures of many cases, on an idle machine."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hourglass.cli.exit_status import guarded
from hourglass.engine.native import Native
from hourglass.errors import MissingError

pytestmark = pytest.mark.guest

STUDY = """
description = "A test's"
compare = { axis = "engine", values = ["virtual", "native"], reference = "virtual" }
seeds = { range = "1-6", until = "decided" }

[[figure]]
name = "totals.upload_mbps"
tolerance = "30%"

[[part]]
id = "twenty"
scenario = "R100M"
set = { "test.name" = "tcp_upload", "test.length" = 1, "test.delay" = 0.2, "testbed.shaper.0.rate" = "20mbit" }
"""


@pytest.fixture(scope="module", autouse=True)
def _native() -> None:
    try:
        Native.ready()
    except MissingError as reason:
        pytest.skip(f"no native runs here: {reason}")


def compare(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any], str]:
    """Run the study. Return the exit status, the JSON, and the text of stderr."""
    study, page = folder / "twenty.toml", folder / "page.html"
    study.write_text(STUDY, "utf-8")
    status = guarded(["study", str(study), "--out", str(folder / "out"), "--page", str(page), "--json"])
    printed = capsys.readouterr()
    return status, json.loads(printed.out), printed.err


@pytest.mark.kernels
def test_the_guest_is_compared_with_this_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, answer, _ = compare(tmp_path, capsys)
    (line,) = answer["lines"]
    virtual, native = line["cells"]["virtual"], line["cells"]["native"]
    assert (line["part"], line["figure"]) == ("twenty", "totals.upload_mbps")
    assert (len(virtual["runs"]), len(native["runs"])) == (3, 6)
    assert native["interval"][0] <= native["gap"] <= native["interval"][1]
    assert status == (1 if native["verdict"] == "missed" else 0)
    text = (tmp_path / "page.html").read_text("utf-8")
    (drawn,) = (json.loads(data) for data in re.findall(r'<script type="application/json">(.*?)</script>', text))
    assert [len(chart["series"]) for chart in drawn["charts"]] == [3 + 6] * 2
    for run in (*virtual["runs"], *native["runs"]):
        folder = tmp_path / "out" / run
        assert (folder / "records.arrows").is_file()
        load = json.loads((folder / "run.json").read_text("utf-8"))["host_load"]
        assert (load is None) == (run in virtual["runs"])
        assert load is None or 0 <= load["others"] <= load["busy"] <= 100
    repeated_status, repeated_answer, messages = compare(tmp_path, capsys)
    assert (repeated_status, repeated_answer) == (status, answer)
    assert "9 of 9 runs exist, 0 to make" in messages
