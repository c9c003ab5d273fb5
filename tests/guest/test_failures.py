# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it when something is wrong: the exit status, one message, nothing left behind."""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench import programs
from hourglass.engine import paths, root, virtual
from hourglass.engine.kernel import store as kernels
from hourglass.engine.tree import TOOLS, WIFI_TOOLS
from hourglass.errors import GuestError
from tests.engine.plans import small_plan

from .conftest import KERNELS

pytestmark = pytest.mark.guest

HOURGLASS = Path(sys.executable).with_name("hourglass")
SHORT = ("--set", "test.length=2", "--set", "test.delay=1", "--no-picture")
ENDLESS = ("--set", "test.length=3600")
KERNEL = "6.1"
NOBODY = 65534

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can set this up")


def told(
    place: Path, *arguments: str, before: Sequence[str] = (), prepare: Callable[[], None] | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    """The command line's answer, given in a folder; no process of it may be left there."""
    done = subprocess.run(
        [*before, str(HOURGLASS), *arguments],
        cwd=place,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=prepare,
    )
    assert "Traceback" not in done.stdout + done.stderr
    assert gone(place)
    return done


def living(place: Path) -> list[int]:
    """The processes that run in a folder or below it, as the guest's all do."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str((process / "cwd").readlink()).startswith(f"{place}/"):
                found.append(int(process.name))
        except OSError:
            continue
    return sorted(found)


def soon(true: Callable[[], Any], within_s: float = 20.0) -> bool:
    end = time.monotonic() + within_s
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(true())


def drawing(place: Path) -> list[int]:
    """The processes that wait for a run to draw it, as the command they belong to in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"cli.pictures" in (process / "cmdline").read_bytes() and (process / "cwd").readlink() == place:
                found.append(int(process.name))
    return found


def gone(place: Path) -> bool:
    return soon(lambda: not living(place) and not drawing(place), 5)


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
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
        (("R100M", "--set", "testbed.link.0.loss=100%"), ["testbed", "10.0.1.2"]),
        (("L100M", "--out", "file/run"), ["out", "file"]),
        (("L100M", "--out", "file"), ["out", "is a file"]),
        (("L100M", "--out", "full"), ["out", "is not a run directory"]),
    ],
)
def test_wrong_input_is_named_and_costs_exit_status_2(
    tmp_path: Path, arguments: Sequence[str], words: list[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    done = told(tmp_path, "run", *SHORT, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith("hourglass: error: ")
    assert done.stderr.count("error: ") == 1
    assert [word for word in words if word not in done.stderr] == []
    assert (tmp_path / "full" / "thesis.tex").read_text() == (tmp_path / "file").read_text() == "mine"
    assert not [name for name in names(tmp_path) if name.startswith(".")]


@is_root
@pytest.mark.parametrize("size", ["64k", "1m"])
def test_a_full_disk_is_one_message(tmp_path: Path, size: str) -> None:
    """The run directory on a small file system, seen by the command alone."""
    small = tmp_path / "small"
    small.mkdir()
    mount = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size={size} none small && exec "$0" "$@"']
    if subprocess.run([*mount, "true"], cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    done = told(tmp_path, "run", "L100M", "--no-picture", "--out", "small/run", before=mount)
    assert done.returncode == 3
    assert done.stderr.strip().splitlines()[-1].startswith("hourglass: error: no space left on the disk of ")
    assert done.stderr.count("error") == 1
    assert names(tmp_path) == ["small"]


def forbid_ptrace() -> None:
    """A seccomp filter that answers ptrace, number 101 of x86-64, with EPERM."""
    load, jump_equal, ret = 0x20, 0x15, 0x06
    allow, errno_eperm = 0x7FFF0000, 0x00050001
    code = [(load, 0, 0, 0), (jump_equal, 0, 1, 101), (ret, 0, 0, errno_eperm), (ret, 0, 0, allow)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
    described = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, described, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_machine_without_ptrace_says_so(tmp_path: Path, kernel: str) -> None:
    kernels.ensure(kernel)
    done = told(tmp_path, "run", "L100M", "--kernel", kernel, *SHORT, prepare=forbid_ptrace)
    assert done.returncode == 3
    assert "this machine forbids ptrace" in done.stderr
    assert virtual.PTRACE_REMEDY in done.stderr


MOMENTS: dict[str, Callable[[Path], Any]] = {
    "before the guest": lambda place: list(place.glob(".run.*")),
    "at boot": lambda place: list(place.glob(".run.*/console.log")),
    "at work": lambda place: [path for path in place.glob(".run.*/records.arrows") if path.stat().st_size],
    "when the picture is awaited": drawing,
}


def begun(place: Path, moment: str) -> subprocess.Popen[str]:
    """A run without end that has come to a moment."""
    kernels.ensure(KERNEL)
    child = subprocess.Popen(
        [HOURGLASS, "run", "L100M", "--kernel", KERNEL, "--out", "run", *ENDLESS],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert soon(lambda: MOMENTS[moment](place) or child.poll() is not None)
    assert child.poll() is None
    return child


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_ends_everything_at_any_moment(tmp_path: Path, moment: str, number: signal.Signals) -> None:
    child = begun(tmp_path, moment)
    child.send_signal(number)
    _, said = child.communicate(timeout=20)
    assert child.returncode == 130
    assert said.strip().splitlines()[-1] == "hourglass: interrupted"
    assert "Traceback" not in said
    assert gone(tmp_path)
    assert set(names(tmp_path)) <= {"run.failed"}


@pytest.mark.parametrize("whole_group", [False, True])
def test_a_killed_guest_costs_exit_status_3_and_shows_where_its_log_is(tmp_path: Path, whole_group: bool) -> None:
    child = begun(tmp_path, "at work")
    guest = next(pid for pid in living(tmp_path) if os.getsid(pid) == pid)  # the kernel leads its session
    (os.killpg if whole_group else os.kill)(guest, signal.SIGKILL)
    _, said = child.communicate(timeout=20)
    assert child.returncode == 3
    assert "the guest ended before its records were complete (killed by signal 9)" in said
    assert f"console log: {tmp_path}/run.failed/console.log" in said
    assert "Traceback" not in said
    assert gone(tmp_path)
    assert names(tmp_path) == ["run.failed"]


def test_a_killed_command_leaves_no_process(tmp_path: Path) -> None:
    child = begun(tmp_path, "when the picture is awaited")
    child.kill()
    child.communicate(timeout=20)
    assert gone(tmp_path)


def test_a_killed_process_that_draws_costs_no_picture(tmp_path: Path) -> None:
    kernels.ensure(KERNEL)
    words = (HOURGLASS, "run", "L100M", "--kernel", KERNEL, "--out", "run")
    child = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert soon(lambda: drawing(tmp_path))
    os.kill(*drawing(tmp_path), signal.SIGKILL)
    printed, said = child.communicate(timeout=60)
    assert child.returncode == 0
    assert "picture  run/run.png" in printed
    assert "Traceback" not in said
    assert (tmp_path / "run" / "run.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_that_is_killed_as_it_starts_leaves_nothing(kernel: str, tmp_path: Path) -> None:
    """In its first ms it looks by a child what ptrace can do."""
    linux = kernels.ensure(kernel).linux
    place = tmp_path / "guest"
    place.mkdir()
    for moment in range(150):
        nothing = subprocess.DEVNULL
        words = [linux, "time-travel=inf-cpu", "mem=64M"]
        guest = subprocess.Popen(words, cwd=place, stdin=nothing, stdout=nothing, stderr=nothing)
        time.sleep(moment * 5e-5)
        guest.kill()
        guest.wait()
        time.sleep(0.005)
    assert gone(tmp_path)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_guest_that_is_stopped_and_continued_with_its_processes_goes_on(kernel: str, tmp_path: Path) -> None:
    """As a queue's job that is suspended; its process calls the kernel all the while."""
    kernels.ensure(kernel)
    made = programs.repeated(programs.root(tmp_path), "call", 60_000).model_dump(mode="json", exclude_defaults=True)
    (tmp_path / "calls.json").write_text(json.dumps(made | {"kernel": kernel}))
    words = [HOURGLASS, "run", "calls.json", "--no-picture", "--out"]
    digests = []
    for name, times in (("left", 0), ("stopped", 25)):
        child = subprocess.Popen([*words, name], cwd=tmp_path, stdout=subprocess.DEVNULL)
        assert soon(lambda: living(tmp_path))
        guest = next(pid for pid in living(tmp_path) if os.getsid(pid) == pid)
        time.sleep(0.2)
        with contextlib.suppress(ProcessLookupError):  # a fast machine is done before
            for _ in range(times):
                for number in (signal.SIGSTOP, signal.SIGCONT):
                    os.killpg(guest, number)
                    time.sleep(0.005)
        assert child.wait(60) == 0
        digests.append(json.loads((tmp_path / name / "run.json").read_text())["digest"])
    assert digests[0] == digests[1]


@pytest.mark.parametrize("wifi", [False, True])
def test_the_guest_has_a_root_of_its_own_made_of_the_agent_and_the_tools(wifi: bool) -> None:
    members = root.members(wifi)
    tools = {f"usr/sbin/{tool}" for tool in (TOOLS | WIFI_TOOLS if wifi else TOOLS)}
    places = ("usr/lib/", "usr/lib64", "etc/iproute2/", "etc/ld.so.cache", "dev/", "etc/passwd", "etc/group")
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
    assert [name for name in members if name not in tools | plain and not name.startswith(places)] == []
    libraries = [name for name in members if ".so" in name]
    assert 0 < len(libraries) < 20


def test_the_guest_cannot_leave_the_run_directory(tmp_path: Path) -> None:
    """All that its command line gives it of the host is its own folder, and `..` of that is the guest's root."""
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
def test_a_run_writes_nowhere_but_where_it_should(tmp_path: Path, picture: list[str]) -> None:
    kernels.ensure(KERNEL)
    folders = {name: tmp_path / name for name in ("HOME", "TMPDIR", "here")}
    for folder in folders.values():
        folder.mkdir()
    done = told(
        folders["here"], "run", "L100M", "--out", "run", "--set", "test.length=1", "--set", "test.delay=1", *picture,
        HOME=str(folders["HOME"]), TMPDIR=str(folders["TMPDIR"]), HOURGLASS_CACHE=str(paths.cache()),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert names(folders["here"]) == ["run"]
    files = ["console.log", "plan.json", "records.arrows", "run.json", "scenario.json", "summary.json"]
    assert names(folders["here"] / "run") == sorted(files + ([] if picture else ["run.png"]))
    assert [path for name in ("HOME", "TMPDIR") for path in folders[name].rglob("*")] == []


@is_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not there")
def test_who_is_not_root_gets_the_same_run(tmp_path: Path) -> None:
    """A user without rights, with a cache of their own. The command may read all, as the interpreter may be in root's
    home; the guest may not, so it must be where the user can go."""
    kernel = kernels.ensure(KERNEL)
    sets = [f"--{which}=-all,+dac_read_search" for which in ("inh-caps", "ambient-caps", "bounding-set")]
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *sets]
    run = ("run", "L100M", "--json", "--out", "run", *SHORT)
    ours = told(tmp_path, *run)
    assert ours.returncode == 0, ours.stderr
    with tempfile.TemporaryDirectory() as folder:
        cache, here = Path(folder) / "cache", Path(folder) / "here"
        (cache / "kernels" / "names").mkdir(parents=True)
        here.mkdir()
        shutil.copy(paths.cache() / "kernels" / "names" / KERNEL, cache / "kernels" / "names")
        shutil.copytree(kernel.linux.parent, cache / "kernels" / kernel.linux.parent.name)
        shutil.copytree(paths.cache() / "agents", cache / "agents", ignore=lambda *_: ["target"])
        for path in (Path(folder), here, cache, *cache.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        environment = {"HOURGLASS_CACHE": str(cache), "HOME": str(here), "PYTHONDONTWRITEBYTECODE": "1"}
        theirs = told(here, *run, before=user, **environment)
        assert theirs.returncode == 0, theirs.stderr
        assert {path.stat().st_uid for path in (here / "run").iterdir()} == {NOBODY}
        assert (here / "run" / "records.arrows").read_bytes() == (tmp_path / "run" / "records.arrows").read_bytes()
        refused = told(here, "run", "L100M", "--out", str(tmp_path / "mine"), *SHORT, before=user, **environment)
    assert refused.returncode == 2
    assert refused.stderr == f"hourglass: error: out = '{tmp_path}/mine': cannot be written: Permission denied\n"
