# SPDX-License-Identifier: Apache-2.0
"""Find likely causes of a miss by a tolerance: the conditions in which the runs of a column and those of the reference
differ. These are candidates, not proofs."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final

import polars as pl

from hourglass.contract.run_json import HostLoad
from hourglass.results.phases import INFINITE_SSTHRESH
from hourglass.results.recording import Recording
from hourglass.results.series import Window, loaded_window
from hourglass.studies.lines import PartRuns
from hourglass.studies.verdicts import CellVerdict

NOTICEABLE_PERCENT: Final = 10.0
"""A condition is reported if both sides differ in it by more, in %."""
DISTURBED_PERCENT: Final = 15.0
"""A share of the machine's CPU time, in %, from which other work counts as a disturbance."""
STATE_GAP_RATIO: Final = 4
"""Runs fall into two groups if the widest gap between two neighbours is this many times the spread within the
groups."""


def causes_of(part: PartRuns, verdicts: Sequence[CellVerdict], reference: str) -> list[str]:
    """Return likely causes of the misses among the verdicts of a column in one setting."""
    compared = [verdict for verdict in verdicts if verdict.gap is not None and verdict.line.figure.tolerance]
    outside = [verdict for verdict in compared if verdict.gap is not None and not _is_within(verdict)]
    if not outside and all(verdict.verdict != "missed" for verdict in compared):
        return []
    label, column = compared[0].line.label, compared[0].cell.column
    states = []
    for verdict in compared:
        base = verdict.line.cells[reference].value
        if base is not None and (verdict in outside or verdict.verdict != "ok"):
            name, tolerance = verdict.line.figure.name, verdict.line.figure.check_tolerance()
            states.append(two_states(verdict.cell.present, name, base, tolerance))
    sides = [[part.open(key) for key in part.complete(label, name).values()] for name in (reference, column)]
    return [*filter(None, states), *causes(sides[0], sides[1], (reference, column))]


def _is_within(verdict: CellVerdict) -> bool:
    return verdict.gap is not None and abs(verdict.gap) <= verdict.line.figure.check_tolerance()


def two_states(values: Sequence[float], name: str, base: float, tolerance: float) -> str | None:
    """Return the two groups into which the values of a figure fall, so that the median is in one of them."""
    ordered = sorted(values)
    steps = [after - before for before, after in pairwise(ordered)]
    if not steps or max(steps) < 2 * tolerance / 100 * abs(base):
        return None
    cut = steps.index(max(steps)) + 1
    low, high = ordered[:cut], ordered[cut:]
    if max(steps) < STATE_GAP_RATIO * max(low[-1] - low[0], high[-1] - high[0]):
        return None
    sizes = f"{len(low)} runs at {median(low):.4g}, {len(high)} at {median(high):.4g}"
    return f"{name}: the runs have two states, {sizes}; the reference has {base:.4g}"


def conditions(run: Recording) -> dict[str, float]:
    """Return the conditions of a run that may explain a figure, with the unit in the name."""
    window = loaded_window(run)
    values: dict[str, float] = {}
    if run.flows:
        resent = [flow.retransmits for flow in run.summary.flows if flow.retransmits is not None]
        values["retransmitted segments"] = float(sum(resent))
        if (least := run.summary.tcp_rtt_ms.min) is not None:
            values["least TCP RTT, ms"] = least
        values |= _least_rtt(run) | _slow_start(run) | _window(run, window) | _bbr(run)
        for sender in sorted({flow.sender for flow in run.flows}):
            sent = run.devices.filter(window.contains() & (pl.col("node") == sender)).group_by("device")
            grown = sent.agg((pl.col("tx_bytes").max() - pl.col("tx_bytes").min()).alias("bytes"),
                             (pl.col("tx_packets").max() - pl.col("tx_packets").min()).alias("skbs"))  # fmt: skip
            skbs = int(grown["skbs"].sum())
            if skbs:
                values[f"bytes per skb that {sender} sends"] = float(grown["bytes"].sum()) / skbs
    for ping in run.pings:
        idle = run.rows(ping).filter(pl.col("t_ns") < window.start_ns)["rtt_ns"].drop_nulls()
        if len(idle):
            values[f"idle {ping.name} ping, ms"] = float(idle.median() or 0) / 1e6  # type: ignore[arg-type]
    return values


def _slow_start(run: Recording) -> dict[str, float]:
    """Return the window at the end of slow start, of the flows of each direction: in a short run it decides the
    rest."""
    windows: dict[str, float] = {}
    for direction, upload in (("upload", True), ("download", False)):
        ends = []
        for flow in (flow for flow in run.flows if flow.upload == upload):
            after_slow_start = (
                (pl.col("stream") == flow.name) & pl.col("sender") & (pl.col("snd_ssthresh") < INFINITE_SSTHRESH)
            )
            first = run.tcp.filter(after_slow_start).sort("t_ns").head(1)
            ends += [float(ssthresh) for ssthresh in first["snd_ssthresh"]]
        if ends:
            windows[f"{direction}: window at which slow start ended, segments"] = median(ends)
    return windows


def _least_rtt(run: Recording) -> dict[str, float]:
    """Return TCP's estimate of the path's round trip. The nearer it is to 0, the larger are skbs, in steps of
    2^tcp_tso_rtt_log us (`tcp_tso_autosize`, net/ipv4/tcp_output.c). It takes a round trip of 0 for a jiffy."""
    min_rtts = run.tcp.filter(pl.col("sender"))["min_rtt"].drop_nulls()
    return {"least RTT that TCP sizes skbs by, us": float(min_rtts.median() or 0)} if len(min_rtts) else {}  # type: ignore[arg-type]


def _window(run: Recording, window: Window) -> dict[str, float]:
    """Return the windows of the flows of each direction, and the number whose slow start never ended. Each pause of the
    machine then increases the window, and thus the pacing rate. TCP Small Queues then let more data into the sender's
    queue."""
    values: dict[str, float] = {}
    for direction, upload in (("upload", True), ("download", False)):
        names = [flow.name for flow in run.flows if flow.upload == upload]
        rows = run.tcp.filter(window.contains() & pl.col("sender") & pl.col("stream").is_in(names))
        if not rows.is_empty():
            values[f"{direction}: window, segments"] = float(rows["snd_cwnd"].median() or 0)  # type: ignore[arg-type]
            starting = rows.group_by("stream").agg(pl.col("snd_ssthresh").last() >= INFINITE_SSTHRESH)
            values[f"{direction}: flows whose slow start never ended"] = float(starting["snd_ssthresh"].sum())
    return values


def _bbr(run: Recording) -> dict[str, float]:
    """Return BBR's estimates of the path in the loaded window: pacing follows the bandwidth, the window the minimum
    RTT."""
    of_bbr = pl.col("stream").is_in([flow.name for flow in run.flows if flow.cc == "bbr"])
    inside = run.tcp.filter(loaded_window(run).contains() & pl.col("sender") & of_bbr)
    if inside.is_empty():
        return {}
    rates, least = (inside[name].drop_nulls().to_list() for name in ("pacing_rate", "min_rtt"))  # bytes/s, us
    return {"BBR's pacing, Mbit/s": median(rates) * 8e-6, "BBR's minimum RTT, ms": median(least) / 1e3}


def causes(first: Sequence[Recording], second: Sequence[Recording], names: tuple[str, str]) -> list[str]:
    """Return the conditions in which both sides differ, and the load of the machine."""
    notes = []
    sides = [[conditions(run) for run in side] for side in (first, second)]
    for name in dict.fromkeys(name for side in sides for run_conditions in side for name in run_conditions):
        values = [
            median([run_conditions[name] for run_conditions in side if name in run_conditions] or [0.0])
            for side in sides
        ]
        least = NOTICEABLE_PERCENT / 100 * max(*map(abs, values), 1.0 if name.endswith("ping, ms") else 0.0)
        if abs(values[1] - values[0]) > least:
            notes.append(f"{name}: {values[0]:.4g} with {names[0]}, {values[1]:.4g} with {names[1]}")
    notes += _settings(first[0], second[0], names)
    loads = [run.info.host_load for run in second if run.info.host_load is not None]
    return [*notes, *_disturbances(loads)]


def _disturbances(loads: Sequence[HostLoad]) -> list[str]:
    """Return the load of the machine, if it was other work or another guest of its hypervisor."""
    if not loads:
        return []
    other_work, stolen, busy = (median(getattr(load, key) for load in loads) for key in ("others", "stolen", "busy"))
    if other_work + stolen <= DISTURBED_PERCENT:
        return []
    return [f"CPU: the machine was {busy:.0f} % busy, {other_work:.0f} % with other work, {stolen:.0f} % stolen"]


def _settings(first: Recording, second: Recording, names: tuple[str, str]) -> list[str]:
    """Return the offloads, drivers and sysctls of TCP that differ between the facts of both sides."""
    differences = []
    sides = [
        {(fact["node"], fact["key"]): fact["value"] for fact in run.facts.to_dicts() if _affects_tcp(fact["key"])}
        for run in (first, second)
    ]
    for node, key in sorted(sides[0].keys() & sides[1].keys(), key=str):
        values = [side[node, key] for side in sides]
        if values[0] != values[1]:
            setting = f"{node} {key.removeprefix('sysctl.')}"
            differences.append(f"{setting}: {values[0]} with {names[0]}, {values[1]} with {names[1]}")
    return differences


def _affects_tcp(key: str) -> bool:
    """Return true if a fact affects TCP and is expected to be the same on all machines."""
    return key.startswith(("offload.", "bql.")) or key in {
        f"sysctl.net.ipv4.{name}"
        for name in ("tcp_rmem", "tcp_wmem", "tcp_limit_output_bytes", "tcp_autocorking", "tcp_ecn", "tcp_sack",
                     "tcp_pacing_ss_ratio", "tcp_pacing_ca_ratio", "tcp_moderate_rcvbuf", "tcp_no_metrics_save")
    }  # fmt: skip
