# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin (entry point `pytest11`). Loads what runs need when the first test asks for `lab`, no sooner."""

import shutil
import sys
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hourglass.testing.lab import Lab, Session

MARKER = "hourglass"
KEYS = ("scenario", "kernel", "seed", "engine", "set")
SHARED = "hourglass_runs"
"""Under what name the workers of pytest-xdist are told the folder of the session's runs."""

_session: "pytest.StashKey[Session]" = pytest.StashKey()
_folder: pytest.StashKey[Path] = pytest.StashKey()
_lab: "pytest.StashKey[Lab]" = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hourglass", "network runs as tests (docs/testing.md)")
    group.addoption(
        "--hourglass-kernel", action="append", default=[], metavar="NAME",
        help="Run on this kernel, whatever scenarios and markers say; given again, every test runs on each.",
    )  # fmt: skip
    group.addoption(
        "--hourglass-keep", choices=("failed", "all", "none"), default="failed",
        help="The tests whose runs are kept; default: failed.",
    )  # fmt: skip
    group.addoption(
        "--hourglass-runs", metavar="DIR", default="runs/tests",
        help="Where kept runs go, a folder for each test; default: runs/tests.",
    )  # fmt: skip
    group.addoption(
        "--hourglass-cache", action="store_true",
        help="Keep all runs in pytest's cache, and take those of earlier sessions from there.",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    about = "hourglass(scenario=, kernel=, seed=, engine=, set=): defaults of `lab.run`; lists of kernels or seeds"
    config.addinivalue_line("markers", f"{about} run the test once for each.")


def _runs(config: pytest.Config) -> Path:
    """The folder of the session's runs, which a worker shares with the others."""
    if _folder not in config.stash:
        told = getattr(config, "workerinput", {}).get(SHARED)
        if told is None and config.getoption("--hourglass-cache"):
            if (cache := getattr(config, "cache", None)) is None:
                raise pytest.UsageError("--hourglass-cache needs pytest's cache, which -p no:cacheprovider takes away")
            told = cache.mkdir("hourglass")
        config.stash[_folder] = Path(told or tempfile.mkdtemp(prefix="hourglass-tests-"))
    return config.stash[_folder]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist starts a worker."""
    node.workerinput[SHARED] = str(_runs(node.config))


def pytest_unconfigure(config: pytest.Config) -> None:
    mine = _folder in config.stash and not hasattr(config, "workerinput")
    if mine and not config.getoption("--hourglass-cache"):
        shutil.rmtree(config.stash[_folder], ignore_errors=True)


def _marked(node: Any) -> dict[str, Any]:
    """What the markers of a test say, the nearest first."""
    found: dict[str, Any] = {}
    for mark in node.iter_markers(MARKER):
        unknown = next((key for key in mark.kwargs if key not in KEYS), None)
        if unknown or mark.args:
            pytest.fail(f"{node.nodeid}: the marker hourglass takes {', '.join(KEYS)}, by name", pytrace=False)
        found = {**mark.kwargs, **found}
    if isinstance(found.get("set"), str):
        found["set"] = [found["set"]]
    return found


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, str | int) else list(value)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Several kernels or seeds: a test for each."""
    if "lab" not in metafunc.fixturenames:
        return
    marked = _marked(metafunc.definition)
    kernels = metafunc.config.getoption("--hourglass-kernel") or _listed(marked.get("kernel"))
    seeds = _listed(marked.get("seed"))
    if len(kernels) > 1 or len(seeds) > 1:
        cells = [(kernel, seed) for kernel in kernels or [None] for seed in seeds or [None]]
        named = [
            "-".join([*([str(kernel)] if len(kernels) > 1 else []), *([f"seed{seed}"] if len(seeds) > 1 else [])])
            for kernel, seed in cells
        ]
        metafunc.parametrize(
            "lab", [{"kernel": kernel, "seed": seed} for kernel, seed in cells], indirect=True, ids=named
        )


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> "Lab":
    """Runs scenarios: `lab.run("L100M", "stack.tsq=off")` has figures to compare, `run.ping.p99 < 20 * ms`."""
    from hourglass.testing import lab as labs

    config = request.config
    if _session not in config.stash:
        kept = config.rootpath / config.getoption("--hourglass-runs")
        config.stash[_session] = labs.Session(_runs(config), kept, config.getoption("--hourglass-keep"))
    made = labs.Lab(config.stash[_session], request.node.nodeid, request.path.parent, _defaults(request))
    request.node.stash[_lab] = made
    return made


def _defaults(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    """What holds for the test: its cell's kernel and seed, else the one that option or marker names."""
    marked = _marked(request.node)
    kernels = request.config.getoption("--hourglass-kernel") or _listed(marked.get("kernel"))
    single = {"kernel": kernels[0] if kernels else None, "seed": next(iter(_listed(marked.get("seed"))), None)}
    return {**marked, **single, **getattr(request, "param", {})}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when != "call" or _lab not in item.stash:
        return report
    used = item.stash[_lab]
    keep = item.config.getoption("--hourglass-keep")
    if keep == "all" or (keep == "failed" and report.failed):
        lines = used.keep()
        if lines:
            report.sections.append(("Hourglass runs of this test", "\n".join(lines)))
            report.user_properties += [("hourglass run", str(run.place)) for run in used.runs]
    elif report.passed and keep == "failed":
        used.discard()
    return report


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    if "hourglass.testing.measured" not in sys.modules:
        return None
    from hourglass.testing.measured import explained

    return explained(op, left, right)
