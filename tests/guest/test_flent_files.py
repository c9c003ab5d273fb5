# SPDX-License-Identifier: Apache-2.0
"""Each test's run as a Flent file: the same figures, the same bytes twice, and stock Flent draws it without a word.

Stock Flent is a tool beside us: it is installed into an environment of its own, in the cache.
"""

import fcntl
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hourglass.engine import paths
from hourglass.flent.write import write
from hourglass.results.series import Window, goodput_mbps
from hourglass.scenario.tests import TESTS

from .conftest import Simulate

pytestmark = pytest.mark.guest

SHORT = ("test.length=2", "test.delay=1")
TOOLS = ("flent==2.3.0", "matplotlib", "numpy")


@pytest.fixture(scope="session")
def flent() -> Path:
    """Stock Flent. Skips where it cannot be installed, but not where CI is set."""
    place = paths.cache() / "tools" / TOOLS[0]
    command = place / "bin" / "flent"
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / f"{TOOLS[0]}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not command.is_file():
            made = subprocess.run([sys.executable, "-m", "venv", str(place)], capture_output=True, text=True)
            if made.returncode == 0:
                pip = [str(place / "bin" / "pip"), "install", "--quiet", *TOOLS]
                made = subprocess.run(pip, capture_output=True, text=True)
            if made.returncode and os.environ.get("CI"):
                pytest.fail(made.stderr)
            if made.returncode:
                pytest.skip("stock Flent cannot be installed here")
    return command


@pytest.mark.parametrize("name", TESTS)
def test_the_file_says_what_the_run_says(simulate: Simulate, tmp_path: Path, flent: Path, name: str) -> None:
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
    picture = tmp_path / "default.png"
    for asked in (["-f", "summary"], ["-f", "plot", "-o", str(picture)]):
        environment = {**os.environ, "MPLBACKEND": "Agg"}
        done = subprocess.run([flent, *asked, str(place)], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr.lower()
        assert "error" not in done.stderr.lower()
    assert picture.stat().st_size > 5000
