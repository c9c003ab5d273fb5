# SPDX-License-Identifier: Apache-2.0
"""Limits of memory: of this machine, and of cgroups of both versions as containers and job schedulers set them up."""

from pathlib import Path

import pytest

from hourglass.host import cgroups, memory
from hourglass.host.memory import MemoryLimit

MACHINE = "MemTotal: 8000 kB\nMemFree: 100 kB\nMemAvailable: 6000 kB\n"


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a /proc without cgroups."""
    folder = tmp_path / "proc"
    (folder / "self").mkdir(parents=True)
    (folder / "meminfo").write_text(MACHINE)
    (folder / "vmstat").write_text("nr_free_pages 7\noom_kill 3\n")
    monkeypatch.setattr(cgroups, "PROC", folder)
    return folder


def mount(proc: Path, path: str, *mounts: str) -> None:
    """Set the cgroups of this process, and the mounts."""
    (proc / "self/cgroup").write_text(path)
    lines = ["22 1 0:5 / /proc rw,relatime - proc proc rw", *mounts]
    (proc / "self/mountinfo").write_text("\n".join(lines) + "\n")


def cgroup(folder: Path, **values: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in values.items():
        (folder / name.replace("_dot_", ".")).write_text(value + "\n")


def test_the_memory_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs change it, so it is read once."""
    limits = memory.limits()
    monkeypatch.setattr(memory, "limits", lambda: limits)
    (machine, *_), tightest = limits, memory.tightest()
    assert machine.name == "this machine has"
    assert 0 < machine.free < machine.size
    assert tightest is not None
    assert tightest.free <= machine.free
    assert memory.kills() >= 0


def test_a_machine_without_cgroups(proc: Path) -> None:
    assert memory.limits() == [MemoryLimit("this machine has", 8000 << 10, 2000 << 10)]
    assert memory.kills() == 3


def test_a_bound_of_reserved_memory(proc: Path) -> None:
    (proc / "sys/vm").mkdir(parents=True)
    (proc / "meminfo").write_text(MACHINE + "CommitLimit: 5000 kB\nCommitted_AS: 4900 kB\n")
    for value, count in (("0", 1), ("2", 2)):
        (proc / "sys/vm/overcommit_memory").write_text(f"{value}\n")
        assert len(memory.limits()) == count
    name = "CommitLimit of /proc/meminfo (vm.overcommit_memory = 2) is"
    assert memory.tightest() == MemoryLimit(name, 5000 << 10, 4900 << 10)


def test_without_proc_nothing_is_known(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "PROC", proc / "nothing")
    assert (memory.limits(), memory.tightest(), memory.kills()) == ([], None, 0)


def test_version_2_with_the_limit_of_a_parent(proc: Path, tmp_path: Path) -> None:
    """Pages of files that the kernel can drop do not count as used."""
    top = tmp_path / "sys"
    mount(proc, "0::/job/step\n", f"30 22 0:26 / {top} rw - cgroup2 cgroup2 rw,nsdelegate")
    cgroup(top / "job", memory_dot_max="4000000", memory_dot_current="3000000")
    cgroup(top / "job", memory_dot_stat="anon 5\ninactive_file 500000\nactive_file 1500000\nshmem 900000")
    events = "low 0\noom 1\noom_kill 2"
    cgroup(top / "job/step", memory_dot_max="max", memory_dot_current="9", **{"memory_dot_events_dot_local": events})
    limit = MemoryLimit(f"{top}/job/memory.max is", 4000000, 1000000)
    assert memory.limits()[1:] == [limit]
    assert memory.tightest() == limit
    assert memory.kills() == 2


@pytest.mark.parametrize("root", ["/docker/7", "/"])
def test_version_1_in_a_container(proc: Path, tmp_path: Path, root: str) -> None:
    """A container may see the path of its cgroup from outside, or a mount whose root is the cgroup."""
    top = tmp_path / "memory"
    path = "/docker/7" if root != "/" else "/"
    mount(
        proc,
        f"5:cpu,cpuacct:/elsewhere\n4:memory:{path}\n1:name=systemd:/x\n0::/y\n",
        f"31 22 0:27 /elsewhere {tmp_path}/cpu rw - cgroup cgroup rw,cpu,cpuacct",
        f"32 22 0:28 {root} {top} rw shared:9 - cgroup cgroup rw,memory",
    )
    cgroup(top, **{"memory_dot_limit_in_bytes": "1000000", "memory_dot_usage_in_bytes": "400000"})
    cgroup(top, memory_dot_stat="total_inactive_file 100000\ntotal_active_file 0")
    cgroup(top, memory_dot_oom_control="oom_kill_disable 0\nunder_oom 0\noom_kill 1")
    assert memory.limits()[1:] == [MemoryLimit(f"{top}/memory.limit_in_bytes is", 1000000, 300000)]
    assert memory.kills() == 1


def test_a_limit_above_the_machines_memory_is_none(proc: Path, tmp_path: Path) -> None:
    """Version 1 without a limit has a number of nearly 64 bits."""
    mount(proc, "4:memory:/\n", f"32 22 0:28 / {tmp_path} rw - cgroup cgroup rw,memory")
    cgroup(tmp_path, memory_dot_limit_in_bytes="9223372036854771712", memory_dot_usage_in_bytes="400000")
    assert len(memory.limits()) == 1
    assert memory.kills() == 3
