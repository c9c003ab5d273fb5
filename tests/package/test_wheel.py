# SPDX-License-Identifier: Apache-2.0
"""The package where no checkout is: a wheel of the source distribution, which builds kernel and agent itself."""

import json
import zipfile
from pathlib import Path

import pytest

from hourglass.contract.kernels import DEFAULT
from hourglass.engine import agent
from hourglass.engine.kernel import store
from hourglass.engine.kernel.recipe import Recipe

from .conftest import ROOT, Installed, called

KEYS = """
import hourglass.engine.agent as agent
from hourglass.engine.kernel.recipe import Recipe
print(agent.sources_key(), Recipe("any", "any", (6, 1)).key(), Recipe("any", "any", (6, 1), "debug").key())
"""


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
