# SPDX-License-Identifier: Apache-2.0
"""Each test in a guest of its own, as a program of a node: a sweep over tests and seeds, resumed as any other."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from hourglass.campaign.ab import made
from hourglass.campaign.cells import describe
from hourglass.campaign.sweep import Progress, Silent, sweep
from hourglass.engine.kernel import store, trees
from hourglass.errors import InputError, closest
from hourglass.results.opening import open_run
from hourglass.selftests.build import PLACE, TDC, Built, built
from hourglass.selftests.verdict import Verdict, verdict

OUT = Path("selftests")
LIMIT_S = 1800
"""Virtual time that a test has. Its own limit, of its folder's `settings`, is for machines whose code takes time."""

APP = "test"


@dataclass(frozen=True)
class Tested:
    """A test with its verdict of each seed, and its runs; a run that failed has none."""

    name: str
    verdicts: tuple[Verdict, ...]
    runs: tuple[Path | None, ...]

    @property
    def steady(self) -> bool:
        """Whether all seeds had the same verdict, and as many cases in it."""
        return len({(one.word, one.passed, one.failed) for one in self.verdicts}) == 1


@dataclass(frozen=True)
class Selftests:
    """What a kernel's tests gave. `release`: the kernel's; `asked`: the patterns of their names, none: all."""

    kernel: str
    release: str
    seeds: int
    asked: tuple[str, ...]
    tests: tuple[Tested, ...]


def selftests(
    words: str,
    patterns: Sequence[str] = (),
    *,
    seeds: int = 1,
    out: Path = OUT,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Selftests:
    """Runs the tests of a kernel or tree whose names match one of the patterns, default all.

    Raises InputError, MissingError, or HourglassError when kernel or tests cannot be built."""
    progress = progress or Silent()
    kernel = made(words, progress.kernel)
    tree = store.origin(store.read(words), words) if store.known(words) else words
    there = built(tree, trees.names(tree), progress.kernel)
    chosen = _chosen(there, patterns)
    done = sweep(_grid(there, chosen, kernel.name, seeds), out / kernel.name, jobs=jobs, progress=progress)
    by: dict[str, list[tuple[Verdict, Path | None]]] = {name: [] for name in chosen}
    failed = {one.cell: one.reason.splitlines()[0] for one in done.failures}
    names = {repr(_command(name, there.root)): name for name in chosen}
    for cell in done.cells:
        by[names[repr(cell.assignment["app.0.command"])]].append(
            _judged(done.runs / cell.key, failed.get(describe(done.grid, cell.assignment)))
        )
    tests = tuple(Tested(name, *zip(*found, strict=True)) for name, found in by.items())
    return Selftests(kernel.name, kernel.release, seeds, tuple(patterns), tests)


def _chosen(there: Built, patterns: Sequence[str]) -> list[str]:
    for pattern in patterns:
        if not any(_named(name, pattern) for name in there.tests):
            raise InputError("TEST", pattern, f"no test is called so. {closest(pattern, there.tests)}".strip())
    return [name for name in there.tests if not patterns or any(_named(name, one) for one in patterns)]


def _named(name: str, pattern: str) -> bool:
    """Whether a pattern, by the file system's rules, is of a test or of a folder that it is in."""
    path = PurePosixPath(name)
    return any(one.match(pattern) for one in (path, *path.parents[:-1]) if pattern)


def _grid(there: Built, chosen: Sequence[str], kernel: str, seeds: int) -> dict[str, Any]:
    app = {"name": APP, "node": "client", "command": ["true"], "folder": f"/{PLACE}", "expect": "any"}
    return {
        "name": "selftests",
        "scenario": {
            "name": "selftest", "kernel": kernel, "testbed": {"preset": "L100M"}, "test": {"length": LIMIT_S},
            "apps": {"root": str(there.root)}, "app": [app], "measure": {"tcp": 0, "packets": 0},
        },
        "axes": {"app.0.command": [_command(name, there.root) for name in chosen]},
        "repetitions": seeds,
    }  # fmt: skip


def _command(name: str, root: Path) -> list[str]:
    """How kselftest's own runner calls a test, from its folder, by its interpreter if it cannot be executed; tdc's
    files of cases each by itself."""
    folder, _, test = name.rpartition("/")
    if name.startswith(f"{TDC}/"):
        return ["bash", "-c", f"cd {TDC} && python3 ./tdc.py -f tc-tests/{name.removeprefix(f'{TDC}/')}"]
    runner = "./ksft_runner.sh " if test.endswith(".pkt") else _interpreter(root / PLACE / name)
    return ["bash", "-c", f"cd {folder} && {runner}./{test}"]


def _interpreter(script: Path) -> str:
    """What a file's first line names, where the file is not executable: a patch, as Debian's are, makes plain files."""
    if not script.is_file() or os.access(script, os.X_OK):
        return ""
    first = script.read_bytes().splitlines()[:1]
    return f"{first[0][2:].decode().strip()} " if first and first[0].startswith(b"#!") else ""


def _judged(place: Path, failure: str | None) -> tuple[Verdict, Path | None]:
    if failure is not None:
        return Verdict("fail", f"the run failed: {failure}"), None
    run = open_run(place)
    app = run.apps[APP]
    (about,) = (one for one in run.summary.apps if one.id == APP)
    return verdict(about.status, app.stdout + "\n" + app.stderr, LIMIT_S), place
