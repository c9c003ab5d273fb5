# SPDX-License-Identifier: Apache-2.0
"""House rules that no linter knows: licences, sizes, who may import whom, the map of the folders."""

import ast
import re
import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from hourglass.contract.kernels import KERNELS

ROOT = Path(__file__).parents[1]
LISTED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
).stdout.split("\n")
FILES = [ROOT / name for name in LISTED if name and (ROOT / name).is_file()]
NO_LICENCE_LINE = {".lock", ".png", ".svg", ".txt", ".json", ".arrows"}
"""Suffixes of files that can hold none, or are made by a program. A file without suffix has one, but for LICENSE."""

MOST_LINES = 500
LONGER = {"kernel/templates/bbr3.c": 1000}
"""A user's congestion control is one file, and BBRv3 is that long (the kernel's BBRv1 has 1,200 lines)."""

FORBIDDEN = {
    "contract": {"scenario", "plan", "engine", "results", "flent", "plots", "report", "cli", "runner", "campaign"},
    "scenario": {"plan", "engine", "results", "flent", "plots", "report", "cli", "runner", "campaign", "papers"},
    "plan": {"engine", "results", "flent", "plots", "report", "cli", "runner", "campaign", "papers"},
    "engine": {"scenario", "plan", "results", "flent", "plots", "report", "cli", "runner", "campaign", "papers"},
    "results": {"plan", "engine", "flent", "plots", "report", "cli", "runner", "campaign", "papers"},
    "flent": {"plan", "engine", "plots", "report", "cli", "runner", "campaign", "papers"},
    "plots": {"scenario", "plan", "engine", "flent", "report", "cli", "runner", "campaign", "papers"},
    "report": {"plan", "engine", "flent", "plots", "cli", "runner", "campaign", "papers"},
    "campaign": {"plan", "flent", "plots", "report", "cli", "papers"},
    "testing": {"plan", "plots", "report", "cli", "campaign", "papers"},
    "papers": {"plan", "engine", "flent", "report", "cli"},
    "selftests": {"plan", "flent", "plots", "report", "cli", "papers", "suites"},
    "suites": {"plan", "engine", "flent", "plots", "report", "cli", "papers"},
}
"""What each folder must not know (ARCHITECTURE.md, "Map")."""


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize(
    "path", [f for f in FILES if f.suffix not in NO_LICENCE_LINE and f.name != "LICENSE"], ids=relative
)
def test_licence_line(path: Path) -> None:
    head = "\n".join(path.read_text().splitlines()[:3])
    licence = "GPL-2.0-only" if relative(path).startswith("kernel/") else "Apache-2.0"
    assert f"SPDX-License-Identifier: {licence}" in head


@pytest.mark.parametrize("path", [f for f in FILES if f.suffix in {".py", ".rs", ".c", ".h"}], ids=relative)
def test_size(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGER.get(relative(path), MOST_LINES)


def imports(path: Path) -> set[str]:
    """The folders of the package that a file imports from, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "hourglass":
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= set(re.findall(r"^hourglass\.(\w+)", node.module))
        elif isinstance(node, ast.Import):
            found |= {m for name in node.names for m in re.findall(r"^hourglass\.(\w+)", name.name)}
    return found


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_import_direction(folder: str) -> None:
    for path in (ROOT / "src/hourglass" / folder).rglob("*.py"):
        assert not imports(path) & FORBIDDEN[folder], relative(path)


def test_agent_modules_import_in_one_direction() -> None:
    """Tests aside. A circle raises CycleError, which names it."""
    modules = {path.stem: path.read_text().split("#[cfg(test)]\nmod ")[0] for path in (ROOT / "agent/src").glob("*.rs")}
    graph = {}
    for name, text in modules.items():
        listed = re.findall(r"crate::\{([^}]*)\}", text)
        found = {word for part in listed for word in re.findall(r"\w+", part)} | set(re.findall(r"crate::(\w+)", text))
        graph[name] = (found & set(modules)) - {name, "main"}
    assert graph["watch"] >= {"rows", "plan"}
    list(TopologicalSorter(graph).static_order())


def test_every_folder_is_on_the_map() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    folders = {f"src/hourglass/{p.name}/" for p in (ROOT / "src/hourglass").iterdir() if (p / "__init__.py").is_file()}
    folders |= {f"kernel/{p.name}/" for p in (ROOT / "kernel").iterdir() if p.is_dir()} | {
        "agent/",
        "scenarios/",
        "bench/",
        "release/",
    }
    assert {folder for folder in folders if f"`{folder}`" not in text} == set()


def test_every_hook_is_in_the_docs() -> None:
    text = (ROOT / "docs/model.md").read_text()
    assert {p.stem for p in (ROOT / "kernel/hooks").glob("*.toml") if f"`{p.stem}`" not in text} == set()


def test_every_link_of_the_docs_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md", "docs/scenario.md", "kernel/hooks/README.md"])
def test_the_docs_name_all_kernels(page: str) -> None:
    versions = r"\d+\.\d+(?:`?(?:, | and | or )+`?\d+\.\d+)+"
    lists = [re.findall(r"\d+\.\d+", found) for found in re.findall(versions, (ROOT / page).read_text())]
    assert list(KERNELS) in lists


def test_drivers_know_no_probe() -> None:
    """They announce what happens (`wire_trace.h`, `radio_trace.h`); who subscribes is not theirs to know."""
    for path in (ROOT / "kernel/drivers").glob("[wr][ia]*.[ch]"):
        assert not re.search(r"\bprobe_\w+\(|\bstruct probe_|\"probe", path.read_text()), relative(path)


def test_kernel_versions_differ_in_one_place() -> None:
    places = {relative(p) for p in (ROOT / "kernel").rglob("*.[ch]") if "LINUX_VERSION_CODE" in p.read_text()}
    assert places == {"kernel/drivers/compat.h", "kernel/drivers/hourglass_cc.h", "kernel/hooks/hostroot.c"}
