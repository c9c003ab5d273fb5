# SPDX-License-Identifier: Apache-2.0
"""Installs and runs a release in the bare roots, as somebody without rights and without network would.

`python -m release.check FOLDER` takes the wheels in FOLDER, tries every place (`--place NAME`: this one) and prints a
table of places, seconds and digests. Exit status 1: a place failed; 3: this machine cannot make one.
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
from release.places import PLACES, Place

ROOT = Path(__file__).parents[1]
ENTER = Path(__file__).with_name("enter.sh")
NAMESPACES = ["unshare", "--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child"]
SHM = ("noexec", "absent")
"""What /dev/shm is in a place; the home is read-only in either case."""

MOST_SECONDS = 60.0
"""From `pip install` to table and picture."""

GIVE_UP_SECONDS = 600.0
STEPS = {
    "venv": "python3 -m venv environment",
    "install": "environment/bin/pip install -q --no-index -f /wheels/others /wheels/release/hourglass-[0-9]*.whl",
    "run": "environment/bin/hourglass run L100M --out runs/L100M",
    "look": "sha256sum runs/L100M/records.arrows; od -An -tx1 -N8 runs/L100M/run.png; wc -c runs/L100M/run.png",
    "golden": "environment/bin/hourglass run L100M --set test.length=1 --set test.delay=0.2 --out runs/golden",
    "report": "environment/bin/hourglass report runs/L100M --out report.html; wc -c report.html",
    "version": "environment/bin/hourglass --version",
}
"""What is done in a place, by name."""

CPU_TIMES = re.compile(r"(\d+)m([\d.]+)s (\d+)m([\d.]+)s")
"""What the shell's `times` prints, once for itself and once for what it started."""

PNG = "89 50 4e 47 0d 0a 1a 0a"


@dataclass
class Tried:
    """What became of a release in a place."""

    place: Place
    shm: str
    seconds: dict[str, float] = field(default_factory=dict)
    said: dict[str, list[str]] = field(default_factory=dict)
    status: int = 0
    cpu: dict[str, float] = field(default_factory=dict)
    """Seconds of CPU used until a step began."""

    @property
    def total(self) -> float:
        """Seconds from `pip install` to table and picture."""
        return self.seconds.get("install", 0.0) + self.seconds.get("run", 0.0)

    @property
    def busy(self) -> float:
        """Seconds of CPU from `pip install` to table and picture: what a quiet machine needs, or less."""
        return self.cpu.get("look", 0.0) - self.cpu.get("install", 0.0)

    def digest(self, step: str) -> str:
        """The digest that the command printed."""
        return next((found[1] for line in self.said.get(step, []) if (found := re.match(r"digest +(\w+)", line))), "")

    def problems(self, wanted: str, golden: set[str]) -> list[str]:
        """What is not as it must be."""
        if self.status:
            last = next(reversed(self.said), "start")
            return [f"{last}: exit status {self.status}", *self.said.get(last, [])[-8:]]
        run, look = self.said["run"], "\n".join(self.said["look"])
        own = self.digest("run")
        found = []
        if not any(line.startswith("all ") for line in run):
            found.append("no table")
        if PNG not in look:
            found.append("no picture")
        if not own or not look.startswith(own):
            found.append(f"digest {own or 'not printed'}, the records' is {look[:12]}")
        if wanted and own != wanted:
            found.append(f"digest {own}, the README's is {wanted}")
        short = self.digest("golden") or "no digest"
        if golden and not any(line.startswith(short) for line in golden):
            found.append(f"golden run: {short}, not one of {', '.join(sorted(golden))}")
        if self.total > MOST_SECONDS:
            found.append(f"{self.total:.0f} s, {MOST_SECONDS:.0f} are allowed")
        return found


def attempt(place: Place, shm: str, release: Path, others: Path) -> Tried:
    """Does all steps in a place."""
    tried = Tried(place, shm)
    command = "\n".join([*(f"echo ::{name}\ntimes\n{line}" for name, line in STEPS.items()), "echo ::end\ntimes"])
    words = [*NAMESPACES, str(ENTER), str(place.root), shm, str(release), str(others), command]
    step, began = "", time.monotonic()
    with subprocess.Popen(
        words, text=True, errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            now = time.monotonic()
            if line.startswith("::"):
                tried.seconds |= {step: now - began} if step else {}
                step, began = line[2:].strip(), now
                tried.said[step] = []
            elif used := CPU_TIMES.fullmatch(line.strip()):
                minutes, seconds, system_minutes, system_seconds = map(float, used.groups())
                tried.cpu[step] = 60 * (minutes + system_minutes) + seconds + system_seconds  # the children's come last
            else:
                tried.said.setdefault(step, []).append(line.rstrip())
        tried.status = child.wait(GIVE_UP_SECONDS)
    tried.seconds |= {step: time.monotonic() - began} if step else {}
    return tried


def readme_digest() -> str:
    """The digest that the README shows for its first run, or nothing."""
    found = re.search(r"^digest +(\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    return found[1] if found else ""


def golden_digests() -> set[str]:
    """What a golden run of L100M may be: a digest for each kernel."""
    tables = tomllib.loads((ROOT / "tests/golden.toml").read_text())
    return {table["L100M"]["sha256"] for table in tables.values() if "L100M" in table}


def show(tried: list[Tried], wanted: str, golden: set[str]) -> None:
    """The table of places."""
    table = Table(
        "place", "python", "/dev/shm", "venv s", "install s", "run s", "together s", "CPU s", "digest", "", box=None
    )
    for one in tried:
        seconds = [f"{one.seconds[name]:.1f}" if name in one.seconds else "" for name in ("venv", "install", "run")]
        good = not one.problems(wanted, golden)
        table.add_row(
            one.place.name, one.place.python, one.shm, *seconds, f"{one.total:.1f}",
            f"{one.busy:.1f}", one.digest("run"), "ok" if good else "FAILED",
        )  # fmt: skip
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def check(release: Path, places: list[Place], say: Callable[[str], None]) -> bool:
    """Tries the wheels in `release` in all places and prints what became of it. Raises MissingError."""
    front = sorted(release.glob("hourglass-[0-9]*.whl"))
    if len(front) != 1:
        raise HourglassError(f"{release}: one wheel of Hourglass is wanted, {len(front)} are there; to fix: make wheel")
    wanted, golden = readme_digest(), golden_digests()
    tried = []
    for place in places:
        roots.make(place, say)
        others = wheels.folder(place, front[0])
        for shm in SHM:
            tried.append(attempt(place, shm, release.resolve(), others))
            for problem in tried[-1].problems(wanted, golden):
                say(f"{place.name}, /dev/shm {shm}: {problem}")
    show(tried, wanted, golden)
    digests = {one.digest("run") for one in tried}
    if len(digests) != 1:
        say(f"digests differ between places: {', '.join(sorted(digests))}")
    return len(digests) == 1 and not any(one.problems(wanted, golden) for one in tried)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m release.check", description="Tries a release in bare roots.")
    parser.add_argument("release", type=Path, nargs="?", default=ROOT / "dist", help="the folder with the wheels")
    parser.add_argument("--place", action="append", choices=[place.name for place in PLACES], help="this one (repeat)")
    options = parser.parse_args()
    places = [place for place in PLACES if not options.place or place.name in options.place]
    try:
        return 0 if check(options.release, places, lambda line: print(line, file=sys.stderr, flush=True)) else 1
    except MissingError as error:
        print(error, file=sys.stderr)
        return 3
    except HourglassError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
