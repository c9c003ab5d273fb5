# SPDX-License-Identifier: Apache-2.0
"""Runs a plan in a guest kernel in virtual time.

The guest sees three things of the host: its root archive, the run directory (as /out) and a file of memory without a
name. All paths it is given are relative to the run directory, because a kernel's command line knows no quoting. It ends
by itself when the plan ends; it is killed when it stops talking, when we die, or when the user interrupts.
"""

import contextlib
import errno
import hashlib
import json
import mmap
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fcntl import fcntl
from pathlib import Path

from hourglass.engine import cpu, process, root
from hourglass.engine.console import Console
from hourglass.engine.kernel.build import BuiltKernel
from hourglass.errors import GuestError, HourglassError, InputError, MissingError

START_NS = 1_704_067_200_000_000_000
"""The guest's clock at boot, 2024-01-01 UTC, so that no run depends on today."""

MEMORY = "2G"
"""Buffer limits and hash sizes follow it, so it is the same always; untouched memory costs nothing."""

SILENCE_S = 60.0
"""Wall seconds without an event after which the guest counts as stuck. A second of test time at 10 Gbit/s takes 3."""

FAREWELL_S = 10.0
"""Wall seconds the guest may take to power off after its last event."""

PRIVATE = ".guest"
"""The folder of the run directory that holds what only the guest's start needs; gone afterwards."""

_F_SETPIPE_SZ = 1031
_LEAST_MEMORY = 256 << 20

Report = Callable[[float, float], None]
"""Progress of a run: seconds of test time reached, and of how many."""


@dataclass(frozen=True)
class Outcome:
    """What there is to say about a complete run besides its records. `digest` is the SHA-256 of records.arrows."""

    wall_s: float
    virtual_s: float
    release: str
    digest: str
    warnings: list[str] = field(default_factory=list)


def run(
    plan_json: bytes,
    kernel: BuiltKernel,
    directory: Path,
    *,
    seed: int,
    progress: Report | None = None,
    wall_limit_s: float | None = None,
    silence_s: float = SILENCE_S,
) -> Outcome:
    """Executes a plan; writes plan.json, records.arrows and console.log into `directory`, which must exist.

    Raises InputError when a step that stems from the user's scenario failed, GuestError when the guest did,
    MissingError when this machine cannot run guests. Bounded: each second of test time has `silence_s` of wall time.
    """
    begun = time.monotonic()
    end_s = int(json.loads(plan_json)["end_ns"]) / 1e9
    log = directory / "console.log"
    private = directory / PRIVATE
    try:
        (directory / "plan.json").write_bytes(plan_json)
        (directory / "records.arrows").unlink(missing_ok=True)
        private.mkdir(exist_ok=True)
        (private / "root.cpio").symlink_to(root.image())
        with log.open("wb") as file:
            console = Console(file)
            watch = Watch(console, progress or (lambda _, __: None), end_s, silence_s, wall_limit_s)
            environment = {"TMPDIR": str(memory_folder())}
            with (
                cpu.claim() as own,
                process.group(command(kernel, seed), directory, environment, powerless=True, cpu=own) as guest,
            ):
                watch.follow(guest)
            status = guest.returncode
            console.close()
    except OSError as problem:
        if problem.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise no_space(directory) from problem
        raise
    finally:
        shutil.rmtree(private, ignore_errors=True)
    judge(console, watch.stuck, status, directory)
    with (directory / "records.arrows").open("rb") as records:
        digest = hashlib.file_digest(records, "sha256").hexdigest()
    return Outcome(time.monotonic() - begun, end_s, kernel.release, digest, console.warnings)


def command(kernel: BuiltKernel, seed: int) -> list[str]:
    """The guest's command line."""
    return [
        str(kernel.linux),
        "time-travel=inf-cpu",
        f"time-travel-start={START_NS}",
        f"mem={MEMORY}",
        f"initrd={PRIVATE}/root.cpio",
        "hostfs=/proc/self/cwd",  # whatever its name is; 6.12 wants an absolute path
        "root=98:0",  # unused; this and the console would else be appended, behind the agent's arguments
        "console=tty0",
        f"uml_dir={PRIVATE}/",
        "con=null",
        "con0=null,fd:1",
        "con1=null",
        "ssl=null",
        "quiet",
        "loglevel=5",
        "random.trust_cpu=on",
        "thash_entries=1024",
        "panic=-1",
        f"hourglass.seed={seed % 2**64}",
        "rdinit=/init",
        "--",
        "/out/plan.json",
        "/out/records.arrows",
    ]


@dataclass
class Watch:
    """Follows a guest to its end, or to the moment it counts as stuck; then `stuck` says why."""

    console: Console
    report: Report
    end_s: float
    silence_s: float
    wall_limit_s: float | None
    stuck: str | None = None

    def follow(self, guest: subprocess.Popen[bytes]) -> None:
        """Reads the console until the guest closes it or a time limit passes."""
        assert guest.stdout is not None
        pipe = guest.stdout.fileno()
        with contextlib.suppress(OSError):
            fcntl(pipe, _F_SETPIPE_SZ, 1 << 20)
        begun = heard = time.monotonic()
        while True:
            now = time.monotonic()
            self.stuck = self._limit(now - begun, now - heard)
            if self.stuck is not None:
                return
            if not select.select([pipe], [], [], 0.5)[0]:
                continue
            data = os.read(pipe, 1 << 16)
            if not data:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    guest.wait(FAREWELL_S)
                return
            if self.console.feed(data):
                heard = time.monotonic()
                self.report(min(self.console.test_ns / 1e9, self.end_s), self.end_s)

    def _limit(self, wall_s: float, silent_s: float) -> str | None:
        """Why the guest is to be stopped, if it is."""
        over = self.console.done or self.console.error is not None or self.console.panicked
        if over:
            return "did not power off" if silent_s > FAREWELL_S else None
        if self.wall_limit_s is not None and wall_s > self.wall_limit_s:
            return f"did not end within {self.wall_limit_s:g} s of wall time"
        if silent_s > self.silence_s:
            where = f"at {self.console.test_ns / 1e9:g} s of test time" if self.console.ready else "during its start"
            return f"said nothing for {self.silence_s:g} s of wall time {where}; a program may wait without sleeping"
        return None


def judge(console: Console, stuck: str | None, status: int, directory: Path) -> None:
    """Raises the error that the guest's end stands for; a run that said it is done is good."""
    log, tail = directory / "console.log", console.tail()
    if console.error is not None:
        raise step_error(console.error, directory, tail)
    if console.panicked:
        raise GuestError("the guest kernel panicked", log, tail)
    if console.done and (directory / "records.arrows").is_file():
        return
    if stuck is not None:
        raise GuestError(f"the guest {stuck}; it was stopped", log, tail)
    text = "\n".join(tail)
    if "ptrace" in text and ("not permitted" in text or "denied" in text):
        raise MissingError("this machine forbids ptrace, which the guest kernel lives on", PTRACE_REMEDY)
    how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    raise GuestError(f"the guest ended before its records were complete ({how})", log, tail)


PTRACE_REMEDY = "sysctl kernel.yama.ptrace_scope=1 (in a container: allow it SYS_PTRACE)"


def step_error(event: dict[str, object], directory: Path, tail: list[str]) -> HourglassError:
    """The agent's error: the user's if a key of the scenario is to blame, else the guest's."""
    message, line = str(event.get("message") or "unknown reason"), event.get("line")
    if "No space left on device" in message:
        return no_space(directory)
    where = "".join(
        f" {word} {event[key]}" for key, word in (("step", "in step"), ("node", "on node")) if event.get(key)
    )
    if event.get("origin") is not None:
        return InputError(str(event["origin"]), line, f"refused{where}: {message}")
    told = f": {line}" if line else ""
    return GuestError(f"the plan failed{where}{told}: {message}", directory / "console.log", tail)


def no_space(directory: Path) -> HourglassError:
    """The one message about a full disk."""
    return HourglassError(f"no space left on the disk of {directory}: the run's records could not be written")


def memory_folder() -> Path:
    """A folder for the guest's memory: with room, and where memory may be executed. Raises MissingError."""
    candidates = [Path("/dev/shm"), Path(tempfile.gettempdir()), Path("/var/tmp"), Path.home()]
    for folder in candidates:
        if folder.is_dir() and shutil.disk_usage(folder).free >= _LEAST_MEMORY and executable(folder):
            return folder
    tried = ", ".join(map(str, candidates))
    what = f"no folder for the guest's memory: it needs 256 MiB and a mount without noexec; tried {tried}"
    raise MissingError(what, "mount -o remount,exec /dev/shm, or set TMPDIR to such a folder")


def executable(folder: Path) -> bool:
    """Whether a file there can be mapped for execution."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(mmap.PAGESIZE)
            mmap.mmap(file.fileno(), mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_EXEC).close()
    except OSError:
        return False
    return True
