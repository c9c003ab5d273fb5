# SPDX-License-Identifier: Apache-2.0
"""The package where no checkout is: a wheel, built from the source distribution, in an environment of its own.

What Hourglass needs of others comes from this interpreter's environment, through PYTHONPATH, which skips an editable
install's link to the checkout.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from hourglass.contract.kernels import DEFAULT
from hourglass.engine import agent, paths
from hourglass.engine.kernel import store
from hourglass.engine.kernel.recipe import Recipe

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

KEYS = """
import hourglass.engine.agent as agent
from hourglass.engine.kernel.recipe import Recipe
print(agent.sources_key(), Recipe("any", "any", (6, 1)).key(), Recipe("any", "any", (6, 1), "debug").key())
"""


def called(*words: str | Path, cwd: Path, **env: str) -> str:
    """What a command prints."""
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **env}, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
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
        called(*PIP, "--python", environment, "install", "--no-deps", "--no-compile", wheel, cwd=folder)
        guard.mkdir()
        (guard / "sitecustomize.py").write_text(GUARD)
        self.programs, self.here = environment / "bin", folder / "here"
        self.here.mkdir()
        self.env = {"PYTHONPATH": os.pathsep.join([str(guard), sysconfig.get_path("purelib")])}
        self.env["HOURGLASS_CACHE"] = str(paths.cache())

    def __call__(self, program: str, *words: str) -> str:
        return called(self.programs / program, *words, cwd=self.here, **self.env)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(wheel, tmp_path_factory.mktemp("installed"))


def test_the_wheel_has_all_that_a_checkout_has(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    tracked = called("git", "ls-files", "kernel", "scenarios", "agent/src", "agent/.cargo", "src/hourglass", cwd=ROOT)
    wanted = {name.removeprefix("src/") if name.startswith("src/") else f"hourglass/data/{name}"
              for name in tracked.split() if (ROOT / name).is_file()}  # fmt: skip
    assert wanted - held == set()
    assert {"hourglass/py.typed", "hourglass/data/agent/Cargo.lock"} <= held
    assert not any("target" in name or "egg-info" in name for name in held)


def test_the_checkout_is_out_of_reach(installed: Installed) -> None:
    assert installed("python", "-c", "import hourglass; print(hourglass.__file__)").startswith(
        str(installed.programs.parent)
    )
    with pytest.raises(AssertionError, match="is of the checkout"):
        installed("python", "-c", f"open('{ROOT}/README.md')")


def test_kernels_and_agents_of_the_checkout_are_found_in_the_cache(installed: Installed) -> None:
    of_any = [Recipe("any", "any", (6, 1), variant).key() for variant in (None, "debug")]
    assert installed("python", "-c", KEYS).split() == [agent.sources_key(), *of_any]


def test_what_has_a_name_is_listed_and_shown(installed: Installed) -> None:
    assert {"L100M", "LR1000M", DEFAULT} <= set(installed("hourglass", "list").split())
    assert json.loads(installed("hourglass", "show", "L100M"))["name"] == "L100M"
    assert installed("hourglass", "--version").startswith("hourglass ")


@pytest.mark.guest
def test_a_scenario_is_run(installed: Installed) -> None:
    store.ensure(DEFAULT)
    agent.binary()
    told = installed("hourglass", "run", "L100M", "--json", "--out", "run", "--set", "test.length=1")
    assert json.loads(told)["totals"]["upload_mbps"] > 50
    assert (installed.here / "run" / "run.png").stat().st_size > 0
