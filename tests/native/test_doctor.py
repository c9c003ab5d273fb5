# SPDX-License-Identifier: Apache-2.0
"""What `doctor` says of native runs: what the kernel does when it is asked, and a remedy for each thing that lacks."""

import os
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
def test_a_machine_that_permits_native_runs_is_told_so() -> None:
    found = {check.name: check for check in native_doctor.checks(["tbf", "pfifo"], ["reno"])}
    assert found["native runs"].ok
    assert found["native links"].ok
    assert found["native ccs"].ok, "every kernel has Reno"
    assert "htb" in found["native qdiscs"].detail.split("; there is no")[0], "native runs need it"
    assert found["native TSQ"].ok == Path("/proc/sys/net/ipv4/tcp_tsq_mode").exists()


@pytest.mark.guest
@pytest.mark.usefixtures("_permitted")
def test_what_a_kernel_lacks_is_named_with_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_doctor, "_MODULES", tmp_path)
    (tmp_path / os.uname().release).mkdir()
    (tmp_path / os.uname().release / "sch_no_such.ko.xz").touch()
    qdiscs = native_doctor.qdiscs(["pfifo", "no_such"])
    assert not qdiscs.ok
    assert not qdiscs.needed
    assert qdiscs.detail.endswith("; there is no no_such")
    assert qdiscs.remedy == "as root: modprobe -a sch_no_such"
    controls = native_doctor.congestion_controls(["reno", "no_such"])
    assert controls.remedy.startswith("a kernel that has them")


def test_who_has_no_namespaces_is_told_which_switch_forbids_them(monkeypatch: pytest.MonkeyPatch) -> None:
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
