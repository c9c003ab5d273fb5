# SPDX-License-Identifier: Apache-2.0
"""Builds the figures that the page computes for any window of a run: sums and histograms at the edges of short bins.

A window on the page begins and ends at edges. Rates, counts and mean times in layers follow from sums up to both edges.
A percentile comes from the histograms between them, whose buckets are 2 % wide, so its error is at most 1 %.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from hourglass.contract.probe import LAYER_COLUMNS, LAYERS
from hourglass.results.frames import belongs_to
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_MS, NS_PER_S, Series, loaded_window, payload_at, ping_ms, tcp_rtt_ms
from hourglass.results.stats import Floats, rounded
from hourglass.results.traffic import stream_series

BUCKETS_PER_E = 50
"""Buckets per factor e of a histogram."""
STEPS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Possible lengths of a bin."""
MOST_BINS = 250
LEAST_SHARE = 0.005
"""The least share of the packets' time of a layer that has a figure."""


def window_figures(run: Recording) -> dict[str, Any]:
    """Return the length of a bin (s) and the figures, each with its sums or histograms."""
    step_s = next((step for step in STEPS_S if run.end_ns / NS_PER_S / step <= MOST_BINS), STEPS_S[-1])
    bins = max(1, int(np.ceil(run.end_ns / NS_PER_S / step_s)))
    edges_ns: Floats = np.arange(bins + 1, dtype=np.float64) * (step_s * NS_PER_S)
    figures = [*_goodput(run, edges_ns), *_latencies(run, step_s, bins), *_layers(run, edges_ns)]
    return {"step": step_s, "figures": figures}


def _goodput(run: Recording, edges_ns: Floats) -> Iterator[dict[str, Any]]:
    for direction in ("upload", "download"):
        flows = [flow for flow in run.flows if flow.upload == (direction == "upload")]
        if flows:
            megabits = np.sum([payload_at(run, flow, edges_ns) for flow in flows], axis=0) * 8e-6
            yield {
                "name": f"{direction} goodput",
                "unit": "Mbit/s",
                "per_s": _integers(megabits * 1000),
                "factor": 1e-3,
            }
    counts = [count for flow in run.flows if (count := _retransmits(run, flow, edges_ns)) is not None]
    if counts:
        yield {"name": "retransmits", "unit": "segments", "count": _integers(np.sum(counts, axis=0))}


def _retransmits(run: Recording, flow: Any, edges_ns: Floats) -> Floats | None:
    t_ns, counts = run.sockets.samples(flow, True, "total_retrans")
    valid = ~np.isnan(counts)
    return _latest(t_ns[valid], counts[valid], edges_ns) if valid.any() else None


def _latest(t_ns: Floats, values: Floats, edges_ns: Floats) -> Floats:
    """Return the last value at or before each edge, 0 before the first."""
    return np.concatenate([[0.0], values])[np.searchsorted(t_ns, edges_ns, side="right")]


def _latencies(run: Recording, step_s: float, bins: int) -> Iterator[dict[str, Any]]:
    named: list[tuple[str, Series]] = [("TCP RTT", tcp_rtt_ms(run))] if run.flows else []
    named += [(f"ping {ping.name}", ping_ms(run, ping)) for ping in run.pings]
    named += [(name, series) for _, streams in stream_series(run) for name, series in streams.items()]
    for name, series in named:
        index = np.clip((series.t_s / step_s).astype(int), 0, bins - 1)
        lost = np.isnan(series.values)
        answered = ~lost & (series.values > 0)
        buckets = np.round(np.log(series.values[answered]) * BUCKETS_PER_E).astype(int)
        loaded = series.within(loaded_window(run)).values
        exact = [rounded(float(np.nanpercentile(loaded, share))) for share in (50, 99) if not np.isnan(loaded).all()]
        yield {"name": name, "unit": "ms", "histogram": _histograms(index[answered], buckets, bins), "exact": exact}
        if lost.any():
            counts = np.concatenate([[0], np.bincount(index[lost], minlength=bins).cumsum()])
            yield {"name": f"{name} lost", "unit": "packets", "count": _integers(counts)}


def _histograms(index: Any, buckets: Any, bins: int) -> list[list[int]]:
    """Return for each bin its buckets and their counts, in turns."""
    pairs, counts = np.unique(np.stack([index, buckets]), axis=1, return_counts=True)
    result: list[list[int]] = [[] for _ in range(bins)]
    for place, bucket, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
        result[place] += [bucket, count]
    return result


def _layers(run: Recording, edges_ns: Floats) -> Iterator[dict[str, Any]]:
    """Yield the mean time of a packet in each layer of each node: the flows' data, or the pings."""
    streams = run.flows or run.pings
    rows = run.layer_totals.filter(belongs_to(*streams) & (pl.col("data") if run.flows else pl.lit(True)))
    if rows.is_empty():
        return
    sums = {}
    for part in rows.sort("t_ns").partition_by("node", maintain_order=True):
        columns = {name: np.zeros(len(edges_ns)) for name in ("packets", *LAYER_COLUMNS)}
        for stream in part.partition_by("stream", "way", "data"):
            t_ns = stream["t_ns"].to_numpy().astype(np.float64)
            for name, total in columns.items():
                total += _latest(t_ns, stream[name].cast(pl.Float64).to_numpy(), edges_ns)
        sums[part["node"][0]] = columns
    spent = sum(columns[name][-1] for columns in sums.values() for name in LAYER_COLUMNS)
    for node in run.path_order:
        columns = sums.get(node, {})
        for layer, name in zip(LAYERS, LAYER_COLUMNS, strict=True):
            if columns and columns[name][-1] > LEAST_SHARE * spent:
                yield {"name": f"{node} {layer}", "unit": "ms", "mean": _integers(columns[name] / NS_PER_MS * 1000),
                       "of": _integers(columns["packets"]), "factor": 1e-3}  # fmt: skip


def _integers(values: Floats) -> list[int]:
    """Return the growth from edge to edge: small numbers keep the page small."""
    totals = np.rint(values).astype(np.int64)
    return [int(totals[0]), *np.diff(totals).tolist()]
