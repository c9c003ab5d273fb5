# SPDX-License-Identifier: Apache-2.0
"""Estimate the bottleneck of a path from a capture or a Flent file.

| quantity | of a capture |
|---|---|
| rate | the most frequent spacing of deliveries under a queue (packet pairs, Keshav 1991), as a rate on a cable |
| base RTT | the least round trip ahead plus the least behind (`tcp_samples.py`) |
| buffer | the queue's delay before losses, times the rate; without losses at least its maximum |
| loss | repeated data packets; `random` those without a nearly full queue before |
| cross traffic | the rate less the flows' own deliveries, while there is a queue |

A Flent file gives the goodput of the direction with more as the rate, the least ping as the base RTT, and the 99th
percentile of the pings' wait as the buffer.

A capture is at the sender, the receiver or between them. Deliveries are acknowledgements where most of the round trip
is ahead of the capture, and data packets where it is behind.

Without a frequent spacing, the rate is that of the flows. A shaper with a token bucket lets bursts pass at the rate of
its line. Therefore, spacings of more than three times the flows' own rate do not count.

The intervals of 95 % are bootstrapped over spans of the capture. They describe other spans of the same conditions, not
an error of the method. Acknowledgements that the path compresses, and radios, make the spacing useless.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from hourglass.errors import InputError
from hourglass.estimation.packet_file import is_capture, read_packets
from hourglass.estimation.tcp_samples import CABLE, TcpSamples, Times, connections
from hourglass.flent import read as flent
from hourglass.results.recording import Recording
from hourglass.results.series import goodput_total, loaded_window, ping_ms
from hourglass.results.stats import Floats, rounded

WINDOW_NS = 50_000_000
"""The span of which a delivered rate is computed."""
SPANS = 20
"""The number of spans that are drawn."""
LEAST_SPANS = 5
DRAWS = 200
QUEUE_S = 0.001
QUEUE_OF_BASE = 0.1
"""A longer wait, in s and as a share of the base RTT, is a queue."""
BIN = 0.02
"""The width of a bin of pairs' rates, relative."""
LEAST_SHARE = 0.1
"""The least share of all pairs that the most frequent spacing has."""
MOST_OF_OWN = 3
"""The largest rate, as a multiple of the flows' own. Faster pairs are the bursts of a shaper with a token bucket."""
NO_CROSS = 0.02
"""A smaller share of the rate is no cross traffic."""
FULL = 0.85
"""The share of the longest queue below which a loss is random."""
PAYLOAD = 1448 / 1538
"""The share of payload of a full frame on a cable."""


@dataclass(frozen=True)
class LinkQuantity:
    """A value, None if the measurement does not show it, its 95 % interval, and a remark."""

    value: float | None
    interval: tuple[float, float] | None = None
    remark: str = ""


@dataclass(frozen=True)
class LinkEstimate:
    """The bottleneck that most data passed. `place`: of the capture. `seconds`: the time with deliveries."""

    source: str
    place: str
    seconds: float
    rate_mbps: LinkQuantity
    base_rtt_ms: LinkQuantity
    buffer_ms: LinkQuantity
    buffer_kb: LinkQuantity
    loss_percent: LinkQuantity
    random_loss_percent: LinkQuantity
    cross_mbps: LinkQuantity


QUANTITIES = {
    "rate_mbps": ("rate", "Mbit/s"),
    "base_rtt_ms": ("base RTT", "ms"),
    "buffer_ms": ("buffer", "ms"),
    "buffer_kb": ("buffer", "kB"),
    "loss_percent": ("loss", "%"),
    "random_loss_percent": ("random loss", "%"),
    "cross_mbps": ("cross traffic", "Mbit/s"),
}


def estimate_link(path: str | Path) -> LinkEstimate:
    """Return the estimate from a capture (pcap, pcapng) or a Flent file. Raises `InputError`."""
    file = Path(path)
    if not file.is_file():
        raise InputError("FILE", str(path), "no such file")
    if flent.is_flent(file):
        return _of_flent(flent.load(file))
    if not is_capture(file):
        raise InputError("FILE", str(path), "is not a pcap, pcapng or .flent.gz file")
    listed = connections(read_packets(file))
    if not listed:
        raise InputError("FILE", str(path), "has no TCP connection with data")
    first = listed[0]
    same = [each for each in listed if each.sender == first.sender or each.receiver == first.receiver]
    return _of_capture(file, same)


def _of_capture(file: Path, flows: list[TcpSamples]) -> LinkEstimate:
    ahead, behind = (_merged([getattr(flow, side) for flow in flows]) for side in ("ahead", "behind"))
    if not ahead[0].size and not behind[0].size:
        raise InputError("FILE", str(file), "has no round trip: both directions of a connection are needed")
    medians = [float(np.median(part[1])) if part[0].size else 0.0 for part in (ahead, behind)]
    at_sender = medians[0] >= medians[1]
    fields = _Deliveries(flows, ahead, behind, at_sender)
    values = fields.values(range(fields.number))
    drawn: dict[str, list[float]] = {}
    if fields.number >= LEAST_SPANS:
        random = np.random.default_rng(0)
        for _ in range(DRAWS):
            for name, value in fields.values(random.integers(fields.number, size=fields.number).tolist()).items():
                if value is not None:
                    drawn.setdefault(name, []).append(value)
    remarks = fields.remarks(values["cross_mbps"] is not None)

    def quantity(name: str) -> LinkQuantity:
        value = values[name]
        if value is None:
            return LinkQuantity(None, None, remarks.get(name, "not visible"))
        enough = len(drawn.get(name, ())) > DRAWS // 2
        ends = tuple(rounded(float(end)) for end in np.quantile(drawn[name], (0.025, 0.975))) if enough else None
        return LinkQuantity(rounded(value), (ends[0], ends[1]) if ends else None, remarks.get(name, ""))

    place = "at the sender" if at_sender else "at the receiver"
    return LinkEstimate(str(file), place, rounded(fields.seconds), **{name: quantity(name) for name in QUANTITIES})


def _merged(parts: Sequence[tuple[Times, Any]]) -> tuple[Times, Any]:
    """Return the samples of all flows in the order of time."""
    times, values = (np.concatenate([part[at] for part in parts]) for at in (0, 1))
    order = np.argsort(times, kind="stable")
    return times[order], values[order]


class _Deliveries:
    """The samples of all flows of one direction, in spans of equal length."""

    def __init__(
        self, flows: list[TcpSamples], ahead: tuple[Times, Floats], behind: tuple[Times, Floats], at_sender: bool
    ) -> None:
        self.ahead, self.behind = ahead, behind
        self.frame, self.segment = flows[0].frame, flows[0].segment
        self.times, self.sizes = _merged([flow.acked if at_sender else flow.data for flow in flows])
        self.sent = np.sort(np.concatenate([flow.data[0] for flow in flows]))
        self.lost = np.sort(np.concatenate([flow.lost for flow in flows]))
        self.start = int(self.times[0]) if self.times.size else 0
        self.length = max(1, int(self.times[-1]) - self.start) if self.times.size else 1
        self.seconds = self.length / 1e9
        self.number = min(SPANS, max(1, self.length // (4 * WINDOW_NS)))
        t_rtt, rtt = ahead if at_sender else behind
        self.queue_s = rtt - rtt.min()
        self.t_queue = t_rtt
        self.base_s = sum(float(part[1].min()) for part in (ahead, behind) if part[0].size)
        self._windows()
        self._pairs(flows, at_sender)
        self._losses()

    def _windows(self) -> None:
        """Compute the rate of each window with a queue, also before and after it."""
        edges = np.arange(self.start, self.start + self.length + WINDOW_NS, WINDOW_NS)
        middles = edges[:-1] + WINDOW_NS // 2
        payload, _ = np.histogram(self.times, edges, weights=self.sizes)
        rates = payload * 8 * self.frame / self.segment / (WINDOW_NS / 1e9)
        waits = np.interp(middles, self.t_queue, self.queue_s)
        queued = waits > max(QUEUE_S, QUEUE_OF_BASE * self.base_s)
        inner = queued.copy()
        inner[1:] &= queued[:-1]
        inner[:-1] &= queued[1:]
        inner[-1:] = False
        self.window_span, self.window_rate, self.window_queued = self._span(middles), rates, inner

    def _pairs(self, flows: list[TcpSamples], at_sender: bool) -> None:
        """Compute the rate between each delivery and the one before it, of full packets under a queue."""
        gaps = np.diff(self.times)
        sizes = self.sizes[1:]
        is_full = (sizes >= self.segment) & (sizes % self.segment == 0) & (gaps > 0)
        windows = np.minimum((self.times[1:] - self.start) // WINDOW_NS, self.window_queued.size - 1)
        chosen = is_full & self.window_queued[windows]
        self.pair_rate = sizes[chosen] * 8e9 * self.frame / self.segment / gaps[chosen]
        self.pair_span = self._span(self.times[1:][chosen])

    def _losses(self) -> None:
        """Find the queue before each loss: the longest wait of the last round trip."""
        waits = []
        for t in self.lost.tolist():
            reach = t - int(1e9 * (self.base_s + float(self.queue_s.max())))
            first, last = np.searchsorted(self.t_queue, (reach, t))
            waits.append(float(self.queue_s[first:last].max()) if last > first else 0.0)
        self.loss_wait, self.loss_span = np.array(waits), self._span(self.lost)
        self.sent_span = self._span(self.sent)
        longest = float(np.quantile(self.queue_s, 0.99)) if self.queue_s.size else 0.0
        self.is_random = self.loss_wait < max(FULL * longest, QUEUE_S)

    def _span(self, times: Times) -> Times:
        return np.clip((times - self.start) * self.number // self.length, 0, self.number - 1)

    def values(self, spans: Sequence[int] | range) -> dict[str, float | None]:
        """Return the quantities of some spans, of which each may occur several times."""
        counts = np.bincount(np.fromiter(spans, dtype=np.int64), minlength=self.number)
        weights = counts[self.window_span] * self.window_queued
        flow_rate = float(np.average(self.window_rate, weights=weights)) if weights.any() else None
        pairs = self._mode(counts, flow_rate)
        rate = pairs or flow_rate or self._most(counts)
        base = sum(
            float(values[counts[self._span(times)] > 0].min(initial=np.inf))
            for times, values in (self.ahead, self.behind) if times.size
        )  # fmt: skip
        full = self.loss_wait[~self.is_random]
        full_counts = counts[self.loss_span][~self.is_random]
        waits = np.repeat(full, full_counts)
        buffer_s = float(np.median(waits)) if waits.size else float(self.queue_s.max(initial=0.0))
        sent = int(counts[self.sent_span].sum())
        lost = counts[self.loss_span]
        cross = None
        if flow_rate is not None and pairs is not None:
            cross = rate - flow_rate if rate - flow_rate > NO_CROSS * rate else 0.0
        return {
            "rate_mbps": rate / 1e6,
            "base_rtt_ms": base * 1e3 if np.isfinite(base) else None,
            "buffer_ms": buffer_s * 1e3,
            "buffer_kb": buffer_s * rate / 8e3 * (self.frame - CABLE + 14) / self.frame,
            "loss_percent": 100 * float(lost.sum()) / sent if sent else None,
            "random_loss_percent": 100 * float(lost[self.is_random].sum()) / sent if sent else None,
            "cross_mbps": None if cross is None else cross / 1e6,
        }

    def _mode(self, counts: Times, flow_rate: float | None) -> float | None:
        """Return the most frequent rate of pairs, at least the flows' own rate; None if none is frequent."""
        if flow_rate is None:
            return None
        rates = np.repeat(self.pair_rate, counts[self.pair_span])
        near = rates[(rates > flow_rate * (1 - BIN)) & (rates < flow_rate * MOST_OF_OWN)]
        if near.size < 10:
            return None
        bins = np.floor(np.log(near / flow_rate) / log(1 + BIN)).astype(np.int64)
        bins -= bins.min()
        heights = np.convolve(np.bincount(bins), np.ones(3), "same")
        top = int(heights.argmax())
        if heights[top] < LEAST_SHARE * rates.size:
            return None
        return float(np.median(near[np.abs(bins - top) <= 1]))

    def _most(self, counts: Times) -> float:
        """Return the largest rate of a window."""
        return float(self.window_rate[counts[self.window_span] > 0].max(initial=0.0))

    def remarks(self, is_paired: bool) -> dict[str, str]:
        """Return by quantity what limits its estimate. `is_paired`: the rate is that of pairs."""
        remarks = {"random_loss_percent": "at least: losses at a full queue count as its drops"}
        if not self.window_queued.any():
            remarks["rate_mbps"] = "at least: there was no queue"
            remarks["cross_mbps"] = "needs a queue"
        else:
            remarks["cross_mbps"] = "" if is_paired else "deliveries have no common spacing, as behind a shaper"
        if self.is_random.all():
            remarks["buffer_ms"] = remarks["buffer_kb"] = "at least: no loss after a long queue"
        if not self.behind[0].size or not self.ahead[0].size:
            remarks["base_rtt_ms"] = "of one side of the capture only"
        return remarks


def _of_flent(run: Recording) -> LinkEstimate:
    """Return the estimate from the series of a Flent file."""
    window = loaded_window(run)
    if not run.flows:
        raise InputError("FILE", str(run.path), "has no TCP flow")
    sides = [[flow for flow in run.flows if flow.upload == upload] for upload in (True, False)]
    series = [_finite(goodput_total(run, flows, window).values) for flows in sides if flows]
    if not any(values.size for values in series):
        raise InputError("FILE", str(run.path), "has no goodput during its test")
    goodput = max((values for values in series if values.size), key=lambda values: float(values.mean()))
    rate, rate_ends = _resampled(goodput / PAYLOAD, np.mean)
    none = LinkQuantity(None, None, "a Flent file does not show it")
    base, buffer, size = none, none, none
    pings = ping_ms(run, run.pings[0]) if run.pings else None
    if pings is not None and (loaded := _finite(pings.within(window).values)).size:
        answered = _finite(pings.values)
        least = float(answered.min())
        base = LinkQuantity(rounded(least), (rounded(least), rounded(float(np.sort(answered)[:5].max()))))
        wait, ends = _resampled(loaded - least, lambda values: np.percentile(values, 99))
        remark = "at least: p99 of the pings' wait"
        buffer = LinkQuantity(wait, ends, remark)
        kb = [rounded(value * rate / 8) for value in (wait, *(ends or ()))]
        size = LinkQuantity(kb[0], (kb[1], kb[2]) if ends else None, remark)
    return LinkEstimate(
        str(run.path), "Flent", rounded(window.length_s),
        LinkQuantity(rate, rate_ends, "of Ethernet frames with 1448 B of payload, with the flows' own share only"),
        base, buffer, size, none, none, none,
    )  # fmt: skip


def _finite(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def _resampled(values: Floats, statistic: Any) -> tuple[float, tuple[float, float] | None]:
    """Return a statistic and its interval, bootstrapped over spans of the samples."""
    value = rounded(float(statistic(values)))
    parts = np.array_split(values, min(SPANS, values.size))
    if len(parts) < LEAST_SPANS:
        return value, None
    random = np.random.default_rng(0)
    drawn = [
        float(statistic(np.concatenate([parts[at] for at in random.integers(len(parts), size=len(parts))])))
        for _ in range(DRAWS)
    ]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return value, (rounded(float(low)), rounded(float(high)))
