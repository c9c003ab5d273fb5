# SPDX-License-Identifier: Apache-2.0
"""Where the time goes: a stacked bar per run and kind of packet, a segment per node and layer, in path order.

A bar is as long as the mean time of a packet; its segments are the means of `layers_ms` and `ping_layers_ms`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch

from hourglass.contract.probe import LAYERS
from hourglass.contract.summary import Anatomy
from hourglass.errors import InputError
from hourglass.plots import style
from hourglass.plots.style import Place
from hourglass.results.anatomy import data_packets
from hourglass.results.recording import Recording
from hourglass.results.series import loaded_window
from hourglass.results.stats import short

SMALL = 0.01
"""Places with a smaller share in every bar are drawn together, as "other"; with a greater one where there are more than
`MOST_PLACES`."""
MOST_PLACES = 20
MOST_BARS = 60
"""Of more only the TCP data are drawn, if there are any."""
OTHER = ("", "other")
LABELLED, LETTER = 0.05, 0.0085
"""Segments at least this part of the axis carry their name and ms, if the letters, each so wide, have room in them."""
TCP_DATA = "TCP data"
NARROWEST_IN = 8.5
BAR_IN = 0.42


@dataclass(frozen=True)
class Bar:
    """One run's packets of a kind: mean ms per node and layer."""

    run: str
    kind: str
    ms: dict[Place, float]


def anatomy(runs: Sequence[Recording], labels: Sequence[str], path: Path) -> None:
    """Draws the runs' bars into `path` (.png or .svg). Raises `InputError` when no run has layer times."""
    made = bars(runs, labels)
    if not made:
        raise InputError("RUN", str(runs[0].path), "has no layer times: its kernel has no probe, or nothing was sent")
    alone = [bar for bar in made if bar.kind == TCP_DATA]
    shown = alone if len(made) > MOST_BARS and alone else made
    with style.figure(NARROWEST_IN, height_in(shown), path) as figure:
        draw(figure.add_subplot(), shown)
        if len(shown) < len(made):
            style.caption(figure, f"TCP data alone: {len(made)} bars with pings would be too many")


def bars(runs: Sequence[Recording], labels: Sequence[str]) -> list[Bar]:
    """TCP data and pings of each run, as far as it has them."""
    made = []
    for run, label in zip(runs, labels, strict=True):
        kinds = {TCP_DATA: run.summary.layers_ms}
        kinds |= {f"ping {name}": found for name, found in run.summary.ping_layers_ms.items()}
        for kind, found in kinds.items():
            if found:
                packets = data_packets(run, loaded_window(run)) if kind == TCP_DATA else None
                made.append(Bar(label, kind, _ms(found, packets)))
    return made


def _ms(found: Anatomy, packets: int | None) -> dict[Place, float]:
    """Mean ms of one of so many packets at each place: where not all pass a node, less than that of those that do."""
    return {
        (node, layer): figures.mean * (figures.n / packets if packets else 1)
        for node, layers in found.items()
        for layer, figures in layers.items()
    }


def height_in(made: Sequence[Bar]) -> float:
    """Inches that the bars and their legend need."""
    legend_rows = -(-len(_places(made)) // _columns(made))
    return 1.3 + BAR_IN * (len(made) + 0.5 * len({bar.run for bar in made})) + 0.2 * legend_rows


def _columns(made: Sequence[Bar]) -> int:
    """Of the legend: as many as the longest name leaves room for."""
    return max(1, int((NARROWEST_IN - 0.4) / (0.35 + 0.085 * max(len(" ".join(place)) for place in _places(made)))))


def draw(axes: Axes, made: Sequence[Bar]) -> None:
    """The bars, the first run at the top."""
    places = _places(made)
    colours = style.shades([place for place in places if place != OTHER]) | {OTHER: style.Shade("#B8B8B8", "")}
    longest = max(sum(bar.ms.values()) for bar in made)
    ticks: dict[float, str] = {}
    y, last = 0.0, made[0].run
    for bar in made:
        y += 1.0 if bar.run == last else 1.5
        last = bar.run
        _bar(axes, y, _grouped(bar, places), colours, longest)
        ticks[y] = f"{bar.run}\n{bar.kind}" if len({one.run for one in made}) > 1 else bar.kind
    axes.set_yticks(list(ticks), list(ticks.values()), linespacing=1.1, fontsize=8)
    axes.set_ylim(y + 0.6, 0.4)
    axes.set_xlim(0, longest * 1.12)
    axes.set_xlabel("mean time of a packet (ms)")
    axes.set_title("Where the time goes")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    handles = [Patch(label=" ".join(place).strip(), **face(colours[place])) for place in places]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, -0.55 / (height_in(made) - 1.2) - 0.02),
                ncols=_columns(made), handlelength=1, handleheight=1, columnspacing=1.2, handletextpad=0.4)  # fmt: skip


def _places(made: Sequence[Bar]) -> list[Place]:
    """Node and layer of what has a segment of its own, in path order; `OTHER` last if anything is left."""
    nodes = list(dict.fromkeys(node for bar in made for node, _ in bar.ms))
    every = [(node, layer) for node in nodes for layer in LAYERS if any((node, layer) in bar.ms for bar in made)]
    share = {place: max(bar.ms.get(place, 0) / (sum(bar.ms.values()) or 1) for bar in made) for place in every}
    least = max([SMALL, *sorted(share.values(), reverse=True)[MOST_PLACES - 1 : MOST_PLACES]])
    big = [place for place in every if share[place] >= least]
    return [*big, *([OTHER] if len(big) < len(every) else [])]


def _grouped(bar: Bar, places: Sequence[Place]) -> dict[Place, float]:
    own = {place: bar.ms[place] for place in places if place in bar.ms}
    return own | {OTHER: sum(bar.ms.values()) - sum(own.values())}


def _bar(axes: Axes, y: float, ms: dict[Place, float], colours: dict[Place, style.Shade], longest: float) -> None:
    left = 0.0
    for place, width in ms.items():
        if width <= 0:
            continue
        axes.barh(y, width, left=left, height=0.72, **face(colours[place]))
        text = f"{' '.join(place).strip()} {short(width)}"
        if width >= max(LABELLED, LETTER * len(text)) * longest:
            axes.text(left + width / 2, y, text, ha="center", va="center", fontsize=7.5, clip_on=True,
                      color=_ink_on(colours[place].colour))  # fmt: skip
        left += width
    axes.text(left + 0.008 * longest, y, short(left), va="center", fontsize=8, fontweight="bold")


def face(shade: style.Shade) -> dict[str, Any]:
    """A segment with a white rim."""
    return {"facecolor": shade.colour, "hatch": shade.hatch, "edgecolor": "white", "linewidth": 0.6}


def _ink_on(colour: str) -> str:
    """White on dark, ink on light (relative luminance of ITU-R BT.709)."""
    red, green, blue = to_rgb(colour)
    return "white" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.45 else style.INK
