# SPDX-License-Identifier: Apache-2.0
"""Failures on the command line: the exit status, one message, and no remaining process or file."""

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench import programs
from hourglass import runner, scenario
from hourglass.builders import cpio, root
from hourglass.builders.kernel import registry as kernels
from hourglass.builders.tool_packages import TOOLS, WIFI_TOOLS
from hourglass.engine import engines, virtual
from hourglass.errors import GuestError
from hourglass.host import directories
from tests.clocks import HANG_S, until
from tests.engine.plans import small_plan
from tests.processes import (
    HOURGLASS,
    all_end,
    drawing_processes,
    guest_below,
    refuse_calls,
    run_hourglass,
)

from .conftest import KERNELS

pytestmark = pytest.mark.guest

SHORT = ("--set", "test.length=2", "--set", "test.delay=1", "--no-picture")
ENDLESS = ("--set", "test.length=3600")
KERNEL = "6.1"
PTRACE = 101
NOBODY = 65534
KILLS = 40
FORKS = """
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	write(1, "forks\\n", 6);
	for (;;) {
		int child = fork();

		if (!child)
			_exit(0);
		waitpid(child, 0, 0);
	}
}
"""

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can set this up")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("arguments", "quoted"),
    [
        (("L100M", "--set", "stack.cc=cubik"), ["stack.cc", "cubik", "cubic"]),
        (("L100M", "--set", "stack.qdisc=fq_cuddle"), ["stack.qdisc", "fq_cuddle", "fq_codel"]),
        (("L100M", "--set", "stack.qudisc=fq"), ["qudisc", "qdisc"]),
        (("L100M", "--set", "testbed.preset=L200M"), ["preset", "L200M"]),
        (("L100M", "--kernel", "2.6"), ["kernel", "2.6", "6.1"]),
        (("L300M",), ["L300M", "L100M"]),
        (("L100M", "--set", "test.length=-1"), ["test.length"]),
        (("L100M", "--set", "stack.qdisc=codel target soon"), ["stack.qdisc", "tc", 'Illegal "target"']),
        (("L100M", "--set", "stack.qdisc=red"), ["stack.qdisc", "Required parameter (limit, avpkt) is missing"]),
        (("L100M", "--set", "stack.sysctl.net.ipv4.tcp_no_such=1"), ["tcp_no_such"]),
        (("L100M", "--set", "stack.sysctl.net.ipv4.tcp_sack=many"), ["tcp_sack", "many"]),
        (("R100M", "--set", "testbed.link.0.loss=100%"), ["testbed.link.0.loss", "10.0.1.2"]),
        (("L100M", "--out", "file/run"), ["out", "file"]),
        (("L100M", "--out", "file"), ["out", "is a file"]),
        (("L100M", "--out", "full"), ["out", "is not a run directory"]),
    ],
)
def test_wrong_input_is_named_with_exit_status_2(tmp_path: Path, arguments: Sequence[str], quoted: list[str]) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    result = run_hourglass(tmp_path, "run", *SHORT, *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith("hourglass: error: ")
    assert result.stderr.count("error: ") == 1
    assert [word for word in quoted if word not in result.stderr] == []
    assert (tmp_path / "full" / "thesis.tex").read_text() == (tmp_path / "file").read_text() == "mine"
    assert not [name for name in names(tmp_path) if name.startswith(".")]


@pytest.mark.slow
@is_root
@pytest.mark.parametrize("size", ["64k", "1m"])
def test_a_full_disk_is_one_message(tmp_path: Path, size: str) -> None:
    """Put the run directory on a small file system that only the command can see."""
    small = tmp_path / "small"
    small.mkdir()
    mount = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size={size} none small && exec "$0" "$@"']
    if subprocess.run([*mount, "true"], cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    result = run_hourglass(tmp_path, "run", "L100M", "--no-picture", "--out", "small/run", before=mount)
    assert result.returncode == 3
    assert result.stderr.strip().splitlines()[-1].startswith("hourglass: error: no space left on the disk of ")
    assert result.stderr.count("error") == 1
    assert names(tmp_path) == ["small"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_machine_without_ptrace_is_reported(tmp_path: Path, kernel: str) -> None:
    kernels.ensure(kernel)
    result = run_hourglass(
        tmp_path, "run", "L100M", "--kernel", kernel, *SHORT, prepare=lambda: refuse_calls({PTRACE: errno.EPERM})
    )
    assert result.returncode == 3
    assert (
        "this machine forbids ptrace, which the guest kernel needs; to fix: sysctl kernel.yama.ptrace_scope=1"
        in result.stderr
    )
    assert f"console log: {tmp_path}/runs/" in result.stderr


MOMENTS: dict[str, Callable[[Path], Any]] = {
    "before the guest": lambda folder: list(folder.glob(".run.*")),
    "at boot": lambda folder: list(folder.glob(".run.*/console.log")),
    "at work": lambda folder: [path for path in folder.glob(".run.*/records.arrows") if path.stat().st_size],
    "when the picture is awaited": drawing_processes,
}


def run_at(folder: Path, moment: str, *length: str) -> subprocess.Popen[str]:
    """Return a run that reached a moment; an endless one by default."""
    kernels.ensure(KERNEL)
    child = subprocess.Popen(
        [HOURGLASS, "run", "L100M", "--kernel", KERNEL, "--out", "run", *(length or ENDLESS)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # nohup ignores it, for the tests too
    )
    until(lambda: MOMENTS[moment](folder) or child.poll() is not None)
    assert child.poll() is None
    return child


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_ends_everything_at_any_moment(tmp_path: Path, moment: str, number: signal.Signals) -> None:
    child = run_at(tmp_path, moment)
    child.send_signal(number)
    _, messages = child.communicate(timeout=HANG_S)
    assert child.returncode == 130
    assert messages.strip().splitlines()[-1] == "hourglass: interrupted"
    assert "Traceback" not in messages
    all_end(tmp_path)
    assert set(names(tmp_path)) <= {"run.failed"}


@pytest.mark.parametrize("whole_group", [False, True])
def test_a_killed_guest_has_exit_status_3_and_names_its_log(tmp_path: Path, whole_group: bool) -> None:
    child = run_at(tmp_path, "at work")
    guest = guest_below(tmp_path)
    (os.killpg if whole_group else os.kill)(guest, signal.SIGKILL)
    _, messages = child.communicate(timeout=HANG_S)
    assert child.returncode == 3
    assert "the guest ended before its records were complete (killed by signal 9)" in messages
    assert f"console log: {tmp_path}/run.failed/console.log" in messages
    assert "Traceback" not in messages
    all_end(tmp_path)
    assert names(tmp_path) == ["run.failed"]


def test_a_killed_command_leaves_no_process(tmp_path: Path) -> None:
    child = run_at(tmp_path, "when the picture is awaited")
    child.kill()
    child.communicate(timeout=HANG_S)
    all_end(tmp_path)


def test_a_killed_process_that_draws_costs_no_picture(tmp_path: Path) -> None:
    child = run_at(tmp_path, "at work", "--set", "test.length=60")
    guest = guest_below(tmp_path)
    os.killpg(guest, signal.SIGSTOP)  # else a busy machine may end the run before it starts the process
    os.kill(*until(lambda: drawing_processes(tmp_path)), signal.SIGKILL)
    os.killpg(guest, signal.SIGCONT)
    printed, messages = child.communicate(timeout=HANG_S)
    assert child.returncode == 0
    assert "picture  run/run.png" in printed
    assert "Traceback" not in messages
    assert (tmp_path / "run" / "run.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_killed_at_its_start_leaves_no_process(kernel: str, tmp_path: Path) -> None:
    """In its first ms the kernel tests ptrace with a child."""
    linux = kernels.ensure(kernel).linux
    folder = tmp_path / "guest"
    folder.mkdir()
    for moment in range(150):
        null = subprocess.DEVNULL
        command = [linux, "time-travel=inf-cpu", "mem=64M"]
        guest = subprocess.Popen(command, cwd=folder, stdin=null, stdout=null, stderr=null)
        time.sleep(moment * 5e-5)
        guest.kill()
        guest.wait()
        time.sleep(0.005)
    all_end(tmp_path)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_killed_while_it_starts_a_process_leaves_none(kernel: str, tmp_path: Path) -> None:
    """The first program of the guest forks all the time. On 7.3 one kill in five left a process of the host, stopped
    for ever, before the hook `die-together` looked for the kernel."""
    linux, folder = kernels.ensure(kernel).linux, tmp_path / "guest"
    folder.mkdir()
    (tmp_path / "init.c").write_text(FORKS)
    subprocess.run(["gcc", "-static", "-Os", "-o", tmp_path / "init", tmp_path / "init.c"], check=True)
    archive = cpio.archive({"init": cpio.file((tmp_path / "init").read_bytes(), 0o755)})
    (tmp_path / "root.cpio").write_bytes(archive)
    options = ["mem=64M", f"initrd={tmp_path}/root.cpio", "rdinit=/init", "console=tty0", "con=null", "con0=null,fd:1"]
    environment = os.environ | {"GLIBC_TUNABLES": virtual.NO_RSEQ}
    for number in range(KILLS):
        command, null = [linux, "time-travel=inf-cpu", *options], subprocess.DEVNULL
        with subprocess.Popen(command, cwd=folder, env=environment, stdin=null, stdout=subprocess.PIPE) as guest:
            assert guest.stdout is not None
            assert any(b"forks" in line for line in guest.stdout)
            time.sleep(number * 5e-4)
            guest.kill()
    all_end(tmp_path)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_stopped_guest_continues_with_its_processes(kernel: str, tmp_path: Path) -> None:
    """A batch system may suspend its jobs. The guest's process calls the kernel all the time."""
    kernels.ensure(kernel)
    data = programs.repeated(programs.root(tmp_path), "call", 60_000).model_dump(mode="json", exclude_defaults=True)
    (tmp_path / "calls.json").write_text(json.dumps(data | {"kernel": kernel}))
    command = [HOURGLASS, "run", "calls.json", "--no-picture", "--out"]
    digests = []
    for name, times in (("left", 0), ("stopped", 25)):
        child = subprocess.Popen([*command, name], cwd=tmp_path, stdout=subprocess.DEVNULL)
        guest = guest_below(tmp_path)
        time.sleep(0.2)
        with contextlib.suppress(ProcessLookupError):  # a fast machine ends earlier
            for _ in range(times):
                for number in (signal.SIGSTOP, signal.SIGCONT):
                    os.killpg(guest, number)
                    time.sleep(0.005)
        assert child.wait(HANG_S) == 0
        digests.append(json.loads((tmp_path / name / "run.json").read_text())["digest"])
    assert digests[0] == digests[1]


@pytest.mark.parametrize("wifi", [False, True])
def test_the_guest_s_root_has_only_the_agent_and_the_tools(wifi: bool) -> None:
    members = root.members(wifi)
    tools = {f"usr/sbin/{tool}" for tool in (TOOLS | WIFI_TOOLS if wifi else TOOLS)}
    prefixes = ("usr/lib/", "usr/lib64", "etc/iproute2/", "etc/ld.so.cache", "dev/", "etc/passwd", "etc/group")
    plain = {
        *(["var", "var/run"] if wifi else []),
        "init",
        "bin",
        "sbin",
        "lib",
        "lib64",
        "usr/bin",
        "usr/sbin",
        "proc",
        "sys",
        "dev",
        "run",
        "tmp",
        "out",
    }
    assert [name for name in members if name not in tools | plain and not name.startswith(prefixes)] == []
    libraries = [name for name in members if ".so" in name]
    assert 0 < len(libraries) < 20


def test_the_guest_cannot_leave_the_run_directory(tmp_path: Path) -> None:
    """Its command line gives the guest only one folder of the host, and `..` of it is the guest's root."""
    kernel = kernels.ensure(KERNEL)
    told_paths = [word for word in virtual.command(kernel, 1)[1:] if "/" in word]
    assert told_paths == [
        f"initrd={virtual.PRIVATE}/root.cpio",
        "hostfs=/proc/self/cwd",
        f"uml_dir={virtual.PRIVATE}/",
        "rdinit=/init",
        "/out/plan.json",
        "/out/records.arrows",
    ]
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "link").symlink_to(victim)
    for path in ("/out/../victim", f"/out/..{victim}", str(victim), "/out/link"):
        step = {"do": "write", "node": None, "path": path, "value": "yours", "origin": None}
        with pytest.raises(GuestError, match="No such file"):
            virtual.Virtual(kernel).run(small_plan(setup=[step]), tmp_path / "run")
    assert victim.read_text() == "mine"


@pytest.mark.parametrize(
    "picture",
    [
        [],
        ["--no-picture"],
    ],
)
def test_a_run_writes_only_into_its_directory(tmp_path: Path, picture: list[str]) -> None:
    kernels.ensure(KERNEL)
    folders = {name: tmp_path / name for name in ("HOME", "TMPDIR", "here")}
    for folder in folders.values():
        folder.mkdir()
    result = run_hourglass(
        folders["here"], "run", "L100M", "--out", "run", "--set", "test.length=1", "--set", "test.delay=1", *picture,
        HOME=str(folders["HOME"]), TMPDIR=str(folders["TMPDIR"]), HOURGLASS_CACHE=str(directories.cache()),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert names(folders["here"]) == ["run"]
    files = ["console.log", "plan.json", "records.arrows", "run.json", "scenario.json", "summary.json"]
    assert names(folders["here"] / "run") == sorted(files + ([] if picture else ["run.png"]))
    assert [path for name in ("HOME", "TMPDIR") for path in folders[name].rglob("*")] == []


@pytest.mark.slow
@is_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not there")
def test_users_without_root_get_the_same_run(tmp_path: Path) -> None:
    """A user without rights has a new cache. The command may read all files, since the interpreter may be in root's
    home. The guest may not, so it must be in a folder that the user can enter."""
    kernel = kernels.ensure(KERNEL)
    sets = [f"--{kind}=-all,+dac_read_search" for kind in ("inh-caps", "ambient-caps", "bounding-set")]
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *sets]
    run = ("run", "L100M", "--json", "--out", "run", *SHORT)
    as_root = run_hourglass(tmp_path, *run)
    assert as_root.returncode == 0, as_root.stderr
    with tempfile.TemporaryDirectory() as folder:
        cache, cwd = Path(folder) / "cache", Path(folder) / "here"
        (cache / "kernels" / "names").mkdir(parents=True)
        cwd.mkdir()
        shutil.copy(directories.cache() / "kernels" / "names" / KERNEL, cache / "kernels" / "names")
        shutil.copytree(kernel.linux.parent, cache / "kernels" / kernel.linux.parent.name)
        shutil.copytree(directories.cache() / "agents", cache / "agents", ignore=lambda *_: ["target"])
        for path in (Path(folder), cwd, cache, *cache.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        environment = {"HOURGLASS_CACHE": str(cache), "HOME": str(cwd), "PYTHONDONTWRITEBYTECODE": "1"}
        as_user = run_hourglass(cwd, *run, before=user, **environment)
        assert as_user.returncode == 0, as_user.stderr
        assert {path.stat().st_uid for path in (cwd / "run").iterdir()} == {NOBODY}
        assert (cwd / "run" / "records.arrows").read_bytes() == (tmp_path / "run" / "records.arrows").read_bytes()
        refused = run_hourglass(
            cwd, "run", "L100M", "--out", str(tmp_path / "mine"), *SHORT, before=user, **environment
        )
    assert refused.returncode == 2
    assert (
        refused.stderr == f"hourglass: error: out = '{tmp_path}/mine': the run cannot be written: Permission denied\n"
    )


def test_imports_that_python_refuses_at_its_end_print_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread imports what the run's end needs. If the guest fails first, Python ends during these imports."""
    printed: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", printed.append)
    began = threading.Event()

    def refused() -> None:
        began.set()
        raise RuntimeError("can't register atexit after shutdown")

    loaded = scenario.load("L100M", ["test.length=1", "test.delay=0"])
    prepared = runner.prepare(loaded, engines.DEFAULT, runner.SilentRunProgress())
    runner.make(prepared, tmp_path / "run", preload=refused)
    assert began.wait(HANG_S)
    assert printed == []
