# SPDX-License-Identifier: Apache-2.0
"""A plan for several machines, split into their parts."""

from hourglass.contract.plan import BatchStep, HostStep, KeepStep, Plan, ToolStep, WriteStep
from hourglass.engine.ssh import split
from hourglass.plan import build
from hourglass.scenario import load
from tests.plan.able import REAL

NODES = [
    {"name": "client", "host": "root@c", "real": {"eth0": "enp1s0"}},
    {"name": "router", "host": "r", "role": "router", "real": {"eth0": "eth7", "wan": "eth0"}},
    {"name": "server", "host": "me@s", "real": {"eth0": "enp1s0.5"}},
]
LINKS = [{"ends": ["client:eth0", "router:eth0"]}, {"ends": ["router:wan", "server:eth0"]}]
CHANGE = {"at": 1, "node": "router", "tc": "class change dev wan classid 1:1 htb rate 5mbit"}


def plan() -> Plan:
    testbed = {"node": NODES, "link": LINKS, "shaper": [{"at": "router:wan", "rate": "20mbit"}]}
    data = {"name": "x", "testbed": testbed, "test": {"name": "rrul", "length": 2, "delay": 1}, "event": [CHANGE]}
    return build(load(data), REAL)


def part(node: str) -> Plan:
    complete = plan()
    return split.part(complete, next(host for host in split.hosts(complete) if host.node == node))


def lines(part_plan: Plan) -> list[str]:
    return [line for step in part_plan.setup if isinstance(step, ToolStep) for line in step.lines]


def test_every_step_and_event_is_in_one_part_and_every_stream_in_all() -> None:
    complete, parts = plan(), [part(node) for node in ("client", "router", "server")]
    assert sum(len(part_plan.setup) for part_plan in parts) == len(complete.setup)
    assert {step.node for step in parts[1].setup} == {"router"}
    assert [len(part_plan.events) for part_plan in parts] == [0, 1, 0]
    assert all(part_plan.streams == complete.streams and part_plan.end_ns == complete.end_ns for part_plan in parts)
    assert all(Plan.model_validate_json(part_plan.to_json()) == part_plan for part_plan in parts)


def test_interfaces_replace_devices_exactly_once() -> None:
    """The router's interface eth0 is not its device eth0."""
    router = part("router")
    assert "addr replace 10.0.0.2/24 dev eth7" in lines(router)
    assert "addr replace 10.0.1.1/24 dev eth0" in lines(router)
    assert "qdisc replace dev eth0 root handle 1: htb default 1" in lines(router)
    paths = [step.path for step in router.setup if isinstance(step, WriteStep) and "forwarding" in step.path]
    assert paths == [f"/proc/sys/net/ipv4/conf/{name}/forwarding" for name in ("eth7", "eth0")]
    saved = [name for step in router.setup if isinstance(step, KeepStep) for name in step.devices]
    assert saved == ["eth7", "eth0"]
    (event,) = router.events
    assert isinstance(event.steps[0], BatchStep)
    assert event.steps[0].lines == ["class change dev eth0 classid 1:1 htb rate 5mbit"]


def test_every_file_is_saved_before_a_write() -> None:
    for node in ("client", "router", "server"):
        saved: set[str] = set()
        for step in part(node).setup:
            saved |= set(step.files) if isinstance(step, KeepStep) else set()
            assert not isinstance(step, WriteStep) or step.path in saved


def test_hosts_are_named_without_credentials() -> None:
    assert [(step.node, step.destination) for step in plan().setup if isinstance(step, HostStep)] == [
        ("client", "root@c"), ("router", "r"), ("server", "me@s")
    ]  # fmt: skip


def test_a_part_of_a_path_is_renamed_only_among_devices() -> None:
    assert (
        split.path("/proc/sys/net/ipv4/conf/eth0/forwarding", {"eth0": "a"}) == "/proc/sys/net/ipv4/conf/a/forwarding"
    )
    assert split.path("/proc/sys/kernel/eth0", {"eth0": "a"}) == "/proc/sys/kernel/eth0"
