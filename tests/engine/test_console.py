# SPDX-License-Identifier: Apache-2.0
"""The console reader: events, the log, the kernel's complaints."""

import io

import pytest

from hourglass.engine.console import Console

STREAM = b"""[    0.0] Booting\r
hourglass: {"event":"ready","boot_ns":123}\r
hourglass: {"event":"time","ns":1000000000}\r
[    1.0] WARNING: CPU: 0 PID: 1 at net/x.c:1 f+0x1/0x2\r
half a line hourglass: {"event":"time","ns":2000000000}\r
hourglass: {not json\r
hourglass: {"event":"used","app":"curl","cpu_ns":250000000}\r
hourglass: {"event":"done"}\r
"""


def fed(*pieces: bytes) -> tuple[Console, bytes]:
    log = io.BytesIO()
    console = Console(log)
    for piece in pieces:
        console.feed(piece)
    console.close()
    return console, log.getvalue()


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_events_are_found_however_the_bytes_come(size: int) -> None:
    console, log = fed(*(STREAM[at : at + size] for at in range(0, len(STREAM), size)))
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


def test_the_number_of_events_is_given_and_log_lines_are_none() -> None:
    console = Console(io.BytesIO())
    assert console.feed(b"[0.0] x\nhourglass: {") == 0
    assert console.feed(b'"event":"ready"}\nhourglass: {"event":"done"}\n') == 2


def test_the_first_error_is_the_cause() -> None:
    line = b'hourglass: {"event":"error","origin":"stack.qdisc","message":"%s"}\n'
    console, _ = fed(line % b"first", line % b"second")
    assert console.error is not None
    assert console.error["message"] == "first"


def test_a_panic_is_seen_and_the_tail_begins_with_it() -> None:
    console, log = fed(b"a\n" * 50 + b"[1.0] Kernel panic - not syncing: why\n" + b"trace\n" * 30 + b"unfinished")
    assert console.panicked
    assert console.tail(3) == ["[1.0] Kernel panic - not syncing: why", "trace", "trace"]
    assert log.endswith(b"trace\nunfinished\n")


def test_the_tail_of_an_unfinished_run_is_its_last_words() -> None:
    console, _ = fed(b"one\n\ntwo\nthree\n")
    assert console.tail(2) == ["two", "three"]
