# SPDX-License-Identifier: Apache-2.0
"""The checks of `doctor` for native runs: each tries a feature of the kernel and has a remedy if it is missing."""

import os
import re
from pathlib import Path

import pytest

from hourglass.engine import native_doctor
from hourglass.engine.native import Native
from hourglass.errors import MissingError


@pytest.fixture
def _permitted() -> None:
    try:
        Native.ready()
    except MissingError as reason:
        pytest.skip(f"no native runs here: {reason}")


@pytest.mark.guest
@pytest.mark.usefixtures("_permitted")
def test_a_machine_that_permits_native_runs_passes() -> None:
    checks = {check.name: check for check in native_doctor.checks(["tbf", "pfifo"], ["reno"])}
    assert checks["native runs"].ok
    assert checks["native links"].ok
    assert checks["native ccs"].ok, "every kernel has Reno"
    assert "htb" in checks["native qdiscs"].detail.split("; there is no")[0], "native runs need it"
    assert checks["native TSQ"].ok == Path("/proc/sys/net/ipv4/tcp_tsq_mode").exists()


@pytest.mark.guest
@pytest.mark.usefixtures("_permitted")
def test_missing_features_of_a_kernel_are_named_with_their_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_doctor, "_MODULES", tmp_path)
    (tmp_path / os.uname().release).mkdir()
    (tmp_path / os.uname().release / "sch_no_such.ko.xz").touch()
    qdiscs = native_doctor.qdiscs(["pfifo", "no_such"])
    assert not qdiscs.ok
    assert not qdiscs.needed
    assert qdiscs.detail.startswith("has pfifo")
    assert qdiscs.detail.endswith("no_such")  # a user's namespace may lack HTB, too
    assert re.fullmatch("as root: modprobe -a .*sch_no_such", qdiscs.remedy)
    controls = native_doctor.congestion_controls(["reno", "no_such"])
    assert controls.remedy.startswith("use another kernel: this one has no modules")


def test_without_namespaces_the_forbidding_switch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_doctor.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(
        native_doctor, "trial", lambda line: (False, "unshare: unshare failed: No space left on device")
    )
    monkeypatch.setattr(native_doctor, "_user_namespaces", lambda: "as root: sysctl user.max_user_namespaces=1000")
    (check,) = native_doctor.checks(["htb"], ["reno"])
    assert (check.name, check.ok, check.needed) == ("native runs", False, False)
    assert check.detail == "no user namespaces: unshare: unshare failed: No space left on device"
    assert check.remedy == "as root: sysctl user.max_user_namespaces=1000"


def test_only_root_of_the_machine_can_move_interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_doctor.os, "geteuid", lambda: 1000)
    check = native_doctor.interfaces()
    assert not check.ok
    assert check.remedy == "run it as root"
