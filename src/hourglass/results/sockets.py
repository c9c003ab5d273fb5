# SPDX-License-Identifier: Apache-2.0
"""The samples of a run's sockets as arrays, null as NaN, cut by stream: all figures are made of the same rows."""

import numpy as np
import numpy.typing as npt
import polars as pl

from hourglass.contract.plan import Flow
from hourglass.results.records import Tables
from hourglass.results.stats import Floats

COLUMNS = ("t_ns", "stream", "sender", "rtt", "bytes_acked", "bytes_received", "total_retrans")
"""What series are cut from, of the 90 columns of `tcp`."""

Samples = tuple[Floats, Floats]
"""(t_ns, values), by time."""


class Sockets:
    """The samples of the table `tcp`; those of programs, whose ids are `planned` and more, left out."""

    def __init__(self, tables: Tables, planned: int) -> None:
        rows = tables.columns("tcp", COLUMNS) if "tcp" in tables else pl.DataFrame()
        if rows.height:
            rows = rows.filter(pl.col("stream") < planned)
        floats = rows.select(pl.all().cast(pl.Float64).fill_null(float("nan")))
        self._columns = {name: floats[name].to_numpy() for name in floats.columns}
        self._payloads: dict[int, Samples] = {}
        self._places: dict[tuple[int | None, bool], npt.NDArray[np.intp]] = {}
        if rows.is_empty():
            return
        t_ns, stream, sender = (self._columns[name] for name in COLUMNS[:3])
        order = np.lexsort((t_ns, sender, stream))
        for part in np.split(order, np.flatnonzero(np.diff(2 * stream[order] + sender[order])) + 1):
            self._places[int(stream[part[0]]), bool(sender[part[0]])] = part
        by_time = np.argsort(t_ns, kind="stable")
        self._places[None, True] = by_time[sender[by_time] == 1]

    def of(self, flow: Flow | None, sender: bool, column: str) -> Samples:
        """A column of one side of a flow, or of all senders; empty when there is no such column."""
        places = self._places.get((None if flow is None else flow.id, sender))
        if places is None or column not in self._columns:
            return np.empty(0), np.empty(0)
        return self._columns["t_ns"][places], self._columns[column][places]

    def payload(self, flow: Flow) -> Samples:
        """Payload bytes so far: what the receiver got, or without its samples what the sender saw acked."""
        if flow.id not in self._payloads:
            self._payloads[flow.id] = self._find_payload(flow)
        return self._payloads[flow.id]

    def _find_payload(self, flow: Flow) -> Samples:
        for sender, column in ((False, "bytes_received"), (True, "bytes_acked")):
            t_ns, received = self.of(flow, sender, column)
            known = ~np.isnan(received)
            if known.any():
                return t_ns[known], received[known]
        return np.empty(0), np.empty(0)
