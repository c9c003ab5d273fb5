# SPDX-License-Identifier: Apache-2.0
"""Parse the guest's console: the agent's events (ARCHITECTURE.md, "Console protocol"), and a log of all other lines.

Kernel complaints are detected here: a panic, a BUG, a WARNING, lack of memory (`kernel_texts`). Knows neither processes
nor clocks."""

import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from hourglass.engine.kernel_texts import CHATTER, COMPLAINT, HOST_REFUSED, OUT_OF_MEMORY, PANIC
from hourglass.files import BoundedLog

PREFIX = b"hourglass: {"
_TAIL_MAX = 400
_LINE_MAX, _EVENT_MAX, _WARNINGS_MAX = 1 << 16, 1 << 24, 100
_TEXT_MAX, _APPS_MAX, _NAME_MAX = 4096, 10_000, 256
"""Bytes of a line that are kept in memory; programs whose CPU time is kept, and bytes of their names. The events of a
guest may be forged: a C file of a scenario is part of its kernel."""

Event = dict[str, Any]


@dataclass
class Console:
    """Reads the console's bytes as they arrive; writes `log`, except heartbeats and decisions.

    `apart`: events arrive on a separate channel, so a console line is never an event."""

    log: BinaryIO
    apart: bool = False
    ready: bool = False
    done: bool = False
    end_ns: int | None = None
    """Test time of the end."""
    test_ns: int = 0
    error: Event | None = None
    warnings: list[str] = field(default_factory=list)
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_TAIL_MAX))
    panicked: bool = False
    out_of_memory: bool = False
    refused: set[str] = field(default_factory=set)
    """The resources that the host refused to the guest: keys of `HOST_REFUSED`."""
    decision: Event | None = None
    """The decision for which the guest waits."""
    used_s: dict[str, float] = field(default_factory=dict)
    """CPU time of the host, by program."""
    _partial_line: bytes = b""
    _partial_event: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        self._bounded_log = BoundedLog(self.log)

    @property
    def spoke(self) -> bool:
        """Return whether the agent sent a message about the run."""
        return self.ready or self.done or self.error is not None

    def feed(self, data: bytes) -> int:
        """Take bytes of the console; return the number of events in them. Raises OSError if the log cannot be
        written."""
        *lines, self._partial_line = (self._partial_line + data).split(b"\n")
        if len(self._partial_line) > _LINE_MAX:
            lines, self._partial_line = [*lines, self._partial_line], b""
        events = sum(self._line(line.rstrip(b"\r")) for line in lines)
        self.log.flush()
        return events

    def hear(self, data: bytes) -> int:
        """Take bytes of the event channel; return the number of events. Raises OSError as `feed`."""
        self._partial_event += data
        if b"\n" not in data and len(self._partial_event) <= _EVENT_MAX:
            return 0
        *lines, partial = bytes(self._partial_event).split(b"\n")
        if len(partial) > _EVENT_MAX:
            lines, partial = [*lines, partial], b""
        self._partial_event = bytearray(partial)
        events = sum(self._event(line.rstrip(b"\r")) for line in lines)
        self.log.flush()
        return events

    def close(self) -> None:
        """Take the bytes after the last end of line."""
        if self._partial_line:
            self.feed(b"\n")

    def _line(self, line: bytes) -> bool:
        """Take a line of the console; return whether it was an event."""
        if self.apart:
            self._log(line)
            return False
        return self._event(line)

    def _event(self, line: bytes) -> bool:
        """Take a line that may contain an event, even after other output; return whether it did."""
        before, prefix, _ = line.partition(PREFIX)
        event = parse_event(line[len(before) + len(PREFIX) - 1 :]) if prefix else None
        if event is None:
            self._log(line)
            return False
        if event["event"] in ("time", "decision"):
            line = before
        if line:
            self._bounded_log.write(line)
        self._act(event)
        return True

    def _log(self, line: bytes) -> None:
        self._bounded_log.write(line)
        text = line[:_TEXT_MAX].decode("utf-8", "replace")
        if PANIC in text:
            self.panicked = True
        elif COMPLAINT.search(text):
            self._warn(text.strip())
        if OUT_OF_MEMORY.search(text):
            self.out_of_memory = True
        self.refused.update(kind for kind, pattern in HOST_REFUSED.items() if pattern.search(text))
        self.lines.append(text)

    def _warn(self, text: str) -> None:
        if len(self.warnings) < _WARNINGS_MAX:
            self.warnings.append(text)

    def _act(self, event: Event) -> None:
        match event:
            case {"event": "ready"}:
                self.ready = True
            case {"event": "time", "ns": ns} if _is_number(ns):
                self.test_ns = ns
            case {"event": "decision", "number": number, "ns": ns, "senders": list(senders)} if (
                _is_number(number) and _is_number(ns) and all(isinstance(sender, dict) for sender in senders)
            ):
                self.decision = event
            case {"event": "used", "app": str(app), "cpu_ns": ns} if _is_number(ns) and len(app) <= _NAME_MAX:
                if app in self.used_s or len(self.used_s) < _APPS_MAX:
                    self.used_s[app] = ns / 1e9
            case {
                "event": "omitted",
                "app": str(app),
                "count": count,
                "first": str(first),
                "limit_bytes": most_bytes,
                "depth_max": most_levels,
            } if all(map(_is_number, (count, most_bytes, most_levels))):
                limits = f"beyond {most_bytes >> 20} MiB or {most_levels} levels of folders"
                text = f"{app}: collect: {count} files or folders incomplete or missing, {limits}; the first: {first}"
                self._warn(text[:_TEXT_MAX])
            case {"event": "error"} if self.error is None:
                self.error = event
            case {"event": "done"}:
                self.done = True
                self.end_ns = event.get("ns") if _is_number(event.get("ns")) else None

    def tail(self, count: int = 12) -> list[str]:
        """Return the lines that matter: a panic and the lines after it, else the last lines."""
        full = [line for line in self.lines if line.strip() and not CHATTER.search(line)]
        first = next((number for number, line in enumerate(full) if PANIC in line), None)
        return full[-count:] if first is None else full[first : first + count]


def _is_number(value: object) -> bool:
    """Return whether a value is a whole number of 63 bits."""
    return type(value) is int and 0 <= value < 2**63


def parse_event(text: bytes) -> Event | None:
    """Return the JSON object of a protocol line; None if it is invalid."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None
