# SPDX-License-Identifier: Apache-2.0
"""Examples in docstrings: an indented block is code, as in Markdown."""

from itertools import pairwise
from typing import Any


def mark_examples(_app: Any, _kind: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Put `::` before each indented block that follows a paragraph, in place."""
    marked = lines[:1]
    for before, line in pairwise(lines):
        paragraphs = [text for text in marked if text]
        if not before and line.startswith("    ") and paragraphs and not paragraphs[-1].startswith(" "):
            marked += ["::", ""]
        marked.append(line)
    lines[:] = marked
