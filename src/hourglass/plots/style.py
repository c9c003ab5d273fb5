# SPDX-License-Identifier: Apache-2.0
"""The style of all pictures: one font, units on every axis, and the series' styles as matplotlib's.

Figures use matplotlib's Agg canvas directly, which needs no display and no global state.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from io import BytesIO
from itertools import count
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

from hourglass import files
from hourglass.errors import InputError
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S
from hourglass.series_style import BLUE, GREEN, HATCHES, ORANGE, PURPLE, SKY, VERMILION, SeriesStyle

DIRECTION_COLOURS = {"upload": BLUE, "download": VERMILION}
NODE_HUES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
"""Hues of the nodes in the order of the path; a node's layers are shades of its hue."""
INK = "#222222"
MUTED = "#6B6B6B"
GRID = "#E3E3E3"
SHADE = "#F4F6F8"

DPI = 150
MAX_WIDTH_IN = 14.0
"""The maximum width of a picture. Letters of wider ones would be too small on a page, so panels go to more rows."""
MARKERS = {
    "circle": "o", "square": "s", "triangle-up": "^", "diamond": "D", "triangle-down": "v", "plus": "P",
    "triangle-right": ">", "cross": "X", "triangle-left": "<", "star": "*", "pentagon": "p",
}  # fmt: skip
"""Matplotlib's markers by the names of `series_style.SHAPES`."""
LABEL_LINE_IN = 0.15
"""The height of a line of a label, inches."""
LEGEND_LINE_IN = 0.19
"""The height of a line of a legend, inches."""
LOG_SPAN = 30
"""Values that span more than this factor are drawn on a logarithmic axis."""

SUFFIXES = (".png", ".svg", ".pdf")
METADATA: dict[str, dict[str, str | None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": "hourglass"},
    ".pdf": {"CreationDate": None, "Creator": "hourglass", "Producer": None},
}
"""Without dates and versions, the same picture is the same bytes. None omits an entry."""

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

SAVE_OPTIONS: dict[str, dict[str, Any]] = {".png": {"pil_kwargs": {"compress_level": 3}}}
"""This compression level makes files a fifth larger, and drawing a picture takes a tenth less time."""


_collected: ContextVar[list[Figure] | None] = ContextVar("collected", default=None)


@contextmanager
def collect_figures() -> Iterator[list[Figure]]:
    """Yield a list. Figures drawn in the block are appended to it and not saved."""
    figures: list[Figure] = []
    token = _collected.set(figures)
    try:
        yield figures
    finally:
        _collected.reset(token)


def png(figure: Figure) -> bytes:
    """Return a figure as a PNG file."""
    with mpl.rc_context(RC):  # type: ignore[arg-type]
        _save(figure, content := BytesIO(), ".png")
    return content.getvalue()


def _save(figure: Figure, file: Path | BytesIO, suffix: str) -> None:
    figure.savefig(file, format=suffix[1:], metadata=METADATA[suffix], **SAVE_OPTIONS.get(suffix, {}))


@contextmanager
def figure(width_in: float, height_in: float, path: str | Path, constrained: bool = True) -> Iterator[Figure]:
    """Yield a figure in the project's style, and save it at `path` when the block ends.

    In a block of `collect_figures`, the figure is not saved. `constrained`: matplotlib arranges all labels, which needs
    a second layout pass. Raises `InputError` for an unknown suffix, or if the file cannot be written.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError("picture", str(path), f"the name must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    with mpl.rc_context(RC):  # type: ignore[arg-type]  # its keys are a Literal of 300 names
        figure = Figure(
            figsize=(width_in, height_in), dpi=DPI, layout="constrained" if constrained else None, facecolor="white"
        )
        FigureCanvasAgg(figure)
        yield figure
        if (figures := _collected.get()) is not None:
            figures.append(figure)
            return
        with files.output(path, "the picture") as temporary:
            _save(figure, temporary, suffix)


def line(look: SeriesStyle) -> dict[str, Any]:
    """Return the style of a series as a line."""
    line_style: dict[str, Any] = {"color": look.colour, "linestyle": (0, look.dash) if look.dash else "-"}
    return line_style | (dot(look) | {"markersize": 4, "markevery": 0.11} if look.marked else {})


def dot(look: SeriesStyle) -> dict[str, Any]:
    """Return the style of a series' markers, for dots alone or on a line."""
    face = look.colour if look.filled else "white"
    return {
        "color": look.colour,
        "marker": MARKERS[look.shape],
        "markerfacecolor": face,
        "markeredgecolor": look.colour,
    }


def box(look: SeriesStyle) -> dict[str, Any]:
    """Return the style of a box, also for its legend; its median is drawn separately."""
    return {"facecolor": f"{look.colour}59", "edgecolor": look.colour, "hatch": look.hatch, "linewidth": 1.2}


def legend_right(axes: Axes, max_entries: int = 11) -> None:
    """Draw the legend to the right of a panel, in columns of at most `max_entries` entries."""
    handles, names = axes.get_legend_handles_labels()
    if handles:
        axes.legend(handles, names, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0,
                    ncols=-(-len(names) // max_entries), columnspacing=1.2)  # fmt: skip


def panels_in_rows(count: int, width_in: float) -> tuple[int, int]:
    """Return (rows, columns) of panels of this width, so that a picture is not wider than `MAX_WIDTH_IN`."""
    max_columns = max(1, int(MAX_WIDTH_IN / width_in))
    rows = -(-count // max_columns)
    return rows, -(-count // rows)


NodeLayer: TypeAlias = tuple[str, str]
"""A node and a layer."""


class LayerShade(NamedTuple):
    """The colour and hatch of a node's layer."""

    colour: str
    hatch: str


def shades(node_layers: Sequence[NodeLayer]) -> dict[NodeLayer, LayerShade]:
    """Return a shade per node and layer: a hue per node, from dark to light in the order of its layers, with a hatch
    if two nodes share a hue."""
    nodes = list(dict.fromkeys(node for node, _ in node_layers))
    layer_shades = {}
    for number, node in enumerate(nodes):
        layers_of_node = [node_layer for node_layer in node_layers if node_layer[0] == node]
        hue = np.array(to_rgb(NODE_HUES[number % len(NODE_HUES)]))
        for step, node_layer in enumerate(layers_of_node):
            lightness = 0.72 * step / max(1, len(layers_of_node) - 1) if len(layers_of_node) > 1 else 0.0
            hatch = HATCHES[(number // len(NODE_HUES) - 1) % len(HATCHES)] * 2 if number >= len(NODE_HUES) else ""
            layer_shades[node_layer] = LayerShade(to_hex(tuple(hue + (1 - hue) * lightness)), hatch)
    return layer_shades


def show_whole_run(axes: Axes, run: Recording) -> None:
    """Let the time axis span the whole run, or one second if the run has no length."""
    axes.set_xlim(0, run.end_ns / NS_PER_S or 1)


def wants_log(values: npt.ArrayLike) -> bool:
    """Return whether the positive values span too much for a linear axis."""
    sample = np.asarray(values, dtype=np.float64)
    sample = sample[np.isfinite(sample) & (sample > 0)]
    return bool(sample.size) and float(sample.max() / sample.min()) > LOG_SPAN


def log_y(axes: Axes) -> None:
    """Make the y axis logarithmic, with plain numbers at 1, 2 and 5."""
    axes.set_yscale("log")
    _plain_numbers(axes.yaxis, (1, 2, 5))


def log_x(axes: Axes) -> None:
    """Make the x axis logarithmic, with plain numbers at 1 and 3: more would overlap."""
    axes.set_xscale("log")
    _plain_numbers(axes.xaxis, (1, 3))


def candle(axes: Axes, x: float, half_width: float, figures: tuple[float, float, float], look: SeriesStyle) -> None:
    """Draw a box from the first to the last of three figures, with a line at the middle one."""
    low, middle, high = figures
    corner, width, height = (x - half_width, low), 2 * half_width, high - low
    axes.add_patch(Rectangle(corner, width, height, **box(look)))
    axes.plot([x - half_width, x + half_width], [middle, middle], color=INK, linewidth=2, solid_capstyle="butt")


BOLD_EM = 0.66
"""The mean width of a bold letter, in font sizes."""


def headline(figure: Figure, text: str) -> None:
    """Draw the title of a picture with several panels, smaller if it is long."""
    size = min(11.0, 72 * figure.get_figwidth() / (BOLD_EM * max(1, len(text))))
    figure.suptitle(text, x=0.01, ha="left", fontsize=size, fontweight="bold")


def caption(figure: Figure | SubFigure, text: str) -> None:
    """Draw the explanation of a picture's symbols below it, wrapped to its width."""
    letters = int(figure.bbox.width / figure.get_dpi() / 0.068)
    figure.supxlabel("\n".join(wrap(text, letters)), fontsize=7.5, color=MUTED, x=0.995, ha="right")


def name_slots(axes: Axes, names: Sequence[str], slot_in: float) -> None:
    """Draw names below the positions 0, 1, … in slots `slot_in` wide. Each key has a line; long lines are slanted."""
    name_ticks(axes, range(len(names)), names, slot_in)
    axes.set_xlim(-0.6, len(names) - 0.4)


def name_ticks(axes: Axes, positions: Sequence[float], names: Sequence[str], slot_in: float) -> None:
    """Draw names below the x axis: horizontal if they fit, otherwise slanted, otherwise vertical."""
    wrapped = wrapped_names(names, slot_in)
    axes.set_xticks(list(positions), wrapped, fontsize=8)
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    if min_slot_in(names) > slot_in:
        lines = max(name.count("\n") + 1 for name in wrapped)
        crowded = any(", " in line for line in wrapped)
        angle = 30 if slot_in / 2 >= LABEL_LINE_IN * lines and not crowded else 90
        for label in axes.get_xticklabels():
            label.set(rotation=angle, ha="right", va="center" if angle == 90 else "top", rotation_mode="anchor")


def wrapped_names(names: Sequence[str], slot_in: float) -> list[str]:
    """Return names with line breaks between their terms. If the slot is too narrow, a line has several terms."""
    max_lines = max(1, int(slot_in / LABEL_LINE_IN))
    return ["\n".join(_fill(name.split(", "), max_lines)) for name in names]


def vertical_names_in(names: Sequence[str], slot_in: float) -> float:
    """Return the height of names that are written vertically, inches."""
    return 0.075 * max(len(line) for name in wrapped_names(names, slot_in) for line in name.split("\n"))


def _fill(terms: Sequence[str], max_lines: int) -> list[str]:
    """Return the terms in at most `max_lines` lines, with the longest line as short as possible."""
    if len(terms) <= max_lines:
        return list(terms)
    for letters in count(max(map(len, terms))):
        lines = [terms[0]]
        for term in terms[1:]:
            joined = f"{lines[-1]}, {term}"
            lines[-1:] = [joined] if len(joined) <= letters else [lines[-1], term]
        if len(lines) <= max_lines:
            return lines
    raise AssertionError("unreachable")


def legend_above(figure: Figure | SubFigure, names: Sequence[str], handles: Sequence[Any]) -> None:
    """Draw a legend above all panels, with as many columns as fit."""
    columns = _columns(names, figure.bbox.width / figure.get_dpi())
    figure.legend(handles, names, loc="outside upper left", ncols=columns)


def legend_height_in(names: Sequence[str], width_in: float) -> float:
    """Return the height of a legend above the panels, inches."""
    return 0.1 + LEGEND_LINE_IN * -(-len(names) // _columns(names, width_in))


def legend_width_in(names: Sequence[str]) -> float:
    """Return the width of a legend of one column, inches."""
    return 0.6 + 0.08 * max(map(len, names), default=1)


def _columns(names: Sequence[str], width_in: float) -> int:
    return max(1, min(len(names), int(width_in / legend_width_in(names))))


def min_slot_in(names: Sequence[str]) -> float:
    """Return the width of a slot in which every name fits horizontally with one key a line, inches."""
    return max(
        0.7, 0.15 + 0.075 * max(len(line_text) for name in names for line_text in name.replace(", ", "\n").split("\n"))
    )


def _plain_numbers(axis: Axis, subs: tuple[int, ...]) -> None:
    axis.set_major_locator(LogLocator(base=10, subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
