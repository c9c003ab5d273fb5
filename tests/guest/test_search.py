# SPDX-License-Identifier: Apache-2.0
"""A search by the command, killed and continued: nothing is run twice, and the finding is complete."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hourglass import scenario
from tests.clocks import until

pytestmark = pytest.mark.guest
pytest.importorskip("optuna")

SCENARIO = """\
kernel = "6.1"
[testbed]
node = [{ name = "client" }, { name = "server" }]
[[testbed.link]]
ends = ["client:eth0", "server:eth0"]
delay = "10ms"
shaper = { forward = { rate = "10mbit", limit = "60KB" } }
[test]
name = "tcp_upload"
length = 1.5
delay = 0.2
[measure]
packets = 0
devices = 0
"""


@pytest.mark.slow
def test_a_killed_search_continues_and_ends_with_a_page(tmp_path: Path) -> None:
    """Reno and CUBIC lose a third of the rate to 5 % of loss; BBR does not. Four conditions in all."""
    (tmp_path / "lossy.toml").write_text(SCENARIO)
    command = [
        sys.executable, "-c", "from hourglass.cli import main; main()", "search", "lossy.toml",
        "--worst", "goodput / capacity", "--over", 'testbed.link.0.loss=["3%..9%", "0%"]', "--set", "stack.cc=reno",
        "--rivals", "stack.cc=bbr", "--tries", "4", "--shrink", "2", "--factor", "1.2",
        "--out", "out", "-j", "1", "--json",
    ]  # fmt: skip
    first = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True)
    runs = tmp_path / "out/runs"
    until(lambda: len(list(runs.glob("*/search.json"))) >= 2 or first.poll() is not None)
    assert first.poll() is None
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    before = len(list(runs.glob("*/run.json")))
    repeated = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    result = json.loads(repeated.stdout)
    assert repeated.returncode == 0, repeated.stderr
    assert before >= 2
    made_again = result["runs"] - (len(list(runs.glob("*/run.json"))) - before)
    assert made_again in (0, 1)  # the finding's, for its records
    (finding,) = result["findings"]
    assert finding["stands"]
    assert finding["lines"] <= 20
    complete = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout)
    assert complete == result | {"runs": 0}
    path = tmp_path / "out/finding-1.toml"
    scenario.load(tomllib.loads(path.read_text()))
    page = path.with_suffix(".md").read_text()
    assert "## Explanation" in page
    assert "## State of" in page
