# SPDX-License-Identifier: Apache-2.0
"""LANs: their addresses, VLANs, devices, paths and spanning trees; and random ones before a judge that shares no code
with the plan."""

import random
from typing import Any

import pytest

from hourglass.contract.plan import (
    AddressStep,
    LinkStep,
    Plan,
    PortStep,
    ReachStep,
    RouteStep,
    SwitchStep,
    TagStep,
    VlanStep,
    WriteStep,
)
from hourglass.errors import InputError
from hourglass.plan import build
from hourglass.plan.network import Network
from hourglass.plan.spanning_tree import BridgeId, TreeLink, tree
from hourglass.scenario import load
from tests.fuzz.lans import lan

from .able import ALL, VETH
from .lan_bed import LINKS, ON_A_STICK, ONE_SWITCH, STP, bed, plan_of
from .lan_judge import Bridge, Judge, blocked

TWO: dict[str, Any] = {"s": {}, "u": {}}


def addresses(plan: Plan) -> dict[str, str]:
    return {f"{step.node}:{step.device}": step.address for step in plan.setup if isinstance(step, AddressStep)}


def of_kind(plan: Plan, kind: type) -> list[Any]:
    return [step for step in plan.setup if isinstance(step, kind)]


def hops(plan: Plan) -> list[str]:
    return [f"{hop.node}:{hop.device}" for hop in plan.paths[0].there]


def test_a_lan_has_the_subnet_of_its_first_link_and_the_lowest_addresses() -> None:
    links = ["gw:wan server:eth0", *LINKS[:1], "gw:lan s:c", "h:eth0 s:d"]
    assert addresses(plan_of(bed(ONE_SWITCH, links))) == {
        "gw:wan": "10.0.0.1/24", "server:eth0": "10.0.0.2/24",
        "client:eth0": "10.0.1.1/24", "gw:lan": "10.0.1.2/24", "h:eth0": "10.0.1.3/24",
    }  # fmt: skip
    six = addresses(plan_of(bed(ONE_SWITCH, links, ip=6)))
    assert (six["gw:lan"], six["h:eth0"]) == ("fd00:0:0:1::2/64", "fd00:0:0:1::3/64")


def test_given_addresses_decide_the_subnet_and_are_not_given_twice() -> None:
    links = [LINKS[0], ("s:b server:eth0", {"addresses": ["172.16.0.1/16"]}), "h:eth0 s:d"]
    assert addresses(plan_of(bed(ONE_SWITCH, links))) == {
        "client:eth0": "172.16.0.2/16", "server:eth0": "172.16.0.1/16", "h:eth0": "172.16.0.3/16",
    }  # fmt: skip


def test_three_hundred_hosts_need_a_wider_subnet() -> None:
    links = [*LINKS, *(f"h{number}:eth0 s:p{number}" for number in range(300))]
    with pytest.raises(InputError, match=r"^testbed\.link\.254\.addresses = none: h252 finds no free address in 10"):
        plan_of(bed(ONE_SWITCH, links))
    links[0] = (LINKS[0], {"addresses": ["172.16.0.1/16"]})
    assert addresses(plan_of(bed(ONE_SWITCH, links)))["h299:eth0"] == "172.16.1.46/16"


def test_each_vlan_is_a_subnet_and_a_trunk_has_a_device_for_each() -> None:
    plan = plan_of(bed(ONE_SWITCH, ON_A_STICK))
    assert addresses(plan) == {
        "client:eth0": "10.0.0.1/24", "gw:lan.10": "10.0.0.2/24",
        "server:eth0": "10.0.1.1/24", "gw:lan.20": "10.0.1.2/24",
    }  # fmt: skip
    assert [(step.device, step.parent, step.vlan) for step in of_kind(plan, TagStep)] == [
        ("lan.10", "lan", 10), ("lan.20", "lan", 20),
    ]  # fmt: skip
    assert [(step.device, step.vlan, step.untagged) for step in of_kind(plan, VlanStep)] == [
        ("a", 10, True), ("b", 20, True), ("c", 10, False), ("c", 20, False),
    ]  # fmt: skip
    assert hops(plan) == ["client:eth0", "s:c", "gw:lan", "s:b"]
    assert [(hop.address, hop.to_address) for hop in plan.paths[0].there][:3] == [
        ("10.0.0.1/24", None), (None, "10.0.0.2/24"), ("10.0.1.2/24", None),
    ]  # fmt: skip
    assert {(step.node, step.subnet, step.via) for step in of_kind(plan, RouteStep)} == {
        ("client", None, "10.0.0.2"), ("server", None, "10.0.1.2"),
    }  # fmt: skip


def test_a_vlan_whose_links_all_have_tags_has_a_spare_subnet() -> None:
    links = [("client:eth0 s:a", {"vlan": [7]}), ("s:b server:eth0", {"vlan": [7, 8]})]
    assert addresses(plan_of(bed(ONE_SWITCH, links))) == {
        "client:eth0.7": "10.0.2.1/24", "server:eth0.7": "10.0.2.2/24", "server:eth0.8": "10.0.3.1/24",
    }  # fmt: skip


def test_a_lan_without_vlans_does_not_filter_and_one_with_them_does() -> None:
    links = ["client:eth0 s:a", "s:b u:b", ("u:c server:eth0", {"vlan": 1}), "server:eth1 v:a", "h:eth0 v:b"]
    plan = plan_of(bed({**TWO, "v": {}}, links))
    assert {step.node: step.pvid for step in of_kind(plan, SwitchStep)} == {"s": 0, "u": 0, "v": None}
    assert {step.node for step in of_kind(plan, VlanStep)} == {"s", "u"}
    assert [step.device for step in of_kind(plan, PortStep)] == ["a", "b", "b", "c", "a", "b"]


def test_links_of_two_vlans_between_switches_are_no_loop() -> None:
    links = [("client:eth0 s:a", {"vlan": 10}), ("s:b u:b", {"vlan": 10}), ("s:c u:c", {"vlan": [20]})]
    links += [("u:d server:eth0", {"vlan": 10}), ("u:e h:eth0", {"vlan": 20}), ("s:e g:eth0", {"vlan": 20})]
    plan = plan_of(bed(TWO, links))
    assert hops(plan) == ["client:eth0", "s:b", "u:d"]
    with_protocol = plan_of(bed({"s": STP, "u": STP}, links))
    assert (addresses(plan)["h:eth0"], addresses(plan)["g:eth0"]) == ("10.0.4.1/24", "10.0.4.2/24")
    addresses_with_stp = addresses(with_protocol)
    assert (addresses_with_stp["h:eth0"], addresses_with_stp["g:eth0"]) == ("10.0.4.1/24", "10.0.5.1/24"), (
        "one tree for all VLANs"
    )


def test_the_set_up_waits_for_each_path_through_the_protocol() -> None:
    links = ["client:eth0 gw:a", "gw:b server:eth0", "h:eth0 s:a", "s:b g:eth0", "s:c gw:c"]
    competing = {"name": "ping", "competing": [{"client": "h", "server": "g"}]}
    for switch, expected in (({}, []), (STP, [("h", "10.0.2.2")])):
        steps = of_kind(plan_of(bed({"s": switch}, links), test=competing), ReachStep)
        assert [(step.node, step.address) for step in steps] == [("client", "10.0.1.2"), *expected]


def test_a_node_with_two_devices_in_a_subnet_answers_for_each_alone() -> None:
    links = [*LINKS, "client:eth1 s:c"]
    for version, expected in ((4, {("client", "arp_ignore", "1"), ("client", "arp_announce", "2")}), (6, set())):
        writes = of_kind(plan_of(bed(ONE_SWITCH, links, ip=version)), WriteStep)
        assert {(step.node, step.path.split("/")[-1], step.value) for step in writes if "arp" in step.path} == expected


def test_an_mtu_that_changes_is_also_that_of_the_vlans() -> None:
    change = {"at": 1, "node": "gw", "device": "lan", "set": {"mtu": 3000}}
    (event,) = plan_of(bed(ONE_SWITCH, ON_A_STICK), event=[change]).events
    assert [(step.node, step.device, step.mtu) for step in event.steps if isinstance(step, LinkStep)] == [
        ("gw", "lan", 3000), ("gw", "lan.10", 3000), ("gw", "lan.20", 3000), ("s", "c", 3000),
    ]  # fmt: skip


@pytest.mark.parametrize(("keys", "expected"), [({}, []), ({"vlan": 1}, ["vlan add dev wlan0 vid 1 pvid untagged"])])
def test_an_access_point_that_restarts_is_in_its_vlan_again(keys: dict[str, Any], expected: list[str]) -> None:
    cell = {"ap": "s:wlan0", "station": [{"at": "client:wlan0"}]}
    restart = {"at": 1, "node": "s", "ap": "restart"}
    (event,) = plan_of(bed(ONE_SWITCH, [("s:b server:eth0", keys)], wifi=[cell]), event=[restart]).events
    assert [line for step in event.steps if isinstance(step, VlanStep) for line in step.lines] == expected


def test_without_checksums_no_port_of_a_switch_has_tso() -> None:
    links = [("client:eth0 s:a", {"checksum": False}), LINKS[1]]
    plan = build(load({"testbed": bed(ONE_SWITCH, links), "test": {"name": "ping"}}), VETH)
    lines = [" ".join(step.args) for step in plan.setup if step.do == "ethtool"]
    assert all(("tx off" in line) == ("tso off" in line) for line in lines)
    assert len([line for line in lines if "tso off" in line]) == 2


@pytest.mark.parametrize("seed", range(200))
def test_the_tree_is_that_of_bridges_that_exchange_messages(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randint(2, 9)
    names = {
        f"s{number}": BridgeId(chance.choice([0, 4096, 32768]), f"02:00:00:00:{number:02x}:01")
        for number in chance.sample(range(count), count)
    }
    pairs = [(chance.randrange(number), number) for number in range(1, count)]
    pairs += [tuple(chance.sample(range(count), 2)) for _ in range(chance.randint(0, 8))]
    chance.shuffle(pairs)
    costs = [chance.choice([2, 4, 19, 19, 100]) for _ in pairs]
    ports: dict[str, dict[int, int]] = {name: {} for name in names}
    links = []
    for link, (pair, cost) in enumerate(zip(pairs, costs, strict=True)):
        ends = [f"s{number}" for number in pair]
        for end in ends:
            ports[end][link] = cost
        links.append(TreeLink(link, ((ends[0], len(ports[ends[0]])), (ends[1], len(ports[ends[1]]))), cost))
    bridges = {name: Bridge((*names[name],), ports[name]) for name in names}
    active = tree(names, links)
    assert {*range(len(pairs))} - active == blocked(bridges)
    assert len(active) == count - 1


@pytest.mark.parametrize("seed", range(10))
def test_a_random_lan_has_correct_subnets_and_paths(seed: int) -> None:
    """Also: it is refused in one line, or loads and plans again as the same."""
    judged, refused = 0, list[str]()
    for number in range(20):
        chance = random.Random(f"{seed} {number}")
        testbed, scope = lan(chance, switches_max=8)
        hosts = [name for name in scope.nodes if name not in scope.switches]
        pair = dict(zip(("client", "server"), chance.sample(hosts, 2), strict=True))
        data = {"testbed": testbed, "test": {"name": "ping", "competing": [pair]}}
        try:
            scenario = load(data)
            plan = build(scenario, ALL)
        except InputError as error:
            refused.append(str(error))
            continue
        Judge(scenario.testbed, plan).check()
        assert Network(scenario.testbed).lans.blocked == Judge(scenario.testbed, plan).blocked
        reloaded = load(scenario.model_dump(mode="json"))
        assert reloaded == scenario
        assert build(reloaded, ALL).to_json() == plan.to_json()
        judged += 1
    assert judged > 3
    assert not [text for text in refused if "\n" in text or "  " in text]


def test_the_judge_finds_a_wrong_plan() -> None:
    scenario = load({"testbed": bed(ONE_SWITCH, ON_A_STICK), "test": {"name": "ping"}})
    plan = build(scenario, ALL)
    setup = [step for step in plan.setup if not (isinstance(step, VlanStep) and step.device == "c")]
    with pytest.raises((AssertionError, KeyError)):
        Judge(scenario.testbed, plan.model_copy(update={"setup": setup})).check()
