# SPDX-License-Identifier: Apache-2.0
"""Computes the figures along the path for the drawing of the testbed: carried rates, each node's part of the delay."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from hourglass.contract.summary import Anatomy, Summary
from hourglass.results.recording import Recording
from hourglass.results.series import loaded_window

LEAST_PERCENT = 1.0
"""The least part of the delay that is written."""
MOST_LAYERS = 3


@dataclass(frozen=True)
class PathFigures:
    """`rates_mbps`: by "node:device", what it sent under load. `shares`: by node its part of the delay of `packets`
    (%), and the layers with the largest parts as (name, %)."""

    rates_mbps: Mapping[str, float] = field(default_factory=dict)
    packets: str = ""
    shares: Mapping[str, tuple[float, list[tuple[str, float]]]] = field(default_factory=dict)

    def percent(self, node: str) -> float:
        """Return a node's part of the delay."""
        return self.shares.get(node, (0.0, []))[0]

    def lines(self, node: str) -> list[str]:
        """Return a node's part of the delay as lines."""
        percent, layers = self.shares.get(node, (0.0, []))
        if percent < LEAST_PERCENT:
            return []
        return [f"{percent:.0f} % of the delay", *(f"{layer} {part:.0f} %" for layer, part in layers)]


def path_figures(run: Recording) -> PathFigures:
    """Return the figures of a run."""
    packets, anatomy = _anatomy(run.summary)
    shares = {}
    for node, layers in anatomy.items():
        parts = sorted(((layer, 100 * figures.share) for layer, figures in layers.items()), key=lambda part: -part[1])
        largest = [part for part in parts[:MOST_LAYERS] if part[1] >= LEAST_PERCENT]
        shares[node] = (sum(percent for _, percent in parts), largest)
    return PathFigures(_rates_mbps(run), packets, shares)


def _anatomy(summary: Summary) -> tuple[str, Anatomy]:
    """Return the packets whose delay is divided: the flows' data, or else the first connection or ping with layers."""
    if summary.layers_ms:
        return "TCP data", summary.layers_ms
    anatomies = {
        **summary.connection_layers_ms,
        **{f"ping {name}": part for name, part in summary.ping_layers_ms.items()},
    }
    return next(((name, part) for name, part in anatomies.items() if part), ("", {}))


def _rates_mbps(run: Recording) -> dict[str, float]:
    """Return the mean rate that each device sent in the loaded window."""
    window = loaded_window(run)
    rates = {}
    rows = run.devices.filter(window.contains()).sort("t_ns")
    ends = rows.group_by("node", "device", maintain_order=True).agg(
        first=pl.col("tx_bytes").first(),
        last=pl.col("tx_bytes").last(),
        ns=pl.col("t_ns").last() - pl.col("t_ns").first(),
    )
    for node, device, first, last, ns in ends.iter_rows():
        if ns:
            rates[f"{node}:{device}"] = (last - first) * 8e3 / ns
    return rates
