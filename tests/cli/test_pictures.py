# SPDX-License-Identifier: Apache-2.0
"""The process that draws a run's picture while its table is computed. It never outlives the command."""

import os
import signal
import subprocess
import sys

import pytest

import hourglass
from hourglass.cli import pictures
from hourglass.cli.exit_status import guarded
from hourglass.errors import InputError
from tests.clocks import until
from tests.guest.host_state import alive


@pytest.fixture
def run(engine, tmp_path):
    return hourglass.run(engine.scenario(), tmp_path / "out")


@pytest.fixture
def _two_cpus(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


@pytest.fixture
def local_pictures(monkeypatch):
    """Return the paths of the pictures that this process drew itself."""
    paths, real = [], pictures.plots()

    class Plots:
        @staticmethod
        def timeseries(run, path):
            paths.append(path)
            real.timeseries(run, path)

    monkeypatch.setattr(pictures, "plots", lambda: Plots)
    return paths


def ends(pid):
    """Wait until a process, not our child, ends. In some containers no process waits for it then."""
    return until(lambda: not alive(pid), "it goes on")


@pytest.mark.usefixtures("_two_cpus")
def test_the_process_draws_the_same_picture_and_follows_the_directory(run, local_pictures, tmp_path):
    pictures.plots().timeseries(run, tmp_path / "ours.png")
    local_pictures.clear()
    with pictures.PictureProcess() as drawing:
        drawing.load()
        drawing.begin(run.path)
        run.path.rename(tmp_path / "renamed")
        run.relocate(tmp_path / "renamed")
        picture = drawing.finish(run)
    assert picture == tmp_path / "renamed" / "run.png"
    assert picture.read_bytes() == (tmp_path / "ours.png").read_bytes()
    assert local_pictures == []


@pytest.mark.usefixtures("_two_cpus")
@pytest.mark.parametrize("ending", ["input(); raise SystemExit(1)", "raise SystemExit(1)", "while True: pass"])
def test_a_process_that_fails_costs_no_picture(run, local_pictures, monkeypatch, ending):
    """The process fails, ends before it gets the run, or is killed."""
    argv = [sys.executable, "-c", ending]
    monkeypatch.setattr(pictures, "_start", lambda: subprocess.Popen(argv, stdin=subprocess.PIPE))
    with pictures.PictureProcess() as drawing:
        drawing.load()
        if ending.startswith("raise"):
            drawing._process.wait()
        elif ending.startswith("while"):
            drawing._process.kill()
        drawing.begin(run.path)
        assert drawing.finish(run).read_bytes().startswith(b"\x89PNG")
    assert len(local_pictures) == 1


@pytest.mark.usefixtures("_two_cpus")
def test_a_picture_that_cannot_be_written_says_why(run):
    (run.path / "run.png").mkdir()
    with pictures.PictureProcess() as drawing:
        drawing.load()
        drawing.begin(run.path)
        with pytest.raises(InputError, match=f"{run.path}/run.png.*the picture cannot be written: Is a directory"):
            drawing.finish(run)


@pytest.mark.parametrize("cpus", [1, 2])
def test_without_a_second_cpu_or_time_no_process_starts(run, local_pictures, monkeypatch, cpus):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cpus)))
    monkeypatch.setattr(pictures, "_start", lambda: pytest.fail("a process was started"))
    with pictures.PictureProcess() as drawing:
        if cpus > 1:
            drawing.begin(run.path)
        drawing.load()
        drawing.begin(run.path)
        drawing.finish(run)
    assert len(local_pictures) == 1


@pytest.mark.usefixtures("_two_cpus")
@pytest.mark.parametrize("has_begun", [False, True])
def test_every_end_of_the_block_ends_the_process(run, has_begun):
    def interrupted():
        with drawing:
            drawing.load()
            if has_begun:
                drawing.begin(run.path)
            raise KeyboardInterrupt

    drawing = pictures.PictureProcess()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert drawing._process.returncode == -signal.SIGKILL
    drawing._process = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "_start", lambda: pytest.fail("a process was started"))
        drawing.load()  # by a late thread


def test_a_killed_command_leaves_no_process():
    code = """
import os, time
from hourglass.cli import pictures
os.sched_getaffinity = lambda _: {0, 1}
with pictures.PictureProcess() as drawing:
    drawing.load()
    print(drawing._process.pid, flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as killed:
        pid = int(killed.stdout.readline())
        killed.kill()
    assert ends(pid)


def test_a_closed_pipe_leaves_the_picture(engine, tmp_path, monkeypatch):
    """`hourglass run … | head -1`."""

    def closed(*parts, **options):
        raise BrokenPipeError

    monkeypatch.setattr("hourglass.cli.output.show", closed)
    monkeypatch.setattr("os.dup2", lambda *_: None)
    assert guarded(["run", "synthetic", "--out", str(tmp_path / "out")]) == 1
    assert (tmp_path / "out/run.png").is_file()
