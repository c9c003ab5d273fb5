# SPDX-License-Identifier: Apache-2.0
"""Programs of Debian as packaged (`scenarios/debian/`): a few of them each time, all by `make debian`."""

from pathlib import Path

import pytest

from tests import debian_programs

pytestmark = pytest.mark.guest


@pytest.mark.parametrize("name", ["avahi", "openssh", "postfix"])
def test_a_program_runs_with_the_same_bytes(name: str, tmp_path: Path) -> None:
    (file,) = debian_programs.files([name])
    assert debian_programs.DebianProgram(file, list(debian_programs.runs(file, tmp_path))).fault == ""
