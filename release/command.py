# SPDX-License-Identifier: Apache-2.0
"""The one way in which other programs are called here."""

import os
import subprocess
from pathlib import Path

from hourglass.errors import HourglassError


def called(command: list[str], cwd: Path | None = None, **env: str) -> str:
    """What a command prints; not what it says beside that, as cargo does that it waits for another. Raises
    HourglassError with its last words."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, "LC_ALL": "C", **env}, text=True, errors="replace", check=False,
        capture_output=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        said = [*done.stdout.splitlines(), *done.stderr.splitlines()][-12:]
        raise HourglassError("\n".join([f"{' '.join(command)[:160]}: failed", *said]))
    return done.stdout
