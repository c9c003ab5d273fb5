# SPDX-License-Identifier: Apache-2.0
"""Cases, each run in the lab and on a real machine as often as noise demands: what `results.agree` compares.

A file of cases is TOML:

| key | what it is |
|---|---|
| `description` | one line |
| `set` | keys of the scenario, as `--set` takes them, that hold in all cases |
| `[tolerance]` | figure = how far it may be from the lab's, in % |
| `[[case]]` | `name`; `scenario`, a built-in's name or a file (beside this one); `set`, more keys |

The lab carries out the plan that the other engine does (links are veth pairs in both), on a kernel of its own; with
`wire`, and where interfaces of a machine play devices, its plan has our NICs and cables instead.
"""

import os
import platform
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hourglass import runner
from hourglass.contract.capabilities import Capabilities
from hourglass.contract.kernels import KERNELS
from hourglass.engine import engines
from hourglass.errors import InputError
from hourglass.results import agree
from hourglass.results.agree import Host, Result
from hourglass.results.recording import Recording
from hourglass.scenario import Scenario, load
from hourglass.scenario.blame import refusal
from hourglass.scenario.source import toml_problem

KEYS, CASE_KEYS = ("description", "set", "tolerance", "case"), ("name", "scenario", "set")
LAB_SEEDS = 3


@dataclass(frozen=True)
class Case:
    """A scenario with its settings; its seed is the run's number."""

    name: str
    source: str
    settings: tuple[str, ...]

    def scenario(self, seed: int, kernel: str) -> Scenario:
        """As it is run."""
        return load(self.source, list(self.settings), seed=seed, kernel=kernel)


@dataclass(frozen=True)
class Cases:
    """Cases, and how far which figure may be from the lab's, in %."""

    description: str
    cases: tuple[Case, ...]
    tolerance: Mapping[str, float]


def read(source: str, settings: list[str]) -> Cases:
    """A file of cases; a scenario's name or file is one case. Raises InputError."""
    path = Path(source)
    data = _parse(path) if path.suffix == ".toml" and path.is_file() else {}
    if "case" not in data:
        return Cases("", (Case(load(source, settings).name, source, tuple(settings)),), dict(agree.TOLERANCE))
    _refuse_unknown(data, KEYS, "")
    tolerance = data.get("tolerance", dict(agree.TOLERANCE))
    for name, percent in tolerance.items():
        if not isinstance(percent, int | float) or isinstance(percent, bool) or percent <= 0:
            raise refusal(f"tolerance.{name}", percent, "a number above 0, in %")
    common, cases = _texts(data, "set", ""), []
    if not isinstance(data["case"], list) or not data["case"]:
        raise refusal("case", data["case"], "a list of tables, [[case]]")
    for place, one in enumerate(data["case"]):
        where = f"case.{place}"
        _refuse_unknown(one, CASE_KEYS, f"{where}.")
        for key in ("name", "scenario"):
            if not isinstance(one.get(key), str):
                raise refusal(f"{where}.{key}", one.get(key), "a text")
        beside = path.parent / one["scenario"]
        base = str(beside) if beside.is_file() else one["scenario"]
        cases.append(Case(one["name"], base, (*common, *_texts(one, "set", f"{where}."), *settings)))
    names = [one.name for one in cases]
    if twice := [name for name in names if names.count(name) > 1]:
        raise refusal("case.name", twice[0], "is there twice")
    return Cases(data.get("description", ""), tuple(cases), tolerance)


def _parse(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("CASES", str(path), f"cannot be read: {error}") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError("CASES", str(path), toml_problem(text, error)) from None


def _refuse_unknown(table: Any, known: tuple[str, ...], where: str) -> None:
    if not isinstance(table, dict):
        raise refusal(where.rstrip("."), table, "a table")
    for key in table:
        if key not in known:
            raise refusal(f"{where}{key}", table[key], f"no such key. Keys: {', '.join(known)}")


def _texts(table: dict[str, Any], key: str, where: str) -> list[str]:
    found = table.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, str) and "=" in one for one in found):
        raise refusal(f"{where}{key}", found, 'a list of settings, like ["test.length=10"]')
    return found


def nearest_kernel(release: str) -> str:
    """The named kernel whose version is nearest to a release's, the newer of two."""

    def number(text: str) -> tuple[int, int]:
        major, minor = text.split(".")[:2]
        return int(major), int("".join(one for one in minor if one.isdigit()))

    major, minor = number(release)
    apart = {name: (abs(number(name)[0] - major), abs(number(name)[1] - minor)) for name in KERNELS}
    return min(reversed(list(KERNELS)), key=lambda name: apart[name])


@dataclass(frozen=True)
class Way:
    """How cases are run. `kernel`: the lab's, None for the one nearest to the machine's. `least` and `most`: runs of a
    case on the machine."""

    engine: str
    kernel: str | None
    folder: Path
    least: int
    most: int
    wire: bool


Told = Callable[[str], None]


def run(cases: Cases, way: Way, told: Told) -> list[Result]:
    """Runs all cases; `told` is called with what is being done."""
    return [one(case, cases.tolerance, way, told) for case in cases.cases]


def one(case: Case, tolerance: Mapping[str, float], way: Way, told: Told) -> Result:
    """Runs a case until every figure is decided, but `most` times at most."""
    result = Result(case.name)
    here = on_this_machine(way.engine)
    for seed in range(1, way.most + 1):
        told(f"{case.name}: {way.engine}, run {seed}")
        before = cpu_times()
        wanted = case.scenario(seed, way.kernel or nearest_kernel(platform.release()))
        result.real.append(
            runner.run(wanted, way.folder / case.name / f"{way.engine}-{seed}", engine=way.engine, force=True)
        )
        if here:
            result.hosts.append(host(before, cpu_times()))
        if not result.lab:
            result.lab += in_the_lab(case, way.kernel or nearest_kernel(result.real[0].summary.kernel), way, told)
            agree.check_names(tolerance, result.lab[0])
        result.rows = agree.rows(case.name, result.lab, result.real, tolerance)
        if seed >= way.least and all(row.verdict != "undecided" for row in result.rows):
            break
    return result


def on_this_machine(engine: str) -> bool:
    """Whether an engine's runs are this machine's work; else it only conducts them."""
    return engines.chosen(engine).capabilities.nic != "real"


def in_the_lab(case: Case, kernel: str, way: Way, told: Told) -> list[Recording]:
    """The case's runs in the guest."""
    runs = []
    for seed in range(1, LAB_SEEDS + 1):
        told(f"{case.name}: lab, seed {seed}")
        runs.append(lab(case.scenario(seed, kernel), way, way.folder / case.name / f"lab-{seed}"))
    return runs


def lab(scenario: Scenario, way: Way, place: Path) -> Recording:
    """The scenario in the guest, by the plan of the other engine or by its own."""
    silent = runner.Silent()
    return runner.make(runner.prepare(scenario, engines.DEFAULT, silent, able(scenario, way)), place, silent)


def able(scenario: Scenario, way: Way) -> Capabilities:
    """For what the lab's plan is made: veth pairs where the other engine has them, else NICs and cables."""
    own, other = (engines.chosen(name).capabilities for name in (engines.DEFAULT, way.engine))
    if way.wire or other.nic != "veth" or any(node.real for node in scenario.testbed.node):
        return own
    return replace(own, nic=other.nic, own_kernel=other.own_kernel, layers=other.layers)


Times = tuple[float, float, float, float]
"""Seconds of all CPUs: all, idle, stolen; and those of this process's children."""


def cpu_times() -> Times:
    """Since the machine booted."""
    words = Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:]
    ticks = [int(word) for word in words]
    hertz = os.sysconf("SC_CLK_TCK")
    own = os.times()
    children = own.user + own.system + own.children_user + own.children_system
    return sum(ticks[:8]) / hertz, (ticks[3] + ticks[4]) / hertz, ticks[7] / hertz, children


def host(before: Times, after: Times) -> Host:
    """The shares between two moments."""
    total, idle, stolen, own = (late - early for early, late in zip(before, after, strict=True))
    total = total or 1.0
    busy = total - idle - stolen
    return Host(100 * busy / total, 100 * max(busy - own, 0.0) / total, 100 * stolen / total)


def load_average() -> float:
    """Of the machine's last minute, as `uptime` says it."""
    return os.getloadavg()[0]


def cpus() -> int:
    """How many the machine has."""
    return os.cpu_count() or 1


def now() -> str:
    """When a comparison was made, UTC."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
