# SPDX-License-Identifier: Apache-2.0
"""`make fuzz-calls SECONDS=3600`: random system calls by programs of nodes, as root of a node and as a user.

Each run has its own seed. The host must stay as it was, and the run must end with its records or with an error in
words. A finding is printed, and its seed. Exit status 1: findings exist.
"""

import argparse
import base64
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from hourglass import runner, scenario
from hourglass.contract.kernels import KERNELS
from hourglass.errors import GuestError
from tests.guest.conftest import line
from tests.guest.host_state import unchanged

ROUNDS = 400
FORBIDDEN = "its sandbox forbids"
"""Part of the error of a guest that the host's filter killed: a call of the guest's kernel that is not on its list."""


def compiled(folder: Path) -> str:
    """Return the program that makes the calls, in base64."""
    program = folder / "calls"
    subprocess.run(["gcc", "-static", "-O1", "-w", "-o", program, Path(__file__).with_name("calls.c")], check=True)
    return base64.b64encode(program.read_bytes()).decode()


def calls(program: str, seed: int, rounds: int) -> dict[str, Any]:
    """Return a scenario: root of a node and a user of another node make random calls, and a bystander pings."""
    app = {"command": ["/calls", str(seed), str(rounds)], "expect": "any"}
    app["files"] = {"/calls": {"base64": program, "executable": True}}
    second = app | {"command": ["/calls", str(seed + 1_000_000), str(rounds)]}
    return {
        "name": "calls",
        "testbed": line(nodes=2)["testbed"],
        "apps": {"packages": ["mount"]},
        "app": [app | {"name": "root", "node": "client", "user": "root"}, second | {"name": "user", "node": "server"}],
    }


def finding(program: str, seed: int, rounds: int, kernel: str, folder: Path) -> tuple[str | None, str]:
    """Return what is wrong with the run of a seed, if anything, and how the run ended."""
    try:
        with unchanged(folder, except_for={"run", "run.failed"}):
            try:
                recording = runner.run(scenario.load(calls(program, seed, rounds), kernel=kernel), folder / "run")
            except GuestError as error:
                end = str(error).splitlines()[0]
                return (end if FORBIDDEN in end else None), end
    except AssertionError as error:
        return f"the host changed: {error}", ""
    return None, ", ".join(last_words(app.stdout) for app in recording.apps.values())


def last_words(output: str) -> str:
    """Return the end of what a program printed. Its calls also write random bytes."""
    return "".join(filter(str.isprintable, output[-60:])).strip()[-16:]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.system_calls", description="Random system calls.")
    parser.add_argument("--seconds", type=float, default=60, help="wall time for each kernel")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="processes of each program, of 60 calls")
    parser.add_argument("--kernels", default=",".join(KERNELS))
    options = parser.parse_args()
    findings = 0
    for kernel in options.kernels.split(","):
        seed, deadline = options.seed, time.monotonic() + options.seconds
        with tempfile.TemporaryDirectory(prefix="hourglass-") as temporary:
            program = compiled(Path(temporary))
            while time.monotonic() < deadline:
                folder = Path(temporary) / str(seed)
                folder.mkdir()
                problem, end = finding(program, seed, options.rounds, kernel, folder)
                findings += problem is not None
                print(f"{kernel} seed {seed}: {problem or 'sound'}; {end}", flush=True)
                shutil.rmtree(folder, ignore_errors=True)
                seed += 1
    return int(findings > 0)


if __name__ == "__main__":
    raise SystemExit(main())
