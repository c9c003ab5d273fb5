# SPDX-License-Identifier: Apache-2.0
"""Draws the time by layer: a stacked bar per run and kind of packet, a segment per node and layer, in path order.

The length of a bar is the mean time of a packet. Its segments are the means of `layers_ms`, `connection_layers_ms` and
`ping_layers_ms`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch

from hourglass.contract.probe import LAYERS
from hourglass.contract.summary import Anatomy
from hourglass.errors import InputError
from hourglass.plots import style
from hourglass.plots.style import NodeLayer
from hourglass.results.anatomy import data_packets
from hourglass.results.recording import Recording
from hourglass.results.series import loaded_window
from hourglass.results.stats import short

SMALL = 0.01
"""The least share of a segment in any bar; smaller segments are drawn together as "other". The limit is higher if there
are more than `MOST_PLACES`."""
MOST_PLACES = 20
MOST_BARS = 60
"""With more bars, only those of TCP data are drawn, if any exist."""
OTHER = ("", "other")
LABELLED_SHARE, LETTER_IN = 0.05, 0.062
"""The least share of the axis for a segment with a label, and the width of a letter: the label must fit."""
NAME_LETTERS = 44
"""The longest line of a run's name."""
TCP_DATA = "TCP data"
NARROWEST_IN = 8.5
BAR_IN = 0.42


@dataclass(frozen=True)
class AnatomyBar:
    """A run's packets of a kind: mean ms per node and layer."""

    run: str
    kind: str
    ms: dict[NodeLayer, float]


def anatomy(runs: Sequence[Recording], labels: Sequence[str], path: Path) -> None:
    """Draw the runs' bars into `path` (.png or .svg). Raises `InputError` if no run has layer times."""
    all_bars = bars(runs, labels)
    if not all_bars:
        raise InputError("RUN", str(runs[0].path), "has no layer times: its kernel has no probe, or no data was sent")
    tcp_bars = [bar for bar in all_bars if bar.kind == TCP_DATA]
    drawn = tcp_bars if len(all_bars) > MOST_BARS and tcp_bars else all_bars
    with style.figure(NARROWEST_IN, height_in(drawn), path) as figure:
        draw(figure.add_subplot(), drawn)
        if len(drawn) < len(all_bars):
            style.caption(figure, f"Only TCP data: {len(all_bars)} bars with pings would be too many")


def bars(runs: Sequence[Recording], labels: Sequence[str]) -> list[AnatomyBar]:
    """Return the bars of each run's TCP data, programs' connections and pings."""
    run_bars = []
    for run, label in zip(runs, labels, strict=True):
        kinds = {TCP_DATA: run.summary.layers_ms}
        kinds |= run.summary.connection_layers_ms
        kinds |= {f"ping {name}": anatomy_of_ping for name, anatomy_of_ping in run.summary.ping_layers_ms.items()}
        for kind, anatomy in kinds.items():
            if anatomy:
                packets = data_packets(run, loaded_window(run)) if kind == TCP_DATA else None
                if kind in run.summary.connection_layers_ms:
                    packets = max(figures.n for layers in anatomy.values() for figures in layers.values())
                run_bars.append(AnatomyBar(label, kind, _ms(anatomy, packets)))
    return run_bars


def _ms(node_layers: Anatomy, packets: int | None) -> dict[NodeLayer, float]:
    """Return the mean ms at each node and layer over all packets, including those that did not pass the node."""
    return {
        (node, layer): figures.mean * (figures.n / packets if packets else 1)
        for node, layers in node_layers.items()
        for layer, figures in layers.items()
    }


def height_in(bar_list: Sequence[AnatomyBar]) -> float:
    """Return the height of the bars and their legend, inches."""
    legend_rows = -(-len(_segments(bar_list)) // _columns(bar_list))
    return 1.3 + BAR_IN * (len(bar_list) + 0.5 * len({bar.run for bar in bar_list})) + 0.2 * legend_rows


def _columns(bar_list: Sequence[AnatomyBar]) -> int:
    """Return the number of columns of the legend."""
    return max(
        1, int((NARROWEST_IN - 0.4) / (0.35 + 0.085 * max(len(" ".join(place)) for place in _segments(bar_list))))
    )


def draw(axes: Axes, bar_list: Sequence[AnatomyBar]) -> None:
    """Draw the bars, with the first run at the top."""
    segments = _segments(bar_list)
    colours = style.shades([segment for segment in segments if segment != OTHER]) | {
        OTHER: style.LayerShade("#B8B8B8", "")
    }
    longest = max(sum(bar.ms.values()) for bar in bar_list)
    names = {bar.run: fill(bar.run, NAME_LETTERS, break_long_words=False) for bar in bar_list}
    several = len(names) > 1
    name_lines = [bar.kind for bar in bar_list] + [
        line for name in names.values() for line in name.split("\n") if several
    ]
    letter_share = LETTER_IN / (NARROWEST_IN - 0.6 - LETTER_IN * max(map(len, name_lines)))
    ticks: dict[float, str] = {}
    y, previous_run = 0.0, bar_list[0].run
    for bar in bar_list:
        y += 1.0 if bar.run == previous_run else 1.5
        previous_run = bar.run
        _bar(axes, y, _with_other(bar, segments), colours, longest, letter_share)
        ticks[y] = f"{names[bar.run]}\n{bar.kind}" if several else bar.kind
    axes.set_yticks(list(ticks), list(ticks.values()), linespacing=1.1, fontsize=8)
    axes.set_ylim(y + 0.6, 0.4)
    axes.set_xlim(0, longest * 1.12)
    axes.set_xlabel("mean time of a packet (ms)")
    axes.set_title("Time by layer")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    handles = [Patch(label=" ".join(segment).strip(), **face(colours[segment])) for segment in segments]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, -0.55 / (height_in(bar_list) - 1.2) - 0.02),
                ncols=_columns(bar_list), handlelength=1, handleheight=1, columnspacing=1.2,
                handletextpad=0.4)  # fmt: skip


def _segments(bar_list: Sequence[AnatomyBar]) -> list[NodeLayer]:
    """Return the nodes and layers that have a segment, in path order, and `OTHER` last if others remain."""
    nodes = list(dict.fromkeys(node for bar in bar_list for node, _ in bar.ms))
    all_segments = [
        (node, layer) for node in nodes for layer in LAYERS if any((node, layer) in bar.ms for bar in bar_list)
    ]
    share = {
        segment: max(bar.ms.get(segment, 0) / (sum(bar.ms.values()) or 1) for bar in bar_list)
        for segment in all_segments
    }
    smallest_share = max([SMALL, *sorted(share.values(), reverse=True)[MOST_PLACES - 1 : MOST_PLACES]])
    big = [segment for segment in all_segments if share[segment] >= smallest_share]
    return [*big, *([OTHER] if len(big) < len(all_segments) else [])]


def _with_other(bar: AnatomyBar, segments: Sequence[NodeLayer]) -> dict[NodeLayer, float]:
    largest = {segment: bar.ms[segment] for segment in segments if segment in bar.ms}
    return largest | {OTHER: sum(bar.ms.values()) - sum(largest.values())}


def _bar(
    axes: Axes,
    y: float,
    ms: dict[NodeLayer, float],
    colours: dict[NodeLayer, style.LayerShade],
    longest: float,
    letter_share: float,
) -> None:
    left = 0.0
    for segment, width in ms.items():
        if width <= 0:
            continue
        axes.barh(y, width, left=left, height=0.72, **face(colours[segment]))
        text = f"{' '.join(segment).strip()} {short(width)}"
        if width >= max(LABELLED_SHARE, letter_share * len(text)) * longest:
            axes.text(left + width / 2, y, text, ha="center", va="center", fontsize=7.5, clip_on=True,
                      color=_ink_on(colours[segment].colour))  # fmt: skip
        left += width
    axes.text(left + 0.008 * longest, y, short(left), va="center", fontsize=8, fontweight="bold")


def face(shade: style.LayerShade) -> dict[str, Any]:
    """Return the style of a segment with a white rim."""
    return {"facecolor": shade.colour, "hatch": shade.hatch, "edgecolor": "white", "linewidth": 0.6}


def _ink_on(colour: str) -> str:
    """Return the text colour: white on dark, ink on light (relative luminance of ITU-R BT.709)."""
    red, green, blue = to_rgb(colour)
    return "white" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.45 else style.INK
