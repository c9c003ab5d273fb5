# SPDX-License-Identifier: Apache-2.0
"""The package without a checkout: a wheel of the source distribution, which builds kernel and agent itself."""

import json
import zipfile
from pathlib import Path

import pytest

from hourglass.builders import agent
from hourglass.builders.kernel import registry
from hourglass.builders.kernel.recipe import Recipe
from hourglass.contract.kernels import DEFAULT

from .conftest import ROOT, Installation, output_of

KEYS = """
import hourglass.builders.agent as agent
from hourglass.builders.kernel.recipe import Recipe
print(agent.sources_key(), Recipe("any", "any", (6, 1)).key(), Recipe("any", "any", (6, 1), "debug").key())
"""


@pytest.fixture(scope="module")
def installation(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return Installation(wheel, tmp_path_factory.mktemp("installed"))


def test_the_wheel_has_all_that_a_checkout_has(wheel: Path) -> None:
    members = set(zipfile.ZipFile(wheel).namelist())
    tracked = output_of(
        "git", "ls-files", "kernel", "scenarios", "agent/src", "agent/.cargo", "src/hourglass", cwd=ROOT
    )
    expected = {name.removeprefix("src/") if name.startswith("src/") else f"hourglass/data/{name}"
              for name in tracked.split() if (ROOT / name).is_file()}  # fmt: skip
    assert expected - members == set()
    assert {"hourglass/py.typed", "hourglass/data/agent/Cargo.lock"} <= members
    assert not any("target" in name or "egg-info" in name for name in members)


def test_the_checkout_is_out_of_reach(installation: Installation) -> None:
    assert installation("python", "-c", "import hourglass; print(hourglass.__file__)").startswith(
        str(installation.programs.parent)
    )
    with pytest.raises(AssertionError, match="is of the checkout"):
        installation("python", "-c", f"open('{ROOT}/README.md')")


def test_kernels_and_agents_of_the_checkout_are_in_the_cache(installation: Installation) -> None:
    of_any = [Recipe("any", "any", (6, 1), variant).key() for variant in (None, "debug")]
    assert installation("python", "-c", KEYS).split() == [agent.sources_key(), *of_any]


def test_built_in_names_are_listed_and_shown(installation: Installation) -> None:
    assert {"L100M", "LR1000M", DEFAULT} <= set(installation("hourglass", "list").split())
    assert json.loads(installation("hourglass", "show", "L100M"))["name"] == "L100M"
    assert installation("hourglass", "--version").startswith("hourglass ")


@pytest.mark.guest
def test_a_scenario_is_run(installation: Installation) -> None:
    registry.ensure(DEFAULT)
    agent.binary()
    answer = installation("hourglass", "run", "L100M", "--json", "--out", "run", "--set", "test.length=1")
    assert json.loads(answer)["totals"]["upload_mbps"] > 50
    assert (installation.folder / "run" / "run.png").stat().st_size > 0
