# SPDX-License-Identifier: Apache-2.0
"""Install and run a release in the bare roots, as a user without privileges and without network.

`python -m release.check FOLDER` takes the wheels in FOLDER, tests all bare roots (`--root NAME`: only this one) and
prints a table of roots, seconds and digests. Exit status 1: a test failed; 3: this machine cannot build a root.
"""

import argparse
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hourglass.errors import HourglassError, MissingError
from release import roots, wheels
from release.bare_roots import BARE_ROOTS, BareRoot

ROOT = Path(__file__).parents[1]
ENTER = Path(__file__).with_name("enter.sh")
NAMESPACES = ["unshare", "--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child"]
SHM_STATES = ("noexec", "absent")
"""The states of /dev/shm. The home is read-only in both."""

MAX_SECONDS = 60.0
"""The limit from `pip install` to table and picture."""

EXIT_SECONDS = 600.0
"""The limit from the end of the output to the end of the process."""

STEPS = {
    "venv": "python3 -m venv environment",
    "install": "environment/bin/pip install -q --no-index -f /wheels/others /wheels/release/hourglass_net-[0-9]*.whl",
    "run": "environment/bin/hourglass run L100M --out runs/L100M",
    "inspect": "sha256sum runs/L100M/records.arrows; od -An -tx1 -N8 runs/L100M/run.png; wc -c runs/L100M/run.png",
    "golden": "environment/bin/hourglass run L100M --set test.length=1 --set test.delay=0.2 --out runs/golden",
    "report": "environment/bin/hourglass report runs/L100M --out report.html; wc -c report.html",
    "version": "environment/bin/hourglass --version",
}
"""The test's commands by name."""

CPU_TIMES = re.compile(r"(\d+)m([\d.]+)s (\d+)m([\d.]+)s")
"""The output of the shell's `times`: a line for the shell and one for its children."""

PNG = "89 50 4e 47 0d 0a 1a 0a"


@dataclass
class RootTest:
    """The result of a release in a bare root."""

    root: BareRoot
    shm: str
    seconds: dict[str, float] = field(default_factory=dict)
    output: dict[str, list[str]] = field(default_factory=dict)
    status: int = 0
    cpu: dict[str, float] = field(default_factory=dict)
    """CPU seconds used before each step."""

    @property
    def wall_seconds(self) -> float:
        """Return the seconds from `pip install` to table and picture."""
        return self.seconds.get("install", 0.0) + self.seconds.get("run", 0.0)

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU seconds from `pip install` to table and picture."""
        return self.cpu.get("inspect", 0.0) - self.cpu.get("install", 0.0)

    def digest(self, step: str) -> str:
        """Return the digest that the command printed."""
        return next((match[1] for line in self.output.get(step, []) if (match := re.match(r"digest +(\w+)", line))), "")

    def problems(self, expected: str, golden: set[str]) -> list[str]:
        """Return the deviations from the expected result."""
        if self.status:
            last = next(reversed(self.output), "start")
            return [f"{last}: exit status {self.status}", *self.output.get(last, [])[-8:]]
        run, inspected = self.output["run"], "\n".join(self.output["inspect"])
        digest = self.digest("run")
        problems = []
        if not any(line.startswith("all ") for line in run):
            problems.append("no table")
        if PNG not in inspected:
            problems.append("no picture")
        if not digest or not inspected.startswith(digest):
            problems.append(f"printed digest {digest or 'missing'}, the records have {inspected[:12]}")
        if expected and digest != expected:
            problems.append(f"digest {digest}, the README has {expected}")
        golden_digest = self.digest("golden") or "no digest"
        if golden and not any(digest.startswith(golden_digest) for digest in golden):
            problems.append(f"golden run: {golden_digest}, not one of {', '.join(sorted(golden))}")
        if self.wall_seconds > MAX_SECONDS:
            problems.append(f"{self.wall_seconds:.0f} s, the limit is {MAX_SECONDS:.0f} s")
        return problems


def run_steps(root: BareRoot, shm: str, release: Path, dependencies: Path) -> RootTest:
    """Run all steps in a bare root."""
    result = RootTest(root, shm)
    command = "\n".join([*(f"echo ::{name}\ntimes\n{line}" for name, line in STEPS.items()), "echo ::end\ntimes"])
    arguments = [*NAMESPACES, str(ENTER), str(root.folder), shm, str(release), str(dependencies), command]
    step, start = "start", time.monotonic()
    with subprocess.Popen(
        arguments,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            now = time.monotonic()
            if line.startswith("::"):
                result.seconds[step] = now - start
                step, start = line[2:].strip(), now
                result.output[step] = []
            elif used := CPU_TIMES.fullmatch(line.strip()):
                minutes, seconds, system_minutes, system_seconds = map(float, used.groups())
                result.cpu[step] = (
                    60 * (minutes + system_minutes) + seconds + system_seconds
                )  # the children's come last
            else:
                result.output.setdefault(step, []).append(line.rstrip())
        result.status = child.wait(EXIT_SECONDS)
    result.seconds[step] = time.monotonic() - start
    return result


def readme_digest() -> str:
    """Return the digest of the README's first run, or an empty string."""
    match = re.search(r"^digest +(\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    return match[1] if match else ""


def golden_digests() -> set[str]:
    """Return the digests of the golden run of L100M, one for each kernel."""
    tables = tomllib.loads((ROOT / "tests/golden.toml").read_text())
    return {table["L100M"]["sha256"] for table in tables.values() if "L100M" in table}


def show(results: list[RootTest], expected: str, golden: set[str]) -> None:
    """Print the table of roots."""
    table = Table(
        "root", "python", "/dev/shm", "venv s", "install s", "run s", "total s", "CPU s", "digest", "", box=None
    )
    for result in results:
        seconds = [
            f"{result.seconds[name]:.1f}" if name in result.seconds else "" for name in ("venv", "install", "run")
        ]
        good = not result.problems(expected, golden)
        table.add_row(
            result.root.name, result.root.python, result.shm, *seconds, f"{result.wall_seconds:.1f}",
            f"{result.cpu_seconds:.1f}", result.digest("run"), "ok" if good else "FAILED",
        )  # fmt: skip
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def check(release: Path, selected: list[BareRoot], say: Callable[[str], None]) -> bool:
    """Test the wheels in `release` in all roots and print the results. Raises MissingError."""
    hourglass_wheels = sorted(release.glob("hourglass_net-[0-9]*.whl"))
    if len(hourglass_wheels) != 1:
        raise HourglassError(f"{release}: {len(hourglass_wheels)} wheels of Hourglass, must be 1; to fix: make wheel")
    expected, golden = readme_digest(), golden_digests()
    results = []
    for root in selected:
        roots.make(root, say)
        dependencies = wheels.folder(root, hourglass_wheels[0])
        for shm in SHM_STATES:
            results.append(run_steps(root, shm, release.resolve(), dependencies))
            for problem in results[-1].problems(expected, golden):
                say(f"{root.name}, /dev/shm {shm}: {problem}")
    show(results, expected, golden)
    digests = {result.digest("run") for result in results}
    if len(digests) != 1:
        say(f"digests differ between roots: {', '.join(sorted(digests))}")
    return len(digests) == 1 and not any(result.problems(expected, golden) for result in results)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m release.check", description="Test a release in bare roots.")
    parser.add_argument("release", type=Path, nargs="?", default=ROOT / "dist", help="the folder with the wheels")
    parser.add_argument(
        "--root", action="append", choices=[root.name for root in BARE_ROOTS], help="test only this root; repeatable"
    )
    options = parser.parse_args()
    selected = [root for root in BARE_ROOTS if not options.root or root.name in options.root]
    try:
        return 0 if check(options.release, selected, lambda line: print(line, file=sys.stderr, flush=True)) else 1
    except MissingError as error:
        print(error, file=sys.stderr)
        return 3
    except HourglassError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
