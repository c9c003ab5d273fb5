# SPDX-License-Identifier: Apache-2.0
"""Where CI is set, a test that was skipped has failed: a check that can pass without being run is none."""

import os
from collections.abc import Generator
from typing import Any

import pytest

NOT_PERMITTED = ("no native runs here", "no user namespaces here", "no file system can be mounted here")
"""How the reasons begin that no package mends: what the machine, a container perhaps, does not let us do."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not reason.startswith(NOT_PERMITTED):
            report.outcome, report.longrepr = "failed", f"skipped, and CI is set: {reason}"
    return report
