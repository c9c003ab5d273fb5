# SPDX-License-Identifier: Apache-2.0
"""Check which tools an engine lacks on this machine, and install packages."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from hourglass.builders import agent, prebuilt
from hourglass.errors import HourglassError, MissingError
from hourglass.host import process

SEARCHED = "/usr/sbin:/sbin"
"""Folders that are also searched: a user's search path may lack them."""


def lacking(purpose: str, tools: Mapping[str, str]) -> MissingError | None:
    """Return the error that names each tool (tool → package) that a purpose lacks and the command that installs all.

    The agent counts as a tool: if it must be compiled, a missing compiler is listed too."""
    path = f"{os.environ.get('PATH', os.defpath)}:{SEARCHED}"
    missing = [tool for tool in tools if shutil.which(tool, path=path) is None]
    packages = process.missing_tools(tools)
    if (prebuilt.agent() or agent.built()) is None and agent.rust_problem() is not None:
        missing.append("cargo {}.{}".format(*agent.LEAST_RUST))
        packages.append(agent.package())
    if not packages:
        return None
    return MissingError(f"{purpose} need {', '.join(missing)}", command(packages))


def command(packages: Sequence[str]) -> str:
    """Return the line that installs packages of Debian."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}apt-get install -y {' '.join(sorted(set(packages)))}"


def install(packages: Sequence[str]) -> None:
    """Install packages. Raises MissingError with the command where the user is not root, HourglassError if it fails."""
    if not packages:
        return
    if os.geteuid() != 0:
        raise MissingError(f"missing: {', '.join(packages)}", command(packages))
    print(f"installing {' '.join(packages)}", flush=True)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run(
            ["apt-get", "-qq", *arguments], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = done.stderr.strip().splitlines()[-6:]
            raise HourglassError("\n".join([f"apt-get {arguments[0]} failed", *(f"  | {line}" for line in last)]))
