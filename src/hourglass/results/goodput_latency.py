# SPDX-License-Identifier: Apache-2.0
"""Goodput and latency as pairs: one point per second of the loaded window, one per run."""

import numpy as np

from hourglass.results import connection_series
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, Series, goodput_total, loaded_window, ping_ms, tcp_rtt_ms
from hourglass.results.stats import Floats

BLOCK_S = 1.0
"""As in `compare`."""


def latency(run: Recording) -> tuple[str, Series]:
    """Return (name, ms) of the latency that represents a run: its first answered ping, else the TCP RTT, of flows or
    else of programs' connections."""
    window = loaded_window(run)
    for ping in run.pings:
        series = ping_ms(run, ping).within(window)
        answered = ~np.isnan(series.values)
        if answered.any():
            return f"ping {ping.name}", Series(series.t_s[answered], series.values[answered])
    if run.flows or not run.connections:
        return "TCP RTT", tcp_rtt_ms(run).within(window)
    parts = [connection_series.tcp_rtt_ms(run, connection) for connection in connection_series.drawn(run)]
    return "TCP RTT", Series(*(np.concatenate([getattr(part, field) for part in parts]) for field in ("t_s", "values")))


def points(run: Recording) -> tuple[Floats, Floats]:
    """Return (median latency in ms, goodput of all flows in Mbit/s) of each block that has both. Equal lengths."""
    window = loaded_window(run)
    if not run.flows:
        return np.empty(0), np.empty(0)
    goodput, (_, latencies) = goodput_total(run, run.flows, window), latency(run)
    start_s = window.start_ns / NS_PER_S
    middle_s = goodput.t_s - run.test.step_s / 2
    sent, measured = (np.floor((t_s - start_s) / BLOCK_S) for t_s in (middle_s, latencies.t_s))
    blocks = np.intersect1d(sent, measured)
    return (
        np.array([np.median(latencies.values[measured == block]) for block in blocks]),
        np.array([np.mean(goodput.values[sent == block]) for block in blocks]),
    )
