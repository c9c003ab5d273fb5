# SPDX-License-Identifier: Apache-2.0
"""`hourglass shell`: what is typed into it, at a terminal and from a file, and that its time is the wall clock's."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hourglass.contract.kernels import DEFAULT, KERNELS

pytestmark = pytest.mark.guest

SHELL = [sys.executable, "-c", "from hourglass.cli.app import app; app()", "shell"]
PATIENCE_S = 60


def read(typed: bytes, kernel: str = DEFAULT) -> subprocess.CompletedProcess[bytes]:
    """A shell of which stdin is no terminal."""
    words = [*SHELL, "--kernel", kernel, "L100M"]
    return subprocess.run(words, input=typed, capture_output=True, timeout=PATIENCE_S, check=False)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_shell_reads_a_file_and_ends_as_it_says(kernel: str) -> None:
    begun = time.monotonic()
    done = read(b"hostname -s || cat /etc/hostname; ping -c 2 server\nexit 3\n", kernel)
    assert done.returncode == 3, done.stderr
    assert b"client" in done.stdout
    assert b"2 packets transmitted, 2 received" in done.stdout
    assert time.monotonic() - begun > 1, "ping waits a second"
    assert b"in real time" in done.stderr


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_piped_into_a_shell_arrives_to_the_byte(kernel: str) -> None:
    """Lines longer than a terminal's, bytes that are orders to one, nothing more at the end."""
    every = bytes(byte for byte in range(1, 256) if byte not in b"\n'")
    done = read(b"printf %s '" + b"x" * 60_000 + b"' | cksum\nprintf %s '" + every + b"' | cksum\n", kernel)
    sums = [
        subprocess.run(["cksum"], input=one, capture_output=True, check=True).stdout for one in (b"x" * 60_000, every)
    ]
    assert (done.stdout, done.returncode) == (b"".join(sums), 0)


class Typist:
    """A terminal with the shell on it."""

    def __init__(self, terminal: int) -> None:
        self.terminal = terminal

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def read_to(self, words: str) -> str:
        """What is printed until these words have been."""
        seen, end = "", time.monotonic() + PATIENCE_S
        while words not in seen:
            assert time.monotonic() < end, seen
            if select.select([self.terminal], [], [], 1)[0]:
                seen += os.read(self.terminal, 4096).decode()
        return seen


@contextmanager
def at_a_terminal(*words: str) -> Iterator[Typist]:
    ours, theirs = pty.openpty()
    child = subprocess.Popen([*SHELL, *words], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    try:
        yield Typist(ours)
    finally:
        child.terminate()
        child.wait(PATIENCE_S)
        os.close(ours)


def test_at_a_terminal_keys_are_heard_at_once_and_time_is_ours() -> None:
    with at_a_terminal("L100M", "server") as typist:
        typist.read_to("server:/# ")
        typist.type("echo $((6*7))\r")
        typist.read_to("42\r\n")
        typist.type("sleep 100\r")
        typist.read_to("100\r\n")
        time.sleep(0.5)
        typist.type("\x03")
        typist.read_to("server:/# ")
        begun = time.monotonic()
        typist.type("sleep 1; echo o''ver\r")
        typist.read_to("over")
        assert 0.9 < time.monotonic() - begun < 20, "a second, or more where the machine does not keep up"
