# SPDX-License-Identifier: Apache-2.0
"""Runs → pictures (PNG, SVG or PDF by suffix). Knows figures and samples of runs, never how a run was made.

`style` is the look and the saving, `marks` what changed during the test, `samples` what pictures of several runs are
made of, `kinds` the table of all kinds of pictures; one file of its name draws each:
`candlestick` in the form of the papers, `timeseries` one run, `scatter`, `cdf`, `box`, `fairness`;
`anatomy` says where the time goes, `layers` the same over time, `queues` what queues, TCP Small Queues and cwnd do.
`sweep` shows a grid of runs, `paper` a figure of the papers. Same runs, same bytes: no picture holds a time stamp or a
random id.
"""

from hourglass.plots.anatomy import anatomy
from hourglass.plots.candlestick import candlestick
from hourglass.plots.kinds import KINDS, draw
from hourglass.plots.layers import layers
from hourglass.plots.queues import queues
from hourglass.plots.sweep import sweep
from hourglass.plots.timeseries import timeseries

__all__ = ["KINDS", "anatomy", "candlestick", "draw", "layers", "queues", "sweep", "timeseries"]
