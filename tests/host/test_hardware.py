# SPDX-License-Identifier: Apache-2.0
"""On hosts other than Linux on x86-64, runs are read and drawn, and guests are refused. The host's names are faked."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from hourglass.builders.kernel import recipe
from hourglass.engine import doctor, engines, native_doctor
from hourglass.errors import MissingError
from hourglass.host import hardware, process, sandbox


@pytest.fixture(params=[("darwin", "arm64"), ("linux", "aarch64")], ids="-".join)
def host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give this machine the names of another one, and return its system. macOS lacks the calls of Linux."""
    system, cpu = request.param
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: cpu)
    if system == "darwin":
        for name in ("sched_getaffinity", "sched_setaffinity"):
            monkeypatch.delattr(os, name)
        for module in (process, sandbox):
            monkeypatch.setattr(module, "_LIBC", None)
    return str(system)


def test_guests_and_their_kernels_are_refused(host: str) -> None:
    with pytest.raises(MissingError, match="guests run only on Linux on x86-64; to fix: make runs on such a machine"):
        engines.get("virtual").ready("6.1", lambda _, __: None, [])
    with pytest.raises(MissingError, match="kernels can be built only by Linux on x86-64"):
        recipe.check_prerequisites()


def test_the_doctor_names_the_reason(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path))
    checks = {check.name: check.ok for check in doctor.check()}
    assert checks == {"python": True, "guests": False, "cache": True}
    assert host == "linux" or native_doctor.checks([], []) == []


def test_programs_start_and_end(host: str, tmp_path: Path) -> None:
    assert hardware.cpus() == (os.cpu_count() if host == "darwin" else len(os.sched_getaffinity(0)))
    assert host == "linux" or sandbox.layers().names == []
    command = [sys.executable, "-c", "import os; print(os.getcwd(), flush=True); input()"]
    with process.group(command, tmp_path, {}, powerless=True) as child:
        assert child.stdout is not None
        child.wait()
        assert child.stdout.readline() == f"{tmp_path}\n".encode()


def test_a_confined_program_starts(host: str, tmp_path: Path) -> None:
    with sandbox.confinement([(Path("/"), sandbox.RUN)], filtered=True) as confine:
        child = subprocess.run(["/bin/true"], cwd=tmp_path, preexec_fn=confine, check=False)
    assert child.returncode == 0
