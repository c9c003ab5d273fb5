# SPDX-License-Identifier: Apache-2.0
"""Talk to one host: the ssh that reaches it, the agent on it, and its messages (`agent/src/serve.rs` has the protocol).

There is one connection. A few lines of shell receive the agent's file and start it. The plan, the orders and the
records pass over one standard input and output. Key, user, port and jump host come from ssh and ~/.ssh/config."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from hourglass.contract.plan import HostStep
from hourglass.engine.console import PREFIX, Event, parse_event
from hourglass.engine.ssh.clocks import Exchange
from hourglass.errors import GuestError, InputError
from hourglass.files import BoundedLog
from hourglass.host import process

OPTIONS_VARIABLE = "HOURGLASS_SSH"
"""More arguments for ssh, before the usual ones: `-F FILE`, `-p 2222`."""

USUAL = (
    "-T", "-e", "none", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ControlMaster=no",
    "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "Compression=no", "-o", "ForwardAgent=no",
    "-o", "ForwardX11=no", "-o", "ClearAllForwardings=yes",
)  # fmt: skip

BLOCK = 1 << 16
"""The agent's file is sent in blocks of this size: `dd` reads exactly those, and leaves the rest of the input."""

FULL_PATH = 'PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"; export PATH'

RECEIVE = f"""umask 077; {FULL_PATH}
f=$(mktemp "${{TMPDIR:-/tmp}}/hourglass-agent.XXXXXX") || exit 1
dd of="$f" bs={BLOCK} count=BLOCKS iflag=fullblock 2>/dev/null
if [ "$(wc -c <"$f")" -ne BYTES ]; then rm -f "$f"; echo "the agent did not arrive whole" >&2; exit 1; fi
chmod 700 "$f"
if [ "$(id -u)" = 0 ]; then "$f" --serve NODE; else sudo -n -- "$f" --serve NODE; fi
s=$?; rm -f "$f"; exit $s
"""

TAIL = 12

LINE_MAX = 1 << 20
"""Bytes of a line from a host; the agent's longest has a few hundred."""
RECORDS_MAX = 64 << 30
"""Bytes of a host's records."""

_DESTINATION = re.compile(r"(ssh://)?([\w][\w.-]*@)?[A-Za-z0-9\[][\w.:%\[\]-]*", re.ASCII)


def argv(destination: str, command: str) -> list[str]:
    """Return the ssh command that runs a shell command on a host."""
    if not _DESTINATION.fullmatch(destination):  # the plan may come from elsewhere
        raise InputError("host", destination, "must be a destination for ssh, like user@router")
    options = shlex.split(os.environ.get(OPTIONS_VARIABLE, ""))
    return ["ssh", *options, *USUAL, "--", destination, f"exec sh -c {shlex.quote(command)}"]


MILESTONES = ("set", "reached", "ready", "measured", "done")
"""The agent's messages that the coordinator waits for; `records` counts when they have arrived."""


def _fits(ns: int) -> bool:
    """Return whether a host's time is plausible: sums of a few stay within 64 bits."""
    return abs(ns) < 2**61


def padded(binary: bytes) -> bytes:
    """Return the agent's file in whole blocks; bytes after an ELF file are ignored."""
    return binary + bytes(-len(binary) % BLOCK)


@dataclass
class Channel:
    """A connected host. `log` receives all lines that are not events."""

    host: HostStep
    log: BinaryIO
    records: Path
    agent: bytes
    child: "subprocess.Popen[bytes]" = field(init=False)
    last_message_s: float = field(init=False)
    milestones: set[str] = field(default_factory=set)
    error: Event | None = None
    test_ns: int = 0
    end_ns: int | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)
    pending: dict[int, int] = field(default_factory=dict)
    closed: bool = False
    _number: int = 0
    _partial_line: bytes = b""
    _missing_bytes: int = 0
    _file: BinaryIO | None = None

    def __post_init__(self) -> None:
        self._bounded_log = BoundedLog(self.log)

    def start(self) -> None:
        """Start ssh. Call `feed` next."""
        blocks = len(self.agent) // BLOCK
        script = RECEIVE.replace("BLOCKS", str(blocks)).replace("BYTES", str(len(self.agent)))
        script = script.replace("NODE", shlex.quote(self.host.node))
        self.child = process.piped(argv(self.host.destination, script))
        self.last_message_s = time.monotonic()

    def feed(self, plan: bytes) -> None:
        """Send the agent and its plan. If ssh ended, the next read shows it."""
        self.send_bytes(self.agent)
        self.send_bytes(b"plan %d\n" % len(plan) + plan)

    def send(self, order: str) -> None:
        """Send one line."""
        self.send_bytes(f"{order}\n".encode())

    def send_bytes(self, data: bytes) -> None:
        assert self.child.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError):  # it ended, or was closed: the next read shows it
            self.child.stdin.write(data)
            self.child.stdin.flush()

    def query_clock(self) -> None:
        """Request the host's clock."""
        self._number += 1
        self.pending[self._number] = time.monotonic_ns()
        self.send(f"clock {self._number}")

    def receive(self, data: bytes) -> None:
        """Parse bytes of its standard output."""
        now_ns = time.monotonic_ns()
        self.last_message_s = time.monotonic()
        while data:
            if self._missing_bytes:
                data = self._receive_records(data)
                continue
            line, end, after = (self._partial_line + data).partition(b"\n")
            if len(line) > LINE_MAX:
                problem = f"{self.host.node} ({self.host.destination}) sent a line of more than {LINE_MAX} bytes"
                raise GuestError(problem, code="host-invalid")
            if not end:
                self._partial_line = line
                return
            self._partial_line, data = b"", after
            self._line(line, now_ns)

    def _receive_records(self, data: bytes) -> bytes:
        assert self._file is not None
        piece, remaining = data[: self._missing_bytes], data[self._missing_bytes :]
        self._file.write(piece)
        self._missing_bytes -= len(piece)
        if not self._missing_bytes:
            self._file.close()
            self.milestones.add("records")
        return remaining

    def _line(self, line: bytes, now_ns: int) -> None:
        before, prefix, remaining = line.partition(PREFIX)
        event = parse_event(PREFIX[-1:] + remaining) if prefix else None
        if before or event is None:
            self.write(before if event is not None else line)
        if event is not None:
            self._act(event, now_ns)

    def write(self, line: bytes) -> None:
        """Write a line to the log."""
        text = line.decode("utf-8", "replace").rstrip("\r")
        self._bounded_log.write(f"{self.host.node}: {text}".encode())
        self.log.flush()
        self.tail = [*self.tail[-TAIL:], f"{self.host.node}: {text}"]

    def _act(self, event: dict[str, Any], now_ns: int) -> None:
        match event:
            case {
                "event": "clock", "number": int(number),
                "received_ns": int(came), "sent_ns": int(left), "ahead_ns": int(ahead),
            } if all(map(_fits, (came, left, ahead))):  # fmt: skip
                if number in self.pending:
                    self.exchanges.append(Exchange(self.pending.pop(number), came, left, now_ns, ahead))
            case {"event": "time", "ns": int(ns)} if _fits(ns):
                self.test_ns = ns
            case {"event": "error"}:
                self.error = self.error or event
            case {"event": "records", "bytes": int(count)} if self._file is None:
                if not 0 <= count <= RECORDS_MAX:
                    problem = f"{self.host.node} ({self.host.destination}) offers {count} bytes of records"
                    raise GuestError(problem, code="host-invalid")
                self._file, self._missing_bytes = self.records.open("wb"), count
                if not count:
                    self._file.close()
                    self.milestones.add("records")
            case {"event": str(name)}:
                if name == "measured" and isinstance(end_ns := event.get("ns"), int) and _fits(end_ns):
                    self.end_ns = end_ns
                self.milestones.add(name if name in MILESTONES else "")

    def hang_up(self) -> None:
        """Close its input: the agent restores all settings and ends."""
        assert self.child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()

    def kill(self) -> None:
        """Kill ssh, if it still runs."""
        process.kill_group(self.child, signal.SIGKILL)
        self.child.wait()
        for pipe in (self.child.stdin, self.child.stdout, self.child.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
