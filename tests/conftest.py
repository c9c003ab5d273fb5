# SPDX-License-Identifier: Apache-2.0
"""Tiers of tests, and skipped tests.

`make test` takes the tests without the markers `kernels` and `slow`. A test that names another kernel in a parameter
has the first by itself. A test without it that asks for another kernel fails, so that `make test` builds no second one.
`make loaded` takes the tests with the marker `real_time`: those that measure this machine's time or wait for it. Files
that import `clocks.py` or `processes.py`, and those of `native/` and `ssh/`, have it by themselves.

If `CI` is set, a skipped test fails: a check that can pass without a run checks nothing. Elsewhere a test is skipped if
a tool is missing.

If a kernel's source is no longer available (Debian's suite moved on), its tests are skipped everywhere, with this
reason. Tests of the default kernel are not.
"""

import os
import re
import resource
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from hourglass.builders import prebuilt
from hourglass.builders.kernel import builder, config, registry
from hourglass.builders.kernel.built import BuiltKernel
from hourglass.contract.kernels import DEFAULT, KERNELS, VARIANT
from hourglass.errors import GoneError, MissingError

GONE = "a kernel's source, or its tools, are gone"
NOT_PERMITTED = ("no native runs here", "no user namespaces here", "no file system can be mounted here")
"""Prefixes of reasons that no package removes: the machine, perhaps a container, does not permit something."""

settings.register_profile("no luck", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no luck")

FIRST = "test_every_example_and_figure_is_current"
"""The longest test by far. If it began last, one worker would run it alone at the end."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if any(str(value).partition(VARIANT)[0] in OTHER_KERNELS for value in parameters.values()):
            item.add_marker("kernels")
        if depends_on_real_time(item.path):
            item.add_marker("real_time")
    items.sort(key=lambda item: item.name != FIRST)


WAITS = re.compile(r"^from tests\.(clocks|processes) import ", re.MULTILINE)


@cache
def depends_on_real_time(path: Path) -> bool:
    """Tell whether a file's tests measure in real time or use this machine's clocks."""
    return path.parent.name in ("native", "ssh") or bool(WAITS.search(path.read_text("utf-8")))


OTHER_KERNELS = set(KERNELS) - {DEFAULT}
STARTED = pytest.StashKey[float]()


def cpu_s() -> float:
    """Return the CPU seconds of this process and of its children that ended."""
    usages = [resource.getrusage(whom) for whom in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    item.stash[STARTED] = cpu_s()
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("kernels") is None:
            patch.setattr(registry, "ensure", _default_alone(registry.ensure))
            patch.setattr(builder, "build", _default_alone(builder.build))
        return (yield)


def _default_alone(build: Callable[..., BuiltKernel]) -> Callable[..., BuiltKernel]:
    """Return the function, which fails the test if the kernel is one that `make test` does not build."""

    def checked(name: str, *arguments: Any, **options: Any) -> BuiltKernel:
        kernel, variant = config.kernel_and_variant(name)
        other = kernel in OTHER_KERNELS or (
            kernel == DEFAULT and (variant or options.get("variant") or options.get("without"))
        )
        if other and prebuilt.kernel(name) is None:
            pytest.fail(f"the test needs the marker `kernels`, because it needs {name}, {options}")
        return build(name, *arguments, **options)

    return checked


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    if call.when == "teardown":
        item.user_properties.append(("cpu_s", f"{cpu_s() - item.stash[STARTED]:.3f}"))
    report = yield
    problem = call.excinfo.value if call.excinfo is not None else None
    if isinstance(problem, GoneError) and problem.name != DEFAULT:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1], f"Skipped: {GONE}: {problem.problem}")
        return report
    if isinstance(problem, MissingError) and report.failed and "apt-get" in problem.remedy:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1], f"Skipped: {problem.problem}")
    refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    report = yield
    refuse_skip(report)
    return report


def refuse_skip(report: Any) -> None:
    """Let what was skipped fail in CI, unless no package would help."""
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not reason.startswith(NOT_PERMITTED) or "apt-get" in reason:
            report.outcome, report.longrepr = "failed", f"skipped, and CI is set: {reason}"
