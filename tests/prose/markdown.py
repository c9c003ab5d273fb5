# SPDX-License-Identifier: Apache-2.0
"""The prose of a Markdown page: paragraphs and list items without code, tables and link targets."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(r"^\s*(?:```|~~~|:::)")
ITEM = re.compile(r"^\s*(?:[*+-]|\d+\.)\s+")
SKIPPED = re.compile(r"^(?:#|\s*\||<|\s{4,}\S|\[[^\]]+\]:|!\[)|^(?:\w+:|---)$")
"""Headings, tables, HTML, indented code, link definitions and pictures."""

SENTENCE_END = re.compile(r"(?<=[.!?])[*_)”\"]*\s+(?=[*_(“\"`\[]*[A-Z0-9`])")
ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|Fig|No|St)\.")


@dataclass(frozen=True)
class Block:
    """A paragraph or a list item: the text on one line, and the line where it begins."""

    line: int
    text: str


def numbered_lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the number and the text of each line, and whether it belongs to a code block."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        is_fence = bool(FENCE.match(line))
        is_code ^= is_fence
        yield number, line, is_code or is_fence


def blocks(text: str) -> Iterator[Block]:
    """Yield the paragraphs and list items of a page."""
    lines: list[str] = []
    first, comment = 0, False
    for number, line, is_code in numbered_lines(f"{text}\n\n"):
        comment = comment or line.startswith("<!--")
        stops = line.startswith("#") or line.lstrip().startswith("|")
        begins = bool(ITEM.match(line))
        skipped = is_code or comment or (not lines and not begins and bool(SKIPPED.match(line)))
        if lines and (skipped or begins or not line.strip() or stops):
            yield Block(first, plain(" ".join(lines)))
            lines = []
        if not skipped and line.strip() and not stops:
            first = first if lines else number
            lines.append(ITEM.sub("", line).strip())
        if comment and "-->" in line:
            comment = False


def plain(text: str) -> str:
    """Return the text without link targets, comments and emphasis; inline code counts as one word."""
    text = re.sub(r"<!--.*?-->", "", text)
    text = re.sub(r"`[^`]*`", "`x`", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\*\*|(?<!\w)[*_]|[*_](?!\w)", "", text)


def sentences(block: Block) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a block with the line of the block."""
    text = ABBREVIATIONS.sub(lambda match: match[0][:-1], block.text)
    yield from ((block.line, part.strip()) for part in SENTENCE_END.split(text) if part.strip())
