# SPDX-License-Identifier: Apache-2.0
"""Draws the time by layer over one run: the mean of TCP data per node and layer, stacked, about every 200 ms.

The mean of a step covers exactly the packets that ended in it: it is a difference of the probe's sums. The height of
the stack is the mean time of a packet, even if packets pass different nodes.
"""

from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from hourglass.contract.probe import LAYER_COLUMNS, LAYERS
from hourglass.errors import InputError
from hourglass.plots import event_marks, style
from hourglass.plots.style import NodeLayer
from hourglass.results.connections import largest
from hourglass.results.frames import belongs_to
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_MS, NS_PER_S, loaded_window
from hourglass.results.stats import Floats

SMALL = 0.01
"""The least share of a layer; smaller ones are drawn together as "other"."""
MOST_PANELS = 4
"""The most panels for programs' connections: those with the most payload."""


def layers(run: Recording, path: Path) -> None:
    """Draw the run into `path` (.png or .svg): all flows together, or a panel for each of the largest programs'
    connections. Raises `InputError` if they have no layer times."""
    panels_data = [("", *steps_ms(run, belongs_to(*run.flows)))] if run.flows else []
    for connection in () if panels_data else largest(run.connections, MOST_PANELS):
        direction = "up" if connection.upload else "down"
        panels_data.append((connection.name, *steps_ms(run, belongs_to(connection) & (pl.col("way") == direction))))
    panels_data = [panel for panel in panels_data if panel[-1]]
    if not panels_data:
        raise InputError("RUN", str(run.path), "has no layer times of data: no probe, or no flows or connections")
    height_in = 3.8 if len(panels_data) == 1 else 2.6
    with style.figure(9, 0.4 + height_in * len(panels_data), path) as figure:
        panels = figure.subplots(len(panels_data), 1, sharex=True, squeeze=False)[:, 0]
        shades = style.shades(
            list(dict.fromkeys(node_layer for _, _, means in panels_data for node_layer in _large_layers(means)))
        )
        for axes, (name, t_s, means) in zip(panels, panels_data, strict=True):
            _stack(axes, t_s, means, shades)
            axes.set_title(name, fontsize=9)
        start_s = min(t_s[0] for _, t_s, _ in panels_data)
        panels[-1].set_xlim(start_s, max(t_s[-1] for _, t_s, _ in panels_data))
        panels[-1].set_xlabel("test time (s)")
        event_marks.mark(list(panels), run, numbered=False)
        count_note = f"  ·  {len(panels_data)} of {len(run.connections)} connections" if not run.flows else ""
        style.headline(figure, f"Time by layer  ·  {run.name}  ·  Linux {run.info.kernel.release}{count_note}")


def _large_layers(means: dict[NodeLayer, Floats]) -> list[NodeLayer]:
    total = sum(float(np.nansum(values)) for values in means.values())
    return [node_layer for node_layer, values in means.items() if np.nansum(values) >= SMALL * total]


def _stack(axes: Axes, t_s: Floats, means: dict[NodeLayer, Floats], shades: dict[NodeLayer, style.LayerShade]) -> None:
    """Draw a panel; small layers are drawn together, and steps without a delivery are shaded."""
    large = _large_layers(means)
    small = [values for node_layer, values in means.items() if node_layer not in large]
    stack = [*(means[node_layer] for node_layer in large), *([np.sum(small, axis=0)] if small else [])]
    names = [*(" ".join(node_layer) for node_layer in large), *(["other"] if small else [])]
    looks = [*(shades[node_layer] for node_layer in large), *([style.LayerShade("#B8B8B8", "")] if small else [])]
    axes.stackplot(t_s, stack, labels=names, colors=[shade.colour for shade in looks],
                   hatch=[shade.hatch for shade in looks], linewidth=0)  # fmt: skip
    for number, (start_s, end_s) in enumerate(gaps(t_s, stack[0])):
        axes.axvspan(start_s, end_s, facecolor=style.SHADE, edgecolor=style.MUTED, hatch="///", linewidth=0,
                     label="_" if number else "nothing delivered")  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.set_ylabel("mean time of a data packet (ms)", fontsize=8)
    handles, texts = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], texts[::-1], loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, fontsize=8)


def gaps(t_s: Floats, values: Floats) -> list[tuple[float, float]]:
    """Return (start, end) in s of the gaps: from the last value before each to the first after it."""
    empty = np.flatnonzero(np.isnan(values))
    runs = np.split(empty, np.flatnonzero(np.diff(empty) > 1) + 1) if empty.size else []
    last = len(t_s) - 1
    return [(float(t_s[max(run[0] - 1, 0)]), float(t_s[min(run[-1] + 1, last)])) for run in runs]


def steps_ms(run: Recording, rows_filter: pl.Expr) -> tuple[Floats, dict[NodeLayer, Floats]]:
    """Return (ends of the steps in s, mean ms in each step by node and layer, in path order) for these rows' data
    packets. Steps without a packet have NaN; steps before the first packet and after the last are omitted."""
    window = run.layer_totals.filter(loaded_window(run).contains())
    selected = window.filter(pl.col("data") & rows_filter)
    instants = window.select(pl.col("t_ns").unique().sort())
    sums = selected.group_by("node", "t_ns").agg(pl.col(*LAYER_COLUMNS).sum().cast(pl.Int64)).sort("t_ns")
    ended = selected.group_by("stream", "way", "t_ns").agg(pl.col("packets").max().cast(pl.Int64))
    packets_at = instants.join(ended.group_by("t_ns").agg(pl.col("packets").sum()), on="t_ns", how="left").sort("t_ns")
    packets = np.diff(packets_at["packets"].fill_null(strategy="forward").fill_null(0).to_numpy())
    t_ns = instants["t_ns"].cast(pl.Float64).to_numpy()
    steps_with_packets = np.flatnonzero(packets)
    if not steps_with_packets.size:
        return t_ns, {}
    covered = slice(steps_with_packets[0], steps_with_packets[-1] + 1)
    divisor = np.where(packets > 0, packets, np.nan)
    means: dict[NodeLayer, Floats] = {}
    for node in run.path_order:
        rows = instants.join(sums.filter(pl.col("node") == node), on="t_ns", how="left", maintain_order="left")
        grown = rows.select(pl.col(*LAYER_COLUMNS).fill_null(strategy="forward").fill_null(0).diff().slice(1))
        for layer in LAYERS:
            values = grown[f"{layer}_ns"].to_numpy()
            if values.any():
                means[node, layer] = (values / divisor / NS_PER_MS)[covered]
    return t_ns[1:][covered] / NS_PER_S, means
