# SPDX-License-Identifier: Apache-2.0
"""Compare a command's output with its excerpt on a page."""

import re
from difflib import SequenceMatcher, unified_diff

ANYTHING = "…"

UNSTABLE = (
    (re.compile(r"in \d+\.\d+ s( \([\d.]+ x real time\))?(; faster: .*)?"), "in … s"),
    (re.compile(r"(runs/[\w-]+)-[0-9a-f]{10}\b"), r"\1-HASH"),
)
"""Wall times, the note of a kernel without PGO, and the hashes of run directories. The hashes depend on the kernel's
build, so they depend on its compiler."""

ALIKE = 0.6
"""Two lines with this similarity are the same line with other words."""


def stable(line: str) -> str:
    for pattern, instead in UNSTABLE:
        line = pattern.sub(instead, line)
    return line.rstrip()


def shape(line: str) -> str:
    """Return a line without its figures: the lines of one row in two runs have one shape."""
    figures = re.compile(r"\b[0-9a-f]{12}\b|[\d.,]+")
    return re.sub(r"\s+", " ", figures.sub("#", stable(line).removesuffix(ANYTHING)))


def lines_of(text: str) -> list[str]:
    """Return the lines without blank ones at the ends."""
    return text.strip("\n").split("\n") if text.strip() else []


def agrees(page_output: str, printed: str) -> bool:
    """Tell whether the page shows the printed text."""
    pattern = ""
    for line in lines_of(page_output):
        if line.strip() == ANYTHING:
            pattern += r"(?:.*\n)*"
        else:
            cut = line.rstrip().endswith(ANYTHING)
            text = stable(line.rstrip().removesuffix(ANYTHING).rstrip() if cut else line)
            pattern += re.escape(text) + (r".*\n" if cut else r"\n")
    return re.fullmatch(pattern, "".join(f"{stable(line)}\n" for line in lines_of(printed))) is not None


def difference(page_output: str, printed: str) -> str:
    return "\n".join(unified_diff(lines_of(page_output), lines_of(printed), "shown", "printed", lineterm="", n=1))


def updated(page_output: str, printed: str) -> str:
    """Return the text that the page should show: the printed text, abridged where the page abridges now.

    A new line between two adjacent lines is included; a line that is no longer printed is not."""
    if not page_output.strip() or agrees(page_output, printed):
        return page_output
    new_lines, lines, position, skips = lines_of(printed), list[str](), 0, False
    for line in lines_of(page_output):
        if line.strip() == ANYTHING:
            lines.append(line)
            skips = True
        elif (index := _find(line, new_lines, position)) is not None:
            lines += [] if skips else new_lines[position:index]
            lines.append(_cut(new_lines[index], line))
            position, skips = index + 1, False
    lines += [] if skips else new_lines[position:]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _cut(fresh: str, like: str) -> str:
    """Return a new line, abridged at the same column as the old one."""
    return f"{fresh[: len(like) - 2]} {ANYTHING}" if like.rstrip().endswith(ANYTHING) else fresh


def _find(line: str, lines: list[str], first: int) -> int | None:
    """Return the position, from `first` on, of the line's new form: the same shape, otherwise the most similar line."""
    target, cut = shape(line), line.rstrip().endswith(ANYTHING)
    for position, candidate in enumerate(lines[first : first + 1] if not target else lines[first:], first):
        if shape(candidate) == target or (cut and shape(candidate).startswith(target.rstrip())):
            return position
    ratios = [SequenceMatcher(None, target, shape(candidate)).ratio() for candidate in lines[first:]]
    return first + ratios.index(max(ratios)) if target and ratios and max(ratios) > ALIKE else None
