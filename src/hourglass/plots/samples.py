# SPDX-License-Identifier: Apache-2.0
"""What pictures of several runs are made of: flows by way, and latencies under load by name."""

import numpy as np

from hourglass.contract.plan import Flow
from hourglass.results.recording import Recording
from hourglass.results.series import loaded_window, ping_ms, tcp_rtt_ms
from hourglass.results.stats import Floats

TCP_RTT = "TCP RTT"


def flows_by_way(run: Recording) -> dict[str, list[Flow]]:
    """{"upload": its flows, "download": …}, without the ways that have none."""
    ways = {way: [flow for flow in run.flows if flow.upload == (way == "upload")] for way in ("upload", "download")}
    return {way: flows for way, flows in ways.items() if flows}


def latencies_ms(run: Recording) -> dict[str, Floats]:
    """{"TCP RTT": ms, "ping NAME": ms}, the samples under load; lost packets have none."""
    window = loaded_window(run)
    found = {TCP_RTT: tcp_rtt_ms(run).within(window).values}
    found |= {f"ping {ping.name}": ping_ms(run, ping).within(window).values for ping in run.pings}
    return {name: values[~np.isnan(values)] for name, values in found.items()}
