# SPDX-License-Identifier: Apache-2.0
"""`make fuzz-calls SECONDS=3600`: random system calls by programs of nodes, as root of a node and as a user.

Each run has a different seed. The host must stay as it was. Both programs must make all their calls. A program may
still run when the test ends, or spin, since every program can end its run so. All else is a finding, printed with its
seed. Exit status 1: findings exist.
"""

import argparse
import base64
import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from hourglass import runner, scenario
from hourglass.contract.kernels import KERNELS
from hourglass.engine import watchdog
from hourglass.errors import GuestError
from hourglass.results.recording import Recording
from tests.guest.conftest import line
from tests.guest.host_state import unchanged

ROUNDS = 400
COMPLETE, STOPPED, FINDING = "complete", "stopped", "FINDING"
ENDS = ("guest-spins", "container-ended")
"""The codes of runs that root of a node may end: a program computes without a system call, or it set a limit of its
node's first process."""
STALL_S = "5"
"""The watchdog's limit, in seconds of CPU time."""
SOURCE = Path(__file__).with_name("calls.c")


def compiled(folder: Path, source: Path = SOURCE) -> str:
    """Return the program that makes the calls, in base64."""
    program = folder / "calls"
    subprocess.run(["gcc", "-static", "-O1", "-w", "-o", program, source], check=True)
    return base64.b64encode(program.read_bytes()).decode()


def calls(program: str, seed: int, rounds: int) -> dict[str, Any]:
    """Return a scenario: root of a node and a user of another node make random calls."""
    app = {"command": ["/calls", str(seed), str(rounds)], "expect": "any"}
    app["files"] = {"/calls": {"base64": program, "executable": True}}
    second = app | {"command": ["/calls", str(seed + 1_000_000), str(rounds)]}
    return {
        "name": "calls",
        "testbed": line(nodes=2)["testbed"],
        "apps": {"packages": ["mount"]},
        "app": [app | {"name": "root", "node": "client", "user": "root"}, second | {"name": "user", "node": "server"}],
    }


def end(program: str, seed: int, rounds: int, kernel: str, folder: Path) -> tuple[str, str]:
    """Return how the run of a seed ended, and the reason unless it is complete."""
    try:
        with unchanged(folder, except_for={"run", "run.failed"}):
            recording = runner.run(scenario.load(calls(program, seed, rounds), kernel=kernel), folder / "run")
    except AssertionError as error:
        return FINDING, f"the host changed: {error}"
    except GuestError as error:
        return STOPPED if error.code in ENDS else FINDING, str(error).splitlines()[0]
    return judged(recording, rounds)


def judged(recording: Recording, rounds: int) -> tuple[str, str]:
    """Return as `end` does. A program prints the number of its rounds at its end, after random bytes that its calls
    wrote."""
    for name, app in recording.apps.items():
        if not app.stdout.endswith(f"{rounds} rounds\n"):
            if app.outlasted_test:
                return STOPPED, f"the program of {name} did not end during the test"
            return FINDING, f"the program of {name} ended early, with {app.stdout[-60:]!r}"
    return COMPLETE, ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.system_calls", description="Random system calls.")
    parser.add_argument("--seconds", type=float, default=60, help="wall time for each kernel")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="processes of each program, of 60 calls")
    parser.add_argument("--kernels", default=",".join(KERNELS))
    options = parser.parse_args()
    os.environ.setdefault(watchdog.LIMIT, STALL_S)
    findings = 0
    for kernel in options.kernels.split(","):
        ends: Counter[str] = Counter()
        seed, deadline = options.seed, time.monotonic() + options.seconds
        with tempfile.TemporaryDirectory(prefix="hourglass-") as temporary:
            program = compiled(Path(temporary))
            while time.monotonic() < deadline:
                folder = Path(temporary) / str(seed)
                folder.mkdir()
                outcome, reason = end(program, seed, options.rounds, kernel, folder)
                ends[outcome] += 1
                print(f"{kernel} seed {seed}: {outcome} {reason}".rstrip(), flush=True)
                shutil.rmtree(folder, ignore_errors=True)
                seed += 1
        print(f"{kernel}: {', '.join(f'{count} {how}' for how, count in sorted(ends.items()))}", flush=True)
        findings += ends[FINDING]
    return int(findings > 0)


if __name__ == "__main__":
    raise SystemExit(main())
