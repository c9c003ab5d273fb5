# SPDX-License-Identifier: Apache-2.0
"""`hourglass shell`: a shell in a node of a scenario's testbed, for somebody who types."""

import contextlib
import os
import shutil
import socket
import sys
import tempfile
import termios
import threading
import tty
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hourglass import runner, scenario
from hourglass.cli import progress
from hourglass.cli.execute import status, with_command
from hourglass.engine.virtual import Terminal, Virtual
from hourglass.errors import GuestError

NAME = "shell"
LENGTH_S = 86_400
HELLO = "in real time: programs compute in no time, but time goes on as fast as yours. Same bytes twice: hourglass exec"
COMMAND = "for shell in /bin/bash /bin/sh; do [ -x $shell ] && exec $shell {option}; done"
TYPED = COMMAND.format(option="-i")
"""A shell at a terminal."""
READ = """
stty -echo -onlcr; echo; exec 3<&0; mkfifo /tmp/.stdin || exit
while IFS= read -r part; do printf %b "$part"; done <&3 >/tmp/.stdin &
exec </tmp/.stdin 3<&-; rm /tmp/.stdin
""" + COMMAND.format(option="")
"""One that reads a file or a pipe, whose bytes come through the terminal as `_spelled`: a line of a terminal is not as
long as a file's may be, and some bytes are orders to it."""
PART = 256
"""Bytes of a file in a line of the terminal, which are at most five times as many there: it takes 4,095."""
END_OF_INPUT = b"\4"
SPELLED = [bytes([byte]) if 32 <= byte < 127 and byte != ord("\\") else b"\\0%03o" % byte for byte in range(256)]


def shell(
    source: str,
    node: str | None,
    settings: list[str],
    seed: int | None,
    kernel: str | None,
    root: str | None,
    packages: list[str],
) -> int:
    """Until the shell ends; gives its exit status."""
    base = scenario.load(source, settings, seed=seed, kernel=kernel)
    node = node or base.test.client
    wanted = with_command(
        base,
        node,
        ["/bin/sh", "-c", TYPED if sys.stdin.isatty() else READ],
        root,
        packages,
        NAME,
        LENGTH_S,
        _environment(node),
    )
    with progress.shown() as shown:
        prepared = runner.prepare(wanted, Virtual.name, shown)
    ours, theirs = socket.socketpair()
    print(f"hourglass: a shell in {node}, {HELLO}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="hourglass-") as temporary, ours, theirs, _raw():
        assert isinstance(prepared.engine, Virtual)
        engine = replace(prepared.engine, terminal=Terminal(NAME, theirs.fileno()))
        there = threading.Event()
        printing = threading.Thread(target=_print, args=(ours, there), daemon=True)
        printing.start()
        threading.Thread(target=_type, args=(ours, there), daemon=True).start()
        try:
            done = runner.make(replace(prepared, engine=engine), Path(temporary) / "run")
        except GuestError as error:
            raise GuestError(error.reason, tail=error.tail) from None  # its log is gone with the folder
        theirs.close()
        printing.join()
    return status(done.apps[NAME])


def _environment(node: str) -> dict[str, str]:
    size = shutil.get_terminal_size()
    return {
        **({"PS1": f"{node}:$PWD# "} if sys.stdin.isatty() else {"PS1": "", "PS2": ""}),
        "TERM": os.environ.get("TERM", "dumb"),
        "COLUMNS": str(size.columns),
        "LINES": str(size.lines),
    }


@contextlib.contextmanager
def _raw() -> Iterator[None]:
    """The terminal, if stdin is one, gives what is typed as it is; the guest's terminal makes lines of it."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _print(guest: socket.socket, there: threading.Event) -> None:
    """What is printed comes out, until the guest is gone; with its first word the shell is there. Where nobody reads
    what comes out, the terminal is hung up."""
    if not sys.stdin.isatty():
        guest.recv(1)
        there.set()
    while printed := guest.recv(1 << 16):
        there.set()
        try:
            while printed:
                printed = printed[os.write(sys.stdout.fileno(), printed) :]
        except OSError:
            guest.shutdown(socket.SHUT_RDWR)


def _type(guest: socket.socket, there: threading.Event) -> None:
    """What is typed goes in, once somebody listens; what comes before, some kernels do not notice."""
    there.wait()
    spelled = bytes if sys.stdin.isatty() else _spelled
    with contextlib.suppress(OSError):
        while typed := os.read(sys.stdin.fileno(), 1024):
            guest.sendall(spelled(typed))
        guest.sendall(END_OF_INPUT)


def _spelled(content: bytes) -> bytes:
    """Lines for the guest's `printf %b`, each but a part of the content."""
    parts = (content[place : place + PART] for place in range(0, len(content), PART))
    return b"".join(b"".join(SPELLED[byte] for byte in part) + b"\n" for part in parts)
