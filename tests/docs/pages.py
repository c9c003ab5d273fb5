# SPDX-License-Identifier: Apache-2.0
"""The pieces of a page that are executed or compared: its fences, and the entries of its sidecar."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SIDECARS = Path(__file__).parent / "pages"
MADE_WITH = SIDECARS / "made-with.toml"

PLANNED = [
    ROOT / name
    for name in (
        "docs/tutorials/first-run.md",
        "docs/tutorials/latency.md",
        "docs/tutorials/congestion-control.md",
        "docs/tutorials/application-in-ci.md",
        "docs/tutorials/namespace-tools.md",
        "docs/tutorials/reproduce-a-paper.md",
        "docs/tutorials/real-machines.md",
        "docs/how-to/change-settings.md",
        "docs/how-to/build-a-testbed.md",
        "docs/how-to/lan.md",
        "docs/how-to/queues.md",
        "docs/how-to/schedules.md",
        "docs/how-to/wifi.md",
        "docs/how-to/events.md",
        "docs/how-to/l4s.md",
        "docs/how-to/compare-runs.md",
        "docs/how-to/find-latency.md",
        "docs/how-to/flent.md",
        "docs/how-to/responsiveness.md",
        "docs/how-to/viewers.md",
        "docs/how-to/draw-pictures.md",
        "docs/how-to/sweep.md",
        "docs/how-to/tune.md",
        "docs/how-to/python.md",
        "docs/how-to/test-kernels.md",
        "docs/how-to/patch-a-real-kernel.md",
        "docs/how-to/congestion-control-files.md",
        "docs/how-to/prague-and-bbr3.md",
        "docs/how-to/qdisc-files.md",
        "docs/how-to/pytest.md",
        "docs/how-to/programs.md",
        "docs/how-to/suites.md",
        "docs/how-to/search.md",
        "docs/how-to/reinforcement-learning.md",
        "docs/how-to/mcp.md",
        "docs/how-to/selftests.md",
        "docs/how-to/real-kernel.md",
        "docs/how-to/agree.md",
        "docs/how-to/remote-hosts.md",
        "docs/how-to/measure-a-path.md",
        "docs/how-to/install.md",
        "docs/reference/files.md",
        "docs/reference/warnings.md",
        "docs/explanation/same-bytes.md",
        "docs/explanation/time.md",
        "docs/explanation/queues-and-skbs.md",
        "docs/explanation/performance.md",
        "README.md",
    )
]
"""The order of the pages: later pages use the files and runs of earlier ones."""

PAGES = [page for page in PLANNED if page.exists()]
"""The pages that are played."""

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)(?: file=(?P<file>\S+))?\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL
)
NUMBER = r"(\d[\d,]*(?:\.\d+)?)"


@dataclass(frozen=True)
class Piece:
    """A span of a page: its text, and the details that say how to check it."""

    page: Path
    kind: str
    """ "console", "python", "toml" … (a fence's language), "rows", "figure", "picture" or "tools"."""
    start: int
    text: str
    line: int
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def position(self) -> str:
        """ "docs/how-to/wifi.md:12", for people."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


class SidecarError(Exception):
    """An entry of a sidecar does not match its page."""


@cache
def sidecar(page: Path) -> dict[str, Any]:
    """Return the sidecar of a page: the bookkeeping that readers do not see. Empty without a file."""
    path = (SIDECARS / page.relative_to(ROOT / "docs" if (ROOT / "docs") in page.parents else ROOT)).with_suffix(
        ".toml"
    )
    return tomllib.loads(path.read_text()) if path.exists() else {}


def required(page: Path) -> list[Path]:
    """Return the pages whose files and runs a page uses, itself included, in the order of `PAGES`."""
    pages, queue = {page}, [page]
    while queue:
        for name in sidecar(queue.pop()).get("needs", []):
            if (needed := ROOT / name) not in pages:
                pages.add(needed)
                queue.append(needed)
    return [listed for listed in PAGES if listed in pages]


def pieces(page: Path) -> list[Piece]:
    """Return all pieces of a page: fences, then hidden commands, tables, figures and pictures of the sidecar."""
    text = page.read_text()
    return [*_fences(page, text), *_entries(page, text, sidecar(page))]


def tools() -> Piece:
    """Return the key of the guest's tools that made the pages; records depend on them."""
    text = MADE_WITH.read_text()
    match = re.search(r'^tools = "(\w+)"$', text, re.MULTILINE)
    if match is None:
        raise SidecarError(f"{MADE_WITH.name}: no line tools = KEY")
    return Piece(MADE_WITH, "tools", match.start(1), match[1], _line(text, match.start()))


def _fences(page: Path, text: str) -> Iterator[Piece]:
    for match in FENCE.finditer(text):
        details = {"file": match["file"]} if match["file"] else {}
        yield Piece(page, match["language"], match.start("body"), match["body"], _line(text, match.start()), details)


def _entries(page: Path, text: str, entries: Mapping[str, Any]) -> Iterator[Piece]:
    unknown = set(entries) - {"needs", "commands", "table", "figure", "picture"}
    if unknown:
        raise SidecarError(f"sidecar of {page.name}: unknown {', '.join(sorted(unknown))}")
    for command in entries.get("commands", []):
        yield Piece(page, "console", -1, f"$ {command}\n", 0)
    for entry in entries.get("table", []):
        (match,) = _matches(page, text, re.escape(entry["head"]) + r"\n((?:\|[^\n]*\n)+)", entry["head"])
        details = {"command": entry["command"], "cell": entry["cell"]}
        yield Piece(page, "rows", match.start(1), match[1], _line(text, match.start()), details)
    for entry in entries.get("figure", []):
        (match,) = _matches(page, text, _pattern(entry["text"]), entry["text"])
        for group, source in enumerate(entry["from"], 1):
            run, key = source.split(" ", 1)
            position = match.start(group)
            yield Piece(page, "figure", position, match[group], _line(text, position), {"run": run, "key": key})
        if len(match.groups()) != len(entry["from"]):
            raise SidecarError(f"{page.name}: {entry['text']}: as many {{}} as sources are needed")
    for entry in entries.get("picture", []):
        (match,) = _matches(page, text, re.escape(f"]({entry['file']})"), entry["file"])
        yield Piece(page, "picture", match.start(), match[0], _line(text, match.start()), dict(entry))


def _matches(page: Path, text: str, pattern: str, name: str) -> list[re.Match[str]]:
    matches = list(re.finditer(pattern, text))
    if len(matches) != 1:
        raise SidecarError(f"{page.relative_to(ROOT)}: “{name}” occurs {len(matches)} times, not once")
    return matches


def _pattern(template: str) -> str:
    """Return the pattern of a text with `{}` for numbers; any white space matches a line break."""
    return NUMBER.join(r"\s+".join(re.escape(word) for word in part.split(" ")) for part in template.split("{}"))


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
