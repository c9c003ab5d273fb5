# SPDX-License-Identifier: Apache-2.0
"""Each test's run as a Flent file: the same figures, the same bytes twice, and stock Flent draws it without a word.

Stock Flent 2.3.0 is a tool beside us (`pip install flent matplotlib` in an environment of its own, `flent` on PATH).
"""

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hourglass.flent.write import write
from hourglass.results.series import Window, goodput_mbps
from hourglass.scenario.tests import TESTS

from .conftest import Simulate

pytestmark = pytest.mark.guest

SHORT = ("test.length=2", "test.delay=1")


@pytest.mark.parametrize("name", TESTS)
def test_the_file_says_what_the_run_says(simulate: Simulate, tmp_path: Path, name: str) -> None:
    run = simulate("L100M", f"test.name={name}", *SHORT[: 1 if name == "ping" else 2])
    place = write(run, tmp_path)
    first = place.read_bytes()
    assert write(run, tmp_path).read_bytes() == first
    data = json.loads(gzip.decompress(first))
    for flow in run.plan["flows"]:
        series = TESTS[name].flow_series(flow["name"])
        whole = goodput_mbps(run, flow, Window(flow["start_ns"], flow["stop_ns"]))
        assert data["metadata"]["SERIES_META"][series]["MEAN_VALUE"] == whole > 0
        steps = [point["val"] for point in data["raw_values"][series] if "val" in point]
        assert sum(steps) / len(steps) == pytest.approx(whole)
    assert {len(values) for values in data["results"].values()} == {len(data["x_values"])}
    if flent := shutil.which("flent"):
        picture = tmp_path / "default.png"
        for asked in (["-f", "summary"], ["-f", "plot", "-o", str(picture)]):
            environment = {**os.environ, "MPLBACKEND": "Agg"}
            done = subprocess.run([flent, *asked, str(place)], capture_output=True, text=True, env=environment)
            assert done.returncode == 0, done.stderr
            assert "warning" not in done.stderr.lower()
            assert "error" not in done.stderr.lower()
        assert picture.stat().st_size > 5000
