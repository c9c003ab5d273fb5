# SPDX-License-Identifier: Apache-2.0
"""Holds runs against the first of them: figures side by side, differences in %, and which differences are significant.

A run is exact, so what remains uncertain is how far its loaded window stands for longer ones. That is asked by a block
bootstrap (`bootstrap`): neighbouring samples depend on each other, so whole 1 s blocks of the window are drawn, from
both runs. A difference is significant when the 95 % interval of the drawn differences excludes 0. Fixed seed: the
same runs give the same marks.

`BLOCK_S` is longer than a congestion-control cycle of most paths here, and leaves 30 blocks in the usual window.

Left out: tail percentiles and counts carry no mark; too few samples of one window stand behind them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hourglass.contract.probe import LAYERS
from hourglass.results.bootstrap import Statistic, draws, interval, statistic_of
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, Series, goodput_total, loaded_window, ping_ms, tcp_rtt_ms
from hourglass.results.stats import Floats, known_sum, percent, rounded
from hourglass.results.traffic import delays_ms, times_ms

BLOCK_S = 1.0
SEED = 1


@dataclass(frozen=True)
class Cell:
    """One figure of one run. `interval` is the 95 % interval of (this run - first run), in the figure's unit."""

    value: float | None
    change_percent: float | None = None
    interval: tuple[float, float] | None = None

    @property
    def significant(self) -> bool:
        return self.interval is not None and not self.interval[0] <= 0 <= self.interval[1]


@dataclass(frozen=True)
class Row:
    """One figure over all runs; the first cell is the one the others are compared with."""

    figure: str
    unit: str
    cells: list[Cell]


def compare(runs: list[Recording]) -> list[Row]:
    """The figures of all runs that at least one of them has, in a fixed order."""
    rows = [
        _row(runs, "upload goodput", "Mbit/s", lambda run: _goodput(run, True), "mean"),
        _row(runs, "download goodput", "Mbit/s", lambda run: _goodput(run, False), "mean"),
        _plain(runs, "fairness", "", lambda run: run.summary.data()["totals"]["fairness"]),
        _plain(runs, "retransmits", "segments", _retransmits),
        _row(runs, "TCP RTT p50", "ms", lambda run: tcp_rtt_ms(run).within(loaded_window(run)), "median"),
        _plain(runs, "TCP RTT p99", "ms", lambda run: run.summary.data()["tcp_rtt_ms"]["p99"]),
    ]
    for probe in dict.fromkeys(ping.name for run in runs for ping in run.pings):
        rows += _ping_rows(runs, probe)
    rows += _traffic_rows(runs)
    rows += _wifi_rows(runs)
    rows += _layer_rows(runs)
    return [row for row in rows if any(cell.value is not None for cell in row.cells)]


def _ping_rows(runs: list[Recording], probe: str) -> list[Row]:
    def figure(key: str) -> Callable[[Recording], float | None]:
        return lambda run: run.summary.data()["ping_ms"].get(probe, {}).get(key)

    return [
        _row(runs, f"ping {probe} p50", "ms", lambda run: _answered(run, probe), "median"),
        _plain(runs, f"ping {probe} p99", "ms", figure("p99")),
        _plain(runs, f"ping {probe} lost", "packets", figure("lost")),
    ]


def _traffic_rows(runs: list[Recording]) -> list[Row]:
    """One-way streams and fetches: medians, tails, losses, and how a call sounds."""

    def figure(kind: str, name: str, *keys: str) -> Callable[[Recording], float | None]:
        def value(run: Recording) -> float | None:
            found: Any = next((one for one in run.summary.data()[kind] if one["id"] == name), {})
            for key in keys:
                found = (found or {}).get(key)
            return found  # type: ignore[no-any-return]

        return value

    def named(kind: str) -> dict[str, None]:
        return dict.fromkeys(one["id"] for run in runs for one in run.summary.data()[kind])

    rows = []
    for name in named("datagrams"):
        rows += [
            _plain(runs, f"{name} goodput", "Mbit/s", figure("datagrams", name, "goodput_mbps")),
            _row(runs, f"{name} one way p50", "ms", lambda run, name=name: _one_way(run, name), "median"),  # type: ignore[misc]
            _plain(runs, f"{name} one way p99", "ms", figure("datagrams", name, "owd_ms", "p99")),
            _plain(runs, f"{name} jitter", "ms", figure("datagrams", name, "jitter_ms")),
            _plain(runs, f"{name} lost", "packets", figure("datagrams", name, "lost")),
            _plain(runs, f"{name} MOS", "", figure("datagrams", name, "mos")),
        ]
    for name in named("fetches"):
        rows += [
            _row(runs, f"{name} done p50", "ms", lambda run, name=name: _fetched(run, name), "median"),  # type: ignore[misc]
            _plain(runs, f"{name} done p99", "ms", figure("fetches", name, "done_ms", "p99")),
            _plain(runs, f"{name} unfinished", "fetches", figure("fetches", name, "unfinished")),
        ]
    return rows


def _one_way(run: Recording, name: str) -> Series | None:
    """The delays of the packets of a stream that arrived in the window, ms; None when the run has no such stream."""
    found = [one for one in run.datagrams if one.name == name]
    return _there(delays_ms(run, found[0]).within(loaded_window(run))) if found else None


def _fetched(run: Recording, name: str) -> Series | None:
    """The completion times of a client's fetches in the window, ms; None when the run has no such client."""
    found = [one for one in run.fetches if one.name == name]
    return _there(times_ms(run, found[0]).within(loaded_window(run))) if found else None


def _there(series: Series) -> Series:
    known = ~np.isnan(series.values)
    return Series(series.t_s[known], series.values[known])


def _wifi_rows(runs: list[Recording]) -> list[Row]:
    """A radio's mean aggregate, its air time, and how many of its transmissions collided."""

    def figure(
        node: str, device: str, take: Callable[[dict[str, Any]], float | None]
    ) -> Callable[[Recording], float | None]:
        def value(run: Recording) -> float | None:
            figures = run.summary.data()["wifi"].get(node, {}).get(device)
            return take(figures) if figures else None

        return value

    def per_cent(part: str, whole: str) -> Callable[[dict[str, Any]], float | None]:
        return lambda figures: percent(figures[part], figures[whole])

    rows = []
    radios = [
        (node, device) for run in runs for node, devices in run.summary.data()["wifi"].items() for device in devices
    ]
    for node, device in dict.fromkeys(radios):
        rows += [
            _plain(runs, f"{node} aggregate", "MPDUs", figure(node, device, lambda one: one["subframes"]["mean"])),
            _plain(runs, f"{node} air", "%", figure(node, device, lambda one: one["air_percent"])),
            _plain(runs, f"{node} collisions", "%", figure(node, device, per_cent("collisions", "ppdus"))),
            _plain(runs, f"{node} retries", "%", figure(node, device, per_cent("retries", "mpdus"))),
        ]
    return rows


SHARE = 0.01
"""A layer has a row when it has at least this share of the mean time of some run's TCP data."""


def _layer_rows(runs: list[Recording]) -> list[Row]:
    """The mean time of TCP data in each layer that matters, in the order of the path."""

    def layer_ms(run: Recording, node: str, layer: str) -> float | None:
        anatomy = run.summary.data()["layers_ms"]
        mean: float = (anatomy.get(node, {}).get(layer, {}).get("mean")) or 0.0
        return round(mean, 3) if anatomy else None  # whole us: a change in % of a few ns says nothing

    nodes = dict.fromkeys(node for run in runs for node in run.summary.data()["layers_ms"])
    shares = [
        {(node, layer): figures["share"] for node in found for layer, figures in found[node].items()}
        for found in (run.summary.data()["layers_ms"] for run in runs)
    ]
    return [
        _plain(runs, f"{node} {layer}", "ms", lambda run, node=node, layer=layer: layer_ms(run, node, layer))  # type: ignore[misc]
        for node in nodes
        for layer in LAYERS
        if any(one.get((node, layer), 0) >= SHARE for one in shares)
    ]


def _goodput(run: Recording, upload: bool) -> Series | None:
    flows = [flow for flow in run.flows if flow.upload == upload]
    return goodput_total(run, flows, loaded_window(run)) if flows else None


def _retransmits(run: Recording) -> int | None:
    flows = run.summary.data()["flows"]
    return known_sum([flow["retransmits"] for flow in flows]) if flows else None


def _answered(run: Recording, probe: str) -> Series | None:
    """The window's answered pings of a probe, ms; None when the run has no such probe."""
    found = [one for one in run.pings if one.name == probe]
    return _there(ping_ms(run, found[0]).within(loaded_window(run))) if found else None


def _plain(runs: list[Recording], figure: str, unit: str, value: Callable[[Recording], float | None]) -> Row:
    """A row of figures without intervals."""
    values = [value(run) for run in runs]
    return Row(
        figure, unit, [Cell(each, change_percent(each, values[0]) if i else None) for i, each in enumerate(values)]
    )


def _row(
    runs: list[Recording], figure: str, unit: str, series: Callable[[Recording], Series | None], statistic: Statistic
) -> Row:
    """A row of figures with the interval of each difference from the first run's."""
    parts = [_blocks(run, series(run)) for run in runs]
    pooled = [np.concatenate(blocks) if blocks else np.empty(0) for blocks in parts]
    values = [rounded(statistic_of(values, statistic)) if values.size else None for values in pooled]
    cells = [Cell(values[0])]
    first = draws(parts[0], statistic, SEED)
    for value, blocks in zip(values[1:], parts[1:], strict=True):
        cells.append(Cell(value, change_percent(value, values[0]), interval(first, draws(blocks, statistic, SEED + 1))))
    return Row(figure, unit, cells)


def change_percent(value: float | None, base: float | None) -> float | None:
    """Difference from `base` in percent of it; none from a base of 0, unless both are."""
    if value is None or base is None:
        return None
    if value == base:
        return 0.0
    return rounded((value - base) / base * 100) if base else None


def _blocks(run: Recording, series: Series | None) -> list[Floats]:
    """The samples of a series in consecutive `BLOCK_S` blocks from the window's start; empty blocks are left out."""
    if series is None or series.values.size == 0:
        return []
    start_s = loaded_window(run).start_ns / NS_PER_S
    order = np.argsort(series.t_s, kind="stable")
    index = np.floor((series.t_s[order] - start_s) / BLOCK_S)
    return np.split(series.values[order], np.flatnonzero(np.diff(index)) + 1)
