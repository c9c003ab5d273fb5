# SPDX-License-Identifier: Apache-2.0
"""Call other programs. All of `release` uses this function."""

import os
import subprocess
from pathlib import Path

from hourglass.errors import HourglassError


def output_of(command: list[str], cwd: Path | None = None, **env: str) -> str:
    """Return a command's output, without its messages on stderr. Raises HourglassError with its last lines."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, "LC_ALL": "C", **env}, text=True, errors="replace", check=False,
        capture_output=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        lines = [*done.stdout.splitlines(), *done.stderr.splitlines()][-12:]
        raise HourglassError("\n".join([f"{' '.join(command)[:160]}: failed", *lines]))
    return done.stdout
