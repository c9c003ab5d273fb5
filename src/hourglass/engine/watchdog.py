# SPDX-License-Identifier: Apache-2.0
"""Whether a guest gets on, decided by its own clock and not by ours, so that a slow machine ends no run.

A guest that works moves its clock, if only by a little for much CPU time. Three that never end are told apart:

stands still    uses CPU time and does not move its clock: its kernel or a program spins
does nothing    neither uses CPU time nor moves its clock: all wait for each other
waits on        moves its clock, but the agent has said nothing for long of it: the agent waits for what never comes

parameter     unit                      value   why
STALL_S       s of CPU                  60      the longest that a program may compute between two sleeps; settable
LEAST_NS      ns of virtual per s CPU   1000    less is no movement: a second of test time would take 11 days
IDLE_S        s of wall time            60      a disk may be that slow
SILENT_NS     ns of virtual time        6e11    the agent speaks once a second of test time; set-up waits 60 s at most
SILENT_S      s of wall time            60      ... and the agent has had a chance to
LOOK_AFTER_S  s of wall time            2       a guest that speaks is not looked at

A guest in a debugger, or stopped by SIGSTOP, is left alone.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hourglass.engine import follow, spin
from hourglass.engine.console import Console
from hourglass.engine.inside import Inside
from hourglass.errors import InputError

STALL_S: Final = 60.0
LEAST_NS: Final = 1000
IDLE_S: Final = 60.0
SILENT_NS: Final = 600_000_000_000
SILENT_S: Final = 60.0
LOOK_AFTER_S: Final = 2.0

LIMIT: Final = "HOURGLASS_STALL"
"""The environment's word for STALL_S; 0: no limit."""

_TICKS = os.sysconf("SC_CLK_TCK")


def stall_s() -> float | None:
    """The limit of CPU time, as the environment has it. Raises InputError."""
    text = os.environ.get(LIMIT, "")
    if not text:
        return STALL_S
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise InputError(f"${LIMIT}", text, "seconds of CPU time that a guest may use without its clock moving; 0: any")
    return seconds or None


@dataclass(frozen=True)
class Look:
    """A guest at a moment of wall time. `kernel_s`: its kernel's own CPU time. `held`: by a debugger or a signal.
    `ready`: one of its processes could run."""

    wall_s: float
    virtual_ns: int
    cpu_s: float
    kernel_s: float
    ready: bool
    held: bool


@dataclass(frozen=True)
class Wrong:
    """Why a guest is to be ended. `share`: of one that spins, its kernel's own, of the CPU time used for it."""

    text: str
    share: float | None = None


@dataclass
class Watchdog:
    """Judges one look after the other. `stall_s` None: a guest may compute for ever."""

    stall_s: float | None = STALL_S
    idle_s: float = IDLE_S
    _moved: Look | None = None
    """When the clock last moved."""
    _worked: Look | None = None
    """When CPU time was last used."""
    _spoke_ns: int = 0

    def spoke(self) -> None:
        """The guest said something: begin anew."""
        self._moved = None

    def judge(self, look: Look, silent_s: float) -> Wrong | None:
        """What is wrong with the guest, which has said nothing for so long; None if nothing is."""
        if look.held or self._moved is None or self._worked is None:
            self._spoke_ns = look.virtual_ns
            self._moved = self._worked = look
            return None
        if look.cpu_s > self._worked.cpu_s or look.ready:
            self._worked = look
        spent_s = look.cpu_s - self._moved.cpu_s
        if look.virtual_ns - self._moved.virtual_ns > LEAST_NS * spent_s:
            self._moved = self._worked = look
            return self._waiting(look.virtual_ns - self._spoke_ns, silent_s)
        if self.stall_s is not None and spent_s > self.stall_s:
            share = (look.kernel_s - self._moved.kernel_s) / spent_s
            return Wrong(f"stands still: its clock has not moved for {spent_s:.0f} s of CPU time", share)
        if (idle_s := look.wall_s - self._worked.wall_s) > self.idle_s:
            return Wrong(f"does nothing: it has used no CPU time for {idle_s:.0f} s, and its clock has not moved")
        return None

    def _waiting(self, waited_ns: int, silent_s: float) -> Wrong | None:
        if silent_s < SILENT_S or waited_ns < SILENT_NS:
            return None
        return Wrong(f"waits for what never comes: {waited_ns / 1e9:.0f} s of its clock have passed without a word")


@dataclass
class GuestWatch:
    """Looks at a guest: the process `child`, its kernel made of `linux`."""

    child: subprocess.Popen[bytes]
    linux: Path
    console: Console
    watchdog: Watchdog
    _inside: Inside | None = None

    def stuck(self, wall_s: float, silent_s: float) -> str | None:
        """`follow.Stuck` of a guest."""
        if silent_s < LOOK_AFTER_S:
            self.watchdog.spoke()
            return None
        if self._inside is None:
            self._inside = Inside(self.linux, self.child.pid)
        look = self._look(self._inside, wall_s)
        wrong = None if look is None else self.watchdog.judge(look, silent_s)
        if wrong is None:
            return None
        text = f"{wrong.text}, {follow.place(self.console)}"
        if wrong.share is None:
            return text
        place = spin.where(self.child, self._inside, wrong.share) or "where it spins cannot be seen on this machine"
        return f"{text}; {place} ({LIMIT} sets the limit)"

    def _look(self, inside: Inside, wall_s: float) -> Look | None:
        kernel = inside.pid
        try:
            held = _held(kernel)
            processes = _session(kernel)
        except OSError:
            return None  # it has ended
        virtual_ns = inside.virtual_ns()
        return Look(
            wall_s=wall_s,
            virtual_ns=self.console.test_ns if virtual_ns is None else virtual_ns,
            cpu_s=sum(one.ticks for one in processes) / _TICKS,
            kernel_s=processes[0].own_ticks / _TICKS,
            ready=any(one.state == "R" for one in processes),
            held=held,
        )


@dataclass(frozen=True)
class _Process:
    """`ticks`: with those of its children that ended, if they are not counted by themselves."""

    state: str
    ticks: int
    own_ticks: int


def _held(pid: int) -> bool:
    """Whether a process has a debugger, or is stopped. Raises OSError."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return fields["TracerPid"] != "0" or fields["State"].startswith("T")


def _session(leader: int) -> list[_Process]:
    """The processes of a session, first its leader. Raises OSError."""
    found = [_stat(leader, leader)]
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != leader:
            try:
                found.append(_stat(int(entry.name), leader))
            except OSError:
                continue
    return [one for one in found if one is not None]


def _stat(pid: int, leader: int) -> _Process | None:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    if int(words[3]) != leader:
        return None
    own = int(words[11]) + int(words[12])
    return _Process(words[0], own + int(words[13]) + int(words[14]) if pid == leader else own, own)
