# SPDX-License-Identifier: Apache-2.0
"""The guest's console: the agent's events (ARCHITECTURE.md, "Console protocol"), and a log of everything else.

Whatever the kernel complains of is noticed here: a panic, a BUG, a WARNING, want of memory. Knows neither
processes nor clocks.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, BinaryIO

PREFIX = b"hourglass: {"
PANIC = "Kernel panic - not syncing"
_COMPLAINT = re.compile(r"WARNING: |BUG: |UBSAN: |Oops|Out of memory: ")
_OUT_OF_MEMORY = re.compile(r"Out of memory|deadlocked on memory")
_CHATTER = re.compile(
    r"BogoMIPS|regulatory\.db|firmware_class|epollctl add err|kernel memory protection|reboot: System halted"
)
_KEPT = 400

Event = dict[str, Any]


@dataclass
class Console:
    """Reads the console's bytes as they come; writes `log`, except the heartbeats."""

    log: BinaryIO
    ready: bool = False
    done: bool = False
    end_ns: int | None = None
    """When the test ended, of test time."""
    test_ns: int = 0
    error: Event | None = None
    warnings: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    panicked: bool = False
    out_of_memory: bool = False
    used_s: dict[str, float] = field(default_factory=dict)
    """Time of the host's CPU, by program."""
    _rest: bytes = b""

    def feed(self, data: bytes) -> int:
        """Takes bytes; gives the number of events among them. Raises OSError when the log cannot be written."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        events = sum(self._line(line.rstrip(b"\r")) for line in whole)
        self.log.flush()
        return events

    def close(self) -> None:
        """Takes what came after the last end of line."""
        if self._rest:
            self.feed(b"\n")

    def _line(self, line: bytes) -> bool:
        """One line; whether it was an event. An event that something was printed before is still one."""
        before, prefix, _ = line.partition(PREFIX)
        event = parse_event(line[len(before) + len(PREFIX) - 1 :]) if prefix else None
        if event is None:
            self._log(line)
            return False
        if event["event"] == "time":
            line = before
        if line:
            self.log.write(line + b"\n")
        self._act(event)
        return True

    def _log(self, line: bytes) -> None:
        self.log.write(line + b"\n")
        text = line.decode("utf-8", "replace")
        if PANIC in text:
            self.panicked = True
        elif _COMPLAINT.search(text):
            self.warnings.append(text.strip())
        if _OUT_OF_MEMORY.search(text):
            self.out_of_memory = True
        self.lines = [*self.lines[-_KEPT:], text]

    def _act(self, event: Event) -> None:
        match event:
            case {"event": "ready"}:
                self.ready = True
            case {"event": "time", "ns": int(ns)}:
                self.test_ns = ns
            case {"event": "used", "app": str(app), "cpu_ns": int(ns)}:
                self.used_s[app] = ns / 1e9
            case {"event": "error"} if self.error is None:
                self.error = event
            case {"event": "done"}:
                self.done = True
                self.end_ns = event.get("ns")

    def tail(self, count: int = 12) -> list[str]:
        """The lines that matter: a panic and what follows it, else the last ones."""
        full = [line for line in self.lines if line.strip() and not _CHATTER.search(line)]
        first = next((number for number, line in enumerate(full) if PANIC in line), None)
        return full[-count:] if first is None else full[first : first + count]


def parse_event(text: bytes) -> Event | None:
    """The JSON object of a protocol line; None if it is not one."""
    try:
        event = json.loads(text)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None
