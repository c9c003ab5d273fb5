# SPDX-License-Identifier: Apache-2.0
"""Define claims, figures and the evidence they are judged by. A verdict is computed from runs, never written down."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from statistics import median
from typing import Any, Literal

import polars as pl

import hourglass
from hourglass.results.recording import Recording
from hourglass.studies.study import StudyResult
from papers.candles import Quantity
from papers.samples import mean_ping_ms

UP, DOWN = "upload_mbps", "download_mbps"
TCP, TCP_P90, PING = "tcp_rtt_p50_ms", "tcp_rtt_p90_ms", "ping_icmp_p50_ms"
DROPS, RETRANSMITS = "drops_qdisc_packets", "retransmits_segments"
AGGREGATES, SENDER_QUEUE = "wifi_client_wlan0_subframes_mean_mpdus", "layers_client_qdisc_share"
COLUMNS = (UP, DOWN, TCP, TCP_P90, PING, DROPS, RETRANSMITS)
"""The figures that claims are about, by their names in the table of a study."""

VerdictWord = Literal["ok", "missed", "failed", "skipped"]
"""Those of `hourglass.studies`."""
Form = Literal["candles", "series", "table"]
Setting = dict[str, Any]
"""Values of axes by the last word of their key."""


@dataclass(frozen=True)
class View:
    """A view of runs: only those of some settings, a value of an axis for another, a ping's mean over the whole test
    for its median under load."""

    only: Setting = field(default_factory=dict)
    instead: Mapping[tuple[str, Any], Any] = field(default_factory=dict)
    whole_test: bool = False


@dataclass(frozen=True)
class Contrast:
    """A wrong setting for a claim: the runs of `other` instead of those of `value`, in the figure or, with `compared`,
    in those that it is compared with. `word`: the axis. `study`: takes the figure's runs from another study, one of its
    `needs`."""

    word: str
    value: Any
    other: Any
    compared: bool = False
    study: str = ""


@cache
def _mean_ping_ms(folder: Path) -> float:
    return mean_ping_ms(hourglass.load(folder))


class FailedRuns(LookupError):
    """All runs of a setting failed."""


class Evidence:
    """The runs of one figure. `where` names axes by the last word of their key: tsq="off", scenario="L100M".

    Of two keys with the same last word the shorter has it: "stack.tsq" and not "stack.client.tsq".
    The table has kernels by their release, as 5.10.262-hourglass; here "5.10" finds them too.
    """

    def __init__(
        self,
        result: StudyResult,
        compared: "Mapping[str, Evidence] | None" = None,
        view: "View | None" = None,
    ) -> None:
        self.result = result
        self.compared = compared or {}
        self.view = view or View()
        keys = sorted(result.grid.keys, key=len, reverse=True)
        self.short = {key.rsplit(".", 1)[-1]: key for key in keys}

    def key(self, word: str) -> str:
        """Return an axis by the last word of its key, or by all of it. Raises LookupError."""
        axis = self.short.get(word, word)
        if axis not in self.result.grid.keys:
            raise LookupError(f"no axis {word}")
        return axis

    def viewed(self, view: "View") -> "Evidence":
        """Return the same runs in another view, and those of compared figures. A figure ignores the settings of
        axes that it lacks."""
        compared = {name: evidence.viewed(view) for name, evidence in self.compared.items()}
        return Evidence(self.result, compared, view)

    def contrasted(self, contrast: Contrast) -> "Evidence":
        """Return the same runs in a wrong setting."""
        if contrast.study:
            return self.other(contrast.study).contrasted(replace(contrast, study=""))
        if contrast.compared:
            inner = replace(contrast, compared=False)
            compared = {name: evidence.contrasted(inner) for name, evidence in self.compared.items()}
            return Evidence(self.result, compared, self.view)
        other = self.view.instead.get((contrast.word, contrast.other), contrast.other)
        instead = {**self.view.instead, (contrast.word, contrast.value): other}
        return Evidence(self.result, self.compared, replace(self.view, instead=instead))

    def other(self, figure: str) -> "Evidence":
        """Return the runs of a compared figure. Raises LookupError."""
        if figure not in self.compared:
            raise LookupError(f"no runs of {figure}")
        return self.compared[figure]

    @cached_property
    def all_rows(self) -> pl.DataFrame:
        """The rows of all cells, complete and failed."""
        axes = {*self.short, *self.result.grid.keys}
        only = {word: value for word, value in self.view.only.items() if word in axes}
        return self._agreeing(self.result.table, only)

    @cached_property
    def table(self) -> pl.DataFrame:
        """The rows of complete runs."""
        return self.all_rows.filter(pl.col("status") == "done")

    def _agreeing(self, table: pl.DataFrame, where: Setting) -> pl.DataFrame:
        for word, original in where.items():
            value = self.view.instead.get((word, original), original)
            column = pl.col(self.key(word))
            agrees = column == value
            if word == "kernel":
                agrees |= column.str.starts_with(f"{value}.")
            table = table.filter(agrees)
        return table

    def rows(self, **where: Any) -> pl.DataFrame:
        """Return the complete runs of a setting. Raises LookupError."""
        table = self._agreeing(self.table, where)
        if table.is_empty():
            error = LookupError if self._agreeing(self.all_rows, where).is_empty() else FailedRuns
            raise error(f"no complete run with {where}")
        return table

    def each(self, column: str, **where: Any) -> list[float]:
        """Return the figure of each run of a setting: those of the seeds. Raises LookupError."""
        if column == PING and self.view.whole_test:
            return self.mean_pings_ms(**where)
        table = self.rows(**where)
        values = table[column].drop_nulls().to_list() if column in table.columns else []
        if not values:
            raise LookupError(f"the runs with {where} have no {column}")
        return [float(value) for value in values]

    def value(self, column: str, **where: Any) -> float:
        """Return the median over the seeds, and over all axes that `where` omits. Raises LookupError."""
        return float(median(self.each(column, **where)))

    def mean_pings_ms(self, **where: Any) -> list[float]:
        """Return the mean ping of each run over the whole test. Raises LookupError."""
        return [_mean_ping_ms(folder) for folder in self.folders(**where)]

    def folders(self, **where: Any) -> list[Path]:
        """Return the directories of the runs, in the order of their seeds. Raises LookupError."""
        return [self.result.runs / name for name in self.rows(**where)["run"]]

    def runs(self, **where: Any) -> list[Recording]:
        """Return the recordings, in the order of their seeds. Raises LookupError."""
        return [hourglass.load(folder) for folder in self.folders(**where)]

    def settings(self, *without: str) -> list[Setting]:
        """Return each combination of values of the axes, apart from the seed and `without`, in the file's order."""
        axes = [word for word, key in self.short.items() if key != "seed" and word not in without]
        axes.sort(key=lambda word: self.result.grid.keys.index(self.short[word]))
        return self.combinations(axes)

    def combinations(self, axes: Sequence[str]) -> list[Setting]:
        """Return each combination of values of some axes that has complete runs, in the file's order."""
        rows = self.table.select([self.key(word) for word in axes]).unique(maintain_order=True)
        return [dict(zip(axes, row, strict=True)) for row in rows.iter_rows()]

    def label(self, **where: Any) -> str:
        """Return the figure's label of these values."""
        names = (self.result.grid.label(self.key(word), value) for word, value in where.items())
        return ", ".join(name.removesuffix("-hourglass") for name in names if name)

    def values(self, word: str) -> list[Any]:
        """Return the values of an axis, in the file's order; without files of code, which only a view takes."""
        values = dict.fromkeys(self.all_rows[self.key(word)].to_list())
        return [value for value in values if "linux-4.14/" not in str(value)]


@dataclass(frozen=True)
class Finding:
    """A judged claim: if it holds by its tolerance, the measured figures, and the cause that the data show."""

    holds: bool
    measured: str
    mechanism: str = ""


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper. `tolerance`: the criterion of `judge` as text. `cause`: the reason why this testbed may
    miss it, "unknown" with the attempts; shown with a miss. `excluded`: the reason why it is not counted: the kernel's
    code, or the paper itself, contradicts it. The paper's own words are in quotes.py."""

    id: str
    sentence: str
    tolerance: str
    judge: Callable[[Evidence], Finding]
    cause: str = ""
    excluded: str = ""


@dataclass(frozen=True)
class Layout:
    """The arrangement of candles. Axes by the last word of their key: `groups` along the x axis, a series for each
    combination of those of `series`; panels for each value of `panel`, one for each quantity. `columns`: a column for
    each value of `panel`. `where` selects runs. `styles`: the series' numbers in the house's order of styles."""

    groups: str = "scenario"
    series: tuple[str, ...] = ("tsq",)
    panel: str = ""
    quantities: tuple[Quantity, ...] = ("tcp",)
    columns: bool = False
    where: tuple[tuple[str, Any], ...] = ()
    styles: tuple[int, ...] = ()


@dataclass(frozen=True)
class Unknown:
    """A setting that a paper does not state. All claims of a figure are judged again in `view`, which `label` names."""

    question: str
    label: str
    view: View


@dataclass(frozen=True)
class PaperFigure:
    """A figure: its study's file has its id as a name. One without claims is Hourglass's own comparison. `needs`:
    figures that its claims compare it with. `view`: the paper's testbed among the study's runs. `note`: explains
    surprising numbers."""

    id: str
    title: str
    form: Form
    claims: tuple[Claim, ...] = ()
    layout: Layout = Layout()
    needs: tuple[str, ...] = ()
    view: View = View()
    unknowns: tuple[Unknown, ...] = ()
    note: str = ""

    @property
    def group(self) -> str:
        """The paper, a or b, or else the page."""
        return self.id.split("-")[0].lower()


@dataclass(frozen=True)
class Verdict:
    """A judged claim. `setting`: the value of an unknown, empty for the testbed as it is."""

    figure: str
    claim: Claim
    word: VerdictWord
    measured: str
    reason: str
    setting: str = ""


def ratio(a: float, b: float) -> str:
    """Return "277 / 7.2 = 38.5"."""
    return f"{a:.3g} / {b:.3g} = {a / b:.3g}"


def spread(values: Sequence[float]) -> float:
    """Return the range of the seeds' values."""
    return max(values) - min(values)
