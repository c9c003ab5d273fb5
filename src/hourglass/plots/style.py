# SPDX-License-Identifier: Apache-2.0
"""The look of all pictures: one font, units on every axis, the colours of `looks` as matplotlib takes them.

Figures are made with matplotlib's Agg canvas directly, so no display and no global state is touched.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple, TypeAlias

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from hourglass.errors import InputError
from hourglass.looks import BLUE, GREEN, HATCHES, ORANGE, PURPLE, SKY, VERMILION, Look

WAYS = {"upload": BLUE, "download": VERMILION}
NODES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
"""Hues of the nodes in the order of the path; a node's layers are shades of its hue."""
INK = "#222222"
MUTED = "#6B6B6B"
GRID = "#E3E3E3"
SHADE = "#F4F6F8"

DPI = 150
WIDEST_IN = 14.0
"""No picture is wider: on a page or a screen its letters would be too small. What needs more goes into rows."""
MARKERS = {
    "circle": "o", "square": "s", "triangle-up": "^", "diamond": "D", "triangle-down": "v", "plus": "P",
    "triangle-right": ">", "cross": "X", "triangle-left": "<", "star": "*", "pentagon": "p",
}  # fmt: skip
"""Matplotlib's markers by the names of `looks.SHAPES`."""
LINE_IN = 0.15
"""Height of a line of a label."""
LOG_SPAN = 30
"""Values that span more than this factor are drawn on a logarithmic axis."""

SUFFIXES = (".png", ".svg", ".pdf")
METADATA: dict[str, dict[str, str | None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": "hourglass"},
    ".pdf": {"CreationDate": None, "Creator": "hourglass", "Producer": None},
}

RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.hashsalt": "hourglass",
    "svg.fonttype": "path",
}

FASTER: dict[str, dict[str, Any]] = {".png": {"pil_kwargs": {"compress_level": 3}}}
"""A fifth more bytes for a tenth of a picture's time."""


@contextmanager
def figure(width_in: float, height_in: float, path: Path, arranged: bool = True) -> Iterator[Figure]:
    """A figure in the house style, saved at `path` when the block ends. Raises `InputError` for an unknown suffix,
    and where it cannot be written.

    `arranged`: matplotlib finds room for all labels, for which it lays out everything twice.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError("picture", str(path), f"the name must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    with mpl.rc_context(RC):  # type: ignore[arg-type]  # its keys are a Literal of 300 names
        made = Figure(
            figsize=(width_in, height_in), dpi=DPI, layout="constrained" if arranged else None, facecolor="white"
        )
        FigureCanvasAgg(made)
        yield made
        try:
            made.savefig(path, metadata=METADATA[suffix], **FASTER.get(suffix, {}))
        except OSError as error:
            raise InputError("out", str(path), f"the picture cannot be written: {error.strerror}") from error


def line(look: Look) -> dict[str, Any]:
    """A series as a line."""
    made: dict[str, Any] = {"color": look.colour, "linestyle": (0, look.dash) if look.dash else "-"}
    return made | (dot(look) | {"markersize": 4, "markevery": 0.11} if look.marked else {})


def dot(look: Look) -> dict[str, Any]:
    """A series as dots; to be combined with a line or none."""
    face = look.colour if look.filled else "white"
    return {
        "color": look.colour,
        "marker": MARKERS[look.shape],
        "markerfacecolor": face,
        "markeredgecolor": look.colour,
    }


def box(look: Look) -> dict[str, Any]:
    """The face of a box, for its legend too; its edge is drawn apart."""
    return {"facecolor": f"{look.colour}59", "edgecolor": look.colour, "hatch": look.hatch, "linewidth": 1.2}


def legend_right(axes: Axes, most: int = 11) -> None:
    """The legend right of a panel, in columns of at most so many."""
    handles, names = axes.get_legend_handles_labels()
    if handles:
        axes.legend(handles, names, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0,
                    ncols=-(-len(names) // most), columnspacing=1.2)  # fmt: skip


def panels_in_rows(count: int, width_in: float) -> tuple[int, int]:
    """(rows, columns) of panels of this width, so that a picture is not wider than `WIDEST_IN`."""
    most = max(1, int(WIDEST_IN / width_in))
    rows = -(-count // most)
    return rows, -(-count // rows)


Place: TypeAlias = tuple[str, str]
"""A node and a layer."""


class Shade(NamedTuple):
    """Of a node's layer."""

    colour: str
    hatch: str


def shades(places: Sequence[Place]) -> dict[Place, Shade]:
    """A shade per node and layer: hue by node, from dark to light in the order of its layers; hatched where a node has
    the hue of another."""
    nodes = list(dict.fromkeys(node for node, _ in places))
    found = {}
    for number, node in enumerate(nodes):
        mine = [place for place in places if place[0] == node]
        hue = np.array(to_rgb(NODES[number % len(NODES)]))
        for step, place in enumerate(mine):
            light = 0.72 * step / max(1, len(mine) - 1) if len(mine) > 1 else 0.0
            hatch = HATCHES[(number // len(NODES) - 1) % len(HATCHES)] * 2 if number >= len(NODES) else ""
            found[place] = Shade(to_hex(tuple(hue + (1 - hue) * light)), hatch)
    return found


def wants_log(values: npt.ArrayLike) -> bool:
    """Whether positive values span so much that a linear axis would hide the small ones."""
    sample = np.asarray(values, dtype=np.float64)
    sample = sample[np.isfinite(sample) & (sample > 0)]
    return bool(sample.size) and float(sample.max() / sample.min()) > LOG_SPAN


def log_y(axes: Axes) -> None:
    """A logarithmic y axis with plain numbers at 1, 2 and 5."""
    axes.set_yscale("log")
    _plain_numbers(axes.yaxis, (1, 2, 5))


def log_x(axes: Axes) -> None:
    """A logarithmic x axis with plain numbers at 1 and 3: more would run into each other."""
    axes.set_xscale("log")
    _plain_numbers(axes.xaxis, (1, 3))


def candle(axes: Axes, x: float, half: float, figures: tuple[float, float, float], look: Look) -> None:
    """A box from the first to the last of three figures with a line at the middle one, `half` of its width each way."""
    low, middle, high = figures
    corner, width, height = (x - half, low), 2 * half, high - low
    axes.add_patch(Rectangle(corner, width, height, **box(look)))
    axes.plot([x - half, x + half], [middle, middle], color=INK, linewidth=2, solid_capstyle="butt")


def headline(figure: Figure, text: str) -> None:
    """What a picture of several panels shows, above them."""
    figure.suptitle(text, x=0.01, ha="left", fontsize=11, fontweight="bold")


def caption(figure: Figure | SubFigure, text: str) -> None:
    """The convention of a picture, below it, in as many lines as its width needs."""
    letters = int(figure.bbox.width / figure.get_dpi() / 0.068)
    figure.supxlabel("\n".join(wrap(text, letters)), fontsize=7.5, color=MUTED, x=0.995, ha="right")


def name_places(axes: Axes, names: Sequence[str], slot_in: float) -> None:
    """The names below their places 0, 1, …, each so wide: a key a line where a label has several, slanted where a
    line is too long."""
    name_ticks(axes, range(len(names)), names, slot_in)
    axes.set_xlim(-0.6, len(names) - 0.4)


def name_ticks(axes: Axes, places: Sequence[float], names: Sequence[str], slot_in: float) -> None:
    """Names below the x axis: level where they have room, else slanted, else upright, with their ends there."""
    broken = [name.replace(", ", "\n") for name in names]
    axes.set_xticks(list(places), broken, fontsize=8)
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    if widest_in(names) > slot_in:
        lines = max(name.count("\n") + 1 for name in broken)
        angle = 30 if slot_in / 2 >= LINE_IN * lines else 90
        for label in axes.get_xticklabels():
            label.set(rotation=angle, ha="right", va="center" if angle == 90 else "top", rotation_mode="anchor")


def legend_above(figure: Figure | SubFigure, names: Sequence[str], handles: Sequence[Any]) -> None:
    """A legend of all panels above them, as many columns as the longest name leaves room for."""
    columns = _columns(names, figure.bbox.width / figure.get_dpi())
    figure.legend(handles, names, loc="outside upper left", ncols=columns)


def legend_in(names: Sequence[str], width_in: float) -> float:
    """Height of such a legend, inches."""
    return 0.1 + 0.19 * -(-len(names) // _columns(names, width_in))


def _columns(names: Sequence[str], width_in: float) -> int:
    return max(1, min(len(names), int(width_in / (0.6 + 0.08 * max(map(len, names), default=1)))))


def widest_in(names: Sequence[str]) -> float:
    """Width that one place of `name_places` needs, inches."""
    return max(0.7, 0.15 + 0.075 * max(len(part) for name in names for part in name.replace(", ", "\n").split("\n")))


def _plain_numbers(axis: Axis, subs: tuple[int, ...]) -> None:
    axis.set_major_locator(LogLocator(base=10, subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
