# SPDX-License-Identifier: Apache-2.0
"""Streams that programs opened: what they are called, their figures, their series.

A connection is called by its client's program and a number in the order of their first packets, `curl#1`. Its figures
are of its whole life, from its first packet to its last.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from hourglass.contract import summary
from hourglass.contract.plan_apps import App
from hourglass.results.stats import rounded, statistics

NS_PER_S = 10**9
US_PER_MS = 1000
SHOWN = 8
"""Of so many, those with the most payload, it is told where their time goes."""


@dataclass(frozen=True)
class Connection:
    """A stream of programs (docs/records.md, table `socket`). `app`, `to_app`: the names of the scenario's programs, or
    of processes, "" of what nobody saw. `address`, `port`: None where it is of many connections."""

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
        """Whether most of its data go to the server."""
        return self.bytes_up >= self.bytes_down

    @property
    def bytes(self) -> int:
        """Of payload, both ways."""
        return self.bytes_up + self.bytes_down

    @property
    def peer(self) -> str:
        """The server's address and port."""
        return f"[{self.to_address}]:{self.to_port}" if ":" in self.to_address else f"{self.to_address}:{self.to_port}"


def connections(rows: pl.DataFrame, apps: Sequence[App]) -> tuple[Connection, ...]:
    """Those of the table `socket`, in the order of their first packets."""
    numbers: Counter[str] = Counter()
    return tuple(
        _connection(row, apps, numbers) for row in rows.drop_nulls("stream").sort("stream").iter_rows(named=True)
    )


def _connection(row: dict[str, Any], apps: Sequence[App], numbers: Counter[str]) -> Connection:
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


def largest(known: Sequence[Connection], count: int = SHOWN) -> list[Connection]:
    """Those with the most payload, most first; of equals the earlier."""
    return sorted(known, key=lambda one: -one.bytes)[:count]


def figures(known: Sequence[Connection], tcp: pl.DataFrame) -> Iterator[summary.Connection]:
    """The figures of each. `tcp`: the samples of the sockets."""
    parts = tcp.partition_by("stream", as_dict=True) if known else {}
    for one in known:
        samples = parts.get((one.name,), tcp.clear())
        length_s = (one.end_ns - one.start_ns) / NS_PER_S
        ends = samples.sort("t_ns").group_by("sender").agg(pl.col("total_retrans").last()).drop_nulls()
        yield summary.Connection(
            id=one.name,
            app=one.app,
            node=one.node,
            to_app=one.to_app,
            to_node=one.to_node,
            peer=one.peer,
            protocol=one.protocol,
            connections=one.connections,
            start_s=rounded(one.start_ns / NS_PER_S),
            end_s=rounded(one.end_ns / NS_PER_S),
            bytes_up=one.bytes_up,
            bytes_down=one.bytes_down,
            up_mbps=rounded(one.bytes_up * 8 / 1e6 / length_s) if length_s else None,
            down_mbps=rounded(one.bytes_down * 8 / 1e6 / length_s) if length_s else None,
            retransmits=int(ends["total_retrans"].sum()) if ends.height else None,
            tcp_rtt_ms=statistics(rtt_ms(one, samples)),
        )


def rtt_ms(one: Connection, samples: pl.DataFrame) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """Smoothed RTT at the end that sent most, of the samples in which it was known, ms."""
    mine = samples.filter((pl.col("sender") == one.upload) & (pl.col("rtt") > 0))
    return mine.sort("t_ns")["rtt"].cast(pl.Float64).to_numpy() / US_PER_MS
