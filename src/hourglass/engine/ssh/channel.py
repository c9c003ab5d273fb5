# SPDX-License-Identifier: Apache-2.0
"""One machine: the ssh that reaches it, the agent there, and what it says (`agent/src/serve.rs` has the protocol).

One connection does it all. A few lines of shell receive the agent's file and start it; the plan, the orders and the
records pass over the same standard input and output. Which key, user, port and jump host: that is ssh's business, and
~/.ssh/config's.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from hourglass.contract.plan import HostStep
from hourglass.engine import process
from hourglass.engine.console import PREFIX, Event, parse_event
from hourglass.engine.ssh.clocks import Exchange

OPTIONS_VARIABLE = "HOURGLASS_SSH"
"""Further words for ssh, before ours: `-F FILE`, `-p 2222`."""

USUAL = (
    "-T", "-e", "none", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ControlMaster=no",
    "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "Compression=no", "-o", "ForwardAgent=no",
    "-o", "ForwardX11=no", "-o", "ClearAllForwardings=yes",
)  # fmt: skip

BLOCK = 1 << 16
"""The agent's file is sent in blocks of so many bytes: `dd` takes exactly those, and leaves the rest of the input."""

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


def argv(destination: str, command: str) -> list[str]:
    """The ssh that has a shell there do something."""
    own = shlex.split(os.environ.get(OPTIONS_VARIABLE, ""))
    return ["ssh", *own, *USUAL, "--", destination, f"exec sh -c {shlex.quote(command)}"]


def padded(binary: bytes) -> bytes:
    """The agent's file in whole blocks; what follows an ELF file is nobody's business."""
    return binary + bytes(-len(binary) % BLOCK)


@dataclass
class Channel:
    """A machine that is conducted. `log` gets what is said that is no event."""

    host: HostStep
    log: BinaryIO
    records: Path
    agent: bytes
    child: "subprocess.Popen[bytes]" = field(init=False)
    heard: float = field(init=False)
    said: set[str] = field(default_factory=set)
    error: Event | None = None
    test_ns: int = 0
    end_ns: int | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)
    asked: dict[int, int] = field(default_factory=dict)
    closed: bool = False
    _number: int = 0
    _rest: bytes = b""
    _left: int = 0
    _file: BinaryIO | None = None

    def start(self) -> None:
        """Starts ssh. `feed` is to follow."""
        blocks = len(self.agent) // BLOCK
        script = RECEIVE.replace("BLOCKS", str(blocks)).replace("BYTES", str(len(self.agent)))
        script = script.replace("NODE", shlex.quote(self.host.node))
        self.child = process.piped(argv(self.host.destination, script))
        self.heard = time.monotonic()

    def feed(self, plan: bytes) -> None:
        """The agent and its plan. Comes back when they are on their way; an end of ssh shows when it is read from."""
        self.tell_bytes(self.agent)
        self.tell_bytes(b"plan %d\n" % len(plan) + plan)

    def tell(self, order: str) -> None:
        """One line."""
        self.tell_bytes(f"{order}\n".encode())

    def tell_bytes(self, data: bytes) -> None:
        assert self.child.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError):  # it ended, or was closed: its output says so
            self.child.stdin.write(data)
            self.child.stdin.flush()

    def ask(self) -> None:
        """Asks what its clock says."""
        self._number += 1
        self.asked[self._number] = time.monotonic_ns()
        self.tell(f"clock {self._number}")

    def take(self, data: bytes) -> None:
        """What came from its standard output."""
        now_ns = time.monotonic_ns()
        self.heard = time.monotonic()
        while data:
            if self._left:
                data = self._take_records(data)
                continue
            line, end, after = (self._rest + data).partition(b"\n")
            if not end:
                self._rest = line
                return
            self._rest, data = b"", after
            self._line(line, now_ns)

    def _take_records(self, data: bytes) -> bytes:
        assert self._file is not None
        piece, rest = data[: self._left], data[self._left :]
        self._file.write(piece)
        self._left -= len(piece)
        if not self._left:
            self._file.close()
            self.said.add("records")
        return rest

    def _line(self, line: bytes, now_ns: int) -> None:
        before, prefix, rest = line.partition(PREFIX)
        event = parse_event(PREFIX[-1:] + rest) if prefix else None
        if before or event is None:
            self.write(before if event is not None else line)
        if event is not None:
            self._act(event, now_ns)

    def write(self, line: bytes) -> None:
        """A line for the log."""
        text = line.decode("utf-8", "replace").rstrip("\r")
        self.log.write(f"{self.host.node}: {text}\n".encode())
        self.log.flush()
        self.tail = [*self.tail[-TAIL:], f"{self.host.node}: {text}"]

    def _act(self, event: dict[str, Any], now_ns: int) -> None:
        match event:
            case {"event": "clock", "number": int(number), "received_ns": came, "sent_ns": left, "ahead_ns": ahead}:
                if number in self.asked:
                    self.exchanges.append(Exchange(self.asked.pop(number), came, left, now_ns, ahead))
            case {"event": "time", "ns": int(ns)}:
                self.test_ns = ns
            case {"event": "error"}:
                self.error = self.error or event
            case {"event": "records", "bytes": int(count)}:
                self._file, self._left = self.records.open("wb"), count
                if not count:
                    self._file.close()
                    self.said.add("records")
            case {"event": str(name)}:
                self.end_ns = event.get("ns", self.end_ns) if name == "measured" else self.end_ns
                self.said.add(name)

    def hang_up(self) -> None:
        """Closes its input: the agent ends, and gives everything back."""
        assert self.child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()

    def kill(self) -> None:
        """The end of ssh, if it is still there."""
        process.kill_group(self.child, signal.SIGKILL)
        self.child.wait()
        for pipe in (self.child.stdin, self.child.stdout, self.child.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
