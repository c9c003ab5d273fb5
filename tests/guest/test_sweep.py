# SPDX-License-Identifier: Apache-2.0
"""Sweeps of real short runs: killed and resumed, on a cluster that loses a worker, with runs that fail."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import hourglass
from hourglass.builders.kernel import registry as kernels
from hourglass.cli.exit_status import guarded
from hourglass.errors import InputError
from hourglass.host import sandbox
from hourglass.results.run_directory import open_run
from hourglass.studies import StudyResult, runs, study
from hourglass.studies.runs import SilentStudy
from hourglass.studies.store import Store
from tests.clocks import until
from tests.guest.host_state import alive

pytestmark = pytest.mark.guest

FILE = """
name = "short"
scenario = "L100M"
repetitions = 3
[set]
"kernel" = "6.1"
"test.name" = "ping"
"test.length" = 0.4
"test.ping_interval" = 0.1
[axes]
"stack.qdisc" = ["pfifo_fast", "fq_codel nonsense", "fq_codel"]
"""
CELLS, FAILING = 9, 3


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sweep") / "short.toml"
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def straight(file: Path) -> StudyResult:
    """Return the sweep of an undisturbed run."""
    return study(file, file.parent / "straight", jobs=2)


def test_failed_runs_store_their_log_and_do_not_stop_others(straight: StudyResult) -> None:
    assert (straight.completed, straight.failed, straight.cached) == (CELLS - FAILING, FAILING, 0)
    table = straight.table
    assert table.filter(pl.col("status") == "done")["ping_icmp_samples"].to_list() == [4] * (CELLS - FAILING)
    assert table["seed"].to_list() == [1, 2, 3] * 3
    assert len(straight.failures) == FAILING
    failure = straight.failures[0]
    assert failure.cell == "stack.qdisc=fq_codel nonsense seed=1"
    assert "nonsense" in failure.reason
    assert failure.log.is_file()
    assert table.filter(pl.col("status") == "failed")["error"][0] == failure.reason


def test_a_second_call_makes_the_failed_runs_only(file: Path, straight: StudyResult) -> None:
    before = straight.path.read_bytes()
    resumed = study(file, straight.out, jobs=2)
    assert (resumed.completed, resumed.failed, resumed.cached) == (0, FAILING, CELLS - FAILING)
    assert straight.path.read_bytes() == before


def command(file: Path, out: Path, *options: str) -> list[str]:
    return [
        sys.executable,
        "-c",
        "import hourglass.cli as c; c.main()",
        "sweep",
        str(file),
        "--out",
        str(out),
        *options,
    ]


def descendants(pid: int) -> list[int]:
    """Return the existing descendants of a process."""
    children: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            children += map(int, path.read_text().split())
    return children + [below for child in children for below in descendants(child)]


def test_killed_in_the_middle_and_resumed_it_gives_the_same_table(file: Path, straight: StudyResult) -> None:
    out = file.parent / "killed"
    child = subprocess.Popen(command(file, out, "-j", "2", "--no-picture"), stderr=subprocess.DEVNULL)
    until(lambda: child.poll() is not None or len(list(out.glob("runs/[!.]*"))) >= 3)
    assert child.poll() is None
    family = descendants(child.pid)
    assert len(family) >= 2
    child.send_signal(signal.SIGKILL)
    child.wait()
    until(lambda: not any(alive(pid) for pid in family), "workers and guests outlive their sweep")
    assert not (out / "table.parquet").exists()
    finished = len(
        [path for path in out.glob("runs/*") if path.suffix != ".failed" and (path / "summary.json").is_file()]
    )
    resumed = subprocess.run(command(file, out, "--no-picture"), capture_output=True, text=True, check=False)
    assert resumed.returncode == 3
    assert resumed.stderr.count("hourglass: failed: stack.qdisc=fq_codel nonsense") == 2 * FAILING
    assert f"runs     {CELLS - FAILING - finished} made, {FAILING} failed, {finished} cached" in resumed.stdout
    assert 0 < finished < CELLS
    assert (out / "table.parquet").read_bytes() == straight.path.read_bytes()
    assert not list(out.glob("runs/.*"))


@pytest.mark.slow
def test_a_worker_that_dies_costs_a_second_attempt_only(file: Path, straight: StudyResult) -> None:
    out = file.parent / "died"
    killed = []

    class Killer(SilentStudy):
        def done(self, cell: str, failure: str | None) -> None:
            if not killed:
                killed.append(next(pid for pid in descendants(os.getpid()) if b"studies.worker" in cmdline(pid)))
                os.kill(killed[0], signal.SIGKILL)

    study(file, out, jobs=2, progress=Killer())
    assert killed
    assert (out / "table.parquet").read_bytes() == straight.path.read_bytes()


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_gives_the_same_table(file: Path, straight: StudyResult) -> None:
    distributed: Any = pytest.importorskip("distributed")
    out = file.parent / "cluster"
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        victim = cluster.workers[0]

        class Killer(SilentStudy):
            count = 0

            def done(self, cell: str, failure: str | None) -> None:
                self.count += 1
                if self.count == 2:
                    os.kill(victim.pid, signal.SIGKILL)

        killer = Killer()
        result = study(file, out, dask=cluster.scheduler_address, progress=killer)
    assert killer.count == CELLS
    assert len(result.failures) == FAILING
    assert result.path.read_bytes() == straight.path.read_bytes()
    assert result.failures[0].log.is_file()
    assert open_run(out / "runs" / result.cells[0].key).ping_rows.height > 0


@pytest.mark.slow
def test_summaries_alone_make_the_same_table_and_records_come_back(file: Path, straight: StudyResult) -> None:
    out = file.parent / "summaries"
    small = study(file, out, keep="summary")
    folder = out / "runs" / small.cells[0].key
    assert sorted(path.name for path in folder.iterdir()) == ["run.json", "scenario.json", "summary.json"]
    assert small.path.read_bytes() == straight.path.read_bytes()
    repeated = study(file, out, keep="records")
    assert (repeated.completed, repeated.failed) == (CELLS - FAILING, FAILING)
    assert open_run(folder).info.digest == open_run(straight.out / "runs" / small.cells[0].key).info.digest


def test_a_bad_value_is_said_before_anything_runs(tmp_path: Path) -> None:
    data = {"scenario": "L100M", "axes": {"stack.cc": ["cubic", "cubicle"], "seed": [1, 2]}}
    with pytest.raises(InputError, match=r"stack\.cc = 'cubicle': .*\(in stack\.cc=cubicle seed=1\)"):
        study(data, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_one_sweep_at_a_time_in_a_folder(file: Path, straight: StudyResult) -> None:
    with Store(straight.out, "records").locked(), pytest.raises(InputError, match="another study is running"):
        study(file, straight.out)


def test_another_kernel_under_the_same_name_is_refused_by_the_worker(tmp_path: Path) -> None:
    from hourglass import scenario
    from hourglass.studies.worker import make

    loaded = scenario.load("L100M", kernel="6.1")
    task = {
        "scenario": loaded.to_json().decode(),
        "engine": "virtual",
        "like": "",
        "identity": "0" * 64,
        "keep": "records",
        "sandbox": False,
    }
    assert kernels.ensure("6.1").key[:12] in str(make(task, tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_worker_requires_the_sandbox_that_its_study_requires(
    straight: StudyResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of a cluster does not have the environment of the study's process."""
    from hourglass.studies.worker import make

    monkeypatch.setattr(sandbox, "ENABLED", {sandbox.SECCOMP})
    task = runs.task(straight.cells[0], Store(tmp_path, "records"))
    with monkeypatch.context() as required:
        required.setenv(sandbox.REQUIRED, "1")
        confined = runs.task(straight.cells[0], Store(tmp_path, "records"))
    assert "a sandbox is required, and this host has seccomp" in str(make(confined, tmp_path / "run"))
    assert make(task, tmp_path / "run") is None


def test_check_makes_the_runs_of_all_seeds_in_parallel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    changes = {"kernel": "6.1", "test.name": "ping", "test.length": 0.4, "test.ping_interval": 0.1}
    command = ["check", "L100M", *(word for key, value in changes.items() for word in ("--set", f"{key}={value}"))]
    command += ["--seeds", "1-2", "-j", "2", "--bound", "ping.icmp.p99 < 1s"]
    assert guarded(command) == 0
    assert "2 bounds met" in capfd.readouterr().out
    paths = sorted(tmp_path.glob("runs/L100M-*"))
    assert [open_run(path).info.seed for path in paths] in ([1, 2], [2, 1])
    mtimes_ns = {path: path.stat().st_mtime_ns for path in paths}
    alone = hourglass.check("L100M", overrides=changes, seed=2, bounds=["ping.icmp.p99 < 1s"])[0].run
    assert alone is not None
    assert mtimes_ns == {path: path.stat().st_mtime_ns for path in sorted(tmp_path.glob("runs/L100M-*"))}
    failing = [*command, "--set", "stack.qdisc=fq_codel nonsense", "--junit", "verdicts.xml"]
    assert guarded(failing) == 3
    captured = capfd.readouterr()
    assert "0 bounds met; 2 runs failed" in captured.out
    assert captured.err.count("hourglass: error: L100M: stack.qdisc") == 2
    assert all(f'name="L100M.seed-{seed}"' in Path("verdicts.xml").read_text() for seed in (1, 2))
