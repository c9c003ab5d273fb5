# SPDX-License-Identifier: Apache-2.0
"""`hourglass exec -it`: input from a terminal and from a file, in real time."""

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
from tests.clocks import HANG_S, at_least, until

pytestmark = pytest.mark.guest

SHELL = [sys.executable, "-c", "from hourglass.cli import main; main()", "exec", "-it"]


def read(typed: bytes, kernel: str = DEFAULT) -> subprocess.CompletedProcess[bytes]:
    """Return the output of a shell whose stdin is no terminal."""
    command = [*SHELL, "--kernel", kernel, "L100M"]
    return subprocess.run(command, input=typed, capture_output=True, timeout=HANG_S, check=False)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_shell_reads_a_file_and_has_its_exit_status(kernel: str) -> None:
    with at_least(1.0):  # ping waits a second
        result = read(b"hostname -s || cat /etc/hostname; ping -c 2 server\nexit 3\n", kernel)
    assert result.returncode == 3, result.stderr
    assert b"client" in result.stdout
    assert b"2 packets transmitted, 2 received" in result.stdout
    assert b"in real time" in result.stderr


@pytest.mark.parametrize("kernel", KERNELS)
def test_piped_bytes_arrive_in_a_shell_exactly(kernel: str) -> None:
    """The lines are longer than a terminal's and contain control bytes. Nothing else is at the end."""
    all_bytes = bytes(byte for byte in range(1, 256) if byte not in b"\n'")
    result = read(b"printf %s '" + b"x" * 60_000 + b"' | cksum\nprintf %s '" + all_bytes + b"' | cksum\n", kernel)
    sums = [
        subprocess.run(["cksum"], input=piped, capture_output=True, check=True).stdout
        for piped in (b"x" * 60_000, all_bytes)
    ]
    assert (result.stdout, result.returncode) == (b"".join(sums), 0)


class Typist:
    """A terminal that controls the shell."""

    def __init__(self, terminal: int) -> None:
        self.terminal = terminal

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def read_to(self, text: str) -> str:
        """Return the output up to a text."""
        output = ""

        def complete() -> bool:
            nonlocal output
            if select.select([self.terminal], [], [], 0)[0]:
                output += os.read(self.terminal, 4096).decode()
            return text in output

        until(complete, lambda: output)
        return output


@contextmanager
def at_a_terminal(*arguments: str) -> Iterator[Typist]:
    controller, terminal = pty.openpty()
    child = subprocess.Popen(
        [*SHELL, *arguments], stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    )
    os.close(terminal)
    try:
        yield Typist(controller)
    finally:
        child.terminate()
        child.wait(HANG_S)
        os.close(controller)


@pytest.mark.slow
def test_at_a_terminal_keys_arrive_at_once_and_time_is_real() -> None:
    with at_a_terminal("L100M", "server") as typist:
        typist.read_to("server:/$ ")
        typist.type("echo $((6*7))\r")
        typist.read_to("42\r\n")
        typist.type("sleep 100\r")
        typist.read_to("100\r\n")
        time.sleep(0.5)
        typist.type("\x03")
        typist.read_to("server:/$ ")
        with at_least(0.9):
            typist.type("sleep 1; echo o''ver\r")
            typist.read_to("over")
