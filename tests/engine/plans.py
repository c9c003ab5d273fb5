# SPDX-License-Identifier: Apache-2.0
"""Small plans, written by hand."""

from typing import Any

from hourglass.contract.plan import VERSION, Plan


def small_plan(end_s: float = 1.0, **changes: Any) -> Plan:
    """Return a plan with two nodes on a veth pair and one upload; `changes` replace keys of the plan."""
    end_ns = int(end_s * 1e9)
    link = ["link add eth0 type veth peer name eth0 netns b", "addr add 10.0.0.1/24 dev eth0", "link set eth0 up"]
    flow = {
        "kind": "flow", "id": 0, "name": "up", "client": "a", "server": "b", "sender": "a", "address": "10.0.0.2",
        "port": 5000, "cc": "cubic", "dscp": 0, "start_ns": end_ns // 10, "stop_ns": end_ns // 10 * 9,
        "backend": "socket", "pace_bps": None, "writes": None,
    }  # fmt: skip
    plan = {
        "version": VERSION, "seed": 1, "end_ns": end_ns, "nodes": ["a", "b"],
        "setup": [
            {"do": "ip", "node": "a", "lines": link, "origin": None},
            {"do": "ip", "node": "b", "lines": ["addr add 10.0.0.2/24 dev eth0", "link set eth0 up"], "origin": None},
            tc("qdisc add dev eth0 root tbf rate 50mbit burst 10k latency 10ms"),
        ],
        "streams": [flow], "paths": [{"client": "a", "server": "b", "there": [], "back": []}],
        "captures": [], "radios": [], "events": [], "roots": [], "rooms": [], "apps": [],
        "apps_end": False,
        "sampling": {"tcp_ns": 10_000_000, "device_ns": 200_000_000, "totals_ns": 200_000_000, "packets": 0},
    }  # fmt: skip
    return Plan.model_validate(plan | changes)


def tc(line: str, origin: str | None = "stack.qdisc") -> dict[str, Any]:
    """Return a step that calls tc on node a."""
    return {"do": "tc", "node": "a", "lines": [line], "origin": origin}
