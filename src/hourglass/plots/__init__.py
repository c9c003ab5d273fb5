# SPDX-License-Identifier: Apache-2.0
"""Draws runs as pictures (PNG, SVG or PDF by suffix). Knows figures and samples of runs, never how a run was made.

`style` has the look and saves files, `event_marks` marks events of the test, `pooled_samples` collects the samples of
several runs. `picture_kinds` lists all kinds of pictures; each kind has a file of its name: `candlestick` in the form
of the papers, `timeseries` for one run, `scatter`, `cdf`, `box`, `fairness`; `anatomy` for the time by layer, `layers`
for the same over time, `queues` for queues, TCP Small Queues and cwnd. `sweep_overview` draws a grid of runs.
Same runs, same bytes: no picture contains a time stamp or a random id.
"""

from hourglass.plots.anatomy import anatomy
from hourglass.plots.candlestick import candlestick
from hourglass.plots.layers import layers
from hourglass.plots.picture_kinds import KINDS, draw
from hourglass.plots.queues import queues
from hourglass.plots.sweep_overview import sweep
from hourglass.plots.timeseries import timeseries

__all__ = ["KINDS", "anatomy", "candlestick", "draw", "layers", "queues", "sweep", "timeseries"]
