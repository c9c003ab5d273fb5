# SPDX-License-Identifier: Apache-2.0
"""Programs try to leave their node, on every kernel, as root of it and as an ordinary user. The host stays as it was.

`ESCAPES` are commands of a shell, and `inside/` has attempts that need system calls. One run makes all of them.
`test_escape_controls.py` shows that each of them can succeed.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from hourglass.builders.kernel import registry
from hourglass.host import sandbox
from hourglass.results.recording import Recording

from .conftest import KERNELS
from .host_state import unchanged
from .test_rooms import PACKAGES, programs, run

pytestmark = [pytest.mark.guest, pytest.mark.real_time]

INSIDE = Path(__file__).with_name("inside")
ATTEMPTS = {name for file in INSIDE.glob("*.py") for name in re.findall(r"(?m)^@attempt\ndef (\w+)", file.read_text())}
TOOLS = [*PACKAGES, "iproute2", "iputils-ping"]
"""The packages of the attempts."""
FILES = {f"/attempts/{file.name}": {"text": file.read_text()} for file in INSIDE.glob("*.py")}
TRY = {"command": ["python3", "/attempts/attempts.py"], "node": "client", "expect": "any", "files": FILES}
LISTEN = 'python3 -c \'import socket; socket.create_server(("", 80)); print("listens on 80")\''
USUAL = "id -u; grep CapEff /proc/self/status; ping -c 1 -q server; " + LISTEN

NO_V1 = "permission denied|wrong fs type|special device none does not exist"
REFUSED = "I/O error|not permitted"
NO_ROOT = "must be superuser|not permitted|ermission denied"
"""The error of a user who tries an action of root."""
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
    "python3 -c 'import ctypes; print(\"attach\", ctypes.CDLL(None).ptrace(16, 1, 0, 0))' >&2": "attach -1",
    # the escapes C1 to C4 and C10, closed in 0.2.1
    "mkdir /tmp/v; mount -t cgroup -o none,name=x none /tmp/v": NO_V1,
    "mkdir /tmp/v; mount -t cgroup -o none,name=x,release_agent=/tmp/h none /tmp/v": NO_V1,
    "mkdir /tmp/v; mount -t cgroup -o pids none /tmp/v": NO_V1,
    "mkdir /tmp/v; unshare -C mount -t cgroup -o none,name=y none /tmp/v": NO_V1,
    "mkdir /tmp/v; unshare -UrC mount -t cgroup -o none,name=z none /tmp/v": NO_V1,
    "mkdir /tmp/h; mount -t hostfs none /tmp/h -o /../../../../..": "permission denied",
    "mkdir /tmp/h; unshare -m mount -t hostfs none /tmp/h": "permission denied",
    "mkdir /tmp/h; unshare -pf mount -t hostfs none /tmp/h": "permission denied",
    "mkdir /tmp/h; unshare -Urmpf mount -t hostfs none /tmp/h": "permission denied",
    "mkdir /tmp/d; mount -t devtmpfs none /tmp/d": "permission denied",
    "mkdir /tmp/d; unshare -Urmpf mount -t devtmpfs none /tmp/d": "permission denied",
    "ls /proc/sysemu": "No such file",
    "echo 99 > /proc/exitcode": "nonexistent",
    "echo /tmp/h > /proc/sys/kernel/poweroff_cmd": "Permission denied",
    "echo /tmp/h > /proc/sys/kernel/core_pattern": "nonexistent",
    "echo /tmp/h > /proc/sys/kernel/modprobe": "nonexistent",
    "echo /tmp/h > /proc/sys/kernel/hotplug": "nonexistent",
    "echo c > /proc/sysrq-trigger": "nonexistent",
    "echo 1 > /proc/sys/fs/binfmt_misc/register": "nonexistent",
    "head -c 0 /dev/console": "No such file",
    "head -c 0 /dev/kmsg": "No such file",
    "head -c 0 /dev/ttyS0": "No such file",
    "mknod /tmp/line c 4 64": "not permitted",
    "mount -o remount,rw /sys; for file in /sys/class/net/*/wire/rate_bps; do echo 1 > $file; done": REFUSED,
    "mount -o remount,rw /sys; for file in /sys/class/net/*/wire/cable; do echo 9 > $file; done": REFUSED,
    "mkdir /tmp/g1; mount -t cgroup2 none /tmp/g1; ls /tmp/g1 | grep -E 'room|app' || echo none": "none",
    "mkdir /tmp/g2; mount -t cgroup2 none /tmp/g2; cd /tmp/g2; "
    "(echo max > pids.max) || (echo max > room-0/pids.max) || echo bound": "bound",
    "cat /proc/self/cgroup": "0::/\n",
    "nsenter -t 1 -C cat /proc/self/cgroup": "Permission denied|Invalid argument",
    "nsenter -t 1 -m true": "Permission denied|Invalid argument",
    "chroot /proc/1/root true": "Permission denied",
    """python3 -c '
import os
os.mkdir("/tmp/j"); top = os.open("/", 0); os.chroot("/tmp/j"); os.fchdir(top)
for _ in range(60): os.chdir("..")
os.chroot("."); print("out" in os.listdir("/"), "init" in os.listdir("/"))'""": "False False",
    """python3 -c '
import ctypes
call = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p)
print("vsyscall", call(0xffffffffff600400)(None))'""": "vsyscall 17040672",
}
"""The command of a program, and a pattern of its answer."""

OPEN = {
    "hostfs_through_fsopen", "hostfs_in_the_way_of_mount", "hostfs_outside_of_its_folder", "devtmpfs",
    "rootfs_below_the_root", "rootfs_by_pivot_root", "groups_of_other_nodes_by_handle", "the_console_is_redirected",
    "switches_of_user_mode_linux", "helper_paths", "parameters_of_modules",
}  # fmt: skip
"""The attempts that succeed for root of a node on a kernel without the hook `containment`, so that each can succeed."""
FILTERED = {"calls_by_the_vsyscall_page"}
"""The attempts that only the filter of a program's process refuses. They read the host's clock."""


def tries(*commands: str) -> dict[str, Any]:
    """Return a scenario of commands as root of a node, and of all attempts as root and as a user."""
    scenario = programs(*commands, packages=TOOLS)
    scenario["app"] += [TRY | {"name": "root", "user": "root"}, TRY | {"name": "user", "node": "server"}]
    scenario["app"].append({"name": "other", "node": "server", "command": ["sleep", "1"]})
    return scenario


def answers(recording: Recording, program: str) -> dict[str, str]:
    """Return the outcome of each attempt of a program."""
    lines = map(json.loads, recording.apps[program].stdout.splitlines())
    return {line["name"]: line["outcome"] for line in lines}


def successes(outcomes: dict[str, str]) -> dict[str, str]:
    return {name: outcome for name, outcome in outcomes.items() if not outcome.startswith("refused: ")}


@pytest.mark.parametrize("kernel", [*KERNELS, "7.3+bpf", pytest.param("6.1+debug", marks=pytest.mark.kernels)])
@pytest.mark.parametrize("confined", [True, False])
def test_no_program_leaves_its_node(
    kernel: str, confined: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the host's layers required, and without any of them: then the guest holds alone."""
    if confined:
        monkeypatch.setenv(sandbox.REQUIRED, "1")
    else:
        monkeypatch.setattr(sandbox, "ENABLED", set())
    (tmp_path / "secret").write_text("only the host has this")
    scenario = tries(*ESCAPES)
    plain = [app | {"name": f"user-{app['name']}", "node": "server"} for app in scenario["app"][: len(ESCAPES)]]
    for app in plain:
        del app["user"]
    usual = {"name": "usual", "node": "client", "command": ["sh", "-c", USUAL], "expect": "any"}
    scenario["app"] += [*plain, usual]
    with unchanged(tmp_path, except_for={"run"}):
        recording = run(tmp_path / "run", scenario, kernel)
    for number, (command, answer) in enumerate(ESCAPES.items()):
        for name, pattern in ((f"app{number}", answer), (f"user-app{number}", f"{answer}|{NO_ROOT}")):
            program = recording.apps[name]
            output = program.stdout + program.stderr
            assert re.search(pattern, output), (command, name, output)
            assert program.stdout.strip() not in {"room-0", "room-1"}, (command, name)
    for program in ("root", "user"):
        outcomes = answers(recording, program)
        assert outcomes.keys() == ATTEMPTS
        assert not successes(outcomes), (program, outcomes)
    output = " ".join(program.stdout + program.stderr for program in recording.apps.values())
    assert not {str(Path.home()), os.uname().nodename, str(tmp_path)} & set(output.split())
    assert "only the host" not in output
    check_usual(recording.apps["usual"].stdout)
    assert len(recording.info.sandbox) == (2 if confined else 0)
    assert recording.info.warnings == [], "no errors of the kernel"


def check_usual(output: str) -> None:
    """A user has no capabilities. A user can ping and listen on every port."""
    assert output.startswith("1000\nCapEff:\t0000000000000000\n")
    assert "1 received" in output
    assert "listens on 80" in output


def tried_without(hooks: tuple[str, ...], kernel: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Recording:
    """Return the run of all attempts on a kernel without these hooks, on a host without layers."""
    changed = registry.ensure(kernel, without=hooks)
    monkeypatch.setattr(registry, "ensure", lambda *_, **__: changed)
    monkeypatch.setattr(sandbox, "ENABLED", set())
    return run(folder / "run", tries(), kernel)


@pytest.mark.kernels
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_node_confines_a_user_without_other_layers(
    kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root of a node gets out, an ordinary user does not."""
    recording = tried_without(("containment", "program-filter"), kernel, tmp_path, monkeypatch)
    assert successes(answers(recording, "user")).keys() == {"switches_of_user_mode_linux", *FILTERED}
    assert successes(answers(recording, "root")).keys() >= OPEN


@pytest.mark.kernels
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_guests_kernel_confines_root_of_a_node_without_other_layers(
    kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The filter of a program's process does not hide a system call that reaches the host."""
    recording = tried_without(("program-filter",), kernel, tmp_path, monkeypatch)
    assert successes(answers(recording, "user")).keys() == FILTERED
    assert successes(answers(recording, "root")).keys() == FILTERED
