# SPDX-License-Identifier: Apache-2.0
"""Files that are executed outside tests: workflows, the page's example of one, the devcontainer."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
EXAMPLES = re.findall(
    r"^```yaml\n# (\S+)\n(.*?)^```$", (ROOT / "docs/how-to/install.md").read_text(), re.MULTILINE | re.DOTALL
)
WORKFLOWS = {path.name: path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml")} | dict(EXAMPLES)
USED = {
    "actions/cache",
    "actions/checkout",
    "actions/download-artifact",
    "actions/setup-python",
    "actions/upload-artifact",
    "pypa/gh-action-pypi-publish",
}


def steps(text: str) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(text)["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_workflows_exist() -> None:
    assert {"ci.yml", ".github/workflows/latency.yml"} <= set(WORKFLOWS)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_steps_are_shell_or_known_actions(name: str) -> None:
    for step in steps(WORKFLOWS[name]):
        if "run" in step:
            script = re.sub(r"\$\{\{.*?\}\}", "VALUE", step["run"])
            subprocess.run(["bash", "-n"], input=script, text=True, check=True)
        else:
            assert re.fullmatch(r"([\w/-]+)@(?:release/)?v\d+", step["uses"]), step
            assert step["uses"].split("@")[0] in USED


def test_the_workflow_runs_the_commands_of_every_machine() -> None:
    assert [step["run"] for step in steps(WORKFLOWS["ci.yml"]) if "run" in step][-1] == "bash .ci/run"
    assert (ROOT / ".ci/run").is_file()


def test_the_devcontainer_uses_a_make_target() -> None:
    described = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    target = described["postCreateCommand"].removeprefix("make ")
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert (ROOT / "agent/Cargo.toml").is_file()
    assert described["customizations"]["vscode"]["settings"]["rust-analyzer.linkedProjects"] == ["agent/Cargo.toml"]
