# SPDX-License-Identifier: Apache-2.0
"""SIGTERM ends a build with its compilers. A compiler writes to a named pipe, whose end shows that none is left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMPILER = "exec >messages; echo begins; sleep 60; echo survived"
MAKEFILE = f"all:\n\t@$(MAKE) one\none:\n\t@sh -c '{COMPILER}'\n"
BUILD = """
import os
from pathlib import Path
from hourglass.builders.kernel import builder
from hourglass.errors import program
from hourglass.host import process
here = Path.cwd()
"""
WAYS = {
    "make of a kernel": 'builder.run_make(here, "compiling", ["all"], log=here / "log")',
    "program with output": 'process.output_of(["make"], os.environ)',
}


@pytest.mark.parametrize("way", WAYS)
def test_a_terminated_build_ends_its_compilers(way: str, tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    os.mkfifo(tmp_path / "messages")
    code = f"{BUILD}program(lambda: {WAYS[way]})"
    build = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE)
    with (tmp_path / "messages").open() as messages:
        assert messages.readline() == "begins\n"
        build.terminate()
        assert messages.read() == ""
    assert build.communicate() == (None, b"")
    assert build.returncode == 128 + signal.SIGINT
