# SPDX-License-Identifier: Apache-2.0
"""A wheel of this checkout in a new environment.

Hourglass's dependencies come from this interpreter's environment, through PYTHONPATH, which skips an editable
install's link to the checkout.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from hourglass.host import directories

ROOT = Path(__file__).parents[2]
FOLDERS = ("agent", "kernel", "scenarios", "src")
LEFT_OUT = shutil.ignore_patterns("target", "tests", "__pycache__", "*.egg-info")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
SDIST = "import setuptools.build_meta; setuptools.build_meta.build_sdist('dist')"

GUARD = f"""
import sys

def guard(event, given):
    name = str(given[0]) if given else ""
    if event in ("open", "os.listdir", "os.scandir") and name.startswith("{ROOT}/") and "/.venv/" not in name:
        raise AssertionError(f"{{name}} is of the checkout")

sys.addaudithook(guard)
"""
"""Code that every start of the interpreter executes: it hides the checkout."""


def output_of(*command: str | Path, cwd: Path, **env: str) -> str:
    """Return the output of a command."""
    result = subprocess.run(command, cwd=cwd, env={**os.environ, **env}, text=True, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel, built from sources through a source distribution, without a write into the checkout."""
    copy = tmp_path_factory.mktemp("build")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=LEFT_OUT if name != "kernel" else None)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    output_of(sys.executable, "-c", SDIST, cwd=copy)
    (source,) = (copy / "dist").iterdir()
    output_of(*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist", source, cwd=copy)
    return next((copy / "dist").glob("*.whl"))


class Installation:
    """The wheel in a new environment, and a folder to call it from."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        environment, guard = folder / "environment", folder / "guard"
        output_of(sys.executable, "-m", "venv", "--without-pip", environment, cwd=folder)
        output_of(
            *PIP, "--python", environment, "install", "--no-deps", "--no-compile", wheel, cwd=folder, PYTHONPATH=""
        )
        guard.mkdir()
        (guard / "sitecustomize.py").write_text(GUARD)
        self.programs, self.folder = environment / "bin", folder / "cwd"
        self.folder.mkdir()
        self.env = {"PYTHONPATH": os.pathsep.join([str(guard), sysconfig.get_path("purelib")])}
        self.env["HOURGLASS_CACHE"] = str(directories.cache())

    def __call__(self, program: str, *arguments: str) -> str:
        return output_of(self.programs / program, *arguments, cwd=self.folder, **self.env)
