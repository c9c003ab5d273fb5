# SPDX-License-Identifier: Apache-2.0
"""What a guest's end is taken for, and where its memory goes; nothing is booted."""

import io
import json
from pathlib import Path

import pytest

from hourglass.engine import root, virtual
from hourglass.engine.console import Console
from hourglass.engine.kernel.built import BuiltKernel
from hourglass.errors import GuestError, HourglassError, InputError, MissingError

from .plans import small_plan


def after(text: str) -> Console:
    """A console on which a text was printed."""
    console = Console(io.BytesIO())
    console.feed(text.encode())
    return console


def verdict(text: str, directory: Path, stuck: str | None = None, status: int = 1) -> HourglassError:
    """The error that an end stands for."""
    with pytest.raises(HourglassError) as raised:
        virtual.judge(after(text), stuck, status, directory)
    return raised.value


def test_done_with_records_is_good_whatever_the_exit_status(tmp_path: Path) -> None:
    (tmp_path / "records.arrows").touch()
    virtual.judge(after('hourglass: {"event":"done"}\n'), "did not power off", -9, tmp_path)


def test_done_without_records_is_not(tmp_path: Path) -> None:
    assert isinstance(verdict('hourglass: {"event":"done"}\n', tmp_path), GuestError)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Permission denied", "is of the whole kernel, not of a node"),
        ("No such file or directory", "no node has such a sysctl"),
        ("Invalid argument", "Invalid argument"),
    ],
)
def test_a_sysctl_that_no_node_has_is_explained(message: str, words: str, tmp_path: Path) -> None:
    path = "/proc/sys/net/core/rmem_max"
    event = {"event": "error", "origin": "stack.sysctl", "step": "write", "line": f"{path} = 1", "message": message}
    assert words in str(verdict(f"hourglass: {json.dumps(event)}\n", tmp_path))


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("[1.0] Kernel panic - not syncing: VFS\n", GuestError, "kernel panicked"),
        ("[1.0] Kernel panic - not syncing: Out of memory: x\n", GuestError, "has no memory left"),
        (
            '[1.0] Out of memory: Killed process 38 (init)\nhourglass: {"event":"error","message":"the room ended"}\n',
            GuestError,
            "has no memory left",
        ),
        ("check_ptrace : PTRACE_TRACEME: Operation not permitted\n", MissingError, "forbids ptrace"),
        ("", GuestError, "exit status 1"),
        ('hourglass: {"event":"error","message":"write: No space left on device"}\n', HourglassError, "no space left"),
        ('hourglass: {"event":"error","origin":"stack.cc","line":"x","message":"m"}\n', InputError, "stack.cc = 'x'"),
    ],
)
def test_verdicts(text: str, kind: type[HourglassError], words: str, tmp_path: Path) -> None:
    error = verdict(text, tmp_path)
    assert type(error) is kind
    assert words in str(error)


def test_no_place_for_the_guest_s_memory_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual, "executable", lambda _: False)
    with pytest.raises(MissingError, match="TMPDIR"):
        virtual.memory_folder()


def test_a_full_disk_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(root, "image", full)
    kernel = BuiltKernel("n", "6.1.0", "k", tmp_path, tmp_path, 1000)
    with pytest.raises(HourglassError, match="no space left on the disk"):
        virtual.Virtual(kernel).run(small_plan(), tmp_path)
    assert not (tmp_path / virtual.PRIVATE).exists()
