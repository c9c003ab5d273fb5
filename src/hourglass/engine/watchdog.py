# SPDX-License-Identifier: Apache-2.0
"""Detect a guest that hangs, by its virtual clock, so that a slow machine ends no run.

A working guest moves its clock, if only slightly for much CPU time. Three hangs are distinguished:

spins           uses CPU time and does not move its clock: its kernel or a program loops
deadlocks       neither uses CPU time nor moves its clock: all processes wait for each other
waits           moves its clock, but the agent has sent nothing for long: it waits for an event that never comes

parameter     unit                      value   reason
STALL_S       s of CPU                  60      the longest that a program may compute between two sleeps; settable
NODE_S        s of CPU                  0.02    added for each node: its set-up takes no virtual time
LEAST_NS      ns of virtual per s CPU   1000    less is no movement: a second of test time would take 11 days
IDLE_S        s of wall time            60      a disk may be that slow
SILENT_NS     ns of virtual time        6e11    the agent reports every second of test time; set-up waits 60 s at most
SILENT_S      s of wall time            60      ... and the agent had time to report
LOOK_AFTER_S  s of wall time            2       a guest that reports is not inspected
POLL_S        s of CPU                  2       few programs compute so long between two calls while others wait

A program may compute or poll memory for POLL_S, without calling the kernel. Its process then gets a signal, at which
the guest's kernel lets other programs run (kernel/hooks/program_time.c).

A guest in a debugger, or stopped by SIGSTOP, is left alone.
"""

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hourglass.engine import spin, supervise
from hourglass.engine.console import Console
from hourglass.engine.guest_memory import GuestMemory, signal_program
from hourglass.errors import InputError

STALL_S: Final = 60.0
NODE_S: Final = 0.02
LEAST_NS: Final = 1000
IDLE_S: Final = 60.0
SILENT_NS: Final = 600_000_000_000
SILENT_S: Final = 60.0
LOOK_AFTER_S: Final = 2.0
POLL_S: Final = 2.0

LIMIT: Final = "HOURGLASS_STALL"
"""The environment variable for STALL_S; 0: no limit."""

_TICKS = os.sysconf("SC_CLK_TCK")


def stall_s(nodes: int = 0) -> float | None:
    """Return the limit of CPU time from the environment, or the default for `nodes` nodes. Raises InputError."""
    text = os.environ.get(LIMIT, "")
    if not text:
        return STALL_S + NODE_S * nodes
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise InputError(
            f"${LIMIT}",
            text,
            "must be the seconds of CPU time that a guest may use without moving its clock; 0: no limit",
        )
    return seconds or None


@dataclass(frozen=True)
class GuestState:
    """A guest at one moment of wall time. `kernel_s`: its kernel's CPU time. `suspended`: by a debugger or a signal.
    `ready`: one of its processes is runnable."""

    wall_s: float
    virtual_ns: int
    cpu_s: float
    kernel_s: float
    ready: bool
    suspended: bool


@dataclass(frozen=True)
class Hang:
    """Why a guest must be stopped: the error's code and a clause. `share`: of a guest that spins, its kernel's share of
    the CPU time."""

    code: str
    text: str
    share: float | None = None


@dataclass
class Watchdog:
    """Judges one state after the other. `stall_s` None: a guest may compute forever."""

    stall_s: float | None = STALL_S
    idle_s: float = IDLE_S
    _moved: GuestState | None = None
    """The state when the clock last moved."""
    _worked: GuestState | None = None
    """The state when CPU time was last used."""
    _spoke_ns: int = 0

    def reset(self) -> None:
        """Start again, as the guest sent a message."""
        self._moved = None

    def judge(self, state: GuestState, silent_s: float) -> Hang | None:
        """Return the guest's hang, if any. `silent_s`: seconds since its last message."""
        if state.suspended or self._moved is None or self._worked is None:
            self._spoke_ns = state.virtual_ns
            self._moved = self._worked = state
            return None
        if state.cpu_s > self._worked.cpu_s or state.ready:
            self._worked = state
        spent_s = state.cpu_s - self._moved.cpu_s
        if state.virtual_ns - self._moved.virtual_ns > LEAST_NS * spent_s:
            self._moved = self._worked = state
            return self._waiting(state.virtual_ns - self._spoke_ns, silent_s)
        if self.stall_s is not None and spent_s > self.stall_s:
            share = (state.kernel_s - self._moved.kernel_s) / spent_s
            return Hang("guest-spins", f"spins: its clock has not moved for {spent_s:.0f} s of CPU time", share)
        if (idle_s := state.wall_s - self._worked.wall_s) > self.idle_s:
            return Hang(
                "guest-deadlocks",
                f"deadlocks: it has used no CPU time for {idle_s:.0f} s, and its clock has not moved",
            )
        return None

    def _waiting(self, waited_ns: int, silent_s: float) -> Hang | None:
        if silent_s < SILENT_S or waited_ns < SILENT_NS:
            return None
        return Hang(
            "guest-waits",
            f"waits for an event that never comes: {waited_ns / 1e9:.0f} s of its clock passed without a message",
        )


@dataclass
class GuestWatch:
    """Watches a guest: the process `child`, running the kernel `linux`."""

    child: subprocess.Popen[bytes]
    linux: Path
    console: Console
    watchdog: Watchdog
    _memory: GuestMemory | None = None
    _computing: GuestState | None = None
    """The state since which a program has not called the kernel."""

    def stuck(self, wall_s: float, silent_s: float) -> supervise.Stop | None:
        """Check a guest; see `supervise.StuckCheck`."""
        if silent_s < LOOK_AFTER_S:
            self.watchdog.reset()
            self._computing = None
            return None
        if self._memory is None:
            self._memory = GuestMemory(self.linux, self.child.pid)
        state = self._state(self._memory, wall_s)
        hang = None if state is None else self.watchdog.judge(state, silent_s)
        if hang is None:
            if state is not None:
                self._preempt(self._memory, state)
            return None
        text = f"{hang.text}, {supervise.position(self.console)}"
        if hang.share is None:
            return supervise.Stop(hang.code, text)
        location = (
            spin.locate(self.child, self._memory, hang.share)
            or "the place where it spins is not visible on this machine"
        )
        return supervise.Stop(hang.code, f"{text}; {location} ({LIMIT} sets the limit)")

    def _preempt(self, memory: GuestMemory, state: GuestState) -> None:
        """Signal a program that has not called the kernel for POLL_S of CPU time."""
        since = self._computing or state
        spent_s = state.cpu_s - since.cpu_s
        kernel_s = state.kernel_s - since.kernel_s
        if state is since or state.virtual_ns != since.virtual_ns or kernel_s > spin.IDLE_SHARE * max(spent_s, 1.0):
            self._computing = state
        elif spent_s >= POLL_S and (program := memory.program()) and program.host:
            self._computing = None
            with contextlib.suppress(OSError):
                signal_program(memory.pid, program.host, signal.SIGALRM)

    def _state(self, memory: GuestMemory, wall_s: float) -> GuestState | None:
        kernel = memory.pid
        try:
            suspended = _is_suspended(kernel)
            processes = _session(kernel)
        except OSError:
            return None  # it has ended
        virtual_ns = memory.virtual_ns()
        return GuestState(
            wall_s=wall_s,
            virtual_ns=self.console.test_ns if virtual_ns is None else virtual_ns,
            cpu_s=sum(process.ticks for process in processes) / _TICKS,
            kernel_s=processes[0].own_ticks / _TICKS,
            ready=any(process.state == "R" for process in processes),
            suspended=suspended,
        )


@dataclass(frozen=True)
class _Process:
    """`ticks`: with those of its children that ended, if they are not counted separately."""

    state: str
    ticks: int
    own_ticks: int


def _is_suspended(pid: int) -> bool:
    """Return whether a process has a debugger, or is stopped. Raises OSError."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return fields["TracerPid"] != "0" or fields["State"].startswith("T")


def _session(leader: int) -> list[_Process]:
    """Return the processes of a session, its leader first. Raises OSError."""
    processes = [_stat(leader, leader)]
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != leader:
            try:
                processes.append(_stat(int(entry.name), leader))
            except OSError:
                continue
    return [process for process in processes if process is not None]


def _stat(pid: int, leader: int) -> _Process | None:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    if int(fields[3]) != leader:
        return None
    ticks = int(fields[11]) + int(fields[12])
    return _Process(fields[0], ticks + int(fields[13]) + int(fields[14]) if pid == leader else ticks, ticks)
