# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin on short runs of a real guest, in a new process as users run it, alone and with pytest-xdist."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import hourglass
from hourglass.errors import GuestError
from hourglass.host import directories
from hourglass.testing.lab import Lab, Session, folder_name
from tests.clocks import HANG_S

pytest_plugins = "pytester"

CACHE = str(directories.cache())
"""Read at import: pytester sets a new home for its tests."""

HEAVY = ("pyarrow", "polars", "numpy", "matplotlib", "pydantic", "jinja2", "typer")

SHORT = """
import pytest
from hourglass.testing import Mbit, ms

pytestmark = pytest.mark.hourglass(scenario="L100M", set=["test.length=1", "test.delay=0.2"])
"""

BOUNDED = """
testbed.preset = "L100M"
test = { name = "tcp_nup", length = 1, delay = 0.2 }
check.ping.p99 = "< 1us"
"""


@pytest.fixture
def play(pytester, monkeypatch):
    """Return a function that runs pytest on a module's tests and returns its result."""
    monkeypatch.setenv("PYTHONPATH", str(Path(hourglass.__file__).parents[1]))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("HOURGLASS_CACHE", CACHE)
    is_installed = any(entry.name == "hourglass" for entry in entry_points(group="pytest11"))

    def run(text, *options):
        pytester.makepyfile(test_lab=SHORT + text)
        plugin = () if is_installed else ("-p", "hourglass.testing.plugin")
        if "--collect-only" in options:  # loads nothing that cannot be loaded twice
            return pytester.runpytest_inprocess(*plugin, *options)
        return pytester.runpytest_subprocess(*plugin, *options, timeout=HANG_S)

    return run


def test_a_session_without_runs_imports_nothing_heavy():
    code = "import sys, hourglass.testing.plugin; print([m for m in sys.argv[1:] if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code, *HEAVY], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.guest
def test_failures_are_readable_and_their_runs_remain(play, pytester):
    stale = pytester.path / "runs/tests/test_lab.py-test_that_passes/L100M"
    stale.mkdir(parents=True)
    (stale / "run.json").touch()
    (pytester.path / "mine.toml").write_text(BOUNDED)
    result = play("""
def test_that_passes(lab):
    run = lab.run()
    assert run.ping.p50 < 80 * ms
    assert run.upload > 80 * Mbit
    assert run.drops.qdisc == 0
    assert run.recording.tcp.height > 0
    run.check("totals.fairness 0.5..1")

def test_that_fails(lab):
    assert lab.run().ping.icmp.p99 < 1 * ms

def test_of_a_file_with_bounds(lab):
    lab.run("mine.toml", stack__cc="reno").check()

@pytest.mark.hourglass(set=["stak.cc=reno"])
def test_with_a_mistake(lab):
    lab.run()
""")
    result.assert_outcomes(passed=1, failed=3)
    lines = result.outlines
    (failure,) = (line for line in lines if "ping.icmp.p99 is" in line and line.startswith("E "))
    assert failure.split()[-3:] == ["<", "1", "ms"]
    failed_run = "runs/tests/test_lab.py-test_that_fails/L100M"
    assert f"E         look at it: hourglass report {failed_run}" in lines
    assert any(line.startswith(f"{failed_run}  (L100M, Linux") for line in lines)
    assert any('Did you mean "stack"?' in line for line in lines)
    assert "E       AssertionError: 2 of 2 bounds missed" in lines
    assert hourglass.load(pytester.path / failed_run).summary.totals.upload_mbps > 80
    bounded = pytester.path / "runs/tests/test_lab.py-test_of_a_file_with_bounds/mine"
    assert [check.ok for check in hourglass.load(bounded).summary.checks] == [False, False]
    assert sorted(path.name for path in (pytester.path / "runs/tests").iterdir()) == [
        "test_lab.py-test_of_a_file_with_bounds",
        "test_lab.py-test_that_fails",
    ]
    assert not any("measured.py" in line or ("lab.py:" in line and "test_lab.py:" not in line) for line in lines)


@pytest.mark.slow
@pytest.mark.guest
def test_workers_share_runs_and_the_next_session_finds_them(play, pytester):
    tests = """
@pytest.mark.parametrize("which", range(3))
@pytest.mark.hourglass(seed=[1, 2])
def test_shared(lab, which, tmp_path):
    lab.run().check("totals.upload_mbps > 80mbit")
"""
    inodes = []
    for options in (("-n2",), ()):
        play(tests, "--hourglass-cache", *options).assert_outcomes(passed=6)
        runs = pytester.path / ".pytest_cache/d/hourglass"
        folders = [path for path in runs.iterdir() if path.is_dir()]
        assert len(folders) == 2
        inodes.append(sorted((path / "records.arrows").stat().st_ino for path in folders))
    assert inodes[0] == inodes[1]
    assert not (pytester.path / "runs").exists()


def test_kernels_and_seeds_are_separate_tests(play):
    tests = """
@pytest.mark.hourglass(kernel=["6.1", "6.12"], seed=range(2))
def test_each(lab): ...

def test_plain(lab): ...

def test_of_none(tmp_path): ...
"""
    plain = play(tests, "--collect-only", "-q").outlines
    expected = [f"test_each[{kernel}-seed{seed}]" for kernel in ("6.1", "6.12") for seed in (0, 1)]
    assert [line.split("::")[1] for line in plain if "::" in line] == [*expected, "test_plain", "test_of_none"]
    chosen = play(tests, "--collect-only", "-q", "--hourglass-kernel=5.10").outlines
    assert [line.split("::")[1] for line in chosen if "::" in line] == [
        "test_each[seed0]", "test_each[seed1]", "test_plain", "test_of_none"]  # fmt: skip
    both = play(tests, "--collect-only", "-q", "--hourglass-kernel=5.10", "--hourglass-kernel=6.1").outlines
    assert "test_lab.py::test_plain[5.10]" in both


def test_an_unknown_key_of_the_marker_is_refused(play):
    result = play("@pytest.mark.hourglass(kernle='6.1')\ndef test_one(lab): ...", "--collect-only")
    assert result.ret != 0
    assert (
        "the marker hourglass takes only keyword arguments: scenario, kernel, seed, engine, set" in result.stdout.str()
    )


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "all").mkdir()
    return Session(tmp_path / "all", tmp_path / "kept", "failed")


def test_the_log_of_a_failed_run_is_stored(session, tmp_path, monkeypatch):
    failed = tmp_path / "all/key.failed"
    failed.mkdir()
    (failed / "console.log").write_text("panic")

    def fail(*_):
        raise GuestError("the guest stopped", failed / "console.log", ["panic"])

    monkeypatch.setattr(Session, "recording", fail)
    with pytest.raises(GuestError) as caught:
        Lab(session, "test_a.py::test_b", tmp_path, {}).run("L100M")
    assert caught.value.log == tmp_path / "kept/test_a.py-test_b/L100M.failed/console.log"
    assert caught.value.log.read_text() == "panic"


def test_a_users_files_in_a_tests_folder_stay(session, tmp_path):
    lab = Lab(session, "test_a.py::test_b", tmp_path, {})
    (lab.stored / "thesis").mkdir(parents=True)
    lab.discard()
    assert (lab.stored / "thesis").is_dir()


@pytest.mark.parametrize(
    ("test", "name"),
    [
        ("tests/test_a.py::TestB::test_c[6.1-seed2]", "tests-test_a.py-TestB-test_c-6.1-seed2"),
        ("../x.py::test_ä/..", "x.py-test"),
    ],
)
def test_a_folder_is_named_after_its_test(test, name):
    assert folder_name(test).rstrip("_-.") == name
    assert len(folder_name("x" * 1000)) < 200
    assert folder_name("x" * 1000) != folder_name("x" * 1001)


PROGRAM = """
testbed.preset = "L100M"
app = [{ name = "client", node = "client", command = ["sh", "-c", "echo broken >&2; exit 3"] }]
"""


@pytest.mark.slow
@pytest.mark.guest
def test_a_program_that_fails_fails_the_test(pytester, play):
    (pytester.path / "own.toml").write_text(PROGRAM)
    result = play("""
pytestmark = []

def test_that_fails(lab):
    lab.run("own.toml")

def test_that_expects_it(lab):
    lab.run("own.toml", "app.0.expect=3").check()
""")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E  *app.client exit 0: -, missed: exit 3 at *; last output: broken"])
    (run_folder,) = (pytester.path / "runs/tests").glob("*/own")
    (verdict,) = hourglass.check(run_folder)
    assert [(check.figure, check.ok) for check in verdict.checks] == [("app.client", False)]
