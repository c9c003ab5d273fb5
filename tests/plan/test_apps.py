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


def plan(*apps: dict[str, Any], **more: Any) -> Plan:
    commands = [{**one} for one in apps]
    return build(load({"testbed": TESTBED, "app": commands} | more), Virtual.capabilities)


def file(made: Plan, room: int, path: str) -> str:
    (found,) = [one for one in made.rooms[room].files if one.path == path]
    return base64.b64decode(found.content).decode()


def test_names_of_nodes_become_addresses() -> None:
    words = [*ASKS["command"][:5]]
    assert plan(ASKS | {"command": words}).apps[0].command == ["ask", "10.0.1.2", "10.0.1.1", "{b.address}", words[4]]


def test_every_node_knows_the_others_by_the_address_by_which_it_reaches_them() -> None:
    made = plan({"node": "a", "command": ["x"]}, {"node": "b", "command": ["x"]}, {"node": "a", "command": ["x"]})
    assert [(room.node, room.root) for room in made.rooms] == [("a", 0), ("b", 0)]
    assert [app.room for app in made.apps] == [0, 1, 0]
    names = ["10.0.0.1 a", "10.0.0.2 r", "10.0.1.1 r", "10.0.1.2 b"]
    assert file(made, 0, "/etc/hosts").splitlines()[2:] == names
    assert file(made, 1, "/etc/hosts").splitlines()[2:] == [names[0], names[2], names[1], names[3]]
    assert (file(made, 0, "/etc/hostname"), file(made, 1, "/etc/hostname")) == ("a\n", "b\n")


def test_the_test_ends_with_the_programs_unless_there_is_another_or_all_go_on() -> None:
    once, server = {"node": "a", "command": ["x"]}, {"node": "b", "command": ["y"], "ready": {"listen": "udp:53"}}
    assert plan(once, server).apps_end
    assert not plan(server).apps_end
    assert not plan(once, test={"name": "ping"}).apps_end
    assert [app.background for app in plan(once, server).apps] == [False, True]
    stopped = server | {"stop": 5}
    assert [app.background for app in plan(once, stopped).apps] == [False, True]
    assert plan(server | {"name": "y2"}, stopped).apps_end
    assert [app.background for app in plan(server | {"name": "y2"}, stopped).apps] == [True, False]


def test_a_scenario_without_programs_has_none() -> None:
    made = build(load({"testbed": TESTBED}), Virtual.capabilities)
    assert (made.roots, made.rooms, made.apps, made.apps_end) == ([], [], [], False)


def test_programs_alone_have_no_streams() -> None:
    assert plan({"node": "a", "command": ["x"]}).streams == []


@pytest.mark.parametrize(
    ("more", "message"),
    [({"start": 5}, "app.0.start = 5: within the test, which ends at 5 s"), ({"stop": 6}, "app.0.stop = 6: within")],
)
def test_programs_start_and_stop_within_the_test(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan({"node": "a", "command": ["x"]} | more, test={"length": 5})


def test_a_node_without_a_cpu_is_planned_as_ever_and_one_with_it_gets_one_line() -> None:
    plain, with_cpu = (
        build(load({"testbed": TESTBED | {"node": [{"name": "a"} | more, *TESTBED["node"][1:]]}}), Virtual.capabilities)
        for more in ({}, {"cpu": {"syscall": "2us", "per_byte": "1.5ns"}})
    )
    (step,) = (one for one in with_cpu.setup if one not in plain.setup)
    assert step == WriteStep(
        do="write", node="a", path="/proc/hourglass/cpu", value="2000 1500", origin="testbed.node.0.cpu"
    )
    assert len(with_cpu.setup) == len(plain.setup) + 1


def test_an_engine_that_runs_no_programs_says_so_of_cpus() -> None:
    testbed = TESTBED | {"node": [{"name": "a", "cpu": {"syscall": "2us"}}, *TESTBED["node"][1:]]}
    with pytest.raises(InputError, match=r"testbed\.node\.0\.cpu = .*: this engine runs no programs"):
        build(load({"testbed": testbed}), Native.capabilities)


def test_an_engine_that_runs_no_programs_says_so() -> None:
    wanted = load({"testbed": TESTBED, "app": [{"node": "a", "command": ["x"]}]})
    with pytest.raises(InputError, match="app = '1 programs': this engine runs none"):
        build(wanted, Native.capabilities)
