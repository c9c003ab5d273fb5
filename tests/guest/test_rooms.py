# SPDX-License-Identifier: Apache-2.0
"""Programs in their rooms: what they see, what they cannot reach, and that nothing they do hangs a run."""

import os
from pathlib import Path
from typing import Any

import pytest

from hourglass import runner, scenario
from hourglass.contract.kernels import DEFAULT
from hourglass.errors import GuestError
from hourglass.results.apps import Program
from hourglass.results.recording import Recording

from .conftest import KERNELS, line, records

pytestmark = pytest.mark.guest

PACKAGES = ["mount", "procps", "python3", "util-linux"]


def programs(*commands: str, packages: list[str] = PACKAGES, **app: Any) -> dict[str, Any]:
    """A scenario: each command by a shell of its own on the client."""
    apps = [
        {"name": f"app{place}", "node": "client", "command": ["sh", "-c", command], "expect": "any", **app}
        for place, command in enumerate(commands)
    ]
    return {"name": "rooms", "testbed": line(nodes=2)["testbed"], "apps": {"packages": packages}, "app": apps}


def run(place: Path, made: dict[str, Any], kernel: str = DEFAULT) -> Recording:
    return runner.run(scenario.load(made, kernel=kernel), place)


def last(program: Program) -> dict[str, Any]:
    found = program.last
    assert found is not None
    return found


ESCAPES = {
    "mount -t hostfs none /tmp -o /": "permission denied",
    "mount -t hostfs none /tmp": "permission denied",
    "mount -t hourglass none /tmp -o 0": "permission denied",
    "mknod /tmp/console c 5 1": "not permitted",
    "mknod /tmp/disk b 8 0": "not permitted",
    "ls /out": "No such file",
    "ls /room": "No such file",
    "ls /proc/1/root/out": "Permission denied",
    "ls /proc/self/root/../out": "No such file",
    "ls /../../out": "No such file",
    "cat /dev/mem": "No such file",
    "umount /proc/hourglass; cat /proc/hourglass/load": "Permission denied",
    "mkdir /tmp/p; mount -t proc none /tmp/p; echo 1 > /tmp/p/hourglass/radio": "Permission denied",
    "cat /proc/kcore": "No such file",
    "date --set 2030-01-01": "not permitted",
    "python3 -c 'import ctypes; print(\"reboot\", ctypes.CDLL(None).reboot(0x1234567))'": "reboot -1",
    "ln -s /etc/passwd /tmp/l; cat /proc/2/root/tmp/l | grep -c host_user; echo no way >&2": "no way",
    "python3 -c 'import ctypes; print(\"attach\", ctypes.CDLL(None).ptrace(16, 1, 0, 0))' >&2": "attach -1",
    "kill -STOP 1; kill -KILL 1; echo still here >&2": "still here",
}
"""What a program tries, and what it is told."""


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_room_has_no_way_out(kernel: str, tmp_path: Path) -> None:
    """On a machine with a file that only it has: nobody inside sees its name or its content."""
    made = run(tmp_path / "run", programs(*ESCAPES), kernel)
    told = {program.app.command[2]: program.stdout + program.stderr for program in made.apps.values()}
    for tried, answer in ESCAPES.items():
        assert answer in told[tried], tried
    assert not {str(Path.home()), os.uname().nodename, str(tmp_path)} & set(" ".join(told.values()).split())


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
def test_whoever_spins_sees_time_go_on(kernel: str, tmp_path: Path) -> None:
    """Each loop ends, at most an eighth late; without the guard the run hangs at the first."""
    now = "$(read up rest < /proc/uptime; echo ${up%.*}${up#*.})"
    loop = f"began={now}; until [ {now} -gt $began ]; do /bin/true; done; echo $(({now} - began))"
    made = run(tmp_path / "run", programs(f"python3 -c '{LOOKS}'", loop), kernel)
    spun = [float(word) for word in made.apps["app0"].stdout.split()]
    for wanted, got in zip([10, 50, 50, 50], spun, strict=True):
        assert wanted <= got <= wanted * 1.125
    assert int(made.apps["app1"].stdout) == 1, "hundredths of a second"


def test_what_has_no_end_is_bounded(tmp_path: Path) -> None:
    """A program that prints for ever, one that fills the disk, one that ignores what it is told."""
    wild = [
        "exec yes",
        "dd if=/dev/zero of=/big bs=1M; stat --format=%s /big",
        "trap '' TERM; while :; do sleep 1; done",
    ]
    wanted = programs(*wild, stop=1, grace="1s")
    wanted["app"].append({"name": "last", "node": "server", "command": ["sleep", "3"]})
    made = run(tmp_path / "run", wanted)
    endless, full, deaf, _ = made.apps.values()
    assert last(endless)["output_bytes"] > endless.app.output_bytes
    assert (made.path / "apps" / "app0.stdout").stat().st_size == endless.app.output_bytes
    assert "No space left on device" in full.stderr
    assert int(full.stdout) <= 512 << 20
    assert (last(deaf)["why"], last(deaf)["signal"]) == ("killed", 9)


PLACES = ("tmp", "run", "dev/shm", "dev", ".")
FILL = "for place in {}; do dd if=/dev/zero of=/$place/big bs=1M; stat --format=%s /$place/big; done"


@pytest.mark.parametrize("kernel", KERNELS)
def test_full_disks_are_their_own_programs_affair(kernel: str, tmp_path: Path) -> None:
    """Every place that can be written is filled, on both nodes: together no more than a node's bound, and what runs
    beside it has its results."""
    wanted = programs(FILL.format(" ".join(PLACES)), "sleep 2; ping -c 3 server", packages=["iputils-ping"])
    wanted["app"].append(wanted["app"][0] | {"name": "far", "node": "server"})
    made = run(tmp_path / "run", wanted, kernel)
    for name in ("app0", "far"):
        full = made.apps[name]
        assert full.stderr.count("No space left on device") == len(PLACES)
        assert (511 << 20) < sum(map(int, full.stdout.split())) <= (512 << 20) + (64 << 10)
    assert "3 packets transmitted, 3 received" in made.apps["app1"].stdout
    assert made.info.warnings == []


EAT = "python3 -c 'eaten = []; [eaten.append(b\"x\" * (16 << 20)) for _ in range(200)]'"


def test_a_program_that_takes_all_memory_is_killed_alone(tmp_path: Path) -> None:
    made = run(tmp_path / "run", programs(EAT, "sleep 3; echo still here"))
    assert last(made.apps["app0"])["signal"] == 9 or "Killed" in made.apps["app0"].stderr
    assert made.apps["app1"].stdout == "still here\n"
    assert any("Out of memory: Killed process" in words for words in made.info.warnings)


def test_a_guest_without_memory_fails_its_run_in_words(tmp_path: Path) -> None:
    with pytest.raises(GuestError, match="the guest has no memory left: its programs"):
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


def test_a_program_that_forks_without_end_is_bounded(tmp_path: Path) -> None:
    made = run(tmp_path / "run", programs(f"python3 -c '{BOMB}'"))
    count, error = made.apps["app0"].stdout.split(" ", 1)
    assert 480 < int(count) < 512
    assert error == "Resource temporarily unavailable\n"


def test_a_room_is_the_same_on_every_machine(tmp_path: Path) -> None:
    """Names in order, inodes, owners, times and sizes of the root's files; of the processor what all have."""
    see = "ls -laiR /usr/bin /etc; stat /usr; df; cat /proc/cpuinfo /proc/meminfo /proc/interrupts /proc/self/mounts"
    draw = "cat /proc/sys/kernel/random/uuid; head -c 8 /dev/urandom | od -x; date +%s.%N; echo $$"
    first, again = (run(tmp_path / name, programs(see, draw)) for name in ("a", "b"))
    assert records(first).read_bytes() == records(again).read_bytes()
    assert "Modify: 2024-01-01 00:00:00.000000000 +0000" in first.apps["app0"].stdout
    flags = next(text for text in first.apps["app0"].stdout.splitlines() if text.startswith("flags"))
    assert flags.split(":")[1] == " fpu tsc cx8 cmov mmx fxsr sse sse2 syscall nx lm"
