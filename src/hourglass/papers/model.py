# SPDX-License-Identifier: Apache-2.0
"""What a claim is, and what there is to judge it by. A verdict is computed from runs, never written down."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import polars as pl

from hourglass.campaign.sweep import Result
from hourglass.plots.paper import Quantity
from hourglass.results.opening import open_run
from hourglass.results.recording import Recording

UP, DOWN = "upload_mbps", "download_mbps"
TCP, PING = "tcp_rtt_p50_ms", "ping_icmp_p50_ms"
DROPS, RETRANSMITS = "drops_qdisc_packets", "retransmits_segments"
COLUMNS = (UP, DOWN, TCP, PING, DROPS, RETRANSMITS)
"""The figures that claims are about, by their names in a sweep's table (`campaign/table.py`)."""

Word = Literal["holds", "differs", "cannot be had"]
Form = Literal["candles", "series", "bars", "table"]


class Evidence:
    """The runs of one figure. `where` names axes by the last word of their key: tsq="off", scenario="L100M".

    The table has kernels by their release, as 5.10.262-hourglass; here "5.10" finds them too.
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        self.short = {key.rsplit(".", 1)[-1]: key for key in result.grid.keys}

    @cached_property
    def table(self) -> pl.DataFrame:
        """The rows of complete runs."""
        return self.result.table.filter(pl.col("status") == "done")

    def rows(self, **where: Any) -> pl.DataFrame:
        found = self.table
        for word, value in where.items():
            column = pl.col(self.short[word])
            agrees = column == value
            if word == "kernel":
                agrees |= column.str.starts_with(f"{value}.")
            found = found.filter(agrees)
        if found.is_empty():
            raise LookupError(f"no complete run with {where}")
        return found

    def value(self, column: str, **where: Any) -> float:
        """The median over the seeds (and whatever else `where` leaves open). Raises LookupError."""
        found = self.rows(**where)
        median = found[column].median() if column in found.columns else None
        if not isinstance(median, int | float):
            raise LookupError(f"the runs with {where} have no {column}")
        return float(median)

    def runs(self, **where: Any) -> list[Recording]:
        """The runs themselves, in the order of their seeds. Raises LookupError."""
        return [open_run(self.result.runs / name) for name in self.rows(**where)["run"]]

    def settings(self, *without: str) -> list[dict[str, Any]]:
        """Each combination of values of the axes but the seed and those of `without`, in the file's order."""
        words = [word for word, key in self.short.items() if key != "seed" and word not in without]
        found = self.table.select([self.short[word] for word in words]).unique(maintain_order=True)
        return [dict(zip(words, row, strict=True)) for row in found.iter_rows()]

    def label(self, **where: Any) -> str:
        """What a figure calls these values."""
        names = (self.result.grid.label(self.short[word], value) for word, value in where.items())
        return ", ".join(name.removesuffix("-hourglass") for name in names)

    def values(self, word: str) -> list[Any]:
        """The values of an axis, in the file's order."""
        return list(dict.fromkeys(self.result.table[self.short[word]].to_list()))


@dataclass(frozen=True)
class Finding:
    """What was measured, whether the claim holds by its tolerance, and what the data say of the cause."""

    holds: bool
    measured: str
    mechanism: str = ""


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper. `tolerance` says in words what `judge` takes for true."""

    id: str
    says: str
    tolerance: str
    judge: Callable[[Evidence], Finding]


@dataclass(frozen=True)
class Layout:
    """How candles are set out: axes by the last word of their key. A panel per quantity, or per value of `panel`."""

    groups: str = "scenario"
    series: tuple[str, ...] = ("tsq",)
    panel: str = ""
    quantities: tuple[Quantity, ...] = ("tcp",)


@dataclass(frozen=True)
class Figure:
    """A figure: its sweep file has its id as a name. One without claims is a comparison of our own."""

    id: str
    title: str
    form: Form
    claims: tuple[Claim, ...] = ()
    layout: Layout = Layout()


@dataclass(frozen=True)
class Verdict:
    """A claim, judged."""

    figure: str
    claim: Claim
    word: Word
    measured: str
    because: str


def ratio(a: float, b: float) -> str:
    """ "277 / 7.2 = 38.5" """
    return f"{a:.3g} / {b:.3g} = {a / b:.3g}"
