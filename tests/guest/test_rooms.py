# SPDX-License-Identifier: Apache-2.0
"""Programs in their containers: the visible files, the unreachable ones, and no program hangs a run."""

import base64
import contextlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hourglass import runner, scenario
from hourglass.builders.kernel import registry
from hourglass.contract.kernels import DEFAULT, version_of
from hourglass.errors import GuestError
from hourglass.host import sandbox
from hourglass.results.apps import Program
from hourglass.results.recording import Recording

from .conftest import KERNELS, line, records

pytestmark = pytest.mark.guest

PACKAGES = ["mount", "procps", "python3", "util-linux"]


def programs(*commands: str, packages: list[str] = PACKAGES, **app: Any) -> dict[str, Any]:
    """Return a scenario that runs each command in its own shell on the client."""
    apps = [
        {"name": f"app{number}", "node": "client", "command": ["sh", "-c", command], "user": "root", "expect": "any"}
        | app
        for number, command in enumerate(commands)
    ]
    return {"name": "rooms", "testbed": line(nodes=2)["testbed"], "apps": {"packages": packages}, "app": apps}


def run(folder: Path, data: dict[str, Any], kernel: str = DEFAULT) -> Recording:
    return runner.run(scenario.load(data, kernel=kernel), folder)


def last(program: Program) -> dict[str, Any]:
    start = program.last_start
    assert start is not None
    return start


FORGED = 'echo \'hourglass: {"event":"error","code":"data","text":"forged"}\' | tee /dev/stderr'


def test_a_program_cannot_speak_for_the_agent(tmp_path: Path) -> None:
    recording = run(tmp_path / "run", programs(FORGED))
    assert recording.info.status == "complete"
    assert "forged" in recording.apps["app0"].stderr


LOOKS = """
import os, time
def wait(seconds, look):
    begin, looks = time.monotonic_ns(), 0
    while time.monotonic_ns() < begin + seconds * 1e9:
        look()
        looks += 1
    print(round((time.monotonic_ns() - begin) / 1e6, 3))
wait(0.01, lambda: None)
wait(0.05, os.sched_yield)
wait(0.05, lambda: time.sleep(0))
wait(0.05, lambda: os.path.exists("/nowhere"))
"""


@pytest.mark.parametrize("kernel", KERNELS)
def test_time_advances_for_programs_that_spin(kernel: str, tmp_path: Path) -> None:
    """Each loop ends at most an eighth late. Without the guard, the run hangs at the first."""
    now = "$(read up rest < /proc/uptime; echo ${up%.*}${up#*.})"
    loop = f"began={now}; until [ {now} -gt $began ]; do /bin/true; done; echo $(({now} - began))"
    recording = run(tmp_path / "run", programs(f"python3 -c '{LOOKS}'", loop), kernel)
    spun = [float(text) for text in recording.apps["app0"].stdout.split()]
    for expected, actual in zip([10, 50, 50, 50], spun, strict=True):
        assert expected <= actual <= expected * 1.125
    assert int(recording.apps["app1"].stdout) == 1, "hundredths of a second"


@pytest.mark.slow
def test_endless_programs_are_bounded(tmp_path: Path) -> None:
    """One program prints for ever, one fills the disk, and one ignores signals."""
    wild = [
        "exec yes",
        "dd if=/dev/zero of=/big bs=1M; stat --format=%s /big",
        "trap '' TERM; while :; do sleep 1; done",
    ]
    source = programs(*wild, stop=1, grace="1s")
    source["app"].append({"name": "last", "node": "server", "command": ["sleep", "3"]})
    recording = run(tmp_path / "run", source)
    endless, full, deaf, _ = recording.apps.values()
    assert last(endless)["output_bytes"] > endless.app.output_bytes
    assert (recording.path / "apps" / "app0.stdout").stat().st_size == endless.app.output_bytes
    assert "No space left on device" in full.stderr
    assert int(full.stdout) <= 512 << 20
    assert (last(deaf)["why"], last(deaf)["signal"]) == ("grace", 9)


BELOW = """
mkdir /tmp/g; mount -t cgroup2 none /tmp/g; mkdir /tmp/g/app-2; echo $$ > /tmp/g/app-2/cgroup.procs
cat /proc/self/cgroup; trap "" TERM
python3 -c "import os
for _ in range(5000): os.getppid()"
exec sleep 1000
"""


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_group_below_a_program_s_own_belongs_to_the_program(kernel: str, tmp_path: Path) -> None:
    """It has the name of another program's group."""
    source = programs(BELOW, stop=1, grace="100ms")
    look = {"name": "look", "node": "client", "start": 2, "command": ["pgrep", "-c", "sleep"], "expect": "any"}
    source["app"] += [look, {"name": "other", "node": "server", "command": ["sleep", "2"]}]
    recording = run(tmp_path / "run", source, kernel)
    below, look_program, other = recording.apps.values()
    assert below.stdout.endswith("/app-2\n")
    assert (last(below)["why"], last(below)["signal"]) == ("grace", 9)
    assert look_program.stdout == "0\n"
    assert last(below)["calls"] > 5000
    assert last(other)["calls"] < 1000


COVERED = """
mkdir -p /tmp/a; touch /tmp/a/b; unshare -n mount --bind /proc/self/ns/net /tmp/a/b; sleep 0.5
mount -t tmpfs none /tmp/a; mkfifo /tmp/a/b; sleep 1; umount /tmp/a
mount -t tmpfs none /tmp/a; ln -s /proc/1/ns/net /tmp/a/b; sleep 1
"""


def test_a_file_over_a_namespace_is_not_opened(tmp_path: Path) -> None:
    """The agent looks for the devices of a program's namespaces: it neither waits for a FIFO nor follows a link."""
    recording = run(tmp_path / "run", programs(COVERED, packages=[*PACKAGES, "iproute2"]))
    assert (last(recording.apps["app0"])["why"], last(recording.apps["app0"])["exit"]) == ("exit", 0)
    assert not {name for name in recording.table("device")["node"].unique() if name.endswith("/b")} - {"client/b"}


def test_a_signal_of_real_time_ends_its_program_alone(tmp_path: Path) -> None:
    """The agent's library has no name for such a signal. An orphan also dies of it."""
    recording = run(
        tmp_path / "run", programs("kill -40 $$", "(sleep 1; exec sh -c 'kill -50 $$') & true", "sleep 2; echo end")
    )
    assert (last(recording.apps["app0"])["exit"], last(recording.apps["app0"])["signal"]) == (None, 40)
    assert recording.apps["app2"].stdout == "end\n"


WRITABLE = ("tmp", "run", "dev/shm", "dev", ".")
FILL = "for place in {}; do dd if=/dev/zero of=/$place/big bs=1M; stat --format=%s /$place/big; done"


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_full_disk_affects_only_its_programs(kernel: str, tmp_path: Path) -> None:
    """Fill every writable place on both nodes: together they take no more than a node's bound, and other programs have
    their results."""
    source = programs(FILL.format(" ".join(WRITABLE)), "sleep 2; ping -c 3 server", packages=["iputils-ping"])
    source["app"].append(source["app"][0] | {"name": "far", "node": "server"})
    recording = run(tmp_path / "run", source, kernel)
    for name in ("app0", "far"):
        full = recording.apps[name]
        assert full.stderr.count("No space left on device") == len(WRITABLE)
        assert (511 << 20) < sum(map(int, full.stdout.split())) <= (512 << 20) + (64 << 10)
    assert "3 packets transmitted, 3 received" in recording.apps["app1"].stdout
    assert recording.info.warnings == []


EAT = "python3 -c 'eaten = []; [eaten.append(b\"x\" * (16 << 20)) for _ in range(200)]'"


@pytest.mark.slow
def test_a_program_that_takes_all_memory_is_killed_alone(tmp_path: Path) -> None:
    recording = run(tmp_path / "run", programs(EAT, "sleep 3; echo still here"))
    assert last(recording.apps["app0"])["signal"] == 9 or "Killed" in recording.apps["app0"].stderr
    assert recording.apps["app1"].stdout == "still here\n"
    assert any("Out of memory: Killed process" in warning for warning in recording.info.warnings)


@pytest.mark.slow
def test_a_guest_without_memory_fails_its_run_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(GuestError, match="the guest ran out of memory; its programs"):
        run(tmp_path / "run", programs(f"echo 1 > /proc/sys/vm/panic_on_oom; {EAT}"))
    assert (tmp_path / "run.failed" / "console.log").is_file()


BOMB = """
import os, time
count = 0
try:
    while os.fork():
        count += 1
    time.sleep(100)
except OSError as error:
    print(count, error.strerror)
"""


@pytest.mark.slow
def test_a_program_that_forks_without_end_is_bounded(tmp_path: Path) -> None:
    recording = run(tmp_path / "run", programs(f"python3 -c '{BOMB}'"))
    count, error = recording.apps["app0"].stdout.split(" ", 1)
    assert 480 < int(count) < 512
    assert error == "Resource temporarily unavailable\n"


def test_a_room_is_the_same_on_every_machine(tmp_path: Path) -> None:
    """The root's files have the same names, order, inodes, owners, times and sizes. The processor has only common
    features."""
    see = "ls -laiR /usr/bin /etc; stat /usr; df; cat /proc/cpuinfo /proc/meminfo /proc/interrupts /proc/self/mounts"
    draw = "cat /proc/sys/kernel/random/uuid; head -c 8 /dev/urandom | od -x; date +%s.%N; echo $$"
    first, second = (run(tmp_path / name, programs(see, draw)) for name in ("a", "b"))
    assert records(first).read_bytes() == records(second).read_bytes()
    assert "Modify: 2024-01-01 00:00:00.000000000 +0000" in first.apps["app0"].stdout
    flags = next(text for text in first.apps["app0"].stdout.splitlines() if text.startswith("flags"))
    assert flags.split(":")[1] == " fpu tsc cx8 cmov mmx fxsr sse sse2 syscall nx lm"


TURNS = """
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int file = open("/proc/sysemu", O_WRONLY), turn;

	write(file, "0", 1);
	for (turn = 0; turn < 4; turn++)
		syscall(SYS_mkdir, argv[1], 0755);
	write(file, "1", 1);
	return file < 0;
}
"""
"""A program that turns PTRACE_SYSEMU off. Its next call would be taken for the end of a call, and the host would
execute it."""


@pytest.mark.kernels
@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if version_of(kernel) < (6, 12)])
@pytest.mark.parametrize("without", [("containment", "program-filter"), ("containment",)])
def test_the_registers_and_the_filter_keep_a_call_from_the_host(
    kernel: str, without: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run on a kernel with /proc/sysemu and a host without layers. However the run ends, the host has no new folder."""
    (tmp_path / "turns.c").write_text(TURNS)
    subprocess.run(["gcc", "-static", "-o", tmp_path / "turns", tmp_path / "turns.c"], check=True)
    program = base64.b64encode((tmp_path / "turns").read_bytes()).decode()
    source = programs(f"ls /proc/sysemu; /turns {tmp_path}/folder; true", packages=[])
    source["app"][0]["files"] = {"/turns": {"base64": program, "executable": True}}
    open_kernel = registry.ensure(kernel, without=without)
    monkeypatch.setattr(registry, "ensure", lambda *_, **__: open_kernel)
    monkeypatch.setattr(sandbox, "ENABLED", set())
    with contextlib.suppress(GuestError):
        recording = run(tmp_path / "run", source, kernel)
        assert "/proc/sysemu" in recording.apps["app0"].stdout
    assert not (tmp_path / "folder").exists()
