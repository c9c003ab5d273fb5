# SPDX-License-Identifier: Apache-2.0
"""How far the lab's figures are from those of a real machine: gap, interval, verdict, and what the runs' data say of a
miss. Pure: runs in, rows out.

Both sides are repeated over seeds. Real time has the machine's other work in it, so what counts of a side is the median
of its runs, and the interval of the real one is that between two of its runs in order (Conover 1971): from
`LEAST` runs on, at least 95 %, whatever the distribution.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import comb
from statistics import median
from typing import Final, Literal

import polars as pl

from hourglass.contract.figures import figures
from hourglass.errors import InputError
from hourglass.results.phases import INFINITE_SSTHRESH
from hourglass.results.recording import Recording
from hourglass.results.series import Window, loaded_window

LEVEL: Final = 0.95
LEAST: Final = 6
"""Runs of which the least and the most enclose the median with 95 %: 1 - 2 · 2^-6."""

TOLERANCE: Final[dict[str, float]] = {"totals.upload_mbps": 1.0, "totals.download_mbps": 1.0, "tcp_rtt.p50": 5.0}
"""Figure → how far it may be from the lab's, in %."""

Verdict = Literal["agrees", "differs", "undecided"]


@dataclass(frozen=True)
class Host:
    """What the machine did while a run was made: shares of all its CPUs' time in %. `others` is what neither the run
    nor nobody had; `stolen` is what a hypervisor gave to others."""

    busy: float
    others: float
    stolen: float


@dataclass(frozen=True)
class Row:
    """One figure of one case. `gap` and `interval` in % of the lab's."""

    case: str
    figure: str
    unit: str
    lab: float
    real: float
    gap: float
    interval: tuple[float, float] | None
    tolerance: float
    runs: int
    verdict: Verdict
    within: bool
    """Whether the gap itself is within the tolerance."""


def value(run: Recording, name: str) -> float | None:
    """A figure of a run."""
    return next((one.value for one in figures(run.summary) if one.name == name), None)


def unit(run: Recording, name: str) -> str:
    """Its unit."""
    return next((one.unit for one in figures(run.summary) if one.name == name), "")


def check_names(names: Mapping[str, float], run: Recording) -> None:
    """Raises InputError for a figure that no summary of such a run has."""
    known = {one.name for one in figures(run.summary)}
    for name in names:
        if name not in known and name not in TOLERANCE:
            some = ", ".join(sorted(known)[:12])
            raise InputError("--within", name, f"a figure of the runs, by its name in `hourglass check`: {some}, …")


def rows(case: str, lab: Sequence[Recording], real: Sequence[Recording], tolerance: Mapping[str, float]) -> list[Row]:
    """A row for each figure that both sides have and that is not 0 in the lab."""
    found = []
    for name, allowed in tolerance.items():
        there = [one for run in lab if (one := value(run, name)) is not None]
        here = [one for run in real if (one := value(run, name)) is not None]
        if not there or not here or not median(there):
            continue
        found.append(row(case, name, unit(lab[0], name), there, here, allowed))
    return found


def row(case: str, name: str, unit: str, lab: Sequence[float], real: Sequence[float], allowed: float) -> Row:
    """The row of a figure with the values of both sides' runs."""
    base = median(lab)

    def percent(one: float) -> float:
        return 100 * (one - base) / base

    between = order_interval(real)
    span = (percent(between[0]), percent(between[1])) if between else None
    gap = percent(median(real))
    return Row(case, name, unit, base, median(real), gap, span, allowed, len(real), verdict(span, allowed),
               abs(gap) <= allowed)  # fmt: skip


def order_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The narrowest interval between the k-th least and the k-th greatest value that holds the median with `LEVEL`;
    None of fewer than `LEAST` values."""
    ordered, n = sorted(values), len(values)
    outside, k = 0.0, 0
    while k < n // 2 and 2 * (outside + comb(n, k) / 2**n) <= 1 - LEVEL:
        outside += comb(n, k) / 2**n
        k += 1
    return (ordered[k - 1], ordered[n - k]) if k else None


def verdict(interval: tuple[float, float] | None, allowed: float) -> Verdict:
    """What an interval of the gap says."""
    if interval is None:
        return "undecided"
    low, high = interval
    if -allowed <= low and high <= allowed:
        return "agrees"
    return "differs" if low > allowed or high < -allowed else "undecided"


@dataclass
class Result:
    """A case and its runs on both sides. `hosts`: what the machine did during each real one."""

    name: str
    lab: list[Recording] = field(default_factory=list)
    real: list[Recording] = field(default_factory=list)
    hosts: list[Host] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    @property
    def causes(self) -> list[str]:
        """What the data say where a figure is not within its tolerance."""
        missed = any(not row.within or row.verdict == "differs" for row in self.rows)
        if not missed:
            return []
        split = [states(self.real, row) for row in self.rows if not row.within or row.verdict != "agrees"]
        return [*filter(None, split), *causes(self.lab, self.real, self.hosts)]


NOTICED: Final = 10.0
"""A condition is told of where the two sides differ in it by more, in %."""
CROWDED: Final = 15.0
"""Of the machine's CPU time, in %: what others may have before a run counts as disturbed."""


STATES: Final = 4
"""Runs of a machine fall into two groups where the widest gap between two of them, in order, is so many times what lies
within the groups."""


def states(runs: Sequence[Recording], row: Row) -> str | None:
    """That the machine's runs do not agree with each other: each is in one of two states, and so is the median."""
    return states_of([one for run in runs if (one := value(run, row.figure)) is not None], row)


def states_of(values: Sequence[float], row: Row) -> str | None:
    """The same of the figure's values."""
    ordered = sorted(values)
    steps = [after - before for before, after in pairwise(ordered)]
    if not steps or max(steps) < 2 * row.tolerance / 100 * abs(row.lab):
        return None
    place = steps.index(max(steps)) + 1
    low, high = ordered[:place], ordered[place:]
    if max(steps) < STATES * max(low[-1] - low[0], high[-1] - high[0]):
        return None
    sizes = f"{len(low)} runs at {median(low):.4g}, {len(high)} at {median(high):.4g}"
    return f"{row.figure}: the machine's runs have two states, {sizes}; the lab has {row.lab:.4g}"


def conditions(run: Recording) -> dict[str, float]:
    """What of a run may explain a figure, in the words of the page and the unit they say."""
    window = loaded_window(run)
    found: dict[str, float] = {}
    if run.flows:
        resent = [flow.retransmits for flow in run.summary.flows if flow.retransmits is not None]
        found["retransmitted segments"] = float(sum(resent))
        if (least := run.summary.tcp_rtt_ms.min) is not None:
            found["least TCP RTT, ms"] = least
        found |= _least_rtt(run) | _slow_start(run) | _window(run, window) | _bbr(run)
        for sender in sorted({flow.sender for flow in run.flows}):
            sent = run.devices.filter(window.holds() & (pl.col("node") == sender)).group_by("device")
            grown = sent.agg((pl.col("tx_bytes").max() - pl.col("tx_bytes").min()).alias("bytes"),
                             (pl.col("tx_packets").max() - pl.col("tx_packets").min()).alias("skbs"))  # fmt: skip
            skbs = int(grown["skbs"].sum())
            if skbs:
                found[f"bytes per skb that {sender} sends"] = float(grown["bytes"].sum()) / skbs
    for ping in run.pings:
        idle = run.rows(ping).filter(pl.col("t_ns") < window.start_ns)["rtt_ns"].drop_nulls()
        if len(idle):
            found[f"idle {ping.name} ping, ms"] = float(idle.median() or 0) / 1e6  # type: ignore[arg-type]
    return found


def _slow_start(run: Recording) -> dict[str, float]:
    """At what window slow start ended, of the flows each way: in a short run that decides the rest."""
    found: dict[str, float] = {}
    for way, upload in (("upload", True), ("download", False)):
        ends = []
        for flow in (flow for flow in run.flows if flow.upload == upload):
            mine = (pl.col("stream") == flow.name) & pl.col("sender") & (pl.col("snd_ssthresh") < INFINITE_SSTHRESH)
            first = run.tcp.filter(mine).sort("t_ns").head(1)
            ends += [float(one) for one in first["snd_ssthresh"]]
        if ends:
            found[f"{way}: window at which slow start ended, segments"] = median(ends)
    return found


def _least_rtt(run: Recording) -> dict[str, float]:
    """What TCP takes for the path's own round trip. It makes skbs larger the nearer it is to 0, in steps of
    2^tcp_tso_rtt_log us (`tcp_tso_autosize`, net/ipv4/tcp_output.c), and takes a round trip of 0 for a jiffy."""
    known = run.tcp.filter(pl.col("sender"))["min_rtt"].drop_nulls()
    return {"least RTT that TCP sizes skbs by, us": float(known.median() or 0)} if len(known) else {}  # type: ignore[arg-type]


def _window(run: Recording, window: Window) -> dict[str, float]:
    """The windows of the flows each way, and of how many slow start never ended: each stop of the machine then makes
    the window grow, and with it the pacing rate, by which TCP Small Queues let more into the sender's own queue."""
    found: dict[str, float] = {}
    for way, upload in (("upload", True), ("download", False)):
        names = [flow.name for flow in run.flows if flow.upload == upload]
        rows = run.tcp.filter(window.holds() & pl.col("sender") & pl.col("stream").is_in(names))
        if not rows.is_empty():
            found[f"{way}: window, segments"] = float(rows["snd_cwnd"].median() or 0)  # type: ignore[arg-type]
            starting = rows.group_by("stream").agg(pl.col("snd_ssthresh").last() >= INFINITE_SSTHRESH)
            found[f"{way}: flows whose slow start never ended"] = float(starting["snd_ssthresh"].sum())
    return found


def _bbr(run: Recording) -> dict[str, float]:
    """What BBR takes the path for, in the loaded window: pacing follows the bandwidth, the window the minimum RTT."""
    of_bbr = pl.col("stream").is_in([flow.name for flow in run.flows if flow.cc == "bbr"])
    inside = run.tcp.filter(loaded_window(run).holds() & pl.col("sender") & of_bbr)
    if inside.is_empty():
        return {}
    rates, least = (inside[name].drop_nulls().to_list() for name in ("pacing_rate", "min_rtt"))  # bytes/s, us
    return {"BBR's pacing, Mbit/s": median(rates) * 8e-6, "BBR's minimum RTT, ms": median(least) / 1e3}


def causes(lab: Sequence[Recording], real: Sequence[Recording], hosts: Sequence[Host]) -> list[str]:
    """What the data of both sides say: conditions in which they differ, and what the machine did."""
    said = []
    sides = [[conditions(run) for run in side] for side in (lab, real)]
    for name in dict.fromkeys(name for side in sides for one in side for name in one):
        there, here = (median([one[name] for one in side if name in one] or [0.0]) for side in sides)
        least = NOTICED / 100 * max(abs(there), abs(here), 1.0 if name.endswith("ping, ms") else 0.0)
        if abs(here - there) > least:
            said.append(f"{name}: {there:.4g} in the lab, {here:.4g} on the machine")
    if facts := _settings(lab[0], real[0]):
        said += facts
    if hosts:
        others, stolen, busy = (median(getattr(one, key) for one in hosts) for key in ("others", "stolen", "busy"))
        if others + stolen > CROWDED:
            said.append(
                f"CPU: the machine was {busy:.0f} % busy, {others:.0f} % with other work, {stolen:.0f} % stolen"
            )
    return said


def _settings(lab: Recording, real: Recording) -> list[str]:
    """Offloads, drivers and sysctls of TCP that differ between the two sides' facts."""
    told = []
    sides = [
        {(one["node"], one["key"]): one["value"] for one in run.facts.to_dicts() if _decides(one["key"])}
        for run in (lab, real)
    ]
    for node, key in sorted(sides[0].keys() & sides[1].keys(), key=str):
        there, here = (side[node, key] for side in sides)
        if there != here:
            told.append(f"{node} {key.removeprefix('sysctl.')}: {there} in the lab, {here} on the machine")
    return told


def _decides(key: str) -> bool:
    """Whether a fact decides what TCP does, and is not what differs by nature between two machines."""
    return key.startswith(("offload.", "bql.")) or key in {
        f"sysctl.net.ipv4.{name}"
        for name in ("tcp_rmem", "tcp_wmem", "tcp_limit_output_bytes", "tcp_autocorking", "tcp_ecn", "tcp_sack",
                     "tcp_pacing_ss_ratio", "tcp_pacing_ca_ratio", "tcp_moderate_rcvbuf", "tcp_no_metrics_save")
    }  # fmt: skip
