# SPDX-License-Identifier: Apache-2.0
"""ccache takes the compiler's place where there is one, and only in front of make."""

import subprocess
from pathlib import Path

import pytest

from hourglass.engine.kernel import ccache


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A search path with nothing but what a test puts there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "objects"))
    monkeypatch.setenv("CFLAGS", "-O0")
    return folder


def a_ccache(folder: Path) -> None:
    program = folder / "ccache"
    program.write_text('#!/bin/sh\necho "ccache as ${0##*/}, objects in $CCACHE_DIR, flags:$CFLAGS"\n')
    program.chmod(0o755)


def test_without_ccache_the_environment_is_that_of_any_build(programs: Path) -> None:
    assert ccache.environment()["PATH"] == str(programs)
    assert not {"CCACHE_DIR", "CFLAGS"} & ccache.environment().keys()


def test_make_finds_ccache_under_the_compiler_s_name(programs: Path, tmp_path: Path) -> None:
    a_ccache(programs)
    for _ in range(2):
        found = subprocess.run(["/bin/sh", "-c", "gcc"], env=ccache.environment(), capture_output=True, text=True)
        assert found.stdout == f"ccache as gcc, objects in {tmp_path}/objects, flags:\n"
