# SPDX-License-Identifier: Apache-2.0
"""`hourglass shell`: a shell in a node of a scenario's testbed, for somebody who types."""

import contextlib
import os
import select
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
TYPED, READ = COMMAND.format(option="-i"), "stty -echo -onlcr; " + COMMAND.format(option="")
"""Of a shell at a terminal; of one that reads a file."""
END_OF_INPUT, AGAIN_S = b"\4", 0.2
"""The end of a file, for each program that reads on."""


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
        threading.Thread(target=_carry, args=(ours,), daemon=True).start()
        try:
            done = runner.make(replace(prepared, engine=engine), Path(temporary) / "run")
        except GuestError as error:
            raise GuestError(error.reason, tail=error.tail) from None  # its log is gone with the folder
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


def _carry(guest: socket.socket) -> None:
    """What is typed goes in, what is printed comes out, until the guest is gone."""
    keyboard, waited, patience_s = sys.stdin.fileno(), [guest.fileno(), sys.stdin.fileno()], None
    with contextlib.suppress(OSError):
        while True:
            ready = select.select(waited, [], [], patience_s)[0]
            if keyboard in ready:
                typed = os.read(keyboard, 1024)
                guest.sendall(typed)
                if not typed:
                    waited, patience_s = [guest.fileno()], AGAIN_S
            if guest.fileno() in ready:
                printed = guest.recv(1 << 16)
                if not printed:
                    return
                os.write(sys.stdout.fileno(), printed)
            if not ready:
                guest.sendall(END_OF_INPUT)
