# SPDX-License-Identifier: Apache-2.0
"""Responsiveness under working conditions in round trips per minute (RPM), from the records of a test `rpm`.

Source: draft-ietf-ippm-responsiveness-09. The test starts a load-generating connection, and one more in each interval,
up to a maximum. Only the end of the draft's algorithm depends on measurements, and records do not depend on later
ones. So the test runs for its whole length, and this module finds the instant at which the algorithm would have
stopped:

1. After each interval, the moving average of the goodput is that of the last four intervals. Goodput is saturated when
   the standard deviation of the last four averages is below 5 % of the last one.
2. From then on, each interval gives a responsiveness, of the probes that ended in the last four intervals. The result
   is the first one with a standard deviation of the last four values below 5 % of it.

    foreign = 60000 / ((TM(tcp_f) + TM(http_f)) / 2)     loaded = 60000 / TM(http_l)     RPM = (foreign + loaded) / 2

TM is the mean without the longest 5 %. This is the draft's case without TLS. Of what the draft says, this differs:

* The probe on a separate connection records the handshake and the request together, so their sum is trimmed.
* The probe on a load-generating connection is TCP's smoothed RTT at its sender, every sampling interval of each flow.
  The draft allows this proxy without HTTP/2. It lacks the wait in the sender's socket.
* In a test of both directions, both must be saturated, and the loaded round trips are of both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hourglass.contract.summary import Confidence, ResponsivenessFigures
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_MS, NS_PER_S, floats, payload_at
from hourglass.results.stats import Floats, rounded

INTERVAL = "rpm_interval"
DISTANCE = 4
"""The intervals of a moving average (MAD)."""
TOLERANCE = 0.05
"""The relative standard deviation of stable values (SDT)."""
TRIMMED_SHARE = 0.95
"""The share of the times that a trimmed mean includes (TMP)."""
MS_PER_MINUTE = 60_000.0
ROUND_TRIPS = 2
"""Of a probe on a separate connection: the handshake and the request."""


@dataclass(frozen=True)
class _TimedSamples:
    """Instants and times, ns and ms."""

    t_ns: Floats
    ms: Floats

    def between(self, start_ns: float, end_ns: float) -> Floats:
        """Return the times of the instants from a start to before an end."""
        return self.ms[(self.t_ns >= start_ns) & (self.t_ns < end_ns)]


@dataclass(frozen=True)
class _Value:
    """The responsiveness of an interval; times in ms."""

    foreign_ms: float
    loaded_ms: float
    probes: int

    @property
    def rpm(self) -> float:
        return MS_PER_MINUTE * (1 / self.foreign_ms + 1 / self.loaded_ms) / 2


def responsiveness(run: Recording) -> ResponsivenessFigures | None:
    """Return the responsiveness of a test `rpm`; None for other tests, and for one shorter than an interval."""
    if INTERVAL not in run.test.parameters or not run.flows:
        return None
    step_ns, start_ns = float(run.test.parameters[INTERVAL]) * NS_PER_S, run.test.delay_s * NS_PER_S
    count = int(run.test.length_s * NS_PER_S / step_ns + 1e-9)
    if count == 0:
        return None
    edges_ns = np.asarray(start_ns + step_ns * np.arange(count + 1), dtype=np.float64)
    averages = {upload: _averages(run, upload, edges_ns, step_ns) for upload in (True, False)}
    used = [each for each in averages.values() if each]
    saturated = next((i for i in range(count) if all(is_stable(each[: i + 1]) for each in used)), None)

    probes, loaded = _probes(run), _loaded(run)
    first = count - 1 if saturated is None else saturated + 1  # if it was not saturated in time: the last intervals
    values, stable = _until_stable(probes, loaded, edges_ns, range(max(0, first), count))
    if saturated is None:
        stable = None
    last = count - 1 if stable is None else stable
    result = values[-1] if values else None
    idle_ms = trimmed_mean(probes.between(0, start_ns)) / ROUND_TRIPS
    up_mbps, down_mbps = (rounded(each[last]) if each else None for each in averages.values())
    return ResponsivenessFigures(
        rpm=rounded(result.rpm) if result else None,
        foreign_rpm=rounded(MS_PER_MINUTE / result.foreign_ms) if result else None,
        loaded_rpm=rounded(MS_PER_MINUTE / result.loaded_ms) if result else None,
        idle_rpm=None if np.isnan(idle_ms) else rounded(MS_PER_MINUTE / idle_ms),
        foreign_ms=rounded(result.foreign_ms) if result else None,
        loaded_ms=rounded(result.loaded_ms) if result else None,
        upload_mbps=up_mbps,
        download_mbps=down_mbps,
        probes=result.probes if result else 0,
        flows=sum(flow.start_ns < edges_ns[last + 1] for flow in run.flows),
        saturated_s=None if saturated is None else rounded((saturated + 1) * step_ns / NS_PER_S),
        stable_s=None if stable is None else rounded((stable + 1) * step_ns / NS_PER_S),
        capacity_confidence=_confidence(saturated is not None, count),
        confidence=_confidence(stable is not None, len(values) if saturated is not None else 0),
    )


def _until_stable(
    probes: _TimedSamples, loaded: _TimedSamples, edges_ns: Floats, intervals: range
) -> tuple[list[_Value], int | None]:
    """Return the responsiveness of each interval up to the first stable one, and the index of that one."""
    values: list[_Value] = []
    for index in intervals:
        span = edges_ns[max(0, index + 1 - DISTANCE)], edges_ns[index + 1]
        probes_ms, loaded_ms = probes.between(*span), loaded.between(*span)
        if probes_ms.size and loaded_ms.size:
            foreign_ms = trimmed_mean(probes_ms) / ROUND_TRIPS
            values.append(_Value(foreign_ms, trimmed_mean(loaded_ms), int(probes_ms.size)))
        if is_stable([each.rpm for each in values]):
            return values, index
    return values, None


def is_stable(values: Sequence[float]) -> bool:
    """Tell if the last values differ little from each other."""
    recent = values[-DISTANCE:]
    return len(recent) == DISTANCE and float(np.std(recent)) < TOLERANCE * recent[-1]


def trimmed_mean(times: Floats) -> float:
    """Return the mean of the times without the longest; NaN without any."""
    if not times.size:
        return float("nan")
    return float(np.sort(times)[: max(1, int(times.size * TRIMMED_SHARE))].mean())


def _confidence(reached: bool, values: int) -> Confidence:
    return "high" if reached else "medium" if values >= DISTANCE else "low"


def _averages(run: Recording, upload: bool, edges_ns: Floats, step_ns: float) -> list[float] | None:
    """Return the moving averages of the goodput of a direction after each interval, Mbit/s; None without flows. The
    first ones are divided by the whole distance too, as the draft says."""
    flows = [flow for flow in run.flows if flow.upload == upload]
    if not flows:
        return None
    received = np.diff(np.sum([payload_at(run, flow, edges_ns) for flow in flows], axis=0))
    sums = np.convolve(received, np.ones(DISTANCE))[: received.size]
    return [float(each) * 8e3 / (DISTANCE * step_ns) for each in sums]


def _probes(run: Recording) -> _TimedSamples:
    """Return the times of the probes on separate connections by their ends."""
    rows = [run.rows(client).drop_nulls("done_ns") for client in run.fetches]
    ends = [floats(each["t_ns"] + each["done_ns"]) for each in rows]
    times = [floats(each["done_ns"]) / NS_PER_MS for each in rows]
    return _TimedSamples(*(np.concatenate(each) if each else np.empty(0) for each in (ends, times)))


def _loaded(run: Recording) -> _TimedSamples:
    """Return the senders' smoothed RTTs."""
    t_ns, rtt_us = run.sockets.samples(None, True, "rtt")
    measured = rtt_us > 0
    return _TimedSamples(t_ns[measured], rtt_us[measured] / 1000)
