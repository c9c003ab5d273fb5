# SPDX-License-Identifier: Apache-2.0
"""Start a Kathará lab by `ip netns`: python3 kathara.py FOLDER NAME COMMAND… runs the command in a machine of the lab.

A machine is a network namespace, a collision domain is a bridge. Of Kathará's files it reads lab.conf (devices) and
NAME.startup."""

import re
import subprocess
import sys
from pathlib import Path

DEVICE = re.compile(r'^(\w+)\[(\d+)\]="?(\w+)"?', re.MULTILINE)
SWITCHES = "switches"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def start(folder: Path) -> None:
    """Make the machines, their devices and the collision domains, and run the startup files."""
    devices = DEVICE.findall((folder / "lab.conf").read_text())
    ip("netns", "add", SWITCHES)
    for domain in sorted({domain for _, _, domain in devices}):
        ip("-n", SWITCHES, "link", "add", domain, "up", "type", "bridge")
    machines = sorted({machine for machine, _, _ in devices})
    for machine in machines:
        ip("netns", "add", machine)
        ip("-n", machine, "link", "set", "lo", "up")
    for machine, number, domain in devices:
        end = f"{machine}-{number}"
        ip("-n", machine, "link", "add", f"eth{number}", "type", "veth", "peer", "name", end, "netns", SWITCHES)
        ip("-n", SWITCHES, "link", "set", end, "up", "master", domain)
    for machine in machines:
        subprocess.run(["ip", "netns", "exec", machine, "sh", "-e", folder / f"{machine}.startup"], check=True)


start(Path(sys.argv[1]))
sys.exit(subprocess.run(["ip", "netns", "exec", *sys.argv[2:]], check=False).returncode)
