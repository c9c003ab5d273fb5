# SPDX-License-Identifier: Apache-2.0
"""What series that stand beside each other look like, on paper and on the report's page: never two alike.

The seven colours of a light page are Okabe and Ito's without the yellow ("Color Universal Design", 2008); those of a
dark page keep their hues and were moved apart as protanopes, deuteranopes and tritanopes see them. Before a colour
comes again, something else changes: of a line its dashes, then the markers on it; of a dot its shape, then whether it
is filled; of a box its hatching. When all of that is used up, the colours themselves are toned down.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Literal

BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE, BLACK = (
    "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#000000",
)  # fmt: skip
LIGHT = (BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE, BLACK)
DARK = ("#6C82F2", "#E95A1D", "#4EE991", "#FFD32B", "#ADD1FF", "#CB7B9B", "#FFFFFF")
"""The same on a dark page, in the same order."""
TOTAL, TOTAL_DARK = "#6B6B6B", "#98A4B3"
"""A sum of series is a wide line and its area in a grey that no series has."""

DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1, 1.6), (6, 2, 1, 2), (9, 3), (4, 1.6, 1, 1.6, 1, 1.6))
"""Lengths of line and gap, in widths of the line."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "plus", "triangle-right", "cross",
          "triangle-left", "star", "pentagon")  # fmt: skip
"""As many as are told apart; a prime number, so that they go through all colours."""
HATCHES = ("//", "..", "xx", "--", "oo", "++", "\\\\", "||")
"""Of a box whose colour comes again; then denser."""
TURNS = 2 * len(SHAPES)
"""How often the colours come again before they are toned down: all shapes, filled and not."""

CLASSES_MAX = len(LIGHT)
Way = Literal["upload", "download"]


@dataclass(frozen=True)
class Look:
    """Of one series. `marked`: its line carries markers, because others have its colour and its dashes."""

    colour: str
    dark: str
    dash: tuple[float, ...]
    shape: str
    filled: bool
    hatch: str
    marked: bool


def look(number: int) -> Look:
    """The look of the series at this place, from 0."""
    turn, place = divmod(number, len(LIGHT))
    tone = turn // TURNS
    return Look(
        colour=_toned(LIGHT[place], tone),
        dark=_toned(DARK[place], tone),
        dash=DASHES[turn % len(DASHES)],
        shape=SHAPES[(place + 8 * turn) % len(SHAPES)],
        filled=turn // len(SHAPES) % 2 == 0,
        hatch=_hatch(turn % TURNS),
        marked=turn >= len(DASHES),
    )


def looks(many: int, first: int = 0) -> list[Look]:
    """So many looks, all different as lines, as dots and as boxes, from the place `first`."""
    return [look(first + number) for number in range(many)]


def further(many: int, used: Sequence[Look]) -> list[Look]:
    """So many more, no line of which is like one of those in use."""
    taken = {(one.colour, one.dash) for one in used}
    return list(islice((one for one in map(look, count()) if (one.colour, one.dash) not in taken), many))


def by_class(classes: Sequence[str], ways: Sequence[str]) -> list[Look]:
    """Looks of streams that have a class and a way: where there are few classes and each has both ways, a class has a
    colour, uploads are solid and downloads dashed. Otherwise as `looks` gives them."""
    known = list(dict.fromkeys(classes))
    pairs = list(zip(classes, ways, strict=True))
    if len(known) > CLASSES_MAX or len(set(pairs)) < len(pairs) or len(pairs) < 2 * len(known) or len(known) < 2:
        return looks(len(pairs))
    return [replace(look(known.index(one)), dash=DASHES[way == "download"]) for one, way in pairs]


def _hatch(turn: int) -> str:
    """The first turn has none."""
    denser, place = divmod(turn - 1, len(HATCHES))
    return HATCHES[place] * (1 + denser) if turn else ""


def _toned(colour: str, tone: int) -> str:
    """Nearer to a middle grey, each time by less."""
    share = tone / (tone + 3)
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part + (0x88 - part) * share):02X}" for part in parts)
