# SPDX-License-Identifier: Apache-2.0
"""The pieces of a page that something has to be done with, in their order."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / name
    for name in (
        "docs/guide.md",
        "README.md",
        "docs/testing.md",
        "docs/model.md",
        "docs/performance.md",
        "docs/congestion-control.md",
    )
]

PIECES = re.compile(
    r"""
    ^```(?P<language>\w+)(?:[ ]file=(?P<file>\S+))?\n(?P<body>.*?)^```$
    | ^<!--[ ](?P<hidden>console)\n(?P<lines>.*?)^-->$
    | ^<!--[ ]rows:[ ](?P<command>[^\n]*?)[ ]/[ ](?P<cell>[^\n]*?)[ ]-->\n+(?P<table>(?:^\|[^\n]*\n)+)
    | (?P<number>\d[\d,]*(?:\.\d+)?)<!--[ ]=(?P<run>\S+)[ ](?P<figure>[^<>\n]+?)[ ]-->
    | <!--[ ]tools[ ](?P<tools>\w+)[ ]-->
    | !\[[^\]]*\]\((?P<picture>[^)]+)\)<!--[ ]=(?P<drawn>\S+)[ ]-->
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True)
class Piece:
    """One match on a page: `part(name)` is a group's text, `span(name)` where it stands."""

    page: Path
    match: re.Match[str]

    @property
    def kind(self) -> str:
        """ "console", "python", "toml", … (the fence's language), "rows", "figure", "picture" or "tools"."""
        if self.match["hidden"]:
            return "console"
        for group, kind in (("command", "rows"), ("figure", "figure"), ("drawn", "picture"), ("tools", "tools")):
            if self.match[group]:
                return kind
        return self.match["language"]

    @property
    def body(self) -> str:
        """A fence's lines, or those of a hidden one."""
        return self.match[self.body_group]

    @property
    def body_group(self) -> str:
        return "lines" if self.match["hidden"] else "body"

    @property
    def place(self) -> str:
        """ "guide.md:12", for people."""
        return f"{self.page.name}:{self.match.string.count(chr(10), 0, self.match.start()) + 1}"


def pieces(page: Path) -> list[Piece]:
    """All pieces of a page."""
    return [Piece(page, match) for match in PIECES.finditer(page.read_text())]
