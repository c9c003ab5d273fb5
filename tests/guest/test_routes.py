# SPDX-License-Identifier: Apache-2.0
"""Routers without static routes: the routes of programs decide the path. `ip route add` replaces a routing daemon."""

from typing import Any

import polars as pl
import pytest

from .conftest import Simulate

pytestmark = pytest.mark.guest

MS = 10**6
CABLES = [
    ("client:lan r1:lan", 1),
    ("r1:r2 r2:r1", 5),
    ("r1:r3 r3:r1", 20),
    ("r3:r2 r2:r3", 20),
    ("r2:lan server:lan", 1),
]
"""Ends and delay in ms: the long way from r1 to r2 leads over r3."""
LONG_MS = 2 * (1 + 20 + 20 + 1)
START_S = 2
LINES = {
    "r1": "ip route add 10.0.4.0/24 via {r3.r1}",
    "r2": "ip route add 10.0.0.0/24 via {r3.r2}",
    "r3": "ip route add 10.0.0.0/24 via {r1.r3} && ip route add 10.0.4.0/24 via {r2.r3}",
}


def triangle(*routers: str) -> dict[str, Any]:
    """Return a scenario in which programs at these routers add routes."""
    names = ["client", "r1", "r2", "r3", "server"]
    return {
        "name": "triangle",
        "testbed": {
            "routes": "connected",
            "node": [{"name": name, "role": "router" if name in LINES else "host"} for name in names],
            "link": [{"ends": ends.split(), "delay": f"{delay_ms}ms"} for ends, delay_ms in CABLES],
        },
        "test": {"name": "ping", "length": 5},
        "apps": {"root": "debian:12"},
        "app": [
            {"name": name, "node": name, "user": "root", "start": START_S, "command": ["sh", "-c", LINES[name]]}
            for name in routers
        ],
    }


def test_packets_take_the_routes_that_programs_add(simulate: Simulate) -> None:
    run = simulate(triangle(*LINES))
    assert all(check.ok for check in run.summary.checks)
    early = run.ping_rows.filter(pl.col("t_ns") < START_S * 10**9)
    late = run.ping_rows.filter(pl.col("t_ns") > START_S * 10**9)
    assert early.height > 5
    assert early["rtt_ns"].null_count() == early.height
    assert late.height > 5
    assert late["rtt_ns"].null_count() == 0
    assert late["rtt_ns"].median() == pytest.approx(LONG_MS * MS, rel=0.01)

    without = simulate(triangle())
    assert without.ping_rows.height == run.ping_rows.height
    assert without.ping_rows["rtt_ns"].null_count() == without.ping_rows.height
