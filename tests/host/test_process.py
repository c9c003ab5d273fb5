# SPDX-License-Identifier: Apache-2.0
"""SIGTERM ends a build with its compilers."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import MESSAGES, after_sigterm

COMPILER = f"exec >{MESSAGES}; echo begins; sleep 60; echo survived"
MAKEFILE = f"all:\n\t@$(MAKE) one\none:\n\t@sh -c '{COMPILER}'\n"
BUILD = """
import os
from pathlib import Path
from hourglass.builders.kernel import builder
from hourglass.errors import program
from hourglass.host import process
here = Path.cwd()
"""
CASES = {
    "make of a kernel": 'builder.run_make(here, "compiling", ["all"], log=here / "log")',
    "program with output": 'process.output_of(["make"], os.environ)',
}


@pytest.mark.parametrize("case", CASES)
def test_a_terminated_build_ends_its_compilers(case: str, tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    command = [sys.executable, "-c", f"{BUILD}program(lambda: {CASES[case]})"]
    written, build = after_sigterm(command, tmp_path, cwd=tmp_path, stderr=subprocess.PIPE)
    assert written == ""
    assert build.communicate() == (None, b"")
    assert build.returncode == 128 + signal.SIGINT
