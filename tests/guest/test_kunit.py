# SPDX-License-Identifier: Apache-2.0
"""The KUnit suites of drivers and hooks, run by the guest kernel at boot.

A variant with KUnit compiles most of a kernel again, so only the oldest, the default and the newest version have one.
6.1 has the suites in its variant `debug`, which `test_debug.py` also needs; 5.10 has those of wire and radio, without
the probe.
"""

import re
import subprocess

import pytest

from hourglass import resources
from hourglass.builders.kernel import builder
from tests.clocks import HANG_S
from tests.kernels import KUNIT

pytestmark = [pytest.mark.guest, pytest.mark.kernels]

BOOT = [
    "time-travel=inf-cpu", "mem=512M", "con=null", "con0=null,fd:1", "panic=-1", "kunit.enable=1", "kunit.autorun=1",
]  # fmt: skip
"""On 7.3 suites run at boot only with `autorun`; older kernels ignore this option."""


@pytest.mark.parametrize("kernel", KUNIT)
def test_every_suite_passes(kernel: str) -> None:
    variant = KUNIT[kernel]
    built = builder.build(kernel, variant=variant)
    boot = subprocess.run(
        [built.linux, *BOOT], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    lines = boot.stdout.splitlines()
    suites = [path for path in resources.KERNEL.glob("tests/*.c") if variant != "alone" or path.stem != "probe_test"]
    suites += resources.KERNEL.glob("hooks/*_test.c")
    cases = sum(path.read_text().count("KUNIT_CASE(") for path in suites)
    passed = [line for line in lines if re.search(r"\]     ok \d+ ", line)]
    failed = [line for line in lines if re.search(r"not ok|# .*EXPECTATION|ASSERTION FAILED", line)]
    assert failed == []
    assert len(passed) == cases
