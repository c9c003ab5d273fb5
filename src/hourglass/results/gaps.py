# SPDX-License-Identifier: Apache-2.0
"""Finds the gaps in samples, across which picture and report draw no line.

A gap is longer than `GAP_STEPS` steps of the test, which is Flent's rule, and than as many intervals of the samples. A
lost packet is a sample.
"""

import numpy as np

from hourglass.contract.plan import FlowStream, PingStream
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, ping_ms, tcp_rtt_ms
from hourglass.results.stats import Floats

GAP_STEPS = 5


def ping_gaps_s(run: Recording, ping: PingStream) -> Floats:
    """Return the middles of the gaps of a ping, s."""
    return _middles(ping_ms(run, ping).t_s, max(run.test.step_s, ping.interval_ns / NS_PER_S))


def rtt_gaps_s(run: Recording, flow: FlowStream) -> Floats:
    """Return the middles of the gaps in the RTT samples of a flow, s. Their interval is the median distance."""
    t_s = tcp_rtt_ms(run, flow).t_s
    interval_s = float(np.median(np.diff(t_s))) if t_s.size > 1 else 0.0
    return _middles(t_s, max(run.test.step_s, interval_s))


def _middles(t_s: Floats, interval_s: float) -> Floats:
    before = np.flatnonzero(np.diff(t_s) > GAP_STEPS * interval_s)
    middles: Floats = (t_s[before] + t_s[before + 1]) / 2
    return middles


def starts(t_s: Floats, gaps_s: Floats) -> list[int]:
    """Return the indices of the samples at which a line begins again; `t_s` may be a part of the samples."""
    return sorted({int(index) for index in np.searchsorted(t_s, gaps_s)} - {0, t_s.size})
