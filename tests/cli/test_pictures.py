# SPDX-License-Identifier: Apache-2.0
"""The process that draws a run's picture while its table is made: what it draws, and that it never outlives us."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hourglass
from hourglass.cli import pictures
from hourglass.errors import InputError


@pytest.fixture
def run(engine, tmp_path):
    return hourglass.run(engine.scenario(), tmp_path / "out")


@pytest.fixture
def _two_cpus(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


@pytest.fixture
def drawn_here(monkeypatch):
    """How often we drew ourselves."""
    found, real = [], pictures.plots()

    class Plots:
        @staticmethod
        def timeseries(run, path):
            found.append(path)
            real.timeseries(run, path)

    monkeypatch.setattr(pictures, "plots", lambda: Plots)
    return found


def ends(pid):
    """Whether a process, not our child, ends soon."""
    end = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.01)
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.usefixtures("_two_cpus")
def test_the_process_draws_what_we_would_and_follows_the_directory(run, drawn_here, tmp_path):
    pictures.plots().timeseries(run, tmp_path / "ours.png")
    drawn_here.clear()
    with pictures.Beside() as drawing:
        drawing.load()
        drawing.begin(run.path)
        run.path.rename(tmp_path / "renamed")
        run.moved(tmp_path / "renamed")
        picture = drawing.finish(run)
    assert picture == tmp_path / "renamed" / "run.png"
    assert picture.read_bytes() == (tmp_path / "ours.png").read_bytes()
    assert drawn_here == []


@pytest.mark.usefixtures("_two_cpus")
@pytest.mark.parametrize("ending", ["input(); raise SystemExit(1)", "raise SystemExit(1)", "while True: pass"])
def test_a_process_that_fails_costs_no_picture(run, drawn_here, monkeypatch, ending):
    """It fails, ends before it is told, or is killed."""
    argv = [sys.executable, "-c", ending]
    monkeypatch.setattr(pictures, "_start", lambda: subprocess.Popen(argv, stdin=subprocess.PIPE))
    with pictures.Beside() as drawing:
        drawing.load()
        if ending.startswith("raise"):
            drawing._process.wait()
        elif ending.startswith("while"):
            drawing._process.kill()
        drawing.begin(run.path)
        assert drawing.finish(run).read_bytes().startswith(b"\x89PNG")
    assert len(drawn_here) == 1


@pytest.mark.usefixtures("_two_cpus")
def test_a_picture_that_cannot_be_written_says_why(run):
    (run.path / "run.png").mkdir()
    with pictures.Beside() as drawing:
        drawing.load()
        drawing.begin(run.path)
        with pytest.raises(InputError, match=f"{run.path}/run.png.*the picture cannot be written: Is a directory"):
            drawing.finish(run)


@pytest.mark.parametrize("cpus", [1, 2])
def test_without_a_cpu_or_time_there_is_no_process(run, drawn_here, monkeypatch, cpus):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cpus)))
    monkeypatch.setattr(pictures, "_start", lambda: pytest.fail("a process was started"))
    with pictures.Beside() as drawing:
        if cpus > 1:
            drawing.begin(run.path)
        drawing.load()
        drawing.begin(run.path)
        drawing.finish(run)
    assert len(drawn_here) == 1


@pytest.mark.usefixtures("_two_cpus")
@pytest.mark.parametrize("told", [False, True])
def test_whatever_ends_the_block_ends_the_process(run, told):
    def interrupted():
        with drawing:
            drawing.load()
            if told:
                drawing.begin(run.path)
            raise KeyboardInterrupt

    drawing = pictures.Beside()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert drawing._process.returncode == -signal.SIGKILL
    drawing._process = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "_start", lambda: pytest.fail("a process was started"))
        drawing.load()  # by a thread that came late


def test_who_is_killed_leaves_no_process():
    code = """
import os, time
from hourglass.cli import pictures
os.sched_getaffinity = lambda _: {0, 1}
with pictures.Beside() as drawing:
    drawing.load()
    print(drawing._process.pid, flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as killed:
        pid = int(killed.stdout.readline())
        killed.kill()
    assert ends(pid)
