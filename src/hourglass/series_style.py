# SPDX-License-Identifier: Apache-2.0
"""Choose the styles of series that are shown together, on paper and on the report's page. No two are alike.

The seven colours of a light page are Okabe and Ito's without the yellow ("Color Universal Design", 2008). Those of a
dark page have the same hues, adjusted so that protanopes, deuteranopes and tritanopes can distinguish them. Before a
colour repeats, another property changes. Lines change dashes, then markers; dots their shape, then the fill; boxes the
hatching. After that, the colours are toned down.
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
"""The same colours for a dark page, in the same order."""
TOTAL, TOTAL_DARK = "#6B6B6B", "#98A4B3"
"""The style of a sum of series: a wide line and its area, in a grey that no series has."""

DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1, 1.6), (6, 2, 1, 2), (9, 3), (4, 1.6, 1, 1.6, 1, 1.6))
"""Lengths of dash and gap, in line widths."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "plus", "triangle-right", "cross",
          "triangle-left", "star", "pentagon")  # fmt: skip
"""All shapes that readers can distinguish. Their number is prime, so they combine with all colours."""
HATCHES = ("//", "..", "xx", "--", "oo", "++", "\\\\", "||")
"""The hatching of a box whose colour repeats; later ones are denser."""
TURNS = 2 * len(SHAPES)
"""Repetitions of the colours before they are toned down: all shapes, filled and not."""

CLASSES_MAX = len(LIGHT)
Direction = Literal["upload", "download"]


@dataclass(frozen=True)
class SeriesStyle:
    """The style of a series. `marked`: its line has markers, because other lines have its colour and its dashes."""

    colour: str
    dark: str
    dash: tuple[float, ...]
    shape: str
    filled: bool
    hatch: str
    marked: bool


def style(number: int) -> SeriesStyle:
    """Return the style of the series with this index, from 0."""
    turn, index = divmod(number, len(LIGHT))
    tone = turn // TURNS
    return SeriesStyle(
        colour=_toned(LIGHT[index], tone),
        dark=_toned(DARK[index], tone),
        dash=DASHES[turn % len(DASHES)],
        shape=SHAPES[(index + 8 * turn) % len(SHAPES)],
        filled=turn // len(SHAPES) % 2 == 0,
        hatch=_hatch(turn % TURNS),
        marked=turn >= len(DASHES),
    )


def styles(many: int, first: int = 0) -> list[SeriesStyle]:
    """Return `many` styles from the index `first`, all different as lines, as dots and as boxes."""
    return [style(first + number) for number in range(many)]


def more_styles(many: int, used: Sequence[SeriesStyle]) -> list[SeriesStyle]:
    """Return `many` more styles. No line is like one in use."""
    lines = {(each.colour, each.dash) for each in used}
    return list(islice((each for each in map(style, count()) if (each.colour, each.dash) not in lines), many))


def styles_by_class(classes: Sequence[str], directions: Sequence[str]) -> list[SeriesStyle]:
    """Return the styles of streams with a class and a direction. If there are few classes and each has both directions,
    a class has a colour, uploads are solid and downloads dashed. Otherwise they are those of `styles`."""
    unique = list(dict.fromkeys(classes))
    pairs = list(zip(classes, directions, strict=True))
    if len(unique) > CLASSES_MAX or len(set(pairs)) < len(pairs) or len(pairs) < 2 * len(unique) or len(unique) < 2:
        return styles(len(pairs))
    return [replace(style(unique.index(name)), dash=DASHES[direction == "download"]) for name, direction in pairs]


def _hatch(turn: int) -> str:
    """Return the hatching of a turn; the first has none."""
    denser, index = divmod(turn - 1, len(HATCHES))
    return HATCHES[index] * (1 + denser) if turn else ""


def _toned(colour: str, tone: int) -> str:
    """Return a colour closer to a middle grey; each step is smaller."""
    share = tone / (tone + 3)
    parts = (int(colour[index : index + 2], 16) for index in (1, 3, 5))
    return "#" + "".join(f"{round(part + (0x88 - part) * share):02X}" for part in parts)
