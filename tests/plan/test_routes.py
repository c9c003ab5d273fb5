# SPDX-License-Identifier: Apache-2.0
"""Routers that have only connected routes, for routing daemons."""

from typing import Any

import pytest

from hourglass.contract.plan import AddressStep, EventStep, Plan, ReachStep, RouteStep
from hourglass.errors import InputError
from hourglass.plan import build
from hourglass.scenario import load

from .able import ALL, VETH

CABLES = ["client:lan r1:lan", "r1:r2 r2:r1", "r1:r3 r3:r1", "r3:r2 r2:r3", "r2:lan server:lan"]


def triangle(**testbed: Any) -> dict[str, Any]:
    """Return a scenario: three routers in a triangle, a client at r1, a server at r2."""
    names = ["client", "r1", "r2", "r3", "server"]
    nodes = [{"name": name, "role": "router" if name[1:].isdigit() else "host"} for name in names]
    links = [{"ends": cable.split()} for cable in CABLES]
    return {"testbed": {"node": nodes, "link": links, **testbed}, "test": {"name": "ping"}}


def plan_of(**testbed: Any) -> Plan:
    return build(load(triangle(**testbed)), ALL)


def of_kind(plan: Plan, kind: type) -> list[Any]:
    return [step for step in plan.setup if isinstance(step, kind)]


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("able", [ALL, VETH])
def test_only_hosts_have_routes(version: int, able: Any) -> None:
    static, connected = (build(load(triangle(ip=version, routes=routes)), able) for routes in ("static", "connected"))
    assert {step.node for step in of_kind(static, RouteStep)} == {"client", "r1", "r2", "r3", "server"}
    hosts = [step for step in of_kind(static, RouteStep) if step.node in ("client", "server")]
    assert of_kind(connected, RouteStep) == hosts
    assert of_kind(connected, AddressStep) == of_kind(static, AddressStep)
    assert connected.paths == static.paths


def test_the_default_is_static() -> None:
    assert plan_of().to_json() == plan_of(routes="static").to_json()


def test_only_neighbours_reach_each_other_before_a_daemon_runs() -> None:
    (whole_path,) = of_kind(plan_of(), ReachStep)
    assert (whole_path.node, whole_path.address) == ("client", "10.0.4.2")
    steps = of_kind(plan_of(routes="connected"), ReachStep)
    assert [(step.node, step.address) for step in steps] == [
        ("client", "10.0.0.2"), ("r1", "10.0.1.2"), ("r2", "10.0.4.2"),
        ("server", "10.0.4.1"), ("r2", "10.0.1.1"), ("r1", "10.0.0.1"),
    ]  # fmt: skip
    assert {step.timeout_ns for step in steps} == {whole_path.timeout_ns}


def test_a_device_that_comes_up_again_restores_no_route_of_a_router() -> None:
    events = [{"at": at, "node": "r1", "device": "r2", "link": state} for at, state in ((1, "down"), (2, "up"))]
    steps: dict[str, list[EventStep]] = {
        routes: build(load({**triangle(routes=routes), "event": events}), ALL).events[1].steps
        for routes in ("static", "connected")
    }
    assert any(isinstance(step, RouteStep) for step in steps["static"])
    assert steps["connected"] == [step for step in steps["static"] if not isinstance(step, RouteStep)]


def test_another_value_is_refused() -> None:
    with pytest.raises(InputError, match=r"^testbed\.routes = 'none': A kind of routes is one of static, connected$"):
        load(triangle(routes="none"))


def test_a_preset_takes_the_key() -> None:
    plan = build(load({"testbed": {"preset": "L100M", "routes": "connected"}}), ALL)
    assert {step.node for step in of_kind(plan, RouteStep)} == {"client", "server"}
