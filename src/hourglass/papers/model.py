# SPDX-License-Identifier: Apache-2.0
"""What a claim is, and what there is to judge it by. A verdict is computed from runs, never written down."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import Any, Literal

import polars as pl

from hourglass.campaign.sweep import Result
from hourglass.papers.samples import mean_ping_ms
from hourglass.plots.paper import Quantity
from hourglass.results.opening import open_run
from hourglass.results.recording import Recording

UP, DOWN = "upload_mbps", "download_mbps"
TCP, PING = "tcp_rtt_p50_ms", "ping_icmp_p50_ms"
DROPS, RETRANSMITS = "drops_qdisc_packets", "retransmits_segments"
COLUMNS = (UP, DOWN, TCP, PING, DROPS, RETRANSMITS)
"""The figures that claims are about, by their names in a sweep's table (`campaign/table.py`)."""

Word = Literal["holds", "differs", "cannot be had"]
Form = Literal["candles", "series", "table"]
Where = dict[str, Any]
"""Values of axes by the last word of their key."""


@dataclass(frozen=True)
class View:
    """How runs are looked at: only those of some settings, a value of an axis for another, a ping's mean over the whole
    test for its median under load."""

    only: Where = field(default_factory=dict)
    instead: Mapping[tuple[str, Any], Any] = field(default_factory=dict)
    whole_test: bool = False


class Evidence:
    """The runs of one figure. `where` names axes by the last word of their key: tsq="off", scenario="L100M".

    Of two keys with the same last word the shorter has it: "stack.tsq" and not "stack.client.tsq".
    The table has kernels by their release, as 5.10.262-hourglass; here "5.10" finds them too.
    """

    def __init__(
        self,
        result: Result,
        others: "Mapping[str, Evidence] | None" = None,
        view: "View | None" = None,
    ) -> None:
        self.result = result
        self.others = others or {}
        self.view = view or View()
        keys = sorted(result.grid.keys, key=len, reverse=True)
        self.short = {key.rsplit(".", 1)[-1]: key for key in keys}

    def key(self, word: str) -> str:
        """An axis by the last word of its key, or by all of it. Raises LookupError."""
        found = self.short.get(word, word)
        if found not in self.result.grid.keys:
            raise LookupError(f"no axis {word}")
        return found

    def seen(self, view: "View") -> "Evidence":
        """The same runs looked at in another way; those of other figures in the same, but for what is left out."""
        others = {name: one.seen(replace(view, only={})) for name, one in self.others.items()}
        return Evidence(self.result, others, view)

    def other(self, figure: str) -> "Evidence":
        """The runs of another figure, one that this figure needs. Raises LookupError."""
        if figure not in self.others:
            raise LookupError(f"no runs of {figure}")
        return self.others[figure]

    @cached_property
    def every(self) -> pl.DataFrame:
        """The rows of all cells, whatever became of them."""
        return self._agreeing(self.result.table, self.view.only)

    @cached_property
    def table(self) -> pl.DataFrame:
        """The rows of complete runs."""
        return self.every.filter(pl.col("status") == "done")

    def _agreeing(self, found: pl.DataFrame, where: Where) -> pl.DataFrame:
        for word, asked in where.items():
            value = self.view.instead.get((word, asked), asked)
            column = pl.col(self.key(word))
            agrees = column == value
            if word == "kernel":
                agrees |= column.str.starts_with(f"{value}.")
            found = found.filter(agrees)
        return found

    def rows(self, **where: Any) -> pl.DataFrame:
        found = self._agreeing(self.table, where)
        if found.is_empty():
            raise LookupError(f"no complete run with {where}")
        return found

    def each(self, column: str, **where: Any) -> list[float]:
        """The figure of each run that agrees, which are those of the seeds. Raises LookupError."""
        if column == PING and self.view.whole_test:
            return [mean_ping_ms(run) for run in self.runs(**where)]
        found = self.rows(**where)
        values = found[column].drop_nulls().to_list() if column in found.columns else []
        if not values:
            raise LookupError(f"the runs with {where} have no {column}")
        return [float(one) for one in values]

    def value(self, column: str, **where: Any) -> float:
        """The median over the seeds (and whatever else `where` leaves open). Raises LookupError."""
        return float(median(self.each(column, **where)))

    def runs(self, **where: Any) -> list[Recording]:
        """The runs themselves, in the order of their seeds. Raises LookupError."""
        return [open_run(self.result.runs / name) for name in self.rows(**where)["run"]]

    def settings(self, *without: str) -> list[Where]:
        """Each combination of values of the axes but the seed and those of `without`, in the file's order."""
        words = [word for word, key in self.short.items() if key != "seed" and word not in without]
        words.sort(key=lambda word: self.result.grid.keys.index(self.short[word]))
        return self.combinations(words)

    def combinations(self, words: Sequence[str]) -> list[Where]:
        """Each combination of values of some axes that has complete runs, in the file's order."""
        found = self.table.select([self.key(word) for word in words]).unique(maintain_order=True)
        return [dict(zip(words, row, strict=True)) for row in found.iter_rows()]

    def label(self, **where: Any) -> str:
        """What a figure calls these values."""
        names = (self.result.grid.label(self.key(word), value) for word, value in where.items())
        return ", ".join(name.removesuffix("-hourglass") for name in names if name)

    def values(self, word: str) -> list[Any]:
        """The values of an axis, in the file's order."""
        return list(dict.fromkeys(self.every[self.key(word)].to_list()))


@dataclass(frozen=True)
class Finding:
    """What was measured, whether the claim holds by its tolerance, and what the data say of the cause."""

    holds: bool
    measured: str
    mechanism: str = ""


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper. `tolerance` says in words what `judge` takes for true. `version`: what another kernel
    than the paper's does otherwise, told where it differs. `apart`: why it is not counted: the kernel's code, or the
    paper itself, says otherwise."""

    id: str
    says: str
    tolerance: str
    judge: Callable[[Evidence], Finding]
    version: str = ""
    apart: str = ""


@dataclass(frozen=True)
class Layout:
    """How candles are set out. Axes by the last word of their key: `groups` along the x axis, a series for each
    combination of those of `series`; panels for each value of `panel`, one for each quantity. `beside`: a column for
    each value of `panel`. `where` takes some runs only."""

    groups: str = "scenario"
    series: tuple[str, ...] = ("tsq",)
    panel: str = ""
    quantities: tuple[Quantity, ...] = ("tcp",)
    beside: bool = False
    where: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Unknown:
    """Something that a paper does not tell. The sweep named `sweep` repeats the figure at several values of it, which
    are combinations of values of `axes`; without a sweep the figure's own runs are
    looked at in another `view`, which `called` names. `claims` (of the figure, all if there is none) are judged again
    for each. `others`: the sweeps over the same unknown of figures that this one is compared with."""

    what: str
    sweep: str = ""
    axes: tuple[str, ...] = ()
    view: View = View()
    called: str = ""
    claims: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Figure:
    """A figure: its sweep file has its id as a name. One without claims is a comparison of our own. `needs`: figures
    that its claims compare it with. `note`: what is to be known of numbers that surprise."""

    id: str
    title: str
    form: Form
    claims: tuple[Claim, ...] = ()
    layout: Layout = Layout()
    needs: tuple[str, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """A claim, judged; `setting`: at which value of an unknown, empty for the testbed as it is."""

    figure: str
    claim: Claim
    word: Word
    measured: str
    because: str
    setting: str = ""


def ratio(a: float, b: float) -> str:
    """ "277 / 7.2 = 38.5" """
    return f"{a:.3g} / {b:.3g} = {a / b:.3g}"


def spread(values: Sequence[float]) -> float:
    """How far the seeds are apart."""
    return max(values) - min(values)
