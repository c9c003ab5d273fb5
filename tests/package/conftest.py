# SPDX-License-Identifier: Apache-2.0
"""A wheel of this checkout in an environment of its own.

What Hourglass needs of others comes from this interpreter's environment, through PYTHONPATH, which skips an editable
install's link to the checkout.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from hourglass.engine import paths

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
"""Every start of the interpreter reads this: from then on the checkout is as good as gone."""


def called(*words: str | Path, cwd: Path, **env: str) -> str:
    """What a command prints."""
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **env}, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sources → source distribution → wheel; nothing is written into the checkout."""
    copy = tmp_path_factory.mktemp("build")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=LEFT_OUT if name != "kernel" else None)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    called(sys.executable, "-c", SDIST, cwd=copy)
    (source,) = (copy / "dist").iterdir()
    called(*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist", source, cwd=copy)
    return next((copy / "dist").glob("*.whl"))


class Installed:
    """The wheel in an environment of its own, and a folder to call it from."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        environment, guard = folder / "environment", folder / "guard"
        called(sys.executable, "-m", "venv", "--without-pip", environment, cwd=folder)
        called(*PIP, "--python", environment, "install", "--no-deps", "--no-compile", wheel, cwd=folder, PYTHONPATH="")
        guard.mkdir()
        (guard / "sitecustomize.py").write_text(GUARD)
        self.programs, self.here = environment / "bin", folder / "here"
        self.here.mkdir()
        self.env = {"PYTHONPATH": os.pathsep.join([str(guard), sysconfig.get_path("purelib")])}
        self.env["HOURGLASS_CACHE"] = str(paths.cache())

    def __call__(self, program: str, *words: str) -> str:
        return called(self.programs / program, *words, cwd=self.here, **self.env)
