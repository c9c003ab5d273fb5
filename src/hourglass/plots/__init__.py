# SPDX-License-Identifier: Apache-2.0
"""Runs → pictures (PNG or SVG by suffix). Knows figures and samples of runs, never how a run was made.

`style` is the look and the saving, `candlestick` compares runs in the form of the papers, `timeseries` shows one run.
Same runs, same bytes: no picture holds a time stamp or a random id.
"""

from hourglass.plots.candlestick import candlestick
from hourglass.plots.timeseries import timeseries

__all__ = ["candlestick", "timeseries"]
