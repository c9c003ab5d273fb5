# SPDX-License-Identifier: Apache-2.0
"""Where the time goes over the time of one run: the mean of TCP data per node and layer, stacked, each 200 ms or so.

A step's mean is of all packets that ended in it, exactly: differences of the probe's sums. The stack is as high as the
mean way of a packet took, also where not all pass the same nodes.
"""

from pathlib import Path

import numpy as np
import polars as pl

from hourglass.contract.probe import LAYER_COLUMNS, LAYERS
from hourglass.errors import InputError
from hourglass.plots import marks, style
from hourglass.plots.style import Place
from hourglass.results.frames import of
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_MS, NS_PER_S, loaded_window
from hourglass.results.stats import Floats

SMALL = 0.01
"""Places with a smaller share of the whole are drawn together, as "other"."""


def layers(run: Recording, path: Path) -> None:
    """Draws the run into `path` (.png or .svg). Raises `InputError` when its flows have no layer times."""
    t_s, means = steps_ms(run)
    if not means:
        raise InputError("RUN", str(run.path), "its flows have no layer times: no probe, or no flows")
    whole = sum(float(values.sum()) for values in means.values())
    big = [place for place, values in means.items() if values.sum() >= SMALL * whole]
    colours = style.shades(big)
    drawn = {place: means[place] for place in big}
    rest = [values for place, values in means.items() if place not in drawn]
    with style.figure(9, 4.2, path) as figure:
        axes = figure.add_subplot()
        stack = [*drawn.values(), *([np.sum(rest, axis=0)] if rest else [])]
        names = [*(" ".join(place) for place in big), *(["other"] if rest else [])]
        shades = [*colours.values(), style.Shade("#B8B8B8", "")][: len(stack)]
        axes.stackplot(t_s, stack, labels=names, colors=[shade.colour for shade in shades],
                       hatch=[shade.hatch for shade in shades], linewidth=0)  # fmt: skip
        axes.set_xlim(t_s[0], t_s[-1])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("test time (s)")
        marks.mark([axes], run, numbered=False)
        axes.set_ylabel("mean time of a data packet (ms)")
        axes.set_title(f"Where the time goes  ·  {run.name}  ·  Linux {run.info.kernel.release}")
        handles, texts = axes.get_legend_handles_labels()
        axes.legend(handles[::-1], texts[::-1], loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)


def steps_ms(run: Recording) -> tuple[Floats, dict[Place, Floats]]:
    """(ends of the steps in s, mean ms in each step by node and layer, in path order); steps without packets: 0."""
    window = run.layer_totals.filter(loaded_window(run).holds())
    flows = window.filter(pl.col("data") & of(*run.flows))
    instants = window.select(pl.col("t_ns").unique().sort())
    sums = flows.group_by("node", "t_ns").agg(pl.col(*LAYER_COLUMNS).sum().cast(pl.Int64)).sort("t_ns")
    ended = flows.group_by("stream", "way", "t_ns").agg(pl.col("packets").max().cast(pl.Int64))
    whole = instants.join(ended.group_by("t_ns").agg(pl.col("packets").sum()), on="t_ns", how="left").sort("t_ns")
    packets = np.maximum(np.diff(whole["packets"].fill_null(strategy="forward").fill_null(0).to_numpy()), 1)
    t_ns = instants["t_ns"].cast(pl.Float64).to_numpy()
    found: dict[Place, Floats] = {}
    if t_ns.size < 2:
        return t_ns, found
    for node in run.path_order:
        mine = instants.join(sums.filter(pl.col("node") == node), on="t_ns", how="left", maintain_order="left")
        grown = mine.select(pl.col(*LAYER_COLUMNS).fill_null(strategy="forward").fill_null(0).diff().slice(1))
        for layer in LAYERS:
            values = grown[f"{layer}_ns"].to_numpy() / packets / NS_PER_MS
            if values.any():
                found[node, layer] = values
    return t_ns[1:] / NS_PER_S, found
