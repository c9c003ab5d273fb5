# SPDX-License-Identifier: Apache-2.0
"""Times and one-way delays by several machines' clocks.

A one-way delay is a difference of two machines' times of day. What these differ is taken out; how well it is known is
the sum of what is not known of both. Where that is more than the median delay of a way, a ping has no delays of that
way, and a stream of datagrams keeps them, for their changes are right, with a warning.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hourglass.contract.plan import Plan
from hourglass.engine.ssh.clocks import SET_NS, Clock

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """What came of one machine: its records; test time 0 by its own monotonic clock and by ours, and how these stand to
    each other; which interfaces its devices are. `ours_ahead_ns`: our time of day beyond our monotonic clock."""

    node: str
    records: Path
    theirs_ns: int
    ours_ns: int
    clock: Clock
    devices: Mapping[str, str]
    ours_ahead_ns: int

    def ours(self, t_ns: Times) -> Times:
        """Test times by its clock as test times by ours."""
        clock = self.clock
        since = (t_ns + (self.theirs_ns - clock.offset_ns - clock.at_ns)).astype(np.float64)
        gained = np.rint(since * clock.drift_ppb / (10**9 + clock.drift_ppb)).astype(np.int64)
        return np.asarray(t_ns + (self.theirs_ns - clock.offset_ns - self.ours_ns) - gained)

    def ahead(self, t_ns: Times) -> Times:
        """By how much its time of day is ahead of our monotonic clock at test times of ours."""
        clock = self.clock
        gained = np.rint((t_ns + (self.ours_ns - clock.at_ns)).astype(np.float64) * clock.drift_ppb / 10**9)
        return np.asarray(gained.astype(np.int64) + (clock.offset_ns + clock.ahead_ns))

    @property
    def was_set(self) -> bool:
        """Whether its time of day was set during the test."""
        return abs(self.clock.set_ns) > SET_NS


def row(part: Part) -> dict[str, Any]:
    """Its row of the table `clock`."""
    clock = part.clock
    ahead = int(part.ahead(np.zeros(1, dtype=np.int64))[0]) - part.ours_ahead_ns
    return {
        "t_ns": 0,
        "node": part.node,
        "offset_ns": ahead,
        "drift_ppb": clock.drift_ppb,
        "uncertainty_ns": clock.uncertainty_ns,
        "round_trip_ns": clock.round_trip_ns,
        "exchanges": clock.exchanges,
        "set_ns": clock.set_ns if part.was_set else 0,
    }


def set_clocks(parts: Sequence[Part]) -> Iterator[str]:
    """Warnings about clocks that were set."""
    for part in parts:
        if part.was_set:
            yield f"the clock of {part.node} was set by {part.clock.set_ns / 1e6:+.3f} ms during the test"


def changed(table: pa.Table, name: str, column: Any) -> pa.Table:
    """The table with another column of that name, or with one more."""
    if name not in table.column_names:
        return table.append_column(name, column)
    place = table.column_names.index(name)
    return table.set_column(place, table.schema.field(place), column)


def unknown(client: Part, server: Part, delay_ns: float) -> str | None:
    """Why one-way delays of that size say nothing, if so."""
    if client.was_set or server.was_set:
        return "a clock was set during the test"
    within_ns = client.clock.uncertainty_ns + server.clock.uncertainty_ns
    if delay_ns >= within_ns:
        return None
    within = f"the {within_ns / 1e6:.3f} ms to which the clocks of {client.node} and {server.node} are known"
    return f"their median, {delay_ns / 1e6:.3f} ms, is less than {within}"


def two_ways(plan: Plan, table: pa.Table, parts: Sequence[Part], warnings: list[str]) -> pa.Table:
    """Pings whose ways are by one clock, or none."""
    ends = {part.node: part for part in parts}
    streams, t_ns = (table[name].to_numpy() for name in ("stream", "t_ns"))
    columns: list[Any] = [table[name] for name in ("owd_up_ns", "rtt_ns")]
    up, rtt = (column.fill_null(0).to_numpy().copy() for column in columns)
    known = columns[0].is_valid().to_numpy()
    down, knows_up, knows_down = np.zeros_like(up), known.copy(), known.copy()
    for ping in plan.pings:
        mine = known & (streams == ping.id)
        if not mine.any():
            continue
        client, server = ends[ping.client], ends[ping.server]
        up[mine] += client.ahead(t_ns[mine]) - server.ahead(t_ns[mine])
        down[mine] = rtt[mine] - up[mine]
        for way, delays, there in (("up", up, knows_up), ("down", down, knows_down)):
            if reason := unknown(client, server, float(np.median(delays[mine]))):
                warnings.append(f"ping {ping.name} has no one-way delays {way}: {reason}")
                there &= ~mine
    for name, delays, there in (("owd_up_ns", up, knows_up), ("owd_down_ns", down, knows_down)):
        table = changed(table, name, pa.array(delays, mask=~there, type=pa.int64()))
    return table


def joined(
    plan: Plan, tables: Mapping[str, pa.Table], parts: Sequence[Part], warnings: list[str]
) -> Iterator[tuple[str, pa.Table]]:
    """What each machine sent, with when it arrived at others: these wrote down arrivals as if they had sent then. Times
    are ours already."""
    ends = {part.node: part for part in parts}
    for node, table in tables.items():
        streams, seq, t_ns = (table[name].to_numpy() for name in ("stream", "seq", "t_ns"))
        own = np.zeros(len(streams), dtype=bool)
        owd, arrived = np.zeros(len(streams), dtype=np.int64), np.zeros(len(streams), dtype=bool)
        ecn: list[str | None] = [None] * len(streams)
        for stream in plan.datagrams:
            if stream.client != node:
                continue
            mine = np.flatnonzero(streams == stream.id)
            own[mine] = True
            if (there := tables.get(stream.server)) is None:
                continue
            theirs = there.filter(pa.array(there["stream"].to_numpy() == stream.id))
            codepoints = theirs["ecn"].to_pylist() if "ecn" in theirs.column_names else [None] * len(theirs)
            columns: list[Any] = [theirs["seq"].to_pylist(), theirs["t_ns"].to_pylist(), codepoints]
            when = {number: (arrival, codepoint) for number, arrival, codepoint in zip(*columns, strict=True)}
            for place in mine.tolist():
                if (at := when.get(int(seq[place]))) is not None:
                    owd[place], arrived[place], ecn[place] = at[0] - t_ns[place], True, at[1]
            took = owd[mine][arrived[mine]]
            if took.size and (reason := unknown(ends[node], ends[stream.server], float(np.median(took)))):
                warnings.append(f"{stream.name}: one-way delays are right but for a constant: {reason}")
        table = changed(table, "owd_ns", pa.array(owd, mask=~arrived, type=pa.int64()))
        if any(ecn):
            table = changed(table, "ecn", pa.array(ecn, pa.string()))
        yield node, table.filter(pa.array(own))
