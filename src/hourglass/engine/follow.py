# SPDX-License-Identifier: Apache-2.0
"""Follows whoever executes a plan — a guest kernel or a plain process — from its start to a verdict on how it ended.

The console protocol (ARCHITECTURE.md) is all that is known of it.
"""

import contextlib
import errno
import hashlib
import math
import os
import re
import select
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fcntl import fcntl
from pathlib import Path
from threading import Thread

from hourglass.contract.plan import Plan
from hourglass.engine.base import Outcome, Preload, Report
from hourglass.engine.console import Console
from hourglass.errors import GuestError, HourglassError, InputError

FAREWELL_S = 10.0
"""Wall seconds it may take to end after its last event."""

_F_SETPIPE_SZ = 1031

_QDISC = re.compile(r"(?:root|handle \S+|parent \S+) (?!handle|parent)(\w+)")
"""The kind in a line of `tc qdisc`."""

Judge = Callable[[Console, str | None, int, Path], None]
"""Raises the error that an end stands for: of the console, why it was stopped if it was, exit status, run directory."""

Stuck = Callable[[float, float], str | None]
"""Why a child is to be ended, half a sentence about it, or None: asked with the time of our clock, and for how many
seconds the child has said nothing."""

Guard = Callable[[subprocess.Popen[bytes], Console], Stuck]
"""What watches over a child, told by its console, that it does not hang."""


def silence(longest_s: float) -> Guard:
    """Ends a child that says nothing for so many seconds of wall time: one whose own time that is."""

    def guard(_child: subprocess.Popen[bytes], console: Console) -> Stuck:
        def stuck(_wall_s: float, silent_s: float) -> str | None:
            if silent_s <= longest_s:
                return None
            return (
                f"said nothing for {longest_s:g} s of wall time {place(console)}; a program may wait without sleeping"
            )

        return stuck

    return guard


def place(console: Console) -> str:
    """How far a run is."""
    return f"at {console.test_ns / 1e9:g} s of test time" if console.ready else "during its start"


def execute(
    plan: Plan,
    directory: Path,
    executor: AbstractContextManager[subprocess.Popen[bytes]],
    judge: Judge,
    guard: Guard,
    progress: Report | None,
    preload: Preload | None,
) -> Outcome:
    """Writes plan.json, starts the executor, follows it into console.log and judges its end and its records.

    The executor reads plan.json and writes records.arrows in `directory`, which must exist.
    """
    begun = time.monotonic()
    end_s = plan.end_ns / 1e9
    log = directory / "console.log"
    try:
        (directory / "plan.json").write_bytes(plan.to_json())
        (directory / "records.arrows").unlink(missing_ok=True)
        with log.open("wb") as file:
            console = Console(file)
            watch = Watch(console, progress or (lambda _, __: None), math.inf if plan.apps_end else end_s)
            with executor as child:
                if preload is not None:
                    Thread(target=preload, daemon=True).start()
                watch.follow(child, guard(child, console))
            console.close()
    except OSError as problem:
        if problem.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise no_space(directory) from problem
        raise
    judge(console, watch.why, child.returncode, directory)
    with (directory / "records.arrows").open("rb") as records:
        digest = hashlib.file_digest(records, "sha256").hexdigest()
    virtual_s = end_s if console.end_ns is None else console.end_ns / 1e9
    return Outcome(time.monotonic() - begun, virtual_s, digest, console.warnings, console.used_s)


@dataclass
class Watch:
    """Follows a child to its end, or to the moment it counts as stuck; then `why` says why."""

    console: Console
    report: Report
    end_s: float
    why: str | None = None

    def follow(self, child: subprocess.Popen[bytes], stuck: Stuck) -> None:
        """Reads the console until the child closes it or has to be ended."""
        assert child.stdout is not None
        pipe = child.stdout.fileno()
        with contextlib.suppress(OSError):
            fcntl(pipe, _F_SETPIPE_SZ, 1 << 20)
        heard = time.monotonic()
        while True:
            now = time.monotonic()
            self.why = self._unending(now - heard) or stuck(now, now - heard)
            if self.why is not None:
                return
            if not select.select([pipe], [], [], 0.5)[0]:
                continue
            data = os.read(pipe, 1 << 16)
            if not data:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(FAREWELL_S)
                return
            if self.console.feed(data):
                heard = time.monotonic()
                self.report(min(self.console.test_ns / 1e9, self.end_s), self.end_s)

    def _unending(self, silent_s: float) -> str | None:
        """Whether the child, which has said its last word, does not end."""
        over = self.console.done or self.console.error is not None or self.console.panicked
        return "did not end after its last word" if over and silent_s > FAREWELL_S else None


def judge(console: Console, stuck: str | None, status: int, directory: Path, name: str) -> None:
    """Raises the error that an end stands for; a run that said it is done is good. `name`: whose end."""
    log, tail = directory / "console.log", console.tail()
    whole = console.done and (directory / "records.arrows").is_file()
    if console.out_of_memory and (console.panicked or not whole):
        raise GuestError(f"{name} has no memory left: its programs, and the files they wrote, took too much", log, tail)
    if console.error is not None:
        raise step_error(console.error, directory, tail)
    if console.panicked:
        raise GuestError("the guest kernel panicked", log, tail)
    if whole:
        return
    if stuck is not None:
        raise GuestError(f"{name} {stuck}; it was stopped", log, tail)
    how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    raise GuestError(f"{name} ended before its records were complete ({how})", log, tail)


def step_error(event: dict[str, object], directory: Path, tail: list[str]) -> HourglassError:
    """The agent's error: the user's if a key of the scenario is to blame."""
    message, line = str(event.get("message") or "unknown reason"), event.get("line")
    if "No space left on device" in message:
        return no_space(directory)
    where = "".join(
        f" {word} {event[key]}" for key, word in (("step", "in step"), ("node", "on node")) if event.get(key)
    )
    origin = event.get("origin")
    if origin is not None and "qdisc kind is unknown" in message and (kind := _QDISC.search(str(line))):
        fix = f"not in this kernel; on a machine, as root: modprobe sch_{kind[1]}, or one that `hourglass doctor` finds"
        return InputError(str(origin), kind[1], fix)
    if origin is not None:
        return InputError(str(origin), line, f"refused{where}: {message}{_why(event, message)}")
    if lacking := re.search(r"congestion control (\S+) is not in this kernel", message):
        fix = f"not in this kernel; as root: modprobe tcp_{lacking[1]}, or one that `hourglass doctor` finds"
        return InputError("stack.cc or test.flow_cc", lacking[1], fix)
    told = f": {line}" if line else ""
    return GuestError(f"the plan failed{where}{told}: {message}", directory / "console.log", tail)


def _why(event: dict[str, object], message: str) -> str:
    """What the kernel's word means for a sysctl."""
    if event.get("step") != "write" or not str(event.get("line")).startswith("/proc/sys/"):
        return ""
    if "Permission denied" in message:
        return "; this sysctl is of the whole kernel, not of a node"
    if "No such file" in message and any(name in str(event["line"]) for name in ("/tcp_tsq_", "/tcp_gso_")):
        return "; this kernel lacks the patch that adds it: hourglass kernel patch"
    if "No such file" in message:
        return "; no node has such a sysctl: it is misspelt, not in this kernel, or of the whole kernel"
    return ""


def no_space(directory: Path) -> HourglassError:
    """The one message about a full disk."""
    return HourglassError(f"no space left on the disk of {directory}: the run's records could not be written")
