# SPDX-License-Identifier: Apache-2.0
"""Where CI is set, a test that was skipped has failed: a check that can pass without being run is none.

A test of a kernel whose source is not to be had any more (a suite of Debian's moved on) is skipped everywhere, and says
so; not one of the default kernel.
"""

import os
from collections.abc import Generator
from typing import Any

import pytest

from hourglass.contract.kernels import DEFAULT
from hourglass.errors import GoneError

GONE = "a kernel's source, or its tools, are gone"
NOT_PERMITTED = ("no native runs here", "no user namespaces here", "no file system can be mounted here")
"""How the reasons begin that no package mends: what the machine, a container perhaps, does not let us do."""

FIRST = "test_every_example_and_figure_is_of_today"
"""The longest by far: begun last, one worker would be at it alone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.name != FIRST)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    report = yield
    gone = call.excinfo.value if call.excinfo is not None else None
    if isinstance(gone, GoneError) and gone.name != DEFAULT:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1], f"Skipped: {GONE}: {gone.what}")
        return report
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not reason.startswith(NOT_PERMITTED):
            report.outcome, report.longrepr = "failed", f"skipped, and CI is set: {reason}"
    return report
