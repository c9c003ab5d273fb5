# SPDX-License-Identifier: Apache-2.0
"""A C file of a scenario controls the guest's kernel and attacks the host (`hostile_kernel.c`). Layer 4 stops it.

Without the layer each attack succeeds, so it is the layer that holds.
"""

import errno
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hourglass import runner, scenario
from hourglass.contract.kernels import DEFAULT
from hourglass.engine.virtual import Virtual, train
from hourglass.errors import GuestError
from hourglass.host import sandbox
from hourglass.results.run_directory import open_run

from .host_state import unchanged
from .test_rooms import run

pytestmark = [pytest.mark.guest, pytest.mark.real_time, pytest.mark.kernels]

KERNEL_CODE = Path(__file__).with_name("hostile_kernel.c")
DENIED = {
    **dict.fromkeys(("read", "list", "write", "create", "mkdir", "unlink", "passwd", "exec"), -errno.EACCES),
    **dict.fromkeys(("chmod", "symlink", "session", "process-group", "signal"), -errno.EPERM),
}
"""Attacks that fail, and how."""
KILLED = {1: "socket", 2: "unshare", 3: "ptrace", 4: "io_uring_setup", 5: "bpf"}
"""Attacks that end the guest."""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Return a folder of the host. Runs in it have its files one folder above."""
    (tmp_path / "secret").write_text("only the host has this")
    (tmp_path / "victim").write_text("victim")
    return tmp_path


def attacked(host: Path, attack: int) -> dict[str, int]:
    """Return the results of an attack, by name."""
    run(host / "run", hostile(attack))
    return results(host / "run/console.log")


def hostile(attack: int) -> dict[str, Any]:
    """Return a scenario whose C file makes an attack."""
    cc = {"file": str(KERNEL_CODE), "parameters": {"attack": attack}}
    return {"name": "hostile", "testbed": {"preset": "L100M"}, "stack": {"cc": cc}, "test": {"length": 1, "delay": 0}}


def needs_landlock() -> None:
    if sandbox.layers().landlock < 6:
        pytest.skip("no native runs here: Landlock 6 is not in this kernel")


def results(console: Path) -> dict[str, int]:
    return {name: int(number) for name, number in re.findall(r"attack ([\w-]+): (-?\d+)", console.read_text())}


def test_code_in_the_guests_kernel_reaches_no_file_or_process_of_the_host(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(sandbox.REQUIRED, "1")
    needs_landlock()
    with unchanged(host, except_for={"run"}):
        assert attacked(host, 0) == {"own": 0} | DENIED
    assert open_run(host / "run").info.sandbox == sandbox.layers().names


@pytest.mark.parametrize("attack", KILLED)
def test_a_call_that_user_mode_linux_does_not_make_ends_the_guest(
    host: Path, attack: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(sandbox.REQUIRED, "1")
    with unchanged(host, except_for={"run.failed"}), pytest.raises(GuestError) as raised:
        attacked(host, attack)
    assert raised.value.code == "guest-sandbox"
    assert results(host / "run.failed/console.log") == {}
    assert json.loads((host / "run.failed/run.json").read_bytes())["sandbox"] == sandbox.layers().names


def test_each_layer_of_the_guests_kernel_refuses_alone(host: Path) -> None:
    """Programs meet another refusal first: they are not in the first namespaces of processes and control groups. The
    kernel starts no helper at all."""
    assert attacked(host, 7) == {
        "hostfs-option": -errno.EINVAL, "hostfs-again": -errno.EPERM,
        "cgroup": -errno.ENOENT, "cgroup-controller": -errno.EINVAL,
    }  # fmt: skip


def test_a_file_that_is_too_large_ends_the_guest(host: Path) -> None:
    """The engine reads the records after the run: an endless file would keep it busy for hours."""
    with pytest.raises(GuestError, match="signal 25"):
        attacked(host, 6)


def test_a_kernel_in_training_writes_to_its_tree_and_nowhere_else(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its counters write their counts next to the objects: the files `secret` and `victim` are in the tree here."""
    monkeypatch.setenv(sandbox.REQUIRED, "1")
    needs_landlock()
    loaded = scenario.load(hostile(0))
    kernel = Virtual.ready(DEFAULT, modules=[module.of_kernel() for module in loaded.module]).kernel
    shutil.copy(kernel.linux, host / "linux")
    (host / "run").mkdir()
    train(replace(kernel, linux=host / "linux"), runner.planned(loaded, "virtual"), host / "run")
    outcomes = results(host / "run/console.log")
    in_tree = {"read", "list", "write", "create", "mkdir", "unlink"}
    assert outcomes == {"own": 0} | {name: 0 if name in in_tree else result for name, result in DENIED.items()}


def test_without_layer_4_the_attacks_succeed(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine does not write through the link that the guest made."""
    monkeypatch.setattr(sandbox, "ENABLED", set())
    assert attacked(host, 0) == dict.fromkeys(("own", *DENIED), 0)
    assert (host / "secret").read_text() == "only the host has this"
