# SPDX-License-Identifier: Apache-2.0
"""Finds where a Flent file contradicts itself, or lacks data: its figures are then doubtful, or cover less."""

from collections.abc import Iterator, Sequence

import numpy as np

from hourglass.flent.document import Document
from hourglass.flent.measurement import MeasuredSeries, Measurement, length_s, step_s
from hourglass.flent.raw_values import resample

NAMES_MAX = 4
"""The most names in a warning."""
SIMULTANEOUS = 0.8
"""The share of the time under load in which all flows run, below which their sum is no goodput of any time."""
DIFFERENCE = 0.1
"""The share of the median value by which points and steps may differ. Flent's own files have nearly 0."""


def contradictions(document: Document, measured: Measurement) -> Iterator[str]:
    """Yield a sentence for each."""
    if failed := document.metadata.failed_runners:
        yield f"{failed} of Flent's runners failed"
    if measured.empty:
        yield f"no data of {_listed(measured.empty)}: left out"
    if measured.displaced:
        yield (
            f"points of {_listed(measured.displaced)} lie outside the test, which lasts {length_s(document):g} s from"
            " T0: a tool ended late, or a clock was wrong"
        )
    if different := [series.name for series in measured.series if _differs(document, measured, series)]:
        yield f"points (raw_values) and steps (results) of {_listed(different)} differ: figures are those of the points"
    yield from _simultaneity(measured.of_kind("flow"))


def _listed(names: Sequence[str]) -> str:
    further = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {further} others" if further > 0 else "")


def _differs(document: Document, measured: Measurement, series: MeasuredSeries) -> bool:
    """Return whether the points, resampled as Flent does, are not the file's steps."""
    x_s = np.array(document.x_values) + measured.x0_s
    steps = document.results.get(series.name, [])
    resampled = resample([point for _, point in series.points], "val", x_s, step_s(document))
    pairs = np.array(
        [(point, step) for point, step in zip(resampled, steps, strict=False) if None not in (point, step)],
        dtype=np.float64,
    )
    if not pairs.size:
        return False
    difference = np.median(np.abs(pairs[:, 0] - pairs[:, 1]))
    return bool(difference > DIFFERENCE * np.median(np.abs(pairs), axis=0).max())


def _simultaneity(flows: Sequence[MeasuredSeries]) -> Iterator[str]:
    """Yield a sentence if the flows run at different times."""
    if not flows:
        return
    start_s, stop_s = min(flow.start_s for flow in flows), max(flow.stop_s for flow in flows)
    common_s = min(flow.stop_s for flow in flows) - max(flow.start_s for flow in flows)
    if common_s < SIMULTANEOUS * (stop_s - start_s):
        yield (
            f"all flows run at once for {max(0.0, common_s):.3g} s of the {stop_s - start_s:.3g} s under load: each"
            " flow's goodput covers its own time, and totals add these"
        )
