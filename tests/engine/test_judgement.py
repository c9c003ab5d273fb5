# SPDX-License-Identifier: Apache-2.0
"""The verdict on a guest's end, and the place of its memory; no guest boots."""

import errno
import io
import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from hourglass.builders import root
from hourglass.builders.kernel.built import BuiltKernel
from hourglass.engine import virtual
from hourglass.engine.console import Console
from hourglass.engine.host_conditions import HostUse
from hourglass.engine.supervise import Stop
from hourglass.errors import GuestError, HostError, HourglassError, InputError

from .plans import small_plan


def console_with(text: str) -> Console:
    """Return a console that read a text."""
    console = Console(io.BytesIO())
    console.feed(text.encode())
    return console


def verdict(
    text: str, directory: Path, stuck: Stop | None = None, status: int = 1, before: HostUse | None = None
) -> HourglassError:
    """Return the error for a guest's end."""
    with pytest.raises(HourglassError) as raised:
        virtual.judge(console_with(text), stuck, status, directory, before or HostUse.now())
    return raised.value


def test_a_complete_run_succeeds_with_any_exit_status(tmp_path: Path) -> None:
    (tmp_path / "records.arrows").touch()
    console = console_with('tmpfs: Unknown parameter "Kernel panic - not syncing"\nhourglass: {"event":"done"}\n')
    virtual.judge(console, Stop("not-ended", "did not power off"), -9, tmp_path, HostUse.now())


def test_a_run_without_records_fails(tmp_path: Path) -> None:
    assert isinstance(verdict('hourglass: {"event":"done"}\n', tmp_path), GuestError)


@pytest.mark.parametrize(
    ("name", "number", "code", "explanation"),
    [
        ("core/rmem_max", errno.EACCES, "sysctl-shared", "Permission denied; this sysctl belongs to the whole kernel"),
        ("core/rmem", errno.ENOENT, "sysctl-missing", "No such file or directory; no node has this sysctl"),
        ("ipv4/tcp_tsq_mode", errno.ENOENT, "sysctl-unpatched", "lacks the patch that adds it"),
        ("core/rmem_max", errno.EINVAL, "system", "Invalid argument"),
        ("core/rmem_max", errno.ENOSPC, "system", "No space left on device"),
    ],
)
def test_a_sysctl_that_no_node_has_is_explained(
    name: str, number: int, code: str, explanation: str, tmp_path: Path
) -> None:
    path = f"/proc/sys/net/{name}"
    step = {"origin": "stack.sysctl", "step": "write", "line": f"{path} = 1"}
    event = {"event": "error", "code": "system", "what": path, "errno": number, **step}
    error = verdict(f"hourglass: {json.dumps(event)}\n", tmp_path)
    assert isinstance(error, InputError)
    assert error.code == code
    assert f"stack.sysctl = '{path} = 1': refused in step write: {path}: " in str(error)
    assert explanation in str(error)
    assert (error.fields["errno"], error.fields["line"]) == (number, f"{path} = 1")


def test_a_missing_qdisc_is_named(tmp_path: Path) -> None:
    step = {"origin": "stack.qdisc", "step": "tc", "line": "qdisc add dev eth0 root handle 1: fq_pie"}
    event = {"event": "error", "code": "tool-failed", "text": "Error: Specified qdisc kind is unknown.", **step}
    error = verdict(f"hourglass: {json.dumps(event)}\n", tmp_path)
    assert (error.code, error.fields["kind"]) == ("qdisc-missing", "fq_pie")
    assert "stack.qdisc = 'fq_pie': is missing in this kernel; on a real kernel, as root: modprobe sch_fq_pie" in str(
        error
    )


def test_a_missing_congestion_control_is_named(tmp_path: Path) -> None:
    text = '{"event":"error","subject":"flow 1","code":"congestion-control-missing","cc":"bbr3","errno":2}'
    error = verdict(f"hourglass: {text}\n", tmp_path)
    assert isinstance(error, InputError)
    assert (error.code, error.fields["subject"]) == ("congestion-control-missing", "flow 1")
    assert "'bbr3': is missing in this kernel; as root: modprobe tcp_bbr3" in str(error)


def test_a_program_that_others_wait_for_is_quoted(tmp_path: Path) -> None:
    step = {"origin": "app.1", "step": "app", "node": "router", "line": "sh -c \nset -e\nserver"}
    failure = {"program": "server", "ending": "exit status 1", "waiting": "client"}
    output = "reading /etc/server.conf\nline 3: unknown word"
    event = {"event": "error", "code": "program-not-ready", "output": output, **failure, **step}
    assert str(verdict(f"hourglass: {json.dumps(event)}\n", tmp_path)) == (
        "app.1 = 'sh -c …': on node router, server ended (exit status 1) before it was ready, and client waits for it; "
        "its last output: reading /etc/server.conf | line 3: unknown word; "
        f"all of it: {tmp_path}/apps/server.stdout and .stderr"
    )


def test_an_invalid_event_of_a_hostile_host_is_one_message(tmp_path: Path) -> None:
    event = '{"event":"error","code":"system","what":[NaN],"errno":1e400,"more":"text","node":{}}'
    error = verdict(f"hourglass: {event}\n", tmp_path)
    assert (error.code, error.fields) == ("system", {})
    error = verdict('hourglass: {"event":"error","code":"no-such-code"}\n', tmp_path)
    assert (error.code, str(error).splitlines()[0]) == ("guest", "the plan failed: unknown reason")
    error = verdict(f'hourglass: {{"event":"error","code":"unreachable","timeout_ns":{10**400}}}\n', tmp_path)
    assert error.code == "unreachable"


@pytest.mark.parametrize(
    ("text", "kind", "code", "reason"),
    [
        ("[1.0] Kernel panic - not syncing: VFS\n", GuestError, "guest-panic", "kernel panicked"),
        ("[1.0] Kernel panic - not syncing: Out of memory: x\n", GuestError, "guest-memory", "ran out of memory"),
        (
            "[1.0] Out of memory: Killed process 38 (init)\n"
            'hourglass: {"event":"error","code":"container-ended","container":"a"}\n',
            GuestError,
            "guest-memory",
            "ran out of memory",
        ),
        ("", GuestError, "ended-early", "exit status 1), before its agent started; to examine this machine: hourglass"),
        ("start_userspace : clone failed, errno = 11\n", HostError, "host-limit", "the host permits no more processes"),
        (
            'hourglass: {"event":"error","code":"system","what":"records","errno":28}\n',
            HourglassError,
            "disk-full",
            "no space left",
        ),
        (
            'hourglass: {"event":"error","origin":"stack.cc","line":"x","code":"tool-failed","text":"m"}\n',
            InputError,
            "tool-failed",
            "stack.cc = 'x'",
        ),
    ],
)
def test_each_end_has_its_error(text: str, kind: type[HourglassError], code: str, reason: str, tmp_path: Path) -> None:
    error = verdict(text, tmp_path)
    assert (type(error), error.code) == (kind, code)
    assert reason in str(error)


@pytest.mark.parametrize(
    "line",
    [
        "copy_context_skas0 - stub-parent reports error 11",
        "UML ran out of memory on the host side! This can happen due to a memory limitation",
    ],
)
def test_a_refusal_of_the_host_fails_a_complete_run(line: str, tmp_path: Path) -> None:
    """A program of the guest saw an error that depends on the host."""
    (tmp_path / "records.arrows").touch()
    assert verdict(f'{line}\nhourglass: {{"event":"done"}}\n', tmp_path, status=0).code == "host-limit"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('hourglass: {"event":"ready"}\n', -signal.SIGKILL),
        ('hourglass: {"event":"ready"}\n[1.0] Kernel panic - not syncing: Attempted to kill init!\n', 0),
        ('hourglass: {"event":"error","origin":"stack.cc","line":"x","code":"tool-failed","text":"m"}\n', 0),
    ],
)
def test_a_process_that_the_host_killed_for_memory_is_the_cause(text: str, status: int, tmp_path: Path) -> None:
    now = HostUse.now()
    error = verdict(text, tmp_path, status=status, before=replace(now, kills=now.kills - 1))
    assert isinstance(error, HostError)
    assert error.code == "host-memory"
    assert error.log == tmp_path / "console.log"
    assert str(error).startswith("the host killed the guest for lack of memory: ")
    assert error.with_log(None).lack is error.lack
    assert verdict(text, tmp_path, status=status, before=now).code != "host-memory"


@pytest.mark.parametrize(
    "text", ["Kernel panic - not syncing: Kernel mode signal 7\n", "start_userspace : clone failed, errno = 12\n"]
)
def test_memory_that_the_host_refused_is_the_cause(text: str, tmp_path: Path) -> None:
    """With vm.overcommit_memory = 2 the host bounds the memory that all processes reserve."""
    error = verdict(text, tmp_path)
    assert error.code == "host-memory"
    assert str(error).startswith("the host refused memory to the guest: ")


def test_a_guest_that_used_the_hosts_cpu_time(tmp_path: Path) -> None:
    error = verdict('hourglass: {"event":"ready"}\n', tmp_path, status=-signal.SIGXCPU)
    assert "the guest used all of the CPU time that the host permits" in str(error)


def test_a_stopped_guest_has_the_code_of_its_hang(tmp_path: Path) -> None:
    error = verdict('hourglass: {"event":"ready"}\n', tmp_path, Stop("guest-spins", "spins: its clock has not moved"))
    assert (error.code, str(error).splitlines()[0]) == (
        "guest-spins",
        "the guest spins: its clock has not moved; it was stopped",
    )


def test_a_guest_killed_by_its_sandbox_is_one_message(tmp_path: Path) -> None:
    console = Console((tmp_path / "console.log").open("wb"))
    with pytest.raises(GuestError, match="a system call that its sandbox forbids"):
        virtual.judge(console, None, -signal.SIGSYS, tmp_path, HostUse.now())


def test_a_full_disk_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(root, "image", full)
    kernel = BuiltKernel("n", "6.1.0", "k", tmp_path, tmp_path, 1000)
    with pytest.raises(HourglassError, match="no space left on the disk"):
        virtual.Virtual(kernel).run(small_plan(), tmp_path)
    assert not (tmp_path / virtual.PRIVATE).exists()
