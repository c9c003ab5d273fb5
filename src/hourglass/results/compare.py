# SPDX-License-Identifier: Apache-2.0
"""Holds runs against the first of them: figures side by side, differences in %, and which differences are significant.

A run is exact, so what remains uncertain is how far its loaded window stands for longer ones. That is asked by a block
bootstrap (`bootstrap`): neighbouring samples depend on each other, so whole 1 s blocks of the window are drawn, from
both runs. A difference is significant when the 95 % interval of the drawn differences excludes 0. Fixed seed: the
same runs give the same marks.

`BLOCK_S` is longer than a congestion-control cycle of most paths here, and leaves 30 blocks in the usual window.

Between different tests nothing is significant: what differs there is the load.

Left out: tail percentiles and counts carry no mark; too few samples of one window stand behind them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hourglass.contract.figures import Figure, figures
from hourglass.contract.probe import LAYERS
from hourglass.contract.summary import Anatomy
from hourglass.results.bootstrap import Statistic, draws, interval, statistic_of
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, Series, goodput_total, loaded_window, ping_ms, tcp_rtt_ms
from hourglass.results.stats import Floats, known_sum, percent, rounded
from hourglass.results.traffic import KINDS as TRAFFIC

BLOCK_S = 1.0
SEED = 1

Known = dict[str, Figure]
"""The figures of a run's summary by their names."""


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
    name: str
    """That of `figures`; "" of what is reckoned here."""
    unit: str
    cells: list[Cell]


@dataclass(frozen=True)
class Told:
    """A figure of one run: its value, or the samples of the window of which it is the `statistic`."""

    figure: str
    name: str
    unit: str
    value: float | None = None
    samples: Series | None = None
    statistic: Statistic = "median"


def compare(runs: Sequence[Recording]) -> list[Row]:
    """The figures of all runs that at least one of them has, in a fixed order."""
    known = [{figure.name: figure for figure in figures(run.summary)} for run in runs]
    rows = [
        row
        for kind in KINDS
        for row in _rows(runs, [{one.figure: one for one in kind(*each)} for each in zip(runs, known, strict=True)])
    ]
    rows += _rows(runs, _layers(runs))
    return [row for row in rows if any(cell.value is not None for cell in row.cells)]


def _rows(runs: Sequence[Recording], told: Sequence[dict[str, Told]]) -> Iterator[Row]:
    """A row for each figure that some run tells."""
    for figure in dict.fromkeys(figure for found in told for figure in found):
        each = [found.get(figure) for found in told]
        known = next(one for one in each if one is not None)
        sampled = any(one is not None and one.samples is not None for one in each)
        cells = _sampled(runs, each, known.statistic) if sampled else _plain(each)
        yield Row(figure, known.name, known.unit, cells)


def _plain(each: Sequence[Told | None]) -> list[Cell]:
    """Figures without intervals."""
    first, *others = [one.value if one else None for one in each]
    return [Cell(first), *(Cell(value, change_percent(value, first)) for value in others)]


def _sampled(runs: Sequence[Recording], each: Sequence[Told | None], statistic: Statistic) -> list[Cell]:
    """Figures with the interval of each difference from the first run's."""
    parts = [_blocks(run, one.samples if one else None) for run, one in zip(runs, each, strict=True)]
    pooled = [np.concatenate(blocks) if blocks else np.empty(0) for blocks in parts]
    values = [rounded(statistic_of(values, statistic)) if values.size else None for values in pooled]
    first = draws(parts[0], statistic, SEED)
    cells = [Cell(values[0])]
    for run, value, blocks in zip(runs[1:], values[1:], parts[1:], strict=True):
        between = interval(first, draws(blocks, statistic, SEED + 1)) if run.test.name == runs[0].test.name else None
        cells.append(Cell(value, change_percent(value, values[0]), between))
    return cells


def _told(known: Known, figure: str, name: str, samples: Series | None = None, statistic: Statistic = "median") -> Told:
    """A figure of the summary."""
    found = known[name]
    return Told(figure, name, found.unit, found.value, samples, statistic)


def _there(series: Series) -> Series:
    """The samples that are not NaN."""
    known = ~np.isnan(series.values)
    return Series(series.t_s[known], series.values[known])


def _flows(run: Recording, known: Known) -> Iterator[Told]:
    window = loaded_window(run)
    for way, upload in (("upload", True), ("download", False)):
        flows = [flow for flow in run.flows if flow.upload == upload]
        samples = goodput_total(run, flows, window) if flows else None
        yield Told(f"{way} goodput", f"totals.{way}_mbps", "Mbit/s", samples=samples, statistic="mean")
    yield _told(known, "upload fairness", "totals.upload_fairness")
    yield _told(known, "download fairness", "totals.download_fairness")
    if run.flows:
        retransmits = known_sum([flow.retransmits for flow in run.summary.flows])
        yield Told("retransmits", "", "segments", retransmits)
    yield _told(known, "TCP RTT p50", "tcp_rtt.p50", tcp_rtt_ms(run).within(window))
    yield _told(known, "TCP RTT p99", "tcp_rtt.p99")


def _pings(run: Recording, known: Known) -> Iterator[Told]:
    for ping in run.pings:
        figure, name = f"ping {ping.name}", f"ping.{ping.name}"
        yield _told(known, f"{figure} p50", f"{name}.p50", _there(ping_ms(run, ping).within(loaded_window(run))))
        yield _told(known, f"{figure} p99", f"{name}.p99")
        yield _told(known, f"{figure} lost", f"{name}.lost")


def _traffic(part: str, run: Recording, known: Known) -> Iterator[Told]:
    """What is sent beside flows and pings, of one kind."""
    kind = TRAFFIC[part]
    for stream in run.of(kind.model):
        for words, figure in kind.compared.items():
            name = f"{part}.{stream.name}.{figure}"
            if name in known:
                median = figure.endswith(".p50")
                samples = _there(kind.series(run, stream).within(loaded_window(run))) if median else None
                yield _told(known, f"{stream.name} {words}", name, samples)


def _ecn(run: Recording, known: Known) -> Iterator[Told]:
    for stream in run.summary.ecn:
        yield _told(known, f"{stream} CE", f"ecn.{stream}.ce_percent")


def _radios(run: Recording, known: Known) -> Iterator[Told]:
    """A radio's mean aggregate, its air time, and how much of what it sent was not acknowledged or was sent again."""
    for node, devices in run.summary.wifi.items():
        for device, one in devices.items():
            name = f"wifi.{node}.{device}"
            yield _told(known, f"{node} aggregate", f"{name}.subframes.mean")
            yield _told(known, f"{node} air", f"{name}.air_percent")
            yield Told(f"{node} not acknowledged", "", "%", percent(one.not_acked, one.ppdus))
            yield Told(f"{node} retried", "", "%", percent(one.retries, one.mpdus))


def _connections(run: Recording, known: Known) -> Iterator[Told]:
    """What programs opened, without what carried little."""
    whole = sum(one.bytes for one in run.connections)
    for one in run.connections:
        if one.bytes >= SHARE * whole:
            way = "up" if one.upload else "down"
            yield _told(known, f"{one.name} {way}", f"connections.{one.name}.{way}_mbps")
            yield _told(known, f"{one.name} retransmits", f"connections.{one.name}.retransmits")
            yield _told(known, f"{one.name} RTT p50", f"connections.{one.name}.tcp_rtt.p50")


KINDS: tuple[Callable[[Recording, Known], Iterator[Told]], ...] = (
    _flows, _pings, *(partial(_traffic, part) for part in TRAFFIC), _connections, _ecn, _radios,
)  # fmt: skip
SHARE = 0.01
"""A layer has a row when it has at least this share of the mean time of some run's TCP data; a connection of programs,
of the run's payload."""


def _layers(runs: Sequence[Recording]) -> list[dict[str, Told]]:
    """Of each run the mean time of TCP data in the layers that matter to any, in the order of the path."""
    anatomies = [run.summary.layers_ms for run in runs]
    shares = {
        (node, layer): max((found[node][layer].share for found in anatomies if layer in found.get(node, {})), default=0)
        for node in dict.fromkeys(node for found in anatomies for node in found)
        for layer in LAYERS
    }
    places = [place for place, share in shares.items() if share >= SHARE]
    return [{told.figure: told for told in (_layer(found, *place) for place in places)} for found in anatomies]


def _layer(anatomy: Anatomy, node: str, layer: str) -> Told:
    return Told(f"{node} {layer}", f"layers.{node}.{layer}.mean", "ms", _mean_ms(anatomy, node, layer))


def _mean_ms(anatomy: Anatomy, node: str, layer: str) -> float | None:
    """Whole us: a change in % of a few ns says nothing. None without any anatomy."""
    if not anatomy:
        return None
    found = anatomy.get(node, {}).get(layer)
    return round(found.mean, 3) if found else 0.0


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
