# SPDX-License-Identifier: Apache-2.0
"""The host's layers against a process that escaped the guest's kernel, each layer alone (attack.c)."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from hourglass.engine import doctor, engines
from hourglass.errors import InputError, MissingError
from hourglass.host import process, sandbox, syscall_filter

FILES = [
    "read", "list", "write", "truncate", "create", "mkdir", "unlink", "rename", "link", "symlink", "make-symlink",
    "move-link", "exec",
]  # fmt: skip
LANDLOCK_CALLS = ["tcp-connect", "tcp-bind", "signal", "ptrace", "memory"]
CALLS = [
    "tcp-connect", "tcp-bind", "vm-read", "socket", "netlink", "user-namespace", "mount", "fifo", "keys", "bpf",
    "io_uring", "perf", "x32", "clone-user-namespace", "clone-namespaces", "ptrace", "seize", "limits",
]  # fmt: skip
DENIED = [
    "truncate", "chmod", "fchmod", "chown", "times", "link", "rename", "symlink", "make-symlink", "move-link",
    "session", "process-group",
]  # fmt: skip
"""Calls that the filter refuses without a kill. Landlock knows only `truncate` and those about links."""
POSSIBLE = [
    *dict.fromkeys([*FILES, *DENIED]), "tcp-connect", "tcp-bind", "signal", "memory", "socket", "netlink", "fifo",
    "limits",
]  # fmt: skip
"""Attacks that succeed without a layer on every host that permits them to the user."""


@pytest.fixture(scope="module")
def attack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("attack") / "attack"
    subprocess.run(["gcc", "-static", "-O1", "-o", program, Path(__file__).with_name("attack.c")], check=True)
    return program


def attempt(
    attack: Path, action: str, host: Path, layers: set[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str]:
    """Return exit status and output of an attack under layers, in a new run directory."""
    monkeypatch.setattr(sandbox, "ENABLED", layers)
    (host / "secret").write_text("secret")
    (host / "secret").chmod(0o644)
    (host / "victim").write_text("victim")
    run = host / "run"
    (run / ".guest").mkdir(parents=True, exist_ok=True)
    (run / ".guest/root.cpio").symlink_to(host / "secret")
    rules = [(run, sandbox.WRITE_PLAIN), (attack, sandbox.RUN)]
    with (
        sandbox.confinement(rules, filtered=True) as confine,
        process.group([attack, action, host], run, {}, confine=confine) as child,
    ):
        assert child.stdout is not None
        output = child.stdout.read().decode()
        return child.wait(), output


def needs(version: int) -> None:
    if sandbox.layers().landlock < version:
        pytest.skip(f"no native runs here: Landlock {version} is not in this kernel")


@pytest.mark.parametrize("action", POSSIBLE)
def test_without_a_layer_an_attack_succeeds(
    attack: Path, action: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert attempt(attack, action, tmp_path, set(), monkeypatch)[0] == 0


@pytest.mark.parametrize("action", [*FILES, *LANDLOCK_CALLS])
def test_landlock_alone_refuses(attack: Path, action: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs({"truncate": 3, "tcp-connect": 4, "tcp-bind": 4, "signal": 6}.get(action, 1))
    status, output = attempt(attack, action, tmp_path, {sandbox.LANDLOCK}, monkeypatch)
    assert status == 1
    assert any(reason in output for reason in ("Permission denied", "not permitted", "cross-device")), output
    assert (tmp_path / "secret").read_text() == "secret"
    assert {path.name for path in tmp_path.iterdir()} == {"secret", "victim", "run"}


@pytest.mark.parametrize("action", CALLS)
def test_the_filter_alone_kills(attack: Path, action: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert attempt(attack, action, tmp_path, {sandbox.SECCOMP}, monkeypatch)[0] == -signal.SIGSYS


@pytest.mark.parametrize("action", DENIED)
def test_the_filter_alone_denies(attack: Path, action: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, output = attempt(attack, action, tmp_path, {sandbox.SECCOMP}, monkeypatch)
    assert (status, "not permitted" in output) == (1, True), output
    facts = (tmp_path / "secret").stat()
    assert (facts.st_mode & 0o777, facts.st_size) == (0o644, 6)
    assert facts.st_mtime > 0


def test_with_both_layers_the_run_directory_can_be_used(
    attack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert attempt(attack, "own", tmp_path, {sandbox.LANDLOCK, sandbox.SECCOMP}, monkeypatch)[0] == 0
    assert (tmp_path / "run" / "own").is_file()


def test_a_required_sandbox_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "ENABLED", {sandbox.SECCOMP})
    monkeypatch.setenv(sandbox.REQUIRED, "1")
    with pytest.raises(MissingError, match="this host has seccomp"), sandbox.confinement([], filtered=True):
        pass


@pytest.mark.parametrize(
    ("landlock", "seccomp", "detail"),
    [
        (7, True, "guests are confined by landlock 7 and seccomp"),
        (7, False, "guests are confined by landlock 7"),
        (0, True, "guests are confined by seccomp"),
        (0, False, "guests are not confined"),
    ],
)
def test_doctor_names_the_layers(landlock: int, seccomp: bool, detail: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "layers", lambda: sandbox.Layers(landlock, seccomp))
    check = doctor.confinement()
    assert check.detail == detail
    assert check.ok == (not check.remedy) == (landlock > 0 and seccomp)
    assert not check.needed
    assert check in doctor.check()


@pytest.mark.parametrize("name", ["native", "ssh"])
def test_an_engine_without_a_sandbox_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engines.get(name)
    monkeypatch.setenv(sandbox.REQUIRED, "1")
    with pytest.raises(InputError, match="only the virtual engine has it"):
        engines.get(name)


def test_the_filter_names_each_call_once() -> None:
    groups = (
        syscall_filter.MEMORY,
        syscall_filter.PROCESSES,
        syscall_filter.CLOCKS,
        syscall_filter.DESCRIPTORS,
        syscall_filter.FILES,
        syscall_filter.ABSENT,
        syscall_filter.DENIED,
    )
    numbers = [number for group in groups for number in group.values()]
    numbers += [check.number for check in syscall_filter.CHECKED.values()]
    assert len(numbers) == len(set(numbers))
    assert len(syscall_filter.ALLOWED) < 250, "a jump of the filter is one byte"
    assert not {"socket", "connect", "mount", "unshare", "setns", "bpf", "io_uring_setup", "keyctl"} & set(
        syscall_filter.ALLOWED
    )


def test_descriptors_are_not_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest inherits only its output, the passed descriptors and its environment."""
    secret = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(secret, True)
    listing = ["/bin/sh", "-c", "ls /proc/self/fd | wc -l; env | grep -v PWD | sort"]
    with process.group(listing, tmp_path, {"ONLY": "this", "PATH": "/usr/bin:/bin"}) as child:
        assert child.stdout is not None
        lines = child.stdout.read().decode().split()
    os.close(secret)
    assert int(lines[0]) == 4, "three and the listing's own"
    assert {"ONLY=this", "PATH=/usr/bin:/bin"} <= set(lines[1:])
