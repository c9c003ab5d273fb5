# SPDX-License-Identifier: Apache-2.0
"""Figures and series of programs' connections, from tables made by hand."""

import polars as pl
import pytest

from hourglass.results.connections import Connection, figures

MS, S = 10**6, 10**9


def connection(**changed):
    fields = {"id": 0, "name": "curl#1", "app": "curl", "node": "client", "address": "10.0.0.1", "port": 40000,
             "to_app": "http", "to_node": "server", "to_address": "10.0.0.2", "to_port": 80, "protocol": "tcp",
             "connections": 1, "start_ns": 0, "end_ns": 3 * S, "bytes_up": 76, "bytes_down": 1_000_000}  # fmt: skip
    return Connection(**fields | changed)


def sampled(server_until_ns: int) -> pl.DataFrame:
    """Return samples of both ends every 10 ms. The server's counter is 6, with one spurious; the client gets data until
    2.9 s."""
    rows = []
    for t_ns in range(0, 3 * S, 10 * MS):
        rows.append({"t_ns": t_ns, "sender": True, "total_retrans": 0, "bytes_received": min(t_ns, 2900 * MS),
                     "dsack_dups": 0})  # fmt: skip
        if t_ns <= server_until_ns:
            rows.append({"t_ns": t_ns, "sender": False, "total_retrans": 6, "bytes_received": 76, "dsack_dups": 1})
    return pl.DataFrame(rows).with_columns(stream=pl.lit("curl#1"), rtt=pl.lit(60_000))


def dropped(*times_ns: int, way: str = "down", size: int = 1448) -> pl.DataFrame:
    return pl.DataFrame({"t_ns": times_ns, "stream": "curl#1", "way": way, "packets": 1, "bytes": size})


@pytest.mark.parametrize(
    ("until_ns", "drops", "expected"),
    [
        (2990 * MS, dropped(*range(0, 2 * S, 200 * MS)), 6),  # sampled to its end: its own counter
        (1000 * MS, dropped(*range(0, 2 * S, 200 * MS)), 11),  # closed early: ten lost and one spurious
        (1000 * MS, dropped(*range(0, 1 * S, 500 * MS)), 6),  # its counter is more
        (
            1000 * MS,
            pl.concat([dropped(*range(0, 2 * S, 200 * MS)), dropped(2950 * MS)]),
            11,
        ),  # nothing arrived after it
        (1000 * MS, dropped(*range(0, 2 * S, 200 * MS), size=0), 6),  # bare acknowledgments
        (1000 * MS, dropped(*range(0, 2 * S, 200 * MS), way="up"), 6),
    ],
)
def test_retransmissions_after_the_program_closed_the_socket_count(until_ns, drops, expected):
    (connection_figures,) = figures([connection()], sampled(until_ns), drops)
    assert connection_figures.retransmits == expected
