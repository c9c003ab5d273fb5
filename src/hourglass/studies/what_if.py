# SPDX-License-Identifier: Apache-2.0
"""`explain`: say where a run's latency comes from, and try what would change it.

The what-if runs change one key each, on the run's scenario with its seed and two more, in a guest. The figures are the
goodput of all flows and the times of the slowest ping, call or request. Without these, the times are the flows' own
round trips. The intervals are bootstrapped over blocks of 1 s of all seeds (`results/intervals.py`).

The best change has the largest gain: the mean logarithm of the ratios of p50 and p99 over all streams, less that of the
goodput. A halved goodput outweighs a halved latency. If the best change moves the bottleneck, it is tried together with
those that its run suggests there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hourglass import files, scenario
from hourglass.api import recordings
from hourglass.errors import InputError
from hourglass.results.compare import blocks_of
from hourglass.results.explain import Explanation, explanation_of
from hourglass.results.intervals import Statistic, draws, excludes_zero, interval, statistic_of
from hourglass.results.recording import Recording
from hourglass.results.run_directory import open_run
from hourglass.results.run_files import RUNS_FOLDER
from hourglass.results.series import Series, goodput_total, loaded_window, ping_ms, tcp_rtt_ms
from hourglass.results.stats import Floats, rounded
from hourglass.results.traffic import KINDS, goodput_steps
from hourglass.scenario import Scenario
from hourglass.studies.cells import GridCell
from hourglass.studies.grid import SEED as SEED_KEY
from hourglass.studies.grid import Grid
from hourglass.studies.knobs import SENDERS, Knob, knobs
from hourglass.studies.runs import SilentStudy, StudyProgress, make, planned
from hourglass.studies.store import Store
from hourglass.studies.study import STUDIES

FURTHER_SEEDS = 2
GOODPUT = "goodput"
RTT = "TCP RTT"
DRAW_SEED = 1


@dataclass(frozen=True)
class Difference:
    """A figure without and with a change. `interval`: 95 % of the difference; None with too few blocks."""

    before: float
    after: float
    interval: tuple[float, float] | None

    @property
    def significant(self) -> bool:
        """Tell if the interval excludes 0."""
        return excludes_zero(self.interval)


@dataclass(frozen=True)
class WhatIf:
    """A change and its effect; without an effect, the reason why it could not be tried. `gain` ranks changes."""

    knob: Knob
    p50: Difference | None = None
    p99: Difference | None = None
    goodput: Difference | None = None
    gain: float = 0.0
    failure: str = ""

    @property
    def helps(self) -> bool:
        """Tell if it certainly lowers the latency, and is worth its goodput."""
        lower = [each for each in (self.p50, self.p99) if each and each.significant and each.after < each.before]
        return bool(lower) and self.gain > 0


@dataclass(frozen=True)
class RunAdvice:
    """The explanation of a run, the tried changes and the best of them. `reason`: why none was tried."""

    run: Recording
    explanation: Explanation
    seeds: tuple[int, ...] = ()
    changes: tuple[WhatIf, ...] = ()
    best: WhatIf | None = None
    reason: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the texts of the explanation's sentences."""
        return tuple(sentence.text for sentence in self.explanation.sentences)

    @property
    def table(self) -> pl.DataFrame:
        """Return the tried changes: a row each, with p50 and p99 in ms and the goodput in Mbit/s, before and after."""
        rows = []
        for change in self.changes:
            row: dict[str, Any] = {"change": change.knob.name, "reason": change.failure or change.knob.reason}
            for name, each in (("p50", change.p50), ("p99", change.p99), ("goodput", change.goodput)):
                row |= {f"{name}_before": each and each.before, f"{name}_after": each and each.after}
            rows.append(row | {"helps": change.helps})
        return pl.DataFrame(rows, infer_schema_length=None)

    def _repr_html_(self) -> str:
        texts = [*self.sentences, *self.explanation.missing, *filter(None, [self.reason])]
        listed = "".join(f"<li>{escape(text)}.</li>" for text in texts)
        return f"<ul>{listed}</ul>{self.table._repr_html_() if self.changes else ''}"


def explain(
    run: Recording | str | Path,
    *,
    what_if: bool = True,
    seeds: Sequence[int] = (),
    out: Path | None = None,
    jobs: int | None = None,
    force: bool = False,
    progress: StudyProgress | None = None,
) -> RunAdvice:
    """Return what limits a run, where its latency arises, and the effect of changes that may help.

    `what_if`: make runs. `seeds`: their seeds; default: the run's and two more. `out`: their folder; default: that of
    studies. `jobs`: processes, default one per CPU. `force`: make complete runs again. Raises `InputError`."""
    (recording,) = recordings(run)
    explanation = explanation_of(recording)
    if not what_if:
        return RunAdvice(recording, explanation)
    if recording.scenario is None:
        return RunAdvice(recording, explanation, reason="no runs: they need the scenario of a run of this version")
    candidates = knobs(explanation, recording.scenario)
    if not candidates:
        return RunAdvice(recording, explanation, reason="no runs: no known setting is about this limit")
    first = recording.info.seed or recording.scenario.seed
    chosen = tuple(seeds) or tuple(range(first, first + 1 + FURTHER_SEEDS))
    trials = _Trials(recording, chosen, out, jobs, force, progress or SilentStudy())
    effects = trials.effects(candidates)
    if best := _best(effects):
        effects += trials.effects(_further(best.knob, trials))
    return RunAdvice(recording, explanation, chosen, tuple(effects), _best(effects))


def _best(effects: list[WhatIf]) -> WhatIf | None:
    """Return the change that helps most."""
    return max((each for each in effects if each.helps), key=lambda each: each.gain, default=None)


def _further(knob: Knob, trials: "_Trials") -> list[Knob]:
    """Return a change with those that its own run suggests for a queue elsewhere: the bottleneck may have moved."""
    changed = trials.recording(knob)
    if changed is None or changed.scenario is None:
        return []
    return [
        Knob(f"{knob.name} and {other.name}", knob.settings | other.settings, other.place, other.reason)
        for other in knobs(explanation_of(changed), changed.scenario)
        if other.place not in (SENDERS, knob.place)
    ]


class _Trials:
    """The runs of a scenario with changes."""

    def __init__(
        self, run: Recording, seeds: tuple[int, ...], out: Path | None, jobs: int | None, force: bool,
        progress: StudyProgress,
    ) -> None:  # fmt: skip
        assert run.scenario is not None
        self.run, self.scenario, self.seeds = run, run.scenario, seeds
        folder = out or STUDIES
        self.store = Store(folder, "records", folder / RUNS_FOLDER)
        self.jobs, self.force, self.progress = jobs, force, progress
        self.before: dict[str, _Samples] | None = None
        self.first: dict[str, str] = {}
        """By change, the key of its run with the first seed."""

    def effects(self, changes: list[Knob]) -> list[WhatIf]:
        """Make the missing runs of all changes, as many at a time as there are CPUs, and compare them."""
        cells: list[list[GridCell]] = []
        refused: dict[str, str] = {}
        for knob in changes:
            try:
                cells.append(self._cells(knob.settings))
                self.first[knob.name] = cells[-1][0].key
            except InputError as error:
                refused[knob.name] = str(error)
                cells.append([])
        base = self._cells({})
        listed = [cell for group in (base, *cells) for cell in group]
        with self.store.locked(), files.writing(self.store.out, "the runs"):
            make(listed, self.store, jobs=self.jobs, force=self.force and self.before is None, progress=self.progress)
        if failures := [self.store.failure(cell.key) for cell in base if self.store.summary(cell.key) is None]:
            return [WhatIf(knob, failure=f"the scenario itself failed: {failures[0]}") for knob in changes]
        if self.before is None:
            self.before = self._samples(base)
        return [
            WhatIf(knob, failure=refused[knob.name]) if knob.name in refused else self._effect(knob, group)
            for knob, group in zip(changes, cells, strict=True)
        ]

    def recording(self, knob: Knob) -> Recording | None:
        """Return the run with a change and the first seed, if it is complete."""
        key = self.first.get(knob.name, "")
        return open_run(self.store.directory(key)) if key and self.store.done(key) else None

    def _cells(self, settings: dict[str, Any]) -> list[GridCell]:
        base: Scenario = scenario.load(self.scenario, list(settings.items()), folder=self.run.path)
        seeds = tuple({SEED_KEY: seed} for seed in self.seeds)
        grid = Grid(self.run.name, "", base, {}, (SEED_KEY,), seeds, folder=self.run.path)
        return planned(grid, progress=self.progress)

    def _effect(self, knob: Knob, group: list[GridCell]) -> WhatIf:
        if failures := [self.store.failure(cell.key) for cell in group if self.store.summary(cell.key) is None]:
            return WhatIf(knob, failure=failures[0] or "unknown reason")
        assert self.before is not None
        after = self._samples(group)
        before = {name: samples for name, samples in self.before.items() if name in after}
        streams = [name for name in before if name != GOODPUT]
        p50, p99 = (_difference(before, after, streams, statistic) for statistic in ("median", "p99"))
        goodput = _difference(before, after, [GOODPUT], "mean") if GOODPUT in before else None
        return WhatIf(knob, p50, p99, goodput, _gain(before, after, streams))

    def _samples(self, group: list[GridCell]) -> dict[str, "_Samples"]:
        """Return the samples of each stream, of all seeds."""
        parts: dict[str, list[Floats]] = {}
        for cell in group:
            run = open_run(self.store.directory(cell.key))
            for name, series in _series(run).items():
                parts.setdefault(name, []).extend(blocks_of(run, series.within(loaded_window(run))))
        return {name: _Samples(blocks) for name, blocks in parts.items() if blocks}


@dataclass(frozen=True)
class _Samples:
    """Samples in blocks of 1 s."""

    blocks: list[Floats]

    def value(self, statistic: Statistic) -> float:
        return statistic_of(np.concatenate(self.blocks), statistic)


def _series(run: Recording) -> dict[str, Series]:
    """Return the delays of the streams that feel the latency, or the flows' round trips, and the goodput."""
    delays = {ping.name: ping_ms(run, ping) for ping in run.pings}
    for kind in KINDS.values():
        delays |= {stream.name: kind.series(run, stream) for stream in run.of_kind(kind.model)}
    delays = {name: answered for name, series in delays.items() if (answered := _without_lost(series)).values.size}
    series = delays or {RTT: tcp_rtt_ms(run)}
    if run.flows:
        series[GOODPUT] = goodput_total(run, run.flows, loaded_window(run))
    elif run.datagrams:
        steps = [goodput_steps(run, stream, loaded_window(run)) for stream in run.datagrams]
        series[GOODPUT] = Series(steps[0].t_s, np.sum([each.values for each in steps], axis=0))
    return series


def _without_lost(series: Series) -> Series:
    finite = ~np.isnan(series.values)
    return Series(series.t_s[finite], series.values[finite])


def _difference(
    before: dict[str, _Samples], after: dict[str, _Samples], names: list[str], statistic: Statistic
) -> Difference | None:
    """Return the difference of the slowest stream's statistic; the slowest may be another stream after the change."""
    if not names:
        return None
    first, second = (max(samples[name].value(statistic) for name in names) for samples in (before, after))
    drawn = [
        [draws(samples[name].blocks, statistic, DRAW_SEED + number) for name in names]
        for number, samples in enumerate((before, after))
    ]
    if any(draw.size == 0 for side in drawn for draw in side):
        return Difference(rounded(first), rounded(second), None)
    low, high = (np.max(np.stack(side), axis=0) for side in drawn)
    return Difference(rounded(first), rounded(second), interval(low, high))


def _gain(before: dict[str, _Samples], after: dict[str, _Samples], streams: list[str]) -> float:
    """Return the mean log ratio of the streams' p50 and p99, less that of the goodput."""
    ratios = [
        log(before[name].value(statistic) / max(after[name].value(statistic), 1e-6))
        for name in streams for statistic in ("median", "p99") if before[name].value(statistic) > 0
    ]  # fmt: skip
    gain = sum(ratios) / len(ratios) if ratios else 0.0
    if GOODPUT in before and before[GOODPUT].value("mean") > 0:
        gain += log(max(after[GOODPUT].value("mean"), 1e-6) / before[GOODPUT].value("mean"))
    return rounded(gain)
