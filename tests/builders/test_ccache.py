# SPDX-License-Identifier: Apache-2.0
"""If ccache is installed, it replaces the compiler for make, and only there."""

import subprocess
from pathlib import Path

import pytest

from hourglass.builders.kernel import ccache


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder of the search path; it is empty."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "objects"))
    monkeypatch.setenv("CFLAGS", "-O0")
    return folder


def install_ccache(folder: Path) -> None:
    program = folder / "ccache"
    program.write_text('#!/bin/sh\necho "ccache as ${0##*/}, objects in $CCACHE_DIR, flags:$CFLAGS"\n')
    program.chmod(0o755)


def test_without_ccache_the_environment_is_that_of_any_build(programs: Path) -> None:
    assert ccache.environment()["PATH"] == str(programs)
    assert not {"CCACHE_DIR", "CFLAGS"} & ccache.environment().keys()


def test_make_finds_ccache_under_the_compiler_s_name(programs: Path, tmp_path: Path) -> None:
    install_ccache(programs)
    for _ in range(2):
        result = subprocess.run(["/bin/sh", "-c", "gcc"], env=ccache.environment(), capture_output=True, text=True)
        assert result.stdout == f"ccache as gcc, objects in {tmp_path}/objects, flags:\n"
