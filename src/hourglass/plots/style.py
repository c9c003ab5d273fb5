# SPDX-License-Identifier: Apache-2.0
"""The look of all pictures: the Okabe-Ito colours (told apart by colour-blind readers), one font, units on every axis.

Figures are made with matplotlib's Agg canvas directly, so no display and no global state is touched.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import Any, TypeAlias

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from hourglass.errors import HourglassError, InputError

BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE, YELLOW, BLACK = (
    "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#F0E442", "#000000",
)  # fmt: skip
FLOWS = (BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE)
"""Colours of a run's flows."""
SERIES = (BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE, BLACK)
"""Colours of runs and groups that stand side by side."""
WAYS = {"upload": BLUE, "download": VERMILION}
TCP_RTT = GREEN
PINGS = (ORANGE, SKY, PURPLE, YELLOW, BLACK, BLUE, VERMILION)
"""Colours of a run's pings, in the plan's order: the same in every picture."""
NODES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
"""Hues of the nodes in the order of the path; a node's layers are shades of its hue."""
INK = "#222222"
MUTED = "#6B6B6B"
GRID = "#E3E3E3"
SHADE = "#F4F6F8"

DPI = 150
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
    """A figure in the house style, saved at `path` when the block ends. Raises `InputError` for an unknown suffix.

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
            raise HourglassError(f"{path}: the picture cannot be written: {error.strerror}") from error


Place: TypeAlias = tuple[str, str]
"""A node and a layer."""


def shades(places: Sequence[Place]) -> dict[Place, str]:
    """A colour per node and layer: hue by node, from dark to light in the order of its layers."""
    nodes = list(dict.fromkeys(node for node, _ in places))
    found = {}
    for number, node in enumerate(nodes):
        mine = [place for place in places if place[0] == node]
        hue = np.array(to_rgb(NODES[number % len(NODES)]))
        for step, place in enumerate(mine):
            light = 0.72 * step / max(1, len(mine) - 1) if len(mine) > 1 else 0.0
            found[place] = to_hex(tuple(hue + (1 - hue) * light))
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


def candle(axes: Axes, x: float, half: float, figures: tuple[float, float, float], colour: str) -> None:
    """A box from the first to the last of three figures with a line at the middle one, `half` of its width each way."""
    low, middle, high = figures
    corner, width, height = (x - half, low), 2 * half, high - low
    axes.add_patch(Rectangle(corner, width, height, facecolor=colour, alpha=0.35, linewidth=0))
    axes.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=colour, linewidth=1.2))
    axes.plot([x - half, x + half], [middle, middle], color=INK, linewidth=2, solid_capstyle="butt")


def headline(figure: Figure, text: str) -> None:
    """What a picture of several panels shows, above them."""
    figure.suptitle(text, x=0.01, ha="left", fontsize=11, fontweight="bold")


def caption(figure: Figure | SubFigure, text: str) -> None:
    """The convention of a picture, below it, in as many lines as its width needs."""
    letters = int(figure.bbox.width / figure.get_dpi() / 0.068)
    figure.supxlabel("\n".join(wrap(text, letters)), fontsize=7.5, color=MUTED, x=0.995, ha="right")


def name_places(axes: Axes, names: Sequence[str]) -> None:
    """The names below their places 0, 1, …: a key a line where a label has several."""
    axes.set_xticks(range(len(names)), [name.replace(", ", "\n") for name in names], fontsize=8)
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.6, len(names) - 0.4)


def widest_in(names: Sequence[str]) -> float:
    """Width that one place of `name_places` needs, inches."""
    return max(0.7, 0.15 + 0.075 * max(len(part) for name in names for part in name.replace(", ", "\n").split("\n")))


def _plain_numbers(axis: Axis, subs: tuple[int, ...]) -> None:
    axis.set_major_locator(LogLocator(base=10, subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(which="minor", length=0)
