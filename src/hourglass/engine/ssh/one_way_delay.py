# SPDX-License-Identifier: Apache-2.0
"""Convert times and one-way delays between the clocks of several hosts.

A one-way delay is a difference of two hosts' times of day. Their offset is subtracted; the uncertainty is the sum of
both uncertainties. If it exceeds the median delay of a direction, a ping has no delays of that direction. The delays of
a stream of datagrams remain, with a warning, because their changes are correct."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hourglass.contract.plan import Plan
from hourglass.engine.ssh.clocks import SET_THRESHOLD_NS, Clock

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class HostRecords:
    """The records of one host, the offset of its monotonic clock, and the interfaces of its devices.

    `host_start_ns` and `local_start_ns`: test time 0 by its monotonic clock, and by the local one. `local_ahead_ns`:
    the local time of day minus the local monotonic clock."""

    node: str
    records: Path
    host_start_ns: int
    local_start_ns: int
    clock: Clock
    devices: Mapping[str, str]
    local_ahead_ns: int

    def local_ns(self, t_ns: Times) -> Times:
        """Convert test times by its clock to test times by the local clock."""
        clock = self.clock
        since = (t_ns + (self.host_start_ns - clock.offset_ns - clock.at_ns)).astype(np.float64)
        gained = np.rint(since * clock.drift_ppb / (10**9 + clock.drift_ppb)).astype(np.int64)
        return np.asarray(t_ns + (self.host_start_ns - clock.offset_ns - self.local_start_ns) - gained)

    def ahead(self, t_ns: Times) -> Times:
        """Return the host's time of day minus the local monotonic clock, at local test times."""
        clock = self.clock
        gained = np.rint((t_ns + (self.local_start_ns - clock.at_ns)).astype(np.float64) * clock.drift_ppb / 10**9)
        return np.asarray(gained.astype(np.int64) + (clock.offset_ns + clock.time_of_day_ahead_ns))

    @property
    def was_set(self) -> bool:
        """Return whether the host's time of day was set during the test."""
        return abs(self.clock.set_ns) > SET_THRESHOLD_NS


def row(records: HostRecords) -> dict[str, Any]:
    """Return the host's row of the table `clock`."""
    clock = records.clock
    ahead = int(records.ahead(np.zeros(1, dtype=np.int64))[0]) - records.local_ahead_ns
    return {
        "t_ns": 0,
        "node": records.node,
        "offset_ns": ahead,
        "drift_ppb": clock.drift_ppb,
        "uncertainty_ns": clock.uncertainty_ns,
        "round_trip_ns": clock.round_trip_ns,
        "exchanges": clock.exchanges,
        "set_ns": clock.set_ns if records.was_set else 0,
    }


def set_clocks(host_records: Sequence[HostRecords]) -> Iterator[str]:
    """Yield warnings about clocks that were set."""
    for records in host_records:
        if records.was_set:
            yield f"the clock of {records.node} was set by {records.clock.set_ns / 1e6:+.3f} ms during the test"


def with_column(table: pa.Table, name: str, column: Any) -> pa.Table:
    """Return the table with a column of this name, replaced or added."""
    if name not in table.column_names:
        return table.append_column(name, column)
    index = table.column_names.index(name)
    return table.set_column(index, table.schema.field(index), column)


def imprecision(client: HostRecords, server: HostRecords, delay_ns: float) -> str | None:
    """Return the reason why one-way delays of this size are not meaningful, if one exists."""
    if client.was_set or server.was_set:
        return "a clock was set during the test"
    within_ns = client.clock.uncertainty_ns + server.clock.uncertainty_ns
    if delay_ns >= within_ns:
        return None
    interval = f"the uncertainty of the clocks of {client.node} and {server.node}, {within_ns / 1e6:.3f} ms"
    return f"their median, {delay_ns / 1e6:.3f} ms, is less than {interval}"


def ping_delays(plan: Plan, table: pa.Table, host_records: Sequence[HostRecords], warnings: list[str]) -> pa.Table:
    """Convert the one-way delays of pings to one clock, or remove them."""
    ends = {part.node: part for part in host_records}
    streams, t_ns = (table[name].to_numpy() for name in ("stream", "t_ns"))
    columns: list[Any] = [table[name] for name in ("owd_up_ns", "rtt_ns")]
    up, rtt = (column.fill_null(0).to_numpy().copy() for column in columns)
    measured = columns[0].is_valid().to_numpy()
    down, valid_up, valid_down = np.zeros_like(up), measured.copy(), measured.copy()
    for ping in plan.pings:
        selected = measured & (streams == ping.id)
        if not selected.any():
            continue
        client, server = ends[ping.client], ends[ping.server]
        up[selected] += client.ahead(t_ns[selected]) - server.ahead(t_ns[selected])
        down[selected] = rtt[selected] - up[selected]
        for direction, delays, valid in (("up", up, valid_up), ("down", down, valid_down)):
            if reason := imprecision(client, server, float(np.median(delays[selected]))):
                warnings.append(f"ping {ping.name} has no one-way delays {direction}: {reason}")
                valid &= ~selected
    for name, delays, valid in (("owd_up_ns", up, valid_up), ("owd_down_ns", down, valid_down)):
        table = with_column(table, name, pa.array(delays, mask=~valid, type=pa.int64()))
    return table


def join_datagrams(
    plan: Plan, tables: Mapping[str, pa.Table], host_records: Sequence[HostRecords], warnings: list[str]
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the datagrams that each host sent, with their arrivals at other hosts. A receiver's table has the arrival
    as the time of sending. Times are local."""
    ends = {part.node: part for part in host_records}
    for node, table in tables.items():
        streams, seq, t_ns = (table[name].to_numpy() for name in ("stream", "seq", "t_ns"))
        is_sender = np.zeros(len(streams), dtype=bool)
        owd, arrived = np.zeros(len(streams), dtype=np.int64), np.zeros(len(streams), dtype=bool)
        ecn: list[str | None] = [None] * len(streams)
        for stream in plan.datagrams:
            if stream.client != node:
                continue
            selected = np.flatnonzero(streams == stream.id)
            is_sender[selected] = True
            if (receiver_table := tables.get(stream.server)) is None:
                continue
            theirs = receiver_table.filter(pa.array(receiver_table["stream"].to_numpy() == stream.id))
            codepoints = theirs["ecn"].to_pylist() if "ecn" in theirs.column_names else [None] * len(theirs)
            columns: list[Any] = [theirs["seq"].to_pylist(), theirs["t_ns"].to_pylist(), codepoints]
            arrivals = {number: (arrival, codepoint) for number, arrival, codepoint in zip(*columns, strict=True)}
            for index in selected.tolist():
                if (match := arrivals.get(int(seq[index]))) is not None:
                    owd[index], arrived[index], ecn[index] = match[0] - t_ns[index], True, match[1]
            delays = owd[selected][arrived[selected]]
            if delays.size and (reason := imprecision(ends[node], ends[stream.server], float(np.median(delays)))):
                warnings.append(f"{stream.name}: one-way delays are correct except for a constant: {reason}")
        table = with_column(table, "owd_ns", pa.array(owd, mask=~arrived, type=pa.int64()))
        if any(ecn):
            table = with_column(table, "ecn", pa.array(ecn, pa.string()))
        yield node, table.filter(pa.array(is_sender))
