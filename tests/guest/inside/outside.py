# SPDX-License-Identifier: Apache-2.0
"""The first process of a guest without nodes. It has all rights, and the folders, groups and devices of the agent.

Its child executes the commands of /commands.json, each in a separate view of the file system, and writes what each
prints to /answers.json as soon as it ends. Then the child switches the guest off.
"""

import json
import os
import signal
import subprocess
from pathlib import Path

from attempts import LIBC, NEWNS, PRIVATE, RECURSIVE, mount, unshare

MOUNTS = {"/proc": "proc", "/sys": "sysfs", "/dev": "devtmpfs", "/groups": "cgroup2"}
GROUP = Path("/groups/room-0")
LIMIT_S = 60
POWER_OFF = 0x4321FEDC


def main() -> None:
    for target, kind in MOUNTS.items():
        mount("none", target, kind)
    GROUP.mkdir()
    Path("/groups/cgroup.subtree_control").write_text("+pids")
    subprocess.run(["ip", "link", "add", "eth0", "type", "wire"], check=True)
    os.set_inheritable(os.open("/out", os.O_RDONLY), True)
    if os.fork() == 0:
        answers = {}
        for command in json.loads(Path("/commands.json").read_text()):
            answers[command] = answer(command)
            Path("/answers.json").write_text(json.dumps(answers))
        LIBC.reboot(POWER_OFF)
    while True:
        signal.pause()


def answer(command: str) -> str:
    """Return what a command prints."""
    try:
        done = subprocess.run(
            ["sh", "-c", command], preexec_fn=separate, close_fds=False, capture_output=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return "no end"
    return (done.stdout + done.stderr).decode(errors="replace")


def separate() -> None:
    """Move this process to the group of a node, and to a view of the file system with an empty /tmp."""
    GROUP.joinpath("cgroup.procs").write_text(str(os.getpid()))
    unshare(NEWNS)
    mount("none", "/", flags=PRIVATE | RECURSIVE)
    mount("none", "/tmp", "tmpfs")


main()
