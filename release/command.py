# SPDX-License-Identifier: Apache-2.0
"""The one way in which other programs are called here."""

import os
import subprocess
from pathlib import Path

from hourglass.errors import HourglassError


def called(command: list[str], cwd: Path | None = None, **env: str) -> str:
    """What a command prints. Raises HourglassError with its last words."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, "LC_ALL": "C", **env}, text=True, errors="replace", check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        raise HourglassError("\n".join([f"{' '.join(command)[:160]}: failed", *done.stdout.splitlines()[-12:]]))
    return done.stdout
