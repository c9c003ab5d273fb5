# SPDX-License-Identifier: Apache-2.0
"""The drivers' own KUnit suites, run by the guest kernel at boot."""

import re
import subprocess

import pytest

from hourglass import resources
from hourglass.engine.kernel import build

pytestmark = pytest.mark.guest

BOOT = ["time-travel=inf-cpu", "mem=512M", "con=null", "con0=null,fd:1", "panic=-1", "kunit.enable=1"]


def test_every_suite_passes() -> None:
    kernel = build.build("6.1", variant="kunit")
    boot = subprocess.run(
        [kernel.linux, *BOOT], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )
    lines = boot.stdout.splitlines()
    cases = sum(text.count("KUNIT_CASE(") for text in (p.read_text() for p in resources.KERNEL.glob("tests/*.c")))
    passed = [line for line in lines if re.search(r"\]     ok \d+ ", line)]
    failed = [line for line in lines if re.search(r"not ok|# .*EXPECTATION|ASSERTION FAILED", line)]
    assert failed == []
    assert len(passed) == cases
