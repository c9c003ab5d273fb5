# SPDX-License-Identifier: Apache-2.0
"""Compare runs with the first of them, or each with its own reference: figures side by side, differences in %, and
which differences are significant.

A run is exact. The remaining question is whether its loaded window represents longer ones. A block bootstrap
(`intervals`) answers it: neighbouring samples depend on each other, so whole 1 s blocks of the window are drawn, from
both runs. A difference is significant if the 95 % interval of the drawn differences excludes 0. The seed is fixed: the
same runs give the same marks.

`BLOCK_S` is longer than a congestion-control cycle of most paths here, and gives 30 blocks in the usual window.

Between different tests nothing is significant: there, the load differs.

Tail percentiles and counts have no mark, because one window has too few samples of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hourglass.contract.figures import Figure, figures
from hourglass.contract.probe import LAYERS
from hourglass.contract.summary import Anatomy
from hourglass.results.intervals import Statistic, draws, excludes_zero, interval, statistic_of
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, Series, goodput_total, loaded_window, ping_ms, tcp_rtt_ms
from hourglass.results.stats import Floats, known_sum, percent, rounded
from hourglass.results.traffic import KINDS as TRAFFIC

BLOCK_S = 1.0
CACHED_RUNS = 10
"""The most compared runs whose tables stay in memory."""
SEED = 1

FiguresByName = dict[str, Figure]
"""Return the figures of a run's summary by their names."""


@dataclass(frozen=True)
class ComparisonCell:
    """One figure of one run. `interval` is the 95 % interval of (this run - reference), in the figure's unit."""

    value: float | None
    change_percent: float | None = None
    interval: tuple[float, float] | None = None

    @property
    def significant(self) -> bool:
        return excludes_zero(self.interval)


@dataclass(frozen=True)
class ComparisonRow:
    """One figure over all runs; each is compared with its reference."""

    figure: str
    name: str
    """The name in `figures`; "" for a figure that is computed here."""
    unit: str
    cells: list[ComparisonCell]


@dataclass(frozen=True)
class SampledFigure:
    """A figure of one run. Without a value, it is the `statistic` of the samples of the window."""

    figure: str
    name: str
    unit: str
    value: float | None = None
    samples: Series | None = None
    statistic: Statistic = "median"


Sampled = list[dict[str, SampledFigure]]
"""The figures of a run by name, for each kind."""


def compare(
    runs: Sequence[Recording], references: Sequence[int] | None = None, sampled: Sequence[Sampled] | None = None
) -> list[ComparisonRow]:
    """Return the figures that at least one of the runs has, in a fixed order. `references`: the index of the run with
    which each is compared; default: the first. `sampled`: the `sampled_figures` of each run, if they are known."""
    references = references or [0] * len(runs)
    sampled = sampled or [sampled_figures(run, keep=len(runs) <= CACHED_RUNS) for run in runs]
    rows = [row for kind in zip(*sampled, strict=True) for row in _rows(runs, kind, references)]
    rows += _rows(runs, _layers(runs), references)
    return [row for row in rows if any(cell.value is not None for cell in row.cells)]


def sampled_figures(run: Recording, keep: bool = True) -> Sampled:
    """Return the figures of a run by kind. Without `keep` the run releases its tables."""
    by_name = {figure.name: figure for figure in figures(run.summary)}
    sampled = [{figure.figure: figure for figure in kind(run, by_name)} for kind in KINDS]
    if not keep:
        run.forget()
    return sampled


def _rows(
    runs: Sequence[Recording], figures_by_run: Sequence[dict[str, SampledFigure]], references: Sequence[int]
) -> Iterator[ComparisonRow]:
    """Return a row for each figure that at least one run has."""
    for figure in dict.fromkeys(figure for run_figures in figures_by_run for figure in run_figures):
        per_run = [run_figures.get(figure) for run_figures in figures_by_run]
        example = next(candidate for candidate in per_run if candidate is not None)
        sampled = any(candidate is not None and candidate.samples is not None for candidate in per_run)
        cells = _sampled(runs, per_run, example.statistic, references) if sampled else _plain(per_run, references)
        yield ComparisonRow(figure, example.name, example.unit, cells)


def _plain(per_run: Sequence[SampledFigure | None], references: Sequence[int]) -> list[ComparisonCell]:
    """Return figures without intervals."""
    values = [sample.value if sample else None for sample in per_run]
    return [
        ComparisonCell(value) if index == reference else ComparisonCell(value, change_percent(value, values[reference]))
        for index, (value, reference) in enumerate(zip(values, references, strict=True))
    ]


def _sampled(
    runs: Sequence[Recording],
    per_run: Sequence[SampledFigure | None],
    statistic: Statistic,
    references: Sequence[int],
) -> list[ComparisonCell]:
    """Return figures with the interval of each difference from the reference's."""
    parts = [blocks_of(run, sample.samples if sample else None) for run, sample in zip(runs, per_run, strict=True)]
    pooled = [np.concatenate(blocks) if blocks else np.empty(0) for blocks in parts]
    values = [sample.value if sample else None for sample in per_run]
    values = [
        rounded(statistic_of(samples, statistic)) if value is None and samples.size else value
        for value, samples in zip(values, pooled, strict=True)
    ]
    drawn = {reference: draws(parts[reference], statistic, SEED) for reference in dict.fromkeys(references)}
    cells = []
    for index, (value, blocks, reference) in enumerate(zip(values, parts, references, strict=True)):
        if index == reference:
            cells.append(ComparisonCell(value))
            continue
        same_test = runs[index].test.name == runs[reference].test.name
        between = interval(drawn[reference], draws(blocks, statistic, SEED + 1)) if same_test else None
        cells.append(ComparisonCell(value, change_percent(value, values[reference]), between))
    return cells


def _summary_figure(
    by_name: FiguresByName, figure: str, name: str, samples: Series | None = None, statistic: Statistic = "median"
) -> SampledFigure:
    """Return a figure of the summary."""
    entry = by_name[name]
    return SampledFigure(figure, name, entry.unit, entry.value, samples, statistic)


def _without_nan(series: Series) -> Series:
    """Return the samples that are not NaN."""
    finite = ~np.isnan(series.values)
    return Series(series.t_s[finite], series.values[finite])


def _flows(run: Recording, by_name: FiguresByName) -> Iterator[SampledFigure]:
    window = loaded_window(run)
    for direction, upload in (("upload", True), ("download", False)):
        flows = [flow for flow in run.flows if flow.upload == upload]
        name = f"totals.{direction}_mbps"
        value = by_name[name].value if flows else None
        samples = goodput_total(run, flows, window) if flows else None
        yield SampledFigure(f"{direction} goodput", name, "Mbit/s", value, samples, "mean")
    yield _summary_figure(by_name, "upload fairness", "totals.upload_fairness")
    yield _summary_figure(by_name, "download fairness", "totals.download_fairness")
    if run.flows:
        retransmits = known_sum([flow.retransmits for flow in run.summary.flows])
        yield SampledFigure("retransmits", "", "segments", retransmits)
    yield _summary_figure(by_name, "TCP RTT p50", "tcp_rtt.p50", tcp_rtt_ms(run).within(window))
    yield _summary_figure(by_name, "TCP RTT p99", "tcp_rtt.p99")


def _pings(run: Recording, by_name: FiguresByName) -> Iterator[SampledFigure]:
    for ping in run.pings:
        figure, name = f"ping {ping.name}", f"ping.{ping.name}"
        yield _summary_figure(
            by_name, f"{figure} p50", f"{name}.p50", _without_nan(ping_ms(run, ping).within(loaded_window(run)))
        )
        yield _summary_figure(by_name, f"{figure} p99", f"{name}.p99")
        yield _summary_figure(by_name, f"{figure} lost", f"{name}.lost")


def _traffic(part: str, run: Recording, by_name: FiguresByName) -> Iterator[SampledFigure]:
    """Yield the figures of one kind of traffic other than flows and pings."""
    kind = TRAFFIC[part]
    for stream in run.of_kind(kind.model):
        for label, figure in kind.compared.items():
            name = f"{part}.{stream.name}.{figure}"
            if name in by_name:
                median = figure.endswith(".p50")
                samples = _without_nan(kind.series(run, stream).within(loaded_window(run))) if median else None
                yield _summary_figure(by_name, f"{stream.name} {label}", name, samples)


def _ecn(run: Recording, by_name: FiguresByName) -> Iterator[SampledFigure]:
    for stream in run.summary.ecn:
        yield _summary_figure(by_name, f"{stream} CE", f"ecn.{stream}.ce_percent")


def _radios(run: Recording, by_name: FiguresByName) -> Iterator[SampledFigure]:
    """Return a radio's mean aggregate, its air time, and the shares of unacknowledged and retried MPDUs."""
    for node, devices in run.summary.wifi.items():
        for device, radio in devices.items():
            name = f"wifi.{node}.{device}"
            yield _summary_figure(by_name, f"{node} aggregate", f"{name}.subframes.mean")
            yield _summary_figure(by_name, f"{node} air", f"{name}.air_percent")
            yield SampledFigure(f"{node} not acknowledged", "", "%", percent(radio.not_acked, radio.ppdus))
            yield SampledFigure(f"{node} retried", "", "%", percent(radio.retries, radio.mpdus))


def _connections(run: Recording, by_name: FiguresByName) -> Iterator[SampledFigure]:
    """Yield the figures of programs' connections, except small ones."""
    total = sum(connection.bytes for connection in run.connections)
    for connection in run.connections:
        if connection.bytes >= SHARE * total:
            direction = "up" if connection.upload else "down"
            yield _summary_figure(
                by_name, f"{connection.name} {direction}", f"connections.{connection.name}.{direction}_mbps"
            )
            yield _summary_figure(
                by_name, f"{connection.name} retransmits", f"connections.{connection.name}.retransmits"
            )
            yield _summary_figure(by_name, f"{connection.name} RTT p50", f"connections.{connection.name}.tcp_rtt.p50")


KINDS: tuple[Callable[[Recording, FiguresByName], Iterator[SampledFigure]], ...] = (
    _flows, _pings, *(partial(_traffic, part) for part in TRAFFIC), _connections, _ecn, _radios,
)  # fmt: skip
SHARE = 0.01
"""The share of the mean time of some run's TCP data from which a layer has a row; and a connection of programs, of
the run's payload."""


def _layers(runs: Sequence[Recording]) -> list[dict[str, SampledFigure]]:
    """Return for each run the mean time of TCP data in the layers that matter in any run, in the order of the path."""
    anatomies = [run.summary.layers_ms for run in runs]
    shares = {
        (node, layer): max(
            (anatomy[node][layer].share for anatomy in anatomies if layer in anatomy.get(node, {})), default=0
        )
        for node in dict.fromkeys(node for anatomy in anatomies for node in anatomy)
        for layer in LAYERS
    }
    positions = [position for position, share in shares.items() if share >= SHARE]
    return [
        {figure.figure: figure for figure in (_layer(anatomy, *position) for position in positions)}
        for anatomy in anatomies
    ]


def _layer(anatomy: Anatomy, node: str, layer: str) -> SampledFigure:
    return SampledFigure(f"{node} {layer}", f"layers.{node}.{layer}.mean", "ms", _mean_ms(anatomy, node, layer))


def _mean_ms(anatomy: Anatomy, node: str, layer: str) -> float | None:
    """Return whole us: a change of a few ns in % means nothing. None without any anatomy."""
    if not anatomy:
        return None
    entry = anatomy.get(node, {}).get(layer)
    return round(entry.mean, 3) if entry else 0.0


def change_percent(value: float | None, base: float | None) -> float | None:
    """Return the difference from `base` in percent; None from a base of 0, unless both are 0."""
    if value is None or base is None:
        return None
    if value == base:
        return 0.0
    return rounded((value - base) / base * 100) if base else None


def blocks_of(run: Recording, series: Series | None) -> list[Floats]:
    """Return the samples of a series in consecutive `BLOCK_S` blocks from the window's start, without empty blocks."""
    if series is None or series.values.size == 0:
        return []
    start_s = loaded_window(run).start_ns / NS_PER_S
    order = np.argsort(series.t_s, kind="stable")
    index = np.floor((series.t_s[order] - start_s) / BLOCK_S)
    return np.split(series.values[order], np.flatnonzero(np.diff(index)) + 1)
