# SPDX-License-Identifier: Apache-2.0
"""House rules that no linter knows: licences, sizes, the direction of imports, the map of the folders."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from hourglass.contract.kernels import KERNELS
from tests.repository import FILES, ROOT, relative

NO_LICENCE_LINE = {".lock", ".png", ".svg", ".txt", ".json", ".ipynb", ".arrows"}
"""Suffixes of files that cannot have the line, or that a program writes. Without suffix, only LICENSE lacks it."""

MOST_LINES = 500
LONGER = {"kernel/templates/bbr3.c": 1000}
"""A user's congestion control is one file, and BBRv3 is that long (the kernel's BBRv1 has 1,200 lines)."""

FOUNDATION = {"errors", "files", "locks", "resources", "visible"}
"""Modules that every other package may import."""

CLOCKS = {
    f"time.{name}"
    for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time")
}
READERS = {
    "clocks.py": "the functions by which tests wait",
    "__main__.py": "times of parts",
    "kernels.py": "times of builds",
    "mutations.py": "times of mutations",
    "soak.py": "times of cases",
    "fuzz/__main__.py": "the pace",
    "fuzz/system_calls.py": "runs for as long as its user says",
    "guest/host_state.py": "compares the host's date with its other clock",
    "guest/inside/devices.py": "runs in the guest",
}
"""Files of `tests/` that read a clock. Elsewhere a verdict could depend on the machine's other work."""

IMPORTS = {
    "visible": "",
    "errors": "visible",
    "files": "errors",
    "locks": "",
    "resources": "",
    "series_style": "",
    "tc_words": "",
    "qdisc_line": "tc_words",
    "contract": "",
    "host": "",
    "scenario": "contract qdisc_line",
    "plan": "contract qdisc_line scenario",
    "builders": "contract host",
    "engine": "builders contract host",
    "results": "contract qdisc_line scenario series_style tc_words",
    "flent": "contract qdisc_line results scenario",
    "estimation": "contract flent results",
    "exports": "contract results",
    "plots": "contract results series_style",
    "report": "contract plan qdisc_line results scenario series_style",
    "runner": "contract engine plan results scenario",
    "api": "flent host plots report results",
    "studies": "api builders contract engine flent host qdisc_line report results runner scenario",
    "testing": "contract engine results runner scenario",
    "environment": "contract engine results runner scenario",
    "selftests": "builders contract engine host results studies",
    "schema": "contract scenario studies",
    "cli": "builders contract engine estimation exports flent host plan plots report results runner scenario selftests "
    "studies testing",
}
"""Packages that a package may import (ARCHITECTURE.md, "Map"): only earlier rows, so there is no circle."""


GPL = ("kernel/", "papers/studies/linux-4.14/", "src/hourglass/environment/steered.c")
"""Folders and files of code for a kernel."""


@pytest.mark.parametrize(
    "path", [f for f in FILES if f.suffix not in NO_LICENCE_LINE and f.name != "LICENSE"], ids=relative
)
def test_licence_line(path: Path) -> None:
    head = "\n".join(path.read_text().splitlines()[:3])
    licence = "GPL-2.0-only" if relative(path).startswith(GPL) else "Apache-2.0"
    assert f"SPDX-License-Identifier: {licence}" in head


@pytest.mark.parametrize("path", [f for f in FILES if f.suffix in {".py", ".rs", ".c", ".h"}], ids=relative)
def test_size(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGER.get(relative(path), MOST_LINES)


def imports(path: Path) -> set[str]:
    """Return the folders of the package that a file imports from, wherever in the file."""
    packages = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "hourglass":
            packages |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            packages |= set(re.findall(r"^hourglass\.(\w+)", node.module))
        elif isinstance(node, ast.Import):
            packages |= {m for name in node.names for m in re.findall(r"^hourglass\.(\w+)", name.name)}
    return packages


def test_every_package_has_a_row_of_imports() -> None:
    folder = ROOT / "src/hourglass"
    packages = {path.parent.name for path in folder.glob("*/*.py")} | {path.stem for path in folder.glob("*.py")}
    assert packages - {"__init__"} == IMPORTS.keys()


@pytest.mark.parametrize("package", IMPORTS)
def test_a_package_imports_only_permitted_packages(package: str) -> None:
    allowed, names = set(IMPORTS[package].split()), list(IMPORTS)
    assert allowed <= set(names[: names.index(package)])
    allowed |= set() if package in FOUNDATION else FOUNDATION
    folder = ROOT / "src/hourglass"
    for path in [*(folder / package).rglob("*.py"), *folder.glob(f"{package}.py")]:
        assert imports(path) - {package, "__version__"} <= allowed, relative(path)


def test_papers_import_the_public_interface_alone() -> None:
    public = re.findall(r"auto\w+:: (hourglass[\w.]*)", (ROOT / "docs/reference/python.md").read_text())
    modules = set(public) - {"hourglass"}
    for path in (ROOT / "papers").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hourglass":
                names = {f"{node.module}.{name.name}" for name in node.names}
                assert node.module in modules or names <= modules, f"{relative(path)}: {names}"
            elif isinstance(node, ast.Import):
                assert not [name.name for name in node.names if name.name.startswith("hourglass.")], relative(path)


def test_agent_modules_import_in_one_direction() -> None:
    """Check the modules without their tests. A circle raises CycleError, which names it."""
    modules = {path.stem: path.read_text().split("#[cfg(test)]\nmod ")[0] for path in (ROOT / "agent/src").glob("*.rs")}
    graph = {}
    for name, text in modules.items():
        listed = re.findall(r"crate::\{([^}]*)\}", text)
        references = {word for part in listed for word in re.findall(r"\w+", part)} | set(
            re.findall(r"crate::(\w+)", text)
        )
        graph[name] = (references & set(modules)) - {name, "main"}
    assert graph["probe"] >= {"probe_rows", "plan"}
    list(TopologicalSorter(graph).static_order())


def reads_clock(path: Path) -> bool:
    """Tell whether a Python file calls a function of `time` that returns a time."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return any(ast.unparse(node.func) in CLOCKS for node in nodes if isinstance(node, ast.Call))


def test_tests_read_no_clock() -> None:
    files = [path for path in FILES if path.suffix == ".py" and path.is_relative_to(ROOT / "tests")]
    assert {str(path.relative_to(ROOT / "tests")) for path in files if reads_clock(path)} == set(READERS)


def test_every_folder_is_on_the_map() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    folders = {f"src/hourglass/{p.name}/" for p in (ROOT / "src/hourglass").iterdir() if (p / "__init__.py").is_file()}
    folders |= {f"kernel/{p.name}/" for p in (ROOT / "kernel").iterdir() if p.is_dir()} | {
        "agent/",
        "scenarios/",
        "bench/",
        "generators/",
        "papers/",
        "release/",
        "website/",
    }
    assert {folder for folder in folders if f"`{folder}`" not in text} == set()


def test_every_hook_is_in_the_docs() -> None:
    text = (ROOT / "docs/explanation/model.md").read_text()
    assert {p.stem for p in (ROOT / "kernel/hooks").glob("*.toml") if f"`{p.stem}`" not in text} == set()


def test_every_link_of_the_docs_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize(
    "page", ["README.md", "docs/how-to/test-kernels.md", "docs/reference/scenario.md", "kernel/hooks/README.md"]
)
def test_the_docs_name_all_kernels(page: str) -> None:
    versions = r"\d+\.\d+(?:`?(?:, | and | or )+`?\d+\.\d+)+"
    lists = [re.findall(r"\d+\.\d+", sentence) for sentence in re.findall(versions, (ROOT / page).read_text())]
    assert list(KERNELS) in lists


def test_drivers_know_no_probe() -> None:
    """Drivers announce events (`wire_trace.h`, `radio_trace.h`) and do not know the subscribers."""
    for path in [path for folder in ("wire", "radio") for path in (ROOT / "kernel/drivers" / folder).glob("*.[ch]")]:
        assert not re.search(r"\bprobe_\w+\(|\bstruct probe_|\"probe", path.read_text()), relative(path)


def test_kernel_versions_differ_in_one_place() -> None:
    files = {relative(p) for p in (ROOT / "kernel").rglob("*.[ch]") if "LINUX_VERSION_CODE" in p.read_text()}
    assert files == {
        "kernel/drivers/lib/compat.h",
        "kernel/drivers/lib/hourglass_cc.h",
        "kernel/hooks/hostroot.c",
        "kernel/hooks/program_memory.c",
    }
