# SPDX-License-Identifier: Apache-2.0
"""Run the programs of Debian in `scenarios/debian/`: `python -m tests.debian_programs [NAME …]`. All take half an hour.

Each scenario is run three times by new processes, the last time next to two processes that spin. Its programs must end
as expected, and the digests of the records and of all output must be the same. The scenarios of `failing/` must fail.

Without names, the results become the table of `docs/reference/debian-programs.md`. Exit status 1: a program differs.
"""

import argparse
import hashlib
import os
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hourglass import errors
from hourglass.contract.kernels import DEFAULT, TESTED_RELEASES
from hourglass.host import directories
from hourglass.resources import SCENARIOS
from tests.repeat import Outcome, busy_cpus, faults, play
from tests.repository import ROOT

FOLDER = SCENARIOS / "debian"
LINK = "../../scenarios/debian"
PAGE = ROOT / "docs/reference/debian-programs.md"
RECORDED = re.compile(r"(?<=\n)Recorded with .*", re.DOTALL)
"""The part of the page that this command writes."""

CAUSE, ERROR = "# Cause: ", "# Error: "
"""The lines of a scenario in `failing/` with the reason, and with a part of its error."""


@dataclass(frozen=True)
class DebianProgram:
    """A scenario with its runs."""

    file: Path
    outcomes: Sequence[tuple[str, Outcome]]

    @property
    def fault(self) -> str:
        """Return the runs that failed or differ, or ""."""
        return ", ".join(faults(self.outcomes))

    def cells(self) -> list[str]:
        """Return the row of the table."""
        scenario, first = tomllib.loads(self.file.read_text()), self.outcomes[0][1]
        cpu_s = min(outcome.cpu_s for _, outcome in self.outcomes)
        name = f"[{self.file.stem}]({LINK}/{self.file.name})"
        packages = ", ".join(f"`{package}`" for package in scenario["apps"]["packages"])
        return [name, packages, scenario["description"], f"{first.test_s:.3g}", f"{cpu_s:.2f}"]


def noted(file: Path, start: str) -> str:
    """Return the text of a comment of a scenario in `failing/`."""
    (line,) = [line for line in file.read_text().splitlines() if line.startswith(start)]
    return line.removeprefix(start)


def files(names: Sequence[str] = (), folder: Path = FOLDER) -> list[Path]:
    return [file for file in sorted(folder.glob("*.toml")) if not names or file.stem in names]


def runs(file: Path, folder: Path) -> Iterator[tuple[str, Outcome]]:
    for name in ("first", "second"):
        yield name, play(file, DEFAULT, folder / name, directories.cache())
    with busy_cpus(2):
        yield "loaded", play(file, DEFAULT, folder / "loaded", directories.cache())


def stamp(release: str) -> str:
    """Return the sentence about the origin of the tables. A change of any scenario changes it."""
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(FOLDER.rglob("*.*"))))
    return f"Recorded with Linux {release}, seed 1, and scenarios of SHA-256 {digest.hexdigest()[:16]}."


def tables(programs: Sequence[DebianProgram], failing: Sequence[Path]) -> str:
    """Return the stamp and both tables in Markdown."""
    rows = [
        stamp(TESTED_RELEASES[DEFAULT]),
        f"The CPU times are those of a machine with {os.cpu_count()} CPUs.",
        "",
        "| program | packages | the scenario | virtual s | CPU s |",
        "|---|---|---|---|---|",
    ]
    rows += [f"| {' | '.join(item.cells())} |" for item in programs]
    rows += ["", "| fails | cause |", "|---|---|"]
    rows += [f"| [{file.stem}]({LINK}/failing/{file.name}) | {noted(file, CAUSE)} |" for file in failing]
    return "\n".join(rows) + "\n"


def main() -> int:
    every = [file.stem for file in sorted(FOLDER.rglob("*.toml"))]
    parser = argparse.ArgumentParser(prog="python -m tests.debian_programs", description="Debian's programs.")
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*every, []], help="default: all, and the table")
    names = parser.parse_args().names
    work, programs, count = Path(tempfile.mkdtemp(prefix="hourglass-debian-")), [], 0
    for file in files(names):
        (work / file.stem).mkdir()
        program = DebianProgram(file, list(runs(file, work / file.stem)))
        programs.append(program)
        count += bool(program.fault)
        print(f"{file.stem:16} {program.fault or 'the same bytes'}", flush=True)
        if not program.fault:
            shutil.rmtree(work / file.stem)
    failing = files(names, FOLDER / "failing")
    for file in failing:
        error = play(file, DEFAULT, work / file.stem, directories.cache()).error
        is_expected = noted(file, ERROR) in error
        count += not is_expected
        print(f"{file.stem:16} {'fails as expected' if is_expected else error or 'runs'}", flush=True)
    if count:
        print(f"{count} not as expected; the runs are in {work}")
    else:
        shutil.rmtree(work)
        if not names:
            PAGE.write_text(RECORDED.sub("", PAGE.read_text()) + tables(programs, failing))
    return int(bool(count))


if __name__ == "__main__":
    errors.program(main)
