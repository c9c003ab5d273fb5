# SPDX-License-Identifier: Apache-2.0
"""Files that other programs read: versions agree, links and citations exist, the action runs."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from hourglass import __version__

ROOT = Path(__file__).parents[1]


def text(name: str) -> str:
    return (ROOT / name).read_text()


def data(name: str) -> Any:
    read = {".json": json.loads, ".cff": yaml.safe_load, ".yml": yaml.safe_load, ".toml": tomllib.loads}
    return read[Path(name).suffix](text(name))


VERSIONS = {
    "CITATION.cff": lambda: data("CITATION.cff")["version"],
    "codemeta.json": lambda: data("codemeta.json")["version"],
    ".zenodo.json": lambda: data(".zenodo.json")["version"],
    "action.yml": lambda: data("action.yml")["inputs"]["package"]["default"].split("==")[1],
    "README.md": lambda: "".join(re.findall(r"pip install hourglass_net-([\d.]+)-py3", text("README.md"))),
}
"""Other files with the version of `hourglass/__init__.py`."""


@pytest.mark.parametrize("name", VERSIONS)
def test_the_version_is_that_of_the_package(name: str) -> None:
    assert VERSIONS[name]() == __version__


def test_the_distribution_has_one_name() -> None:
    name = data("pyproject.toml")["project"]["name"]
    assert data("codemeta.json")["identifier"] == name
    assert data("action.yml")["inputs"]["package"]["default"].startswith(f"{name}==")
    assert f"`{name}`" in text("docs/how-to/install.md")
    for page in ("docs/how-to/install.md", "docs/tutorials/application-in-ci.md"):
        assert f'pip install "{name} @ ' in text(page)


def test_the_descriptions_are_the_same() -> None:
    about = " ".join(data("CITATION.cff")["abstract"].split())
    assert data("codemeta.json")["description"] == data(".zenodo.json")["description"] == about
    keywords = data("CITATION.cff")["keywords"]
    assert data("codemeta.json")["keywords"] == data(".zenodo.json")["keywords"] == keywords


@pytest.mark.parametrize("name", ["llms.txt", "ARTIFACT.md", "ROADMAP.md", "CODE_OF_CONDUCT.md"])
def test_links_lead_to_files(name: str) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text(name))
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_citations_of_the_paper_are_in_its_bibliography() -> None:
    cited = set(re.findall(r"@([\w-]+)", text("paper.md")))
    assert cited == set(re.findall(r"^@\w+\{([\w-]+),", text("paper.bib"), re.MULTILINE))


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[bf]*.yml")), ids=lambda path: path.stem
)
def test_a_template_has_a_required_field(path: Path) -> None:
    form = yaml.safe_load(path.read_text())
    assert form["name"]
    assert form["description"]
    assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_the_action_has_no_placeholder_in_its_use() -> None:
    (line,) = re.findall(r"`(uses: \S+)`", text("action.yml"))
    assert line == "uses: ./.github/actions/hourglass"
    assert line in text("docs/tutorials/application-in-ci.md")


def test_the_action_installs_the_package_and_checks_the_scenarios(tmp_path: Path) -> None:
    """The steps run with programs that write down how they were called."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python3").write_text(
        f'#!/bin/sh\necho "${{0##*/}} $*" >>{tmp_path}/calls\n'
        'test "$2" != venv || for name in pip hourglass; do install -D "$0" "$3/bin/$name"; done\n'
    )
    (tools / "python3").chmod(0o755)
    (tmp_path / "a.toml").touch()
    (tmp_path / "b.toml").touch()
    settings = {"scenarios": "*.toml", "arguments": "--kernel 6.1"}
    action = data("action.yml")
    inputs = {name: settings.get(name, about.get("default", "")) for name, about in action["inputs"].items()}
    for step in action["runs"]["steps"]:
        environment = {
            name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: inputs[match[1]], value)
            for name, value in step["env"].items()
        }
        environment |= {"PATH": f"{tools}:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path)}
        subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=environment, check=True)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[0].startswith("python3 -m venv")
    assert calls[1].endswith(f"install --quiet --disable-pip-version-check hourglass-net=={__version__}")
    assert calls[2] == "hourglass check a.toml b.toml --kernel 6.1 --junit hourglass.xml"
