# SPDX-License-Identifier: Apache-2.0
"""Follow a run — of a guest kernel or a plain process — from its start to the verdict on its end.

It relies only on the console protocol (ARCHITECTURE.md)."""

import contextlib
import errno
import hashlib
import math
import os
import re
import select
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fcntl import fcntl
from functools import partial
from pathlib import Path
from threading import Thread

from hourglass.contract import error_codes
from hourglass.contract.plan import Plan
from hourglass.engine.base import Outcome, Preload, Report
from hourglass.engine.console import Console, Event
from hourglass.engine.kernel_texts import QDISC_MISSING
from hourglass.errors import GuestError, HourglassError, InputError, ProgramError

FAREWELL_S = 10.0
"""Wall seconds between the last event and the end."""

_F_SETPIPE_SZ = 1031

_QDISC = re.compile(r"(?:root|handle \S+|parent \S+) (?!handle|parent)(\w+)")
"""The kind in a line of `tc qdisc`."""

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)

_UNREADY = ("program-late", "program-not-ready")

_PATCHED = ("/tcp_tsq_", "/tcp_gso_")
"""The sysctls of Hourglass's patch."""

_EXPLANATIONS = {
    "sysctl-shared": "; this sysctl belongs to the whole kernel, not to a node",
    "sysctl-unpatched": "; this kernel lacks the patch that adds it: hourglass kernel patch",
    "sysctl-missing": "; no node has this sysctl: it is misspelt, missing in this kernel, or global",
}


@dataclass(frozen=True)
class Stop:
    """Why a child must be stopped: the code of the error, and a clause."""

    code: str
    text: str


Judge = Callable[[Console, Stop | None, int, Path], None]
"""Raises the error for an end: of the console, the reason it was stopped, the exit status, the run directory."""

StuckCheck = Callable[[float, float], Stop | None]
"""Returns why a child must be stopped, or None. Arguments: wall time, and the seconds since the child's last
message."""

Guard = Callable[[subprocess.Popen[bytes], Console], StuckCheck]
"""Returns the check that detects a hang of a child."""

Decide = Callable[[subprocess.Popen[bytes], Event], None]
"""Answers the event of a decision, for which a child waits."""


def silence_guard(longest_s: float) -> Guard:
    """Return a guard that stops a child after `longest_s` seconds of wall time without a message."""

    def guard(_child: subprocess.Popen[bytes], console: Console) -> StuckCheck:
        def stuck(_wall_s: float, silent_s: float) -> Stop | None:
            if silent_s <= longest_s:
                return None
            silence = f"sent no message for {longest_s:g} s of wall time {position(console)}"
            return Stop("agent-silent", f"{silence}; a program may wait without sleeping")

        return stuck

    return guard


def position(console: Console) -> str:
    """Return the progress of a run, as a phrase."""
    return f"at {console.test_ns / 1e9:g} s of test time" if console.ready else "during its start"


def execute(
    plan: Plan,
    directory: Path,
    executor: AbstractContextManager[subprocess.Popen[bytes]],
    judge: Judge,
    guard: Guard,
    progress: Report | None,
    preload: Preload | None,
    events: int | None = None,
    decide: Decide | None = None,
) -> Outcome:
    """Write plan.json, start the executor, log its console, and judge its end and its records.

    The executor reads plan.json and writes records.arrows in `directory`, which must exist. `events`: the descriptor of
    its event channel; None if events are lines of its output. `decide`: called for each decision."""
    start = time.monotonic()
    end_s = plan.end_ns / 1e9
    log = directory / "console.log"
    try:
        (directory / "plan.json").write_bytes(plan.to_json())
        (directory / "records.arrows").unlink(missing_ok=True)
        with log.open("wb") as file:
            console = Console(file, apart=events is not None)
            watch = Supervisor(console, progress or (lambda _, __: None), math.inf if plan.apps_end else end_s, events)
            with executor as child:
                if decide is not None:
                    watch.decide = partial(decide, child)
                if preload is not None:
                    Thread(target=preload, daemon=True).start()
                watch.supervise(child, guard(child, console))
            console.close()
    except OSError as problem:
        if problem.errno in _DISK_FULL:
            raise no_space(directory) from problem
        raise
    judge(console, watch.why, child.returncode, directory)
    with (directory / "records.arrows").open("rb") as records:
        digest = hashlib.file_digest(records, "sha256").hexdigest()
    virtual_s = end_s if console.end_ns is None else console.end_ns / 1e9
    return Outcome(time.monotonic() - start, virtual_s, digest, console.warnings, console.used_s)


@dataclass
class Supervisor:
    """Follows a child until it ends or is stuck; `why` is then the reason."""

    console: Console
    report: Report
    end_s: float
    events: int | None = None
    why: Stop | None = None
    decide: Callable[[Event], None] | None = None

    def supervise(self, child: subprocess.Popen[bytes], stuck: StuckCheck) -> None:
        """Read the console until the child closes it or must be stopped."""
        assert child.stdout is not None
        pipe = child.stdout.fileno()
        with contextlib.suppress(OSError):
            fcntl(pipe, _F_SETPIPE_SZ, 1 << 20)
        sources = [pipe] if self.events is None else [pipe, self.events]
        last_message = time.monotonic()
        while True:
            now = time.monotonic()
            self.why = self._lingering(now - last_message) or stuck(now, now - last_message)
            if self.why is not None:
                return
            readable = select.select(sources, [], [], 0.5)[0]
            if self.events in readable and self._read_events():
                last_message = time.monotonic()
            if pipe not in readable:
                continue
            data = os.read(pipe, 1 << 16)
            if not data:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(FAREWELL_S)
                self._read_last_events()
                return
            if self.console.feed(data):
                last_message = time.monotonic()
                self._report()

    def _read_events(self) -> bool:
        """Read the pending events; return whether there were any."""
        assert self.events is not None
        arrived = self.console.hear(os.read(self.events, 1 << 16)) > 0
        if arrived:
            self._report()
        if self.decide is not None and (decision := self.console.decision) is not None:
            self.console.decision = None
            self.decide(decision)
        return arrived

    def _read_last_events(self) -> None:
        """Read the events that arrived before the child's end."""
        while self.events is not None and select.select([self.events], [], [], 0)[0]:
            self._read_events()

    def _report(self) -> None:
        self.report(min(self.console.test_ns / 1e9, self.end_s), self.end_s)

    def _lingering(self, silent_s: float) -> Stop | None:
        """Return the reason to stop a child that sent its last message but does not end."""
        over = self.console.done or self.console.error is not None or self.console.panicked
        return Stop("not-ended", "did not end after its last message") if over and silent_s > FAREWELL_S else None


def judge(console: Console, stuck: Stop | None, status: int, directory: Path, name: str) -> None:
    """Raise the error for an end; a run that reported its end and has records is good. `name`: the executor, for
    messages."""
    log, tail = directory / "console.log", console.tail()
    complete = console.done and (directory / "records.arrows").is_file()
    if console.out_of_memory and not complete:
        reason = f"{name} ran out of memory; its programs and the files they wrote need too much"
        raise GuestError(reason, log, tail, code="guest-memory")
    if console.error is not None:
        raise step_error(console.error, directory, tail)
    if complete:  # a program can make the kernel print "Kernel panic"
        return
    if console.panicked:
        raise GuestError("the guest kernel panicked", log, tail, code="guest-panic")
    if stuck is not None:
        raise GuestError(f"{name} {stuck.text}; it was stopped", log, tail, code=stuck.code)
    how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    raise GuestError(f"{name} ended before its records were complete ({how})", log, tail, code="ended-early")


def step_error(event: Mapping[str, object], directory: Path, tail: list[str]) -> HourglassError:
    """Return the agent's error. The user's key is to blame if the step has one."""
    code, message, origin = step_code(event), error_codes.message(event), event.get("origin")
    line, fields = event.get("line"), error_codes.fields(event)
    if code == "disk-full":
        return no_space(directory)
    if code == "qdisc-missing" and origin is not None:
        (kind,) = _QDISC.findall(str(line))[:1]
        fix = f"is missing in this kernel; on a real kernel, as root: modprobe sch_{kind}; others: hourglass doctor"
        return InputError(str(origin), kind, fix, code=code, fields={**fields, "kind": kind})
    where = "".join(
        f" {word} {event[key]}" for key, word in (("step", "in step"), ("node", "on node")) if event.get(key)
    )
    if origin is not None and code in _UNREADY:
        output = directory / "apps" / Path(str(event.get("program"))).name if event.get("output") else None
        problem = f"on node {event.get('node')}, {message}"
        return ProgramError(str(origin), str(line), problem, output, code=code, fields=fields)
    if origin is not None:
        explained = f"refused{where}: {message}{_EXPLANATIONS.get(code, '')}"
        return InputError(str(origin), line, explained, code=code, fields=fields)
    if code == "congestion-control-missing":
        name = str(event.get("cc"))
        fix = f"is missing in this kernel; as root: modprobe tcp_{name}; others: hourglass doctor"
        return InputError("stack.cc or test.flow_cc", name, fix, code=code, fields=fields)
    command, log = f": {line}" if line else "", directory / "console.log"
    return GuestError(f"the plan failed{where}{command}: {message}", log, tail, code=code, fields=fields)


def step_code(event: Mapping[str, object]) -> str:
    """Return the code of the agent's error: its own, or one that says more in view of the step."""
    code, step, number, line = (event.get(key) for key in ("code", "step", "errno", "line"))
    if code == "tool-failed" and QDISC_MISSING.search(str(event.get("text"))) and _QDISC.search(str(line)):
        return "qdisc-missing"
    if code == "system" and number in _DISK_FULL and step in (None, "app"):
        return "disk-full"
    if code == "system" and step == "write" and str(line).startswith("/proc/sys/"):
        if number == errno.EACCES:
            return "sysctl-shared"
        if number == errno.ENOENT:
            return "sysctl-unpatched" if any(name in str(line) for name in _PATCHED) else "sysctl-missing"
    return str(code) if error_codes.is_agents(code) else "guest"


def no_space(directory: Path) -> HourglassError:
    """Return the error about a full disk."""
    text = f"no space left on the disk of {directory}: the run's records could not be written"
    return HourglassError(text, code="disk-full")
