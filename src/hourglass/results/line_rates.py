# SPDX-License-Identifier: Apache-2.0
"""The rates of the lines that a run's flows pass, as pictures of goodput show them."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hourglass.contract.plan import Hop
from hourglass.results.recording import Recording
from hourglass.results.series import goodput_steps, goodput_total, whole_run

MBIT = 1e6
MOST_LINES = 2
FULL = 0.5
"""A line is drawn if a series comes this near to its rate: lower series would be squeezed together."""
ABOVE = 1.02
ABOVE_NOTE = "above the line's rate: data behind a hole, delivered together when the hole was filled"


class Endpoints(Protocol):
    """A stream with a client and a server."""

    @property
    def client(self) -> str: ...
    @property
    def server(self) -> str: ...


def rate_mbps(run: Recording, stream: Endpoints, upload: bool) -> float | None:
    """Return the minimum rate of the cables on a stream's path, Mbit/s. None if the path is unknown, or all its rates
    vary: in the air, with a trace, with events."""
    path = next(
        (
            candidate
            for candidate in run.paths
            if (candidate.client, candidate.server) == (stream.client, stream.server)
        ),
        None,
    )
    hops: Sequence[Hop] = () if path is None else path.there if upload else path.back
    rates_bps = [hop.rate_bps for hop in hops if hop.medium != "air" and "trace" not in hop.impairments]
    return min(rates_bps) / MBIT if rates_bps and run.events.is_empty() else None


def flow_line_rates(run: Recording) -> tuple[list[float], bool]:
    """Return (rates to draw as lines, Mbit/s; whether the goodput of a flow, or of all flows on one path, is above
    it)."""
    window, routes = whole_run(run), {(flow.client, flow.server, flow.upload) for flow in run.flows}
    tops = [(flow, flow.upload, goodput_steps(run, flow, window).values) for flow in run.flows]
    if len(routes) == 1:
        tops.append((run.flows[0], run.flows[0].upload, goodput_total(run, run.flows, window).values))
    rates: dict[float, None] = {}
    above = False
    for stream, upload, values in tops:
        rate, top = rate_mbps(run, stream, upload), float(np.nanmax(values, initial=0))
        if rate is not None and top >= FULL * rate:
            rates[rate] = None
            above = above or top > ABOVE * rate
    return (sorted(rates) if len(rates) <= MOST_LINES else []), above
