# SPDX-License-Identifier: Apache-2.0
"""The samples of a run's sockets as arrays, null as NaN, cut by stream: all figures use the same rows."""

import numpy as np
import numpy.typing as npt
import polars as pl

from hourglass.contract.plan import FlowStream
from hourglass.results.records import Tables
from hourglass.results.stats import Floats

COLUMNS = ("t_ns", "stream", "sender", "rtt", "bytes_acked", "bytes_received", "total_retrans")
"""The columns that series need, of the 90 columns of `tcp`."""

Samples = tuple[Floats, Floats]
"""(t_ns, values), by time."""


class Sockets:
    """The samples of the table `tcp`, except those of programs, whose ids are at least `planned`."""

    def __init__(self, tables: Tables, planned: int) -> None:
        rows = tables.columns("tcp", COLUMNS) if "tcp" in tables else pl.DataFrame()
        if rows.height:
            rows = rows.filter(pl.col("stream") < planned)
        floats = rows.select(pl.all().cast(pl.Float64).fill_null(float("nan")))
        self._columns = {name: floats[name].to_numpy() for name in floats.columns}
        self._payloads: dict[int, Samples] = {}
        self._rows: dict[tuple[int | None, bool], npt.NDArray[np.intp]] = {}
        if rows.is_empty():
            return
        t_ns, stream, sender = (self._columns[name] for name in COLUMNS[:3])
        order = np.lexsort((t_ns, sender, stream))
        for part in np.split(order, np.flatnonzero(np.diff(2 * stream[order] + sender[order])) + 1):
            self._rows[int(stream[part[0]]), bool(sender[part[0]])] = part
        by_time = np.argsort(t_ns, kind="stable")
        self._rows[None, True] = by_time[sender[by_time] == 1]

    def samples(self, flow: FlowStream | None, sender: bool, column: str) -> Samples:
        """Return a column of one side of a flow, or of all senders; empty without such a column."""
        rows = self._rows.get((None if flow is None else flow.id, sender))
        if rows is None or column not in self._columns:
            return np.empty(0), np.empty(0)
        return self._columns["t_ns"][rows], self._columns[column][rows]

    def payload(self, flow: FlowStream) -> Samples:
        """Return payload bytes so far: received ones, or without the receiver's samples those that the sender saw
        acknowledged."""
        if flow.id not in self._payloads:
            self._payloads[flow.id] = self._find_payload(flow)
        return self._payloads[flow.id]

    def _find_payload(self, flow: FlowStream) -> Samples:
        for sender, column in ((False, "bytes_received"), (True, "bytes_acked")):
            t_ns, received = self.samples(flow, sender, column)
            valid = ~np.isnan(received)
            if valid.any():
                return t_ns[valid], received[valid]
        return np.empty(0), np.empty(0)
