# SPDX-License-Identifier: Apache-2.0
"""A small suite in the earlier format, run by `hourglass suite`: killed and resumed, judged by criteria and baselines,
with runs that fail."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import pytest

from tests.clocks import until

pytestmark = pytest.mark.guest

FILE = """
name = "small"
description = "Two short parts"
ccs = ["cubic", "bbr", "prague"]

[[part]]
id = "pings"
title = "Pings alone"
scenario = "R100M"
[part.set]
"stack.cc" = "{cc}"
"test.name" = "ping"
"test.length" = 0.4
"test.delay" = 0
[part.axes]
"testbed.link.0.delay" = ["10ms", "20ms"]
[part.quick]
"testbed.link.0.delay" = ["10ms"]
[[part.row]]
figure = "ping.icmp.min"
better = "less"
[[part.row.mark]]
keep = "< 30ms"
source = "two ways of 10 ms"
missed = "two ways of 20 ms are 40"

[[part]]
id = "flow"
title = "A flow"
scenario = "R10M"
[part.set]
"test.flow_cc" = "{cc}"
"test.upload_streams" = 1
"test.length" = 1
"test.delay" = 0.2
[part.axes]
"stack.router.qdisc" = ["pfifo limit 50"]
[[part.row]]
figure = "utilisation"
with = { mbps = 10, from = 0.5 }
[[part.row.mark]]
keep = "90%..97%"
source = "1448 of 1514 bytes are payload"
"""
RUNS = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    (folder / "small.toml").write_text(FILE, "utf-8")
    return folder


def command(folder: Path, *options: str, suite: str = "small.toml") -> list[str]:
    main = "import hourglass.cli as c; c.main()"
    return [sys.executable, "-c", main, "suite", suite, "--kernel", "6.1", *options]


def suite(folder: Path, *options: str, file: str = "small.toml") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(folder, *options, suite=file), cwd=folder, capture_output=True, text=True, check=False
    )


def status_and_json(folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    result = suite(folder, "--out", "out", "--json", *options)
    return result.returncode, json.loads(result.stdout)


@pytest.mark.slow
def test_killed_and_resumed_it_gives_the_same_page(folder: Path) -> None:
    child = subprocess.Popen(
        command(folder, "--out", "out"), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until(lambda: child.poll() is not None or len(list((folder / "out").glob("runs/[!.]*"))) >= 2)
    assert child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.wait()
    cached = len(list((folder / "out").glob("runs/[!.]*")))
    assert 0 < cached < RUNS
    resumed = suite(folder, "--out", "out")
    assert resumed.returncode == 1  # the baseline lacks the misses
    assert f"study: {cached} of {RUNS} runs exist, {RUNS - cached} to make" in resumed.stderr
    assert resumed.stderr.count("runs exist") == 1, "one count of all parts"
    straight = suite(folder, "--out", "straight", "--junit", "verdicts.xml")
    assert straight.returncode == 1
    for name in ("small.html", "small.md"):
        assert (folder / "out" / name).read_bytes() == (folder / "straight" / name).read_bytes()
    root = xml.parse(folder / "verdicts.xml").getroot()
    assert (root.get("tests"), root.get("failures")) == ("6", "2")


def test_criteria_have_verdicts_and_missing_parts_have_reasons(folder: Path) -> None:
    status, data = status_and_json(folder)
    cells = {line["setting"]: line["cells"] for line in data["lines"]}
    assert status == 1
    assert {cc: cell["verdict"] for cc, cell in cells["10ms"].items()} == {"cubic": "ok", "bbr": "ok"}
    assert {cc: cell["verdict"] for cc, cell in cells["20ms"].items()} == {"cubic": "missed", "bbr": "missed"}
    assert cells["20ms"]["cubic"]["value"] == pytest.approx(40, abs=0.5)
    assert cells["pfifo limit 50"]["cubic"]["verdict"] == "ok"
    page = (folder / "out/small.html").read_text("utf-8")
    assert "prague: not supported by this kernel" in page
    for line in data["lines"]:
        for cell in line["cells"].values():
            assert all((folder / "out" / run / "summary.json").is_file() for run in cell["runs"])
            assert f'href="{cell["runs"][0]}/scenario.json"' in page


def test_quick_is_a_part_of_the_suite(folder: Path) -> None:
    status, data = status_and_json(folder, "--quick", "--cc", "cubic")
    assert status == 0
    assert [(line["setting"], list(line["cells"])) for line in data["lines"]] == [
        ("10ms", ["cubic"]),
        ("pfifo limit 50", ["cubic"]),
    ]


@pytest.mark.slow
def test_a_baseline_has_misses_and_detects_regressions(folder: Path) -> None:
    assert status_and_json(folder, "--update-baseline", "--seeds", "7-8")[0] == 0
    path = folder / "baselines/small-6.1.json"
    status, data = status_and_json(folder)
    assert (status, data["ok"]) == (0, True)
    assert data["lines"][1]["cells"]["cubic"]["verdict"] == "missed"
    baseline = json.loads(path.read_text("utf-8"))
    line = next(id for id in baseline["lines"] if id.startswith("flow/"))
    assert {len(seeds) for cells in baseline["lines"].values() for seeds in cells.values()} == {2}
    baseline["lines"][line]["cubic"] = [120.0]
    changed = folder / "better.json"
    changed.write_text(json.dumps(baseline), "utf-8")
    status, data = status_and_json(folder, "--baseline", str(changed))
    assert status == 1
    worse = {
        (line["part"], cc): cell["reason"]
        for line in data["lines"]
        for cc, cell in line["cells"].items()
        if cell["verdict"] == "regressed"
    }
    assert worse == {("flow", "cubic"): "120 before"}
    assert 'class="regressed"' in (folder / "out/small.html").read_text("utf-8")
    refused = suite(folder, "--out", "none", "--baseline", "none.json")
    assert refused.returncode == 2
    assert "no such file" in refused.stderr
    assert not (folder / "none").exists(), "before the first run"


def test_a_run_that_fails_takes_its_cells_and_nothing_else(folder: Path) -> None:
    text = FILE.replace('["pfifo limit 50"]', '["pfifo limit 50", "pfifo nonsense"]').replace(
        'name = "small"', 'name = "bad"'
    )
    (folder / "bad.toml").write_text(text.replace("< 30ms", "< 90ms"), "utf-8")
    result = suite(folder, "--out", "out", "--json", file="bad.toml")
    assert result.returncode == 3
    data = json.loads(result.stdout)
    assert len(data["failed"]) == 2
    words = {line["setting"]: line["cells"]["cubic"]["verdict"] for line in data["lines"]}
    assert words == {"10ms": "ok", "20ms": "ok", "pfifo limit 50": "ok", "pfifo nonsense": "failed"}
    assert "hourglass: failed: " in result.stderr
    assert "nonsense" in (folder / "out/bad.html").read_text("utf-8")
