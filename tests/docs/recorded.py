# SPDX-License-Identifier: Apache-2.0
"""Recorded pages: results of hundreds of runs, with a stamp that says when and how they were made.

`python -m tests.docs.recorded PAGE…` makes pages of studies again, with the command that each page names. The runs are
cached in runs/recorded/. `--stamp` makes nothing: it stamps pages that another command has just written
(`hourglass kernel selftests`). `python -m papers --pages docs/papers` stamps its pages.

A page is stale if the study, a file that it names, or the tested release of a kernel has changed since.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from hourglass.contract.kernels import DEFAULT, TESTED_RELEASES
from hourglass.resources import KERNEL
from papers import stamp
from papers.stamp import STAMP

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for name in ("papers", "selftests", "suites") for path in (ROOT / "docs" / name).glob("*.md"))
RUNS = ROOT / "runs/recorded"
STUDIES = ROOT / "scenarios/studies"
COMMAND = re.compile(r"Made by `(hourglass study [^`]+)`")


def staleness(page: Path) -> str:
    """Return the reason why a page is stale; empty if it is current."""
    stamp = STAMP.search(page.read_text())
    if stamp is None:
        return "has no stamp"
    if outdated := set(stamp["releases"].split(", ")) - set(TESTED_RELEASES.values()):
        return f"Linux {', '.join(sorted(outdated))} is no longer a tested release"
    return "" if stamp["inputs"] == inputs(page) else "its study has changed"


def inputs(page: Path) -> str | None:
    """Return the digest of the files that decide the runs and criteria of a page."""
    return stamp.digest(input_data(page))


def input_data(page: Path) -> dict[str, Any]:
    """Return the content of each file that decides a page, by its name."""
    if page.parent.name == "papers":
        return stamp.of_page(page.stem)
    words = command(page)
    data = stamp.content([STUDIES / f"{words[2]}.toml"] if words else [])
    return data | {path.name: code(path) for path in templates(words)}


def templates(words: list[str]) -> list[Path]:
    """Return the templates that a command takes as congestion controls."""
    names = [name for word in words for name in word.split(",") if name.endswith(".c")]
    return [KERNEL / "templates" / name for name in names]


def code(path: Path) -> str:
    """Return a C file without comments and white space."""
    return re.sub(r"/\*.*?\*/|//[^\n]*|\s+", "", path.read_text(), flags=re.DOTALL)


def command(page: Path) -> list[str]:
    """Return the words of the command that made a study's page."""
    match = COMMAND.search(page.read_text())
    return shlex.split(match[1]) if match else []


def kernels(page: Path) -> list[str]:
    """Return the names of the kernels of a page."""
    if page.parent.name == "papers":
        names = stamp.kernels(input_data(page))
    else:
        names = set(re.findall(r"Linux (\d+\.\d+)", page.read_text())[:1])
    return [name for name in TESTED_RELEASES if name in (names or {DEFAULT})]


def seeds(page: Path) -> str:
    """Return the seeds of a page: "1-3"."""
    text = page.read_text()
    if rerun := re.search(r"rerun with seeds \d+ to (\d+)", text):
        return f"1-{rerun[1]}"
    return stamp.seeds(input_data(page)) if page.parent.name == "papers" else "1"


def stamped(page: Path, commit: str) -> str:
    """Return the text of a page with a stamp below its title."""
    releases = [TESTED_RELEASES[name] for name in kernels(page)]
    return stamp.stamped(page.read_text(), commit, releases, seeds(page), inputs(page))


def record(page: Path) -> None:
    """Carry out the command of a study's page and replace the page."""
    words = command(page)
    RUNS.mkdir(parents=True, exist_ok=True)
    for template in templates(words):
        (RUNS / template.name).write_bytes(template.read_bytes())
    result = subprocess.run([Path(sys.executable).with_name("hourglass"), *words[1:]], cwd=RUNS, check=False)
    if result.returncode not in (0, 1):  # 1: a criterion is missed
        raise SystemExit(result.returncode)
    page.write_bytes((RUNS / "studies" / words[2] / f"{words[2]}.md").read_bytes())


def main(arguments: list[str]) -> None:
    pages = [Path(name).resolve() for name in arguments if name != "--stamp"]
    if not pages or not set(pages) <= set(PAGES):
        raise SystemExit(__doc__)
    if (commit := stamp.head()) is None:
        raise SystemExit("the sources have uncommitted changes; commit them first")
    for page in pages:
        if "--stamp" not in arguments:
            record(page)
        page.write_text(stamped(page, commit))


if __name__ == "__main__":
    main(sys.argv[1:])
