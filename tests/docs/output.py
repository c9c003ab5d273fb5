# SPDX-License-Identifier: Apache-2.0
"""What a command printed against what a page shows of it."""

import re
from difflib import SequenceMatcher, unified_diff

ANYTHING = "…"

UNSTABLE = (
    (re.compile(r"in \d+\.\d+ s( \([\d.]+ x real time\))?(; faster: .*)?"), "in … s"),
    (re.compile(r"(runs/[\w-]+)-[0-9a-f]{10}\b"), r"\1-HASH"),
)
"""Wall times, whether a kernel is tuned, and the hashes of run directories, which hold the kernel's build and thereby
its compiler."""

ALIKE = 0.6
"""Two lines as similar as that are the same line with other words."""


def stable(line: str) -> str:
    for pattern, instead in UNSTABLE:
        line = pattern.sub(instead, line)
    return line.rstrip()


def shape(line: str) -> str:
    """A line without its figures: two runs' lines of one row have one shape."""
    figures = re.compile(r"\b[0-9a-f]{12}\b|[\d.,]+")
    return re.sub(r"\s+", " ", figures.sub("#", stable(line).removesuffix(ANYTHING)))


def lines_of(text: str) -> list[str]:
    """Lines without blank ones at the ends."""
    return text.strip("\n").split("\n") if text.strip() else []


def agrees(shown: str, printed: str) -> bool:
    """Whether the page shows what was printed."""
    pattern = ""
    for line in lines_of(shown):
        if line.strip() == ANYTHING:
            pattern += r"(?:.*\n)*"
        else:
            cut = line.rstrip().endswith(ANYTHING)
            text = stable(line.rstrip().removesuffix(ANYTHING).rstrip() if cut else line)
            pattern += re.escape(text) + (r".*\n" if cut else r"\n")
    return re.fullmatch(pattern, "".join(f"{stable(line)}\n" for line in lines_of(printed))) is not None


def difference(shown: str, printed: str) -> str:
    return "\n".join(unified_diff(lines_of(shown), lines_of(printed), "shown", "printed", lineterm="", n=1))


def renewed(shown: str, printed: str) -> str:
    """What the page should show: everything that was printed, abridged where it is abridged now.

    A line that is new between two that stand one below the other is shown, one that is no longer printed is not."""
    if not shown.strip() or agrees(shown, printed):
        return shown
    new, made, place, skips = lines_of(printed), list[str](), 0, False
    for line in lines_of(shown):
        if line.strip() == ANYTHING:
            made.append(line)
            skips = True
        elif (found := _find(line, new, place)) is not None:
            made += [] if skips else new[place:found]
            made.append(_cut(new[found], line))
            place, skips = found + 1, False
    made += [] if skips else new[place:]
    return "".join(f"{line.rstrip()}\n" for line in made)


def _cut(fresh: str, like: str) -> str:
    """A new line, its end left out where that of the old one was."""
    return f"{fresh[: len(like) - 2]} {ANYTHING}" if like.rstrip().endswith(ANYTHING) else fresh


def _find(line: str, lines: list[str], first: int) -> int | None:
    """The place, from `first` on, of what the line has become: of its shape, or else the line most like it."""
    wanted, cut = shape(line), line.rstrip().endswith(ANYTHING)
    for place, other in enumerate(lines[first : first + 1] if not wanted else lines[first:], first):
        if shape(other) == wanted or (cut and shape(other).startswith(wanted.rstrip())):
            return place
    near = [SequenceMatcher(None, wanted, shape(other)).ratio() for other in lines[first:]]
    return first + near.index(max(near)) if wanted and near and max(near) > ALIKE else None
