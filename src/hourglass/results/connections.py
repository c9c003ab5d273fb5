# SPDX-License-Identifier: Apache-2.0
"""Connections that programs opened: their names, figures and series.

A connection's name is its client's program and a number in the order of their first packets, `curl#1`. Its figures are
of its whole life, from its first packet to its last.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from hourglass.contract import summary
from hourglass.contract.plan.apps import PlanApp
from hourglass.results.stats import rounded, statistics

NS_PER_S = 10**9
US_PER_MS = 1000
LARGEST_COUNT = 8
"""The number of connections, those with the most payload, whose time by layer is reported."""


CLOSED_EARLY_NS = 50_000_000
"""A socket without samples for this long before its connection's last packet was closed by its program."""


@dataclass(frozen=True)
class Connection:
    """A stream of programs: a row of the table `socket` (docs/reference/records.md).

    `app` and `to_app` name programs of the scenario or processes; "" if unknown. `address` and `port` are None if the
    stream has several connections.
    """

    id: int
    name: str
    app: str
    node: str
    address: str | None
    port: int | None
    to_app: str
    to_node: str
    to_address: str
    to_port: int
    protocol: str
    connections: int
    start_ns: int
    end_ns: int
    bytes_up: int
    bytes_down: int

    @property
    def upload(self) -> bool:
        """Return true if most of its data go to the server."""
        return self.bytes_up >= self.bytes_down

    @property
    def bytes(self) -> int:
        """Payload in both directions, in bytes."""
        return self.bytes_up + self.bytes_down

    @property
    def peer(self) -> str:
        """The server's address and port."""
        return f"[{self.to_address}]:{self.to_port}" if ":" in self.to_address else f"{self.to_address}:{self.to_port}"


def connections(rows: pl.DataFrame, apps: Sequence[PlanApp]) -> tuple[Connection, ...]:
    """Return the connections of the table `socket`, in the order of their first packets."""
    numbers: Counter[str] = Counter()
    return tuple(
        _connection(row, apps, numbers) for row in rows.drop_nulls("stream").sort("stream").iter_rows(named=True)
    )


def _connection(row: dict[str, Any], apps: Sequence[PlanApp], numbers: Counter[str]) -> Connection:
    def name(prefix: str) -> str:
        app = row[f"{prefix}app"]
        return apps[app].name if app is not None else row[f"{prefix}program"] or ""

    client = name("")
    numbers[client or row["node"]] += 1
    return Connection(
        id=row["stream"],
        name=f"{client or row['node']}#{numbers[client or row['node']]}",
        app=client,
        node=row["node"],
        address=row["address"],
        port=row["port"],
        to_app=name("to_"),
        to_node=row["to_node"] or "",
        to_address=row["to_address"],
        to_port=row["to_port"],
        protocol="mptcp" if row["mptcp"] else row["protocol"],
        connections=row["connections"],
        start_ns=row["t_ns"],
        end_ns=row["end_ns"],
        bytes_up=row["bytes_up"],
        bytes_down=row["bytes_down"],
    )


def largest(candidates: Sequence[Connection], count: int = LARGEST_COUNT) -> list[Connection]:
    """Return those with the most payload, most first; equal ones in their order."""
    return sorted(candidates, key=lambda connection: -connection.bytes)[:count]


def figures(
    opened: Sequence[Connection], tcp: pl.DataFrame, drops: pl.DataFrame
) -> Iterator[summary.ConnectionFigures]:
    """Return the figures of each. `tcp`: the samples of the sockets; `drops`: the packets that the probe saw
    dropped."""
    parts = tcp.partition_by("stream", as_dict=True) if opened else {}
    for connection in opened:
        samples = parts.get((connection.name,), tcp.clear()).sort("t_ns")
        length_s = (connection.end_ns - connection.start_ns) / NS_PER_S
        yield summary.ConnectionFigures(
            id=connection.name,
            app=connection.app,
            node=connection.node,
            to_app=connection.to_app,
            to_node=connection.to_node,
            peer=connection.peer,
            protocol=connection.protocol,
            connections=connection.connections,
            start_s=rounded(connection.start_ns / NS_PER_S),
            end_s=rounded(connection.end_ns / NS_PER_S),
            bytes_up=connection.bytes_up,
            bytes_down=connection.bytes_down,
            up_mbps=rounded(connection.bytes_up * 8 / 1e6 / length_s) if length_s else None,
            down_mbps=rounded(connection.bytes_down * 8 / 1e6 / length_s) if length_s else None,
            retransmits=_sum_of_known([_retransmits(connection, samples, drops, client) for client in (True, False)]),
            tcp_rtt_ms=statistics(rtt_ms(connection, samples)),
        )


def _sum_of_known(counts: Sequence[int | None]) -> int | None:
    """The sum of those that are known; None when none is."""
    numbers = [count for count in counts if count is not None]
    return sum(numbers) if numbers else None


def _retransmits(connection: Connection, samples: pl.DataFrame, drops: pl.DataFrame, client: bool) -> int | None:
    """Segments that one end sent again: its socket's counter, as long as it is sampled.

    A socket has no samples after its program closed it, while it may still send. Each lost data packet was sent again,
    and each spurious retransmission was reported (DSACK). If a socket closed early, the larger count is used. Losses
    after which nothing more arrived are left out, as are spurious retransmissions after the last sample."""
    sender_rows, peer_rows = (samples.filter(pl.col("sender") == end) for end in (client, not client))
    counted = sender_rows.drop_nulls("total_retrans")
    if counted.is_empty():
        return None
    last = counted.row(-1, named=True)
    if connection.connections > 1 or last["t_ns"] + CLOSED_EARLY_NS >= connection.end_ns or peer_rows.is_empty():
        return int(last["total_retrans"])
    grown = peer_rows.filter(pl.col("bytes_received") > pl.col("bytes_received").shift(1))
    arrived_ns = connection.end_ns if grown.is_empty() else grown["t_ns"][-1]
    selection = (pl.col("stream") == connection.name) & (pl.col("way") == ("up" if client else "down"))
    lost = drops.filter(selection & (pl.col("bytes") > 0) & (pl.col("t_ns") <= arrived_ns))["packets"].sum()
    return max(int(last["total_retrans"]), int(lost) + int(last["dsack_dups"] or 0))


def rtt_ms(connection: Connection, samples: pl.DataFrame) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """Smoothed RTT at the end that sent most, of the samples in which it was known, ms."""
    rows = samples.filter((pl.col("sender") == connection.upload) & (pl.col("rtt") > 0))
    return rows.sort("t_ns")["rtt"].cast(pl.Float64).to_numpy() / US_PER_MS
