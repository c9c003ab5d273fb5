# SPDX-License-Identifier: Apache-2.0
"""`hourglass agree` as a whole: runs on both sides, figures with intervals, a page. What the figures of many cases are
is for `scenarios/agree/veth.toml`, on a machine with nothing else to do."""

import json
from pathlib import Path

import pytest

from hourglass.cli.errors import guarded
from hourglass.engine.native import Native
from hourglass.errors import MissingError

pytestmark = pytest.mark.guest

SUITE = """
description = "A test's"
[tolerance]
"totals.upload_mbps" = 30.0
[[case]]
name = "twenty"
scenario = "R100M"
set = ["test.name=tcp_upload", "test.length=1", "test.delay=0.2", "testbed.shaper.0.rate=20mbit"]
"""


@pytest.fixture(scope="module", autouse=True)
def _native() -> None:
    try:
        Native.ready()
    except MissingError as reason:
        pytest.skip(f"no native runs here: {reason}")


def test_the_lab_is_held_against_this_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite, page = tmp_path / "suite.toml", tmp_path / "page.html"
    suite.write_text(SUITE, "utf-8")
    words = ["agree", str(suite), "--most", "6", "--out", str(tmp_path / "runs"), "--page", str(page), "--json"]
    status = guarded(words)
    said = json.loads(capsys.readouterr().out)
    (case,) = said["cases"]
    (row,) = case["figures"]
    assert (row["figure"], row["runs"], len(case["lab"]), len(case["real"])) == ("totals.upload_mbps", 6, 3, 6)
    assert row["interval"][0] <= row["gap"] <= row["interval"][1]
    assert status == (1 if row["verdict"] == "differs" else 0)
    text = page.read_text("utf-8")
    assert text.count("<polyline") == 2 * (3 + 6)
    assert "<script" not in text
    for run in (*case["lab"], *case["real"]):
        assert (Path(run) / "records.arrows").is_file()
