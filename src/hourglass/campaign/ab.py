# SPDX-License-Identifier: Apache-2.0
"""Two kernels, or two versions of a user's file, over the same scenarios and seeds: what moved, by how much, and where
it was first felt.

It is a sweep with the kernel, or what stands at `stack.cc` or `stack.qdisc`, for an axis. Runs are exact, so scenarios
that the difference does not touch give the same records, byte by byte; of the others a figure has moved when the 95 %
interval of the difference of its means, bootstrapped over seeds, excludes 0 (`results.groups`), and it is told as more
than +0.0 %: seeds that agree to the last digit have no spread that could excuse less.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hourglass.campaign.sweep import Progress, sweep
from hourglass.contract.run import Kernel
from hourglass.engine.kernel import store, trees
from hourglass.engine.kernel.build import build
from hourglass.engine.kernel.built import BuiltKernel
from hourglass.errors import HourglassError, InputError
from hourglass.results.bootstrap import MIN_BLOCKS
from hourglass.results.compare import Cell, Row, compare
from hourglass.results.diff import Diff, diff
from hourglass.results.groups import compare_groups, groups
from hourglass.results.opening import open_run
from hourglass.results.recording import Recording
from hourglass.scenario import c_source, module
from hourglass.scenario.overrides import parse

SUITE = ("L100M", "R10M", "asymmetric", "rtt-fair", "wifi-ath9k")
"""Scenarios over which kernels are compared unless others are named: a queue at the host and at the router, ACKs over a
slow line, unequal round trips, and a radio."""
SEEDS = MIN_BLOCKS
TOLD = 0.05
"""Percent: less is told as +0.0."""
OUT = Path("ab")
RUNS = "runs"
"""The folder of runs below `out`, which comparisons share: the same run is never made twice."""


@dataclass(frozen=True)
class Compared:
    """One scenario. `same`: of how many seeds the records are the same bytes; `moved`: the figures that moved;
    `first`: where the runs of the first seed that differ part."""

    scenario: str
    pairs: tuple[tuple[Recording, Recording], ...]
    same: int
    moved: tuple[Row, ...]
    first: Diff | None


@dataclass(frozen=True)
class Side:
    """What is compared with the other: a kernel by its name, or a file, as it was named, and the kernel with it."""

    name: str
    kernel: Kernel


@dataclass(frozen=True)
class Comparison:
    """Of two sides, scenario by scenario."""

    sides: tuple[Side, Side]
    scenarios: tuple[Compared, ...]

    @property
    def moved(self) -> bool:
        """Whether any figure of any scenario has."""
        return any(one.moved for one in self.scenarios)


def made(words: str, report: Callable[[float, str], None]) -> BuiltKernel:
    """The kernel that is meant: of the list, one that was built under this name, or a tree, built under its own."""
    if store.known(words):
        return store.ensure(words, progress=report)
    return build(words, trees.names(words), progress=report)


def ab(
    first: str,
    second: str,
    scenarios: Sequence[str] = SUITE,
    *,
    seeds: int = SEEDS,
    overrides: Sequence[str] = (),
    kernel: str | None = None,
    at: str | None = None,
    out: Path = OUT,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compares two kernels (`engine/kernel/trees.py` has the words for them) over scenarios; or two files or folders of
    a congestion control or a qdisc on one `kernel`, at the scenario's key `at`, default stack.cc or stack.qdisc.

    Raises `InputError`, `HourglassError` when a kernel cannot be built or a run fails."""
    if seeds < SEEDS:
        raise InputError("--seeds", seeds, f"at least {SEEDS}: fewer say nothing about the spread")
    if first == second:
        raise InputError("B", second, "is A; give another kernel or file, or a copy of it")
    key, values = _files(first, second, at)
    if key is None:
        for option, given in (("--kernel", kernel), ("--at", at)):
            if given is not None:
                raise InputError(option, given, "goes with two files; A and B are kernels")
        report = progress.kernel if progress else (lambda _, __: None)
        kernels = made(first, report), made(second, report)
        key, values = "kernel", [one.name for one in kernels]
        if values[0] == values[1]:
            raise InputError("B", second, f"would be called as A is, {values[0]!r}; rename its folder or file")
    wanted = list(dict.fromkeys(scenarios))
    grid: dict[str, Any] = {"name": _name(values), "axes": {"scenario": wanted, key: values}, "repetitions": seeds}
    grid["set"] = {".".join(words): value for words, value in map(parse, overrides)}
    done = sweep(grid, out / grid["name"], jobs=jobs, kernel=kernel, runs=out / RUNS, progress=progress)
    if done.failures:
        told = "\n".join(f"{one.cell}: {one.reason}; console log: {one.log}" for one in done.failures)
        raise HourglassError(f"{len(done.failures)} of {len(done.cells)} runs failed\n{told}")
    runs = {tuple(cell.assignment[axis] for axis in ("scenario", key, "seed")): open_run(done.runs / cell.key)
            for cell in done.cells}  # fmt: skip
    one, other = values
    compared = tuple(
        _compared(name, [(runs[name, one, seed], runs[name, other, seed]) for seed in range(1, seeds + 1)])
        for name in wanted
    )
    names = values if key == "kernel" else [first, second]
    sides = tuple(Side(name, run.info.kernel) for name, run in zip(names, compared[0].pairs[0], strict=True))
    return Comparison((sides[0], sides[1]), compared)


def _files(first: str, second: str, at: str | None) -> tuple[str | None, list[str]]:
    """Where two files or folders of sources go, and their paths; None: they are kernels."""
    kinds = [module.kind(words) for words in (first, second)]
    if kinds[0] != kinds[1]:
        told = [c_source.WHAT[kind] if kind else "a kernel" for kind in kinds]
        raise InputError("B", second, f"is {told[1]}, and A is {told[0]}")
    if kinds[0] is None:
        return None, []
    return at or f"stack.{kinds[0]}", [str(Path(words).absolute()) for words in (first, second)]


def _name(values: Sequence[str]) -> str:
    """What the folder of the two is called: of paths by their last two parts."""
    return "-".join("-".join(Path(one).parts[-2:]) for one in values)


def _compared(scenario: str, pairs: list[tuple[Recording, Recording]]) -> Compared:
    different = [pair for pair in pairs if pair[0].info.digest != pair[1].info.digest]
    same = len(pairs) - len(different)
    if not different:
        return Compared(scenario, tuple(pairs), same, (), None)
    runs = [run for side in zip(*pairs, strict=True) for run in side]
    rows = compare_groups(compare(runs), groups(runs))
    moved = tuple(row for row in rows if _moved(row.cells[1]))
    return Compared(scenario, tuple(pairs), same, moved, diff(*different[0]))


def _moved(cell: Cell) -> bool:
    """Whether the figure of the second side is another, and is told as another."""
    return cell.significant and (cell.change_percent is None or abs(cell.change_percent) >= TOLD)
