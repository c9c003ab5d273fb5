# SPDX-License-Identifier: Apache-2.0
"""Finds where a Flent file contradicts itself, or lacks data: its figures are then doubtful, or cover less."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hourglass.flent.document import Document
from hourglass.flent.measurement import MeasuredSeries, Measurement, length_s, step_s
from hourglass.flent.raw_values import resample
from hourglass.flent.rows import payload_bytes
from hourglass.qdisc_line import QdiscLine

NAMES_MAX = 4
"""The most names in a warning."""
SIMULTANEOUS = 0.8
"""The share of the time under load in which all flows run, below which their sum is no goodput of any time."""
DIFFERENCE = 0.1
"""The share of the median value by which points and steps may differ. Flent's own files have nearly 0."""

RATIO, RATIO_MS = 3.0, 10.0
"""Idle round trips of one path differ at most by this factor, or by these ms: radios sleep, hosts are busy."""
IDLE_PINGS = 3
"""The fewest pings before the load that show the idle round trip."""
TRANSACTIONS = re.compile(r"Ping \(ms\)(?:::| )(?:TCP|SCTP)\b")
"""The pings of netperf's TCP_RR and SCTP_RR. Flent converts only those of UDP_RR to ms."""
IPV6 = re.compile(r"\b(?:ICMP6|UDP6|UDP 6\w+)\b")
"""The pings by IPv6 in tests with both versions."""
EXTRA = "(extra)"
"""The end of the names of pings to other hosts."""
SEND_BUFFER_BYTES = 4 << 20
"""The default maximum of `tcp_wmem`: netperf counts bytes of a flow that may not have left the socket."""


def contradictions(document: Document, measured: Measurement) -> Iterator[str]:
    """Yield a sentence for each."""
    if failed := document.metadata.failed_runners:
        yield f"{failed} of Flent's runners failed"
    if measured.empty:
        yield f"no data of {_listed(measured.empty)}: left out"
    if measured.displaced:
        yield (
            f"points of {_listed(measured.displaced)} lie outside the test, which lasts {length_s(document):g} s from"
            " T0: a tool ended late, or a clock was wrong"
        )
    if different := [series.name for series in measured.series if _differs(document, measured, series)]:
        yield f"points (raw_values) and steps (results) of {_listed(different)} differ: figures are those of the points"
    yield from _simultaneity(measured.of_kind("flow"))
    yield from _impossible_pings(document, measured)
    yield from _impossible_uploads(document, measured)


def _listed(names: Sequence[str]) -> str:
    further = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {further} others" if further > 0 else "")


def _differs(document: Document, measured: Measurement, series: MeasuredSeries) -> bool:
    """Return whether the points, resampled as Flent does, are not the file's steps."""
    x_s = np.array(document.x_values) + measured.x0_s
    steps = document.results.get(series.name, [])
    resampled = resample([point for _, point in series.points], "val", x_s, step_s(document))
    pairs = np.array(
        [(point, step) for point, step in zip(resampled, steps, strict=False) if None not in (point, step)],
        dtype=np.float64,
    )
    if not pairs.size:
        return False
    difference = np.median(np.abs(pairs[:, 0] - pairs[:, 1]))
    return bool(difference > DIFFERENCE * np.median(np.abs(pairs), axis=0).max())


def _simultaneity(flows: Sequence[MeasuredSeries]) -> Iterator[str]:
    """Yield a sentence if the flows run at different times."""
    if not flows:
        return
    start_s, stop_s = min(flow.start_s for flow in flows), max(flow.stop_s for flow in flows)
    common_s = min(flow.stop_s for flow in flows) - max(flow.start_s for flow in flows)
    if common_s < SIMULTANEOUS * (stop_s - start_s):
        yield (
            f"all flows run at once for {max(0.0, common_s):.3g} s of the {stop_s - start_s:.3g} s under load: each"
            " flow's goodput covers its own time, and totals add these"
        )


def _impossible_pings(document: Document, measured: Measurement) -> Iterator[str]:
    """Yield sentences about round trips that are none, and about those of one path that contradict each other."""
    pings = measured.of_kind("ping")
    if rates := [ping.name for ping in pings if _are_rates(ping)]:
        yield f"values of {_listed(rates)} are netperf's transactions per second, which Flent's test labels as ms"
    if instant := [ping.name for ping in pings if any(value <= 0 for value in _values(ping))]:
        yield f"round trips of {_listed(instant)} take no time"
    if len(document.metadata.hosts) != 1:
        return
    doubtful = {*rates, *instant, *measured.displaced, *_remote(document)}
    sound = [ping for ping in pings if ping.name not in doubtful and not ping.name.endswith(EXTRA)]
    load_s = min((flow.start_s for flow in measured.of_kind("flow")), default=measured.end_s)
    for by_ipv6 in (False, True):
        idle_ms = {
            ping.name: min(values)
            for ping in sound
            if bool(IPV6.search(ping.name)) is by_ipv6 and len(values := _values(ping, load_s)) >= IDLE_PINGS
        }
        if idle_ms:
            yield from _different_round_trips(idle_ms)


def _different_round_trips(idle_ms: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence if the idle round trips, by the name of the ping, are not those of one path."""
    near, far = min(idle_ms, key=idle_ms.__getitem__), max(idle_ms, key=idle_ms.__getitem__)
    shortest, longest = idle_ms[near], idle_ms[far]
    if longest > max(RATIO * shortest, shortest + RATIO_MS):
        yield f"idle round trips of one path differ: {near} has {shortest:.4g} ms, {far} has {longest:.4g} ms"


def _remote(document: Document) -> set[str]:
    """Return the names of the series that another machine than the client measured."""
    return {name for name, series in document.metadata.series_meta.items() if series.is_remote}


def _values(series: MeasuredSeries, end_s: float = math.inf) -> list[float]:
    """Return the values of the points before a time."""
    return [point.val for t_s, point in series.points if point.val is not None and t_s < end_s]


def _are_rates(ping: MeasuredSeries) -> bool:
    return bool(TRANSACTIONS.match(ping.name)) and any(point.dur is not None for _, point in ping.points)


def _impossible_uploads(document: Document, measured: Measurement) -> Iterator[str]:
    """Yield a sentence if netperf's uploads exceed the rate of the client's shaper. With swapped directions
    (TCP_MAERTS), with several hosts, or from another machine they may use another device."""
    meta = document.metadata
    uploads = [flow for flow in measured.of_kind("flow") if flow.name.startswith("TCP upload")]
    commands = [meta.series_meta[flow.name].command for flow in uploads if flow.name in meta.series_meta]
    roots = [qdisc for qdisc in meta.egress_info.qdiscs if qdisc.parent == "root"] if meta.egress_info else []
    shaper = QdiscLine(roots[0].line if len(roots) == 1 else "")
    sent_here = sum("TCP_STREAM" in command for command in commands) == len(uploads) and not _remote(document)
    if not uploads or not shaper.fixed_bps or not sent_here or len(meta.hosts) != 1 or meta.hourglass:
        return
    length = max(flow.stop_s for flow in uploads) - min(flow.start_s for flow in uploads)
    sent = sum(payload_bytes(flow.points, flow.start_s) for flow in uploads)
    allowed = shaper.fixed_bps * length / 8 + (shaper.burst_bytes or 0) + SEND_BUFFER_BYTES * len(uploads)
    if length and sent > allowed:
        yield (
            f"the uploads have {sent * 8 / 1e6 / length:.4g} Mbit/s, but {shaper.kind} at the client let"
            f" {shaper.fixed_bps / 1e6:.4g} Mbit/s pass before the test (EGRESS_INFO)"
        )
