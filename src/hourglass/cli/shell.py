# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass exec -it`: an interactive shell in a node of a scenario's testbed."""

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
from hourglass.cli import notice, progress
from hourglass.cli.guest_command import status, with_command
from hourglass.engine.virtual import Terminal, Virtual
from hourglass.errors import GuestError, ProgramError

NAME = "shell"
LENGTH_S = 86_400
HELLO = (
    "in real time: programs take no virtual time, and the clock is never faster than yours. For"
    " equal bytes: hourglass exec"
)
COMMAND = "for shell in /bin/bash /bin/sh; do [ -x $shell ] && exec $shell {option}; done"
TERMINAL_SHELL = COMMAND.format(option="-i")
"""A shell at a terminal."""
PIPED_SHELL = """
stty -echo -onlcr; echo; exec 3<&0; mkfifo /tmp/.stdin || exit
while IFS= read -r part; do printf %b "$part"; done <&3 >/tmp/.stdin &
exec </tmp/.stdin 3<&-; rm /tmp/.stdin
""" + COMMAND.format(option="")
"""A shell that reads a file or a pipe. The bytes pass through the terminal in the encoding of `_encoded`: a terminal
limits the length of lines, and some bytes control it."""
PART = 256
"""Bytes of the input in a line of the terminal. Encoded they are at most five times as many; a line holds 4,095."""
END_OF_INPUT = b"\4"
ENCODED = [bytes([byte]) if 32 <= byte < 127 and byte != ord("\\") else b"\\0%03o" % byte for byte in range(256)]


def shell(
    source: str,
    node: str | None,
    settings: list[str],
    seed: int | None,
    kernel: str | None,
    root: str | None,
    packages: list[str],
    user: str | None,
) -> int:
    """Run the shell until it ends and return its exit status."""
    base = scenario.load(source, settings, seed=seed, kernel=kernel)
    notice.warn(source, base)
    node = node or base.test.client
    resolved = with_command(
        base,
        node,
        ["/bin/sh", "-c", TERMINAL_SHELL if sys.stdin.isatty() else PIPED_SHELL],
        root,
        packages,
        user,
        NAME,
        LENGTH_S,
        _environment(node),
    )
    with progress.display() as display:
        prepared = runner.prepare(resolved, Virtual.name, display)
    terminal, guest_end = socket.socketpair()
    print(f"hourglass: a shell in {node}, {HELLO}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="hourglass-") as temporary, terminal, guest_end, _raw():
        assert isinstance(prepared.engine, Virtual)
        engine = replace(prepared.engine, terminal=Terminal(NAME, guest_end.fileno()))
        started = threading.Event()
        printing = threading.Thread(target=_print, args=(terminal, started), daemon=True)
        printing.start()
        threading.Thread(target=_type, args=(terminal, started), daemon=True).start()
        try:
            recording = runner.make(replace(prepared, engine=engine), Path(temporary) / "run")
        except GuestError as error:
            raise error.with_log(None) from None  # its log was deleted with the folder
        except ProgramError as error:
            raise error.with_output(None) from None
        guest_end.close()
        printing.join()
    return status(recording.apps[NAME])


def _environment(node: str) -> dict[str, str]:
    size = shutil.get_terminal_size()
    return {
        **({"PS1": f"{node}:$PWD\\$ "} if sys.stdin.isatty() else {"PS1": "", "PS2": ""}),
        "TERM": os.environ.get("TERM", "dumb"),
        "COLUMNS": str(size.columns),
        "LINES": str(size.lines),
    }


@contextlib.contextmanager
def _raw() -> Iterator[None]:
    """Switch a terminal at stdin to raw input: line editing is done by the guest's terminal."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _print(guest: socket.socket, started: threading.Event) -> None:
    """Print the guest's output until it ends. The first output shows that the shell has started. If the output has
    no reader, hang up the terminal."""
    if not sys.stdin.isatty():
        guest.recv(1)
        started.set()
    while content := guest.recv(1 << 16):
        started.set()
        try:
            while content:
                content = content[os.write(sys.stdout.fileno(), content) :]
        except OSError:
            guest.shutdown(socket.SHUT_RDWR)


def _type(guest: socket.socket, started: threading.Event) -> None:
    """Send the input once the shell has started, because some kernels drop earlier input."""
    started.wait()
    encode = bytes if sys.stdin.isatty() else _encoded
    with contextlib.suppress(OSError):
        while content := os.read(sys.stdin.fileno(), 1024):
            guest.sendall(encode(content))
        guest.sendall(END_OF_INPUT)


def _encoded(content: bytes) -> bytes:
    """Encode the content for the guest's `printf %b`: one line per `PART` bytes."""
    parts = (content[start : start + PART] for start in range(0, len(content), PART))
    return b"".join(b"".join(ENCODED[byte] for byte in part) + b"\n" for part in parts)
