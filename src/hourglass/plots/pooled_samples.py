# SPDX-License-Identifier: Apache-2.0
"""Collects samples for pictures of several runs: goodput by direction or program, and latencies under load by name."""

import numpy as np

from hourglass.contract.plan import FlowStream
from hourglass.results import connection_series
from hourglass.results.connections import Connection
from hourglass.results.recording import Recording
from hourglass.results.series import goodput_total, loaded_window, ping_ms, tcp_rtt_ms
from hourglass.results.stats import Floats

TCP_RTT = "TCP RTT"


def flows_by_direction(run: Recording) -> dict[str, list[FlowStream]]:
    """Return {"upload": its flows, "download": …}, without directions that have none."""
    flows_of = {way: [flow for flow in run.flows if flow.upload == (way == "upload")] for way in ("upload", "download")}
    return {way: flows for way, flows in flows_of.items() if flows}


def connections_by_program(run: Recording) -> dict[str, list[Connection]]:
    """Return {client's program: its connections}, for the connections that pictures show."""
    connections_of: dict[str, list[Connection]] = {}
    for connection in connection_series.drawn(run):
        connections_of.setdefault(connection.app or connection.node, []).append(connection)
    return connections_of


def goodputs_mbps(run: Recording) -> dict[str, Floats]:
    """Return the goodput in Mbit/s in each step: {"upload": under load, "download": …, program: of its connections}."""
    window = loaded_window(run)
    samples_by_name = {way: goodput_total(run, flows, window).values for way, flows in flows_by_direction(run).items()}
    for program, connections in connections_by_program(run).items():
        samples_by_name[program] = np.concatenate(
            [connection_series.goodput_steps(run, connection).values[1:] for connection in connections]
        )
    return samples_by_name


def latencies_ms(run: Recording) -> dict[str, Floats]:
    """Return {"TCP RTT": ms, "TCP RTT PROGRAM": ms, "ping NAME": ms}: the samples under load, without lost packets."""
    window = loaded_window(run)
    samples_by_name = {TCP_RTT: tcp_rtt_ms(run).within(window).values}
    for program, connections in connections_by_program(run).items():
        samples_by_name[f"{TCP_RTT} {program}"] = np.concatenate(
            [connection_series.tcp_rtt_ms(run, connection).values for connection in connections]
        )
    samples_by_name |= {f"ping {ping.name}": ping_ms(run, ping).within(window).values for ping in run.pings}
    return {name: values[~np.isnan(values)] for name, values in samples_by_name.items()}
