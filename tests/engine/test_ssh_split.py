# SPDX-License-Identifier: Apache-2.0
"""A plan for several machines, cut into their parts."""

from hourglass.contract.plan import BatchStep, HostStep, KeepStep, Plan, WriteStep
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
    wanted = {"name": "x", "testbed": testbed, "test": {"name": "rrul", "length": 2, "delay": 1}, "event": [CHANGE]}
    return build(load(wanted), REAL)


def part(node: str) -> Plan:
    whole = plan()
    return split.part(whole, next(host for host in split.hosts(whole) if host.node == node))


def lines(one: Plan) -> list[str]:
    return [line for step in one.setup if isinstance(step, BatchStep) for line in step.lines]


def test_every_step_and_event_is_in_one_part_and_every_stream_in_all() -> None:
    whole, parts = plan(), [part(node) for node in ("client", "router", "server")]
    assert sum(len(one.setup) for one in parts) == len(whole.setup)
    assert {step.node for step in parts[1].setup} == {"router"}
    assert [len(one.events) for one in parts] == [0, 1, 0]
    assert all(one.streams == whole.streams and one.end_ns == whole.end_ns for one in parts)
    assert all(Plan.model_validate_json(one.to_json()) == one for one in parts)


def test_interfaces_stand_in_place_of_devices_each_once() -> None:
    """The router's interface eth0 is not its device eth0."""
    router = part("router")
    assert "addr replace 10.0.0.2/24 dev eth7" in lines(router)
    assert "addr replace 10.0.1.1/24 dev eth0" in lines(router)
    assert "qdisc replace dev eth0 root handle 1: htb default 1" in lines(router)
    paths = [step.path for step in router.setup if isinstance(step, WriteStep) and "forwarding" in step.path]
    assert paths == [f"/proc/sys/net/ipv4/conf/{name}/forwarding" for name in ("eth7", "eth0")]
    kept = [name for step in router.setup if isinstance(step, KeepStep) for name in step.devices]
    assert kept == ["eth7", "eth0"]
    (event,) = router.events
    assert isinstance(event.steps[0], BatchStep)
    assert event.steps[0].lines == ["class change dev eth0 classid 1:1 htb rate 5mbit"]


def test_all_that_is_written_is_kept_before() -> None:
    for node in ("client", "router", "server"):
        kept: set[str] = set()
        for step in part(node).setup:
            kept |= set(step.files) if isinstance(step, KeepStep) else set()
            assert not isinstance(step, WriteStep) or step.path in kept


def test_hosts_are_told_of_but_no_word_of_how_to_get_in() -> None:
    assert [(one.node, one.destination) for one in plan().setup if isinstance(one, HostStep)] == [
        ("client", "root@c"), ("router", "r"), ("server", "me@s")
    ]  # fmt: skip


def test_a_part_of_a_path_is_renamed_only_among_devices() -> None:
    assert (
        split.path("/proc/sys/net/ipv4/conf/eth0/forwarding", {"eth0": "a"}) == "/proc/sys/net/ipv4/conf/a/forwarding"
    )
    assert split.path("/proc/sys/kernel/eth0", {"eth0": "a"}) == "/proc/sys/kernel/eth0"
