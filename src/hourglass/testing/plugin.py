# SPDX-License-Identifier: Apache-2.0
"""Provide the pytest plugin (entry point `pytest11`). Modules that runs need are loaded when a test first uses
`lab`."""

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
"""The key under which pytest-xdist's workers receive the folder of the session's runs."""

_session: "pytest.StashKey[Session]" = pytest.StashKey()
_folder: pytest.StashKey[Path] = pytest.StashKey()
_lab: "pytest.StashKey[Lab]" = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hourglass", "network runs as tests (docs/how-to/pytest.md)")
    group.addoption(
        "--hourglass-kernel", action="append", default=[], metavar="NAME",
        help="Use this kernel instead of those of scenarios and markers. If repeated, run every test on each.",
    )  # fmt: skip
    group.addoption(
        "--hourglass-keep", choices=("failed", "all", "none"), default="failed",
        help="Store the runs of these tests. Default: failed.",
    )  # fmt: skip
    group.addoption(
        "--hourglass-runs", metavar="DIR", default="runs/tests",
        help="Store runs here, in a folder for each test. Default: runs/tests.",
    )  # fmt: skip
    group.addoption(
        "--hourglass-cache", action="store_true",
        help="Store all runs in pytest's cache, and reuse those of earlier sessions.",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    marker = "hourglass(scenario=, kernel=, seed=, engine=, set=): defaults of `lab.run`; lists of kernels or seeds"
    config.addinivalue_line("markers", f"{marker} run the test once for each.")


def _runs(config: pytest.Config) -> Path:
    """Return the folder of the session's runs, which all workers share."""
    if _folder not in config.stash:
        folder = getattr(config, "workerinput", {}).get(SHARED)
        if folder is None and config.getoption("--hourglass-cache"):
            if (cache := getattr(config, "cache", None)) is None:
                raise pytest.UsageError("--hourglass-cache needs pytest's cache; remove -p no:cacheprovider")
            folder = cache.mkdir("hourglass")
        config.stash[_folder] = Path(folder or tempfile.mkdtemp(prefix="hourglass-tests-"))
    return config.stash[_folder]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the folder to a new worker of pytest-xdist."""
    node.workerinput[SHARED] = str(_runs(node.config))


def pytest_unconfigure(config: pytest.Config) -> None:
    owner = _folder in config.stash and not hasattr(config, "workerinput")
    if owner and not config.getoption("--hourglass-cache"):
        from hourglass import files

        files.delete(config.stash[_folder])


def _marked(node: Any) -> dict[str, Any]:
    """Return the arguments of a test's markers; the nearest takes precedence."""
    arguments: dict[str, Any] = {}
    for mark in node.iter_markers(MARKER):
        unknown = next((key for key in mark.kwargs if key not in KEYS), None)
        if unknown or mark.args:
            pytest.fail(
                f"{node.nodeid}: the marker hourglass takes only keyword arguments: {', '.join(KEYS)}", pytrace=False
            )
        arguments = {**mark.kwargs, **arguments}
    if isinstance(arguments.get("set"), str):
        arguments["set"] = [arguments["set"]]
    return arguments


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, str | int) else list(value)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for each of several kernels or seeds."""
    if "lab" not in metafunc.fixturenames:
        return
    marked = _marked(metafunc.definition)
    kernels = metafunc.config.getoption("--hourglass-kernel") or _listed(marked.get("kernel"))
    seeds = _listed(marked.get("seed"))
    if len(kernels) > 1 or len(seeds) > 1:
        cells = [(kernel, seed) for kernel in kernels or [None] for seed in seeds or [None]]
        ids = [
            "-".join([*([str(kernel)] if len(kernels) > 1 else []), *([f"seed{seed}"] if len(seeds) > 1 else [])])
            for kernel, seed in cells
        ]
        metafunc.parametrize(
            "lab", [{"kernel": kernel, "seed": seed} for kernel, seed in cells], indirect=True, ids=ids
        )


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> "Lab":
    """Runs scenarios: `lab.run("L100M", "stack.tsq=off")` has figures to compare, `run.ping.p99 < 20 * ms`."""
    from hourglass.testing import lab as labs

    config = request.config
    if _session not in config.stash:
        stored = config.rootpath / config.getoption("--hourglass-runs")
        config.stash[_session] = labs.Session(_runs(config), stored, config.getoption("--hourglass-keep"))
    test_lab = labs.Lab(config.stash[_session], request.node.nodeid, request.path.parent, _defaults(request))
    request.node.stash[_lab] = test_lab
    return test_lab


def _defaults(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    """Return the test's defaults: kernel and seed of its cell, otherwise those of option or marker."""
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
            report.user_properties += [("hourglass run", str(run.directory)) for run in used.runs]
    elif report.passed and keep == "failed":
        used.discard()
    return report


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    if "hourglass.testing.measured" not in sys.modules:
        return None
    from hourglass.testing.measured import explained

    return explained(op, left, right)
