# SPDX-License-Identifier: Apache-2.0
"""The console reader: events, the log, the kernel's complaints."""

import io
import json

import pytest

from hourglass.engine.console import Console
from hourglass.files import LOG_MAX

STREAM = b"""[    0.0] Booting\r
hourglass: {"event":"ready","boot_ns":123}\r
hourglass: {"event":"time","ns":1000000000}\r
[    1.0] WARNING: CPU: 0 PID: 1 at net/x.c:1 f+0x1/0x2\r
half a line hourglass: {"event":"time","ns":2000000000}\r
hourglass: {not json\r
hourglass: {"event":"used","app":"curl","cpu_ns":250000000}\r
hourglass: {"event":"done"}\r
"""


def read_pieces(*pieces: bytes) -> tuple[Console, bytes]:
    log = io.BytesIO()
    console = Console(log)
    for piece in pieces:
        console.feed(piece)
    console.close()
    return console, log.getvalue()


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_events_do_not_depend_on_the_pieces_of_a_read(size: int) -> None:
    console, log = read_pieces(*(STREAM[start : start + size] for start in range(0, len(STREAM), size)))
    assert (console.ready, console.done, console.test_ns, console.error) == (True, True, 2_000_000_000, None)
    assert console.used_s == {"curl": 0.25}
    assert console.warnings == ["[    1.0] WARNING: CPU: 0 PID: 1 at net/x.c:1 f+0x1/0x2"]
    assert log.decode().splitlines() == [
        "[    0.0] Booting",
        'hourglass: {"event":"ready","boot_ns":123}',
        "[    1.0] WARNING: CPU: 0 PID: 1 at net/x.c:1 f+0x1/0x2",
        "half a line ",
        "hourglass: {not json",
        'hourglass: {"event":"used","app":"curl","cpu_ns":250000000}',
        'hourglass: {"event":"done"}',
    ]


def test_only_events_are_counted() -> None:
    console = Console(io.BytesIO())
    assert console.feed(b"[0.0] x\nhourglass: {") == 0
    assert console.feed(b'"event":"ready"}\nhourglass: {"event":"done"}\n') == 2


def test_the_first_error_is_the_cause() -> None:
    line = b'hourglass: {"event":"error","origin":"stack.qdisc","code":"data","text":"%s"}\n'
    console, _ = read_pieces(line % b"first", line % b"second")
    assert console.error is not None
    assert console.error["text"] == "first"


def test_the_tail_begins_with_a_panic() -> None:
    console, log = read_pieces(
        b"a\n" * 50 + b"[1.0] Kernel panic - not syncing: why\n" + b"trace\n" * 30 + b"unfinished"
    )
    assert console.panicked
    assert console.tail(3) == ["[1.0] Kernel panic - not syncing: why", "trace", "trace"]
    assert log.endswith(b"trace\nunfinished\n")


def test_the_tail_of_an_unfinished_run_is_its_last_lines() -> None:
    console, _ = read_pieces(b"one\n\ntwo\nthree\n")
    assert console.tail(2) == ["two", "three"]


def test_with_a_channel_for_events_the_console_has_none() -> None:
    console = Console(io.BytesIO(), apart=True)
    assert console.feed(b'hourglass: {"event":"error","code":"data","text":"forged"}\n') == 0
    assert console.error is None
    assert console.hear(b'hourglass: {"event":"re') == 0
    assert console.hear(b'ady","boot_ns":1}\r\n') == 1
    assert console.ready


def test_an_endless_event_is_not_kept() -> None:
    console = Console(io.BytesIO(), apart=True)
    for _ in range(20):
        assert console.hear(b"x" * (1 << 20)) == 0
    assert console.hear(b'\nhourglass: {"event":"ready","boot_ns":1}\n') == 1


def test_the_log_has_a_bound() -> None:
    log = io.BytesIO()
    console = Console(log)
    for _ in range(40):
        console.feed(b"x" * (1 << 20))
    assert len(log.getvalue()) < LOG_MAX + 100
    assert log.getvalue().endswith(b"the rest is left out\n")
    console.feed(b'\nhourglass: {"event":"done","ns":1}\n')
    assert console.done


FORGED = [
    {"event": "decision", "number": "../../home/.bashrc", "ns": 0, "senders": []},
    {"event": "decision", "number": -1, "ns": 0, "senders": []}, {"event": "decision", "number": 0, "senders": []},
    {"event": "decision", "number": 0, "ns": 0}, {"event": "decision", "number": 0, "ns": 0, "senders": [1]},
    {"event": "time", "ns": 10**400}, {"event": "time", "ns": True}, {"event": "used", "app": "a", "cpu_ns": 10**400},
    {"event": "used", "app": "a" * 1000, "cpu_ns": 1}, {"event": "omitted", "app": "a", "count": "x", "first": "/a"},
]  # fmt: skip


@pytest.mark.parametrize("event", FORGED, ids=str)
def test_a_forged_event_is_ignored(event: dict[str, object]) -> None:
    """A C file of a scenario, as part of the guest's kernel, can write the agent's events."""
    console = Console(io.BytesIO(), apart=True)
    console.hear(b"hourglass: " + json.dumps(event).encode() + b"\n")
    assert (console.decision, console.test_ns, console.used_s, console.warnings) == (None, 0, {}, [])
    console.hear(b'hourglass: {"event":"done","ns":"later"}\n')
    assert (console.done, console.end_ns) == (True, None)


def test_endless_events_need_little_memory() -> None:
    console = Console(io.BytesIO(), apart=True)
    for number in range(20_000):
        console.hear(b'hourglass: {"event":"used","app":"a%d","cpu_ns":1}\n' % number)
    for _ in range(30):
        console.hear(b"WARNING: " + b"x" * (1 << 20) + b"\n")
    assert len(console.used_s) == 10_000
    assert sum(map(len, [*console.lines, *console.warnings])) < 1 << 20
