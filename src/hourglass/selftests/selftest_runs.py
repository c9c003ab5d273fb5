# SPDX-License-Identifier: Apache-2.0
"""Run each test in its own guest, as a program of a node: a study over tests and seeds, resumed like other studies."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from hourglass.builders.kernel import config, registry, tree_spec
from hourglass.errors import InputError, closest
from hourglass.results.run_directory import open_run
from hourglass.selftests.build import TDC, TESTS_FOLDER, SelftestRoot, build_selftests
from hourglass.selftests.verdict import SelftestVerdict, verdict
from hourglass.studies.cells import describe
from hourglass.studies.runs import SilentStudy, StudyProgress
from hourglass.studies.study import study

OUT = Path("selftests")
LIMIT_S = 1800
"""The virtual time limit of a test. The limit in `settings` of its folder assumes code that takes time."""

APP = "test"


@dataclass(frozen=True)
class SelftestResult:
    """A test with a verdict and a run for each seed; the run is None if it failed."""

    name: str
    verdicts: tuple[SelftestVerdict, ...]
    runs: tuple[Path | None, ...]

    @property
    def steady(self) -> bool:
        """Tell if all seeds have the same verdict with the same counts of cases."""
        return len({(result.word, result.passed, result.failed) for result in self.verdicts}) == 1


@dataclass(frozen=True)
class Selftests:
    """The results of the tests of a kernel. `release`: the kernel's. `patterns` select names; none selects all."""

    kernel: str
    release: str
    seeds: tuple[int, ...]
    patterns: tuple[str, ...]
    tests: tuple[SelftestResult, ...]


def selftests(
    spec: str,
    patterns: Sequence[str] = (),
    *,
    seeds: Sequence[int] = (1,),
    out: Path = OUT,
    jobs: int | None = None,
    progress: StudyProgress | None = None,
) -> Selftests:
    """Run the tests of a kernel or tree whose names match one of the patterns, default all.

    Raises InputError, MissingError, or HourglassError if the kernel or the tests cannot be built."""
    progress = progress or SilentStudy()
    kernel = registry.ensure_tree(spec, progress.kernel)
    name, _ = config.kernel_and_variant(spec)
    tree = registry.origin(registry.read(name), name) if registry.is_kernel(name) else spec
    root = build_selftests(tree, tree_spec.default_name(tree), progress.kernel)
    chosen = _chosen(root, patterns)
    done = study(_grid(root, chosen, kernel.name), out / kernel.name, seeds=seeds, jobs=jobs, progress=progress)
    outcomes_by_name: dict[str, list[tuple[SelftestVerdict, Path | None]]] = {name: [] for name in chosen}
    failed = {failure.cell: failure.reason.splitlines()[0] for failure in done.failures}
    names = {repr(_command(name, root.root)): name for name in chosen}
    for cell in done.cells:
        outcomes_by_name[names[repr(cell.assignment["app.0.command"])]].append(
            _outcome(done.runs / cell.key, failed.get(describe(done.grid, cell.assignment)))
        )
    tests = tuple(SelftestResult(name, *zip(*outcomes, strict=True)) for name, outcomes in outcomes_by_name.items())
    return Selftests(kernel.name, kernel.release, tuple(seeds), tuple(patterns), tests)


def _chosen(root: SelftestRoot, patterns: Sequence[str]) -> list[str]:
    for pattern in patterns:
        if not any(_named(name, pattern) for name in root.tests):
            raise InputError("TEST", pattern, f"no selftest has this name. {closest(pattern, root.tests)}".strip())
    return [name for name in root.tests if not patterns or any(_named(name, pattern) for pattern in patterns)]


def _named(name: str, pattern: str) -> bool:
    """Tell if a pattern with the rules of file names matches a test or a folder above it."""
    path = PurePosixPath(name)
    return any(part.match(pattern) for part in (path, *path.parents[:-1]) if pattern)


def _grid(root: SelftestRoot, chosen: Sequence[str], kernel: str) -> dict[str, Any]:
    app = {
        "name": APP,
        "node": "client",
        "command": ["true"],
        "folder": f"/{TESTS_FOLDER}",
        "user": "root",
        "expect": "any",
    }
    return {
        "name": "selftests",
        "scenario": {
            "name": "selftest", "kernel": kernel, "testbed": {"preset": "L100M"}, "test": {"length": LIMIT_S},
            "apps": {"root": str(root.root)}, "app": [app], "measure": {"tcp": 0, "packets": 0},
        },
        "axes": {"app.0.command": [_command(name, root.root) for name in chosen]},
    }  # fmt: skip


def _command(name: str, root: Path) -> list[str]:
    """Return the command of the runner of kselftest: in the test's folder, by its interpreter if it is not executable.

    Each file of tdc's cases has its own command."""
    folder, _, test = name.rpartition("/")
    if name.startswith(f"{TDC}/"):
        return ["bash", "-c", f"cd {TDC} && python3 ./tdc.py -f tc-tests/{name.removeprefix(f'{TDC}/')}"]
    runner = "./ksft_runner.sh " if test.endswith(".pkt") else _interpreter(root / TESTS_FOLDER / name)
    return ["bash", "-c", f"cd {folder} && {runner}./{test}"]


def _interpreter(script: Path) -> str:
    """Return the interpreter in the first line of a file that is not executable, otherwise nothing.

    Patches, such as Debian's, create files that are not executable."""
    if not script.is_file() or os.access(script, os.X_OK):
        return ""
    first = script.read_bytes().splitlines()[:1]
    return f"{first[0][2:].decode().strip()} " if first and first[0].startswith(b"#!") else ""


def _outcome(folder: Path, failure: str | None) -> tuple[SelftestVerdict, Path | None]:
    if failure is not None:
        return SelftestVerdict("failed", f"the run failed: {failure}"), None
    run = open_run(folder)
    app = run.apps[APP]
    (about,) = (entry for entry in run.summary.apps if entry.id == APP)
    return verdict(about.status, app.stdout + "\n" + app.stderr, LIMIT_S), folder
