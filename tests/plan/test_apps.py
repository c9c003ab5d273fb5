# SPDX-License-Identifier: Apache-2.0
"""Programs in a plan: rooms, names and addresses, times."""

import base64
from typing import Any

import pytest

from hourglass.contract.plan import Plan, WriteStep
from hourglass.engine.native import Native
from hourglass.engine.virtual import Virtual
from hourglass.errors import InputError
from hourglass.plan import build
from hourglass.scenario import load

TESTBED: dict[str, Any] = {
    "node": [{"name": "a"}, {"name": "r", "role": "router"}, {"name": "b"}],
    "link": [{"ends": ["a:x", "r:y"]}, {"ends": ["r:z", "b:x"]}],
}
ASKS = {"node": "a", "command": ["ask", "{b.address}", "{r.z}", "{{b.address}}", "{b} {print $1}", "-w%{time.x}"]}


def plan_of(*apps: dict[str, Any], **tables: Any) -> Plan:
    commands = [{**app} for app in apps]
    return build(load({"testbed": TESTBED, "app": commands} | tables), Virtual.capabilities)


def file(plan: Plan, room: int, path: str) -> str:
    (match,) = [entry for entry in plan.rooms[room].files if entry.path == path]
    return base64.b64decode(match.content).decode()


def test_names_of_nodes_become_addresses() -> None:
    command = [*ASKS["command"][:5], "{b.x.mac}"]
    assert plan_of(ASKS | {"command": command}).apps[0].command == [
        "ask",
        "10.0.1.2",
        "10.0.1.1",
        "{b.address}",
        command[4],
        "02:00:00:00:01:02",
    ]


def test_hosts_files_have_the_addresses_that_each_node_reaches() -> None:
    plan = plan_of({"node": "a", "command": ["x"]}, {"node": "b", "command": ["x"]}, {"node": "a", "command": ["x"]})
    assert [(room.node, room.root) for room in plan.rooms] == [("a", 0), ("b", 0)]
    assert [app.room for app in plan.apps] == [0, 1, 0]
    names = ["10.0.0.1 a", "10.0.0.2 r", "10.0.1.1 r", "10.0.1.2 b"]
    assert file(plan, 0, "/etc/hosts").splitlines()[2:] == names
    assert file(plan, 1, "/etc/hosts").splitlines()[2:] == [names[0], names[2], names[1], names[3]]
    assert (file(plan, 0, "/etc/hostname"), file(plan, 1, "/etc/hostname")) == ("a\n", "b\n")


def test_packages_of_debian_decide_the_order_of_lookups() -> None:
    for root, count in ("debian:12", 0), ("/", 1):
        plan = plan_of({"node": "a", "command": ["sh"]}, apps={"root": root})
        assert [entry.path for entry in plan.rooms[0].files].count("/etc/nsswitch.conf") == count


def test_the_home_of_a_name_is_left_to_the_agent() -> None:
    plan = plan_of(*({"node": "a", "command": ["x"]} | user for user in ({}, {"user": "root"}, {"user": "www-data"})))
    assert [app.env.get("HOME") for app in plan.apps] == ["/tmp", "/root", None]


def test_the_test_ends_with_the_programs_without_other_traffic_or_endless_programs() -> None:
    once, server = {"node": "a", "command": ["x"]}, {"node": "b", "command": ["y"], "ready": {"listen": "udp:53"}}
    assert plan_of(once, server).apps_end
    assert not plan_of(server).apps_end
    assert not plan_of(once, test={"name": "ping"}).apps_end
    assert [app.background for app in plan_of(once, server).apps] == [False, True]
    stopped = server | {"stop": 5}
    assert [app.background for app in plan_of(once, stopped).apps] == [False, True]
    assert plan_of(server | {"name": "y2"}, stopped).apps_end
    assert [app.background for app in plan_of(server | {"name": "y2"}, stopped).apps] == [True, False]


def test_a_scenario_without_programs_has_none() -> None:
    plan = build(load({"testbed": TESTBED}), Virtual.capabilities)
    assert (plan.roots, plan.rooms, plan.apps, plan.apps_end) == ([], [], [], False)


def test_programs_alone_have_no_streams() -> None:
    assert plan_of({"node": "a", "command": ["x"]}).streams == []


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"start": 5}, "app.0.start = 5: must be within the test, which ends at 5 s"),
        ({"stop": 6}, "app.0.stop = 6: must be within"),
    ],
)
def test_programs_start_and_stop_within_the_test(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_of({"node": "a", "command": ["x"]} | keys, test={"length": 5})


def test_a_node_with_a_cpu_has_one_more_step() -> None:
    plain, with_cpu = (
        build(load({"testbed": TESTBED | {"node": [{"name": "a"} | keys, *TESTBED["node"][1:]]}}), Virtual.capabilities)
        for keys in ({}, {"cpu": {"syscall": "2us", "per_byte": "1.5ns", "received": "10us", "timer": "40us"}})
    )
    (step,) = (candidate for candidate in with_cpu.setup if candidate not in plain.setup)
    assert step == WriteStep(
        do="write", node="a", path="/proc/hourglass/cpu", value="2000 1500 10000 0 40000", origin="testbed.node.0.cpu"
    )
    assert len(with_cpu.setup) == len(plain.setup) + 1


def test_an_engine_without_programs_refuses_cpus() -> None:
    testbed = TESTBED | {"node": [{"name": "a", "cpu": {"syscall": "2us"}}, *TESTBED["node"][1:]]}
    with pytest.raises(InputError, match=r"testbed\.node\.0\.cpu = .*: this engine's nodes have real CPUs"):
        build(load({"testbed": testbed}), Native.capabilities)


def test_an_engine_without_programs_refuses_programs() -> None:
    loaded = load({"testbed": TESTBED, "app": [{"node": "a", "command": ["x"]}]})
    with pytest.raises(InputError, match="app = '1 programs': this engine runs no programs"):
        build(loaded, Native.capabilities)
