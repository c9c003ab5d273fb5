# SPDX-License-Identifier: Apache-2.0
import json
import re
from collections import Counter
from itertools import groupby
from typing import Any

import pytest

import hourglass.plan
from hourglass import resources
from hourglass.contract.capabilities import Capabilities
from hourglass.contract.plan import DeviceStep, EpochStep, EthtoolStep, LinkStep, Plan, ReachStep, ToolStep, WriteStep
from hourglass.errors import InputError
from hourglass.plan.network import Network
from hourglass.plan.seeds import link_seed, splitmix64
from hourglass.scenario import Scenario, builtin, load, nics

from .able import ALL, VETH


def build(scenario: Scenario, able: Capabilities = ALL) -> Plan:
    return hourglass.plan.build(scenario, able)


def graph(links: list[Any], routers: str = "", test: dict[str, Any] | None = None, **testbed: Any) -> Plan:
    """Return a plan from links like "a:1 b:1". A node's name is its letter; `routers` lists the routers."""
    rows = [link if isinstance(link, dict) else {"ends": link.split()} for link in links]
    names = sorted({end.split(":")[0] for row in rows for end in row["ends"]})
    nodes = [{"name": name, "role": "router" if name in routers else "host"} for name in names]
    for row in rows:
        row["ends"] = [f"{node}:d{device}" for node, device in (end.split(":") for end in row["ends"])]
    return build(load({"testbed": {"node": nodes, "link": rows, **testbed}, "test": test or {}}))


def lines(plan: Plan, node: str, word: str) -> list[str]:
    return [
        line
        for step in plan.setup
        if isinstance(step, ToolStep) and step.node == node
        for line in step.lines
        if line.startswith(word)
    ]


def writes(plan: Plan, name: str) -> list[str]:
    return [step.value for step in plan.setup if isinstance(step, WriteStep) and step.path.endswith(f"/{name}")]


@pytest.mark.parametrize("name", [name for name, _ in builtin()])
def test_every_built_in_has_a_plan_and_equal_scenarios_equal_bytes(name: str) -> None:
    plan_bytes = build(load(name)).to_json()
    assert plan_bytes == build(load(json.loads(load(name).to_json()))).to_json()
    assert Plan.model_validate_json(plan_bytes).to_json() == plan_bytes


@pytest.mark.parametrize("name", [name for name, _ in builtin()])
def test_a_node_needs_one_ip_process_and_one_of_tc_at_most(name: str) -> None:
    """The agent runs neighbouring steps of one node and tool as one process. `ethtool` is between the devices' making
    and their addresses."""
    setup = build(load(name)).setup
    batches = [step if isinstance(step, ToolStep) else None for step in setup]
    set_by_ethtool = {step.node for step in setup if isinstance(step, EthtoolStep)}
    processes = Counter(key for key, _ in groupby(batches, lambda step: step and (step.node, step.tool)) if key)
    assert all(count <= 1 + (key in {(node, "ip") for node in set_by_ethtool}) for key, count in processes.items())


def test_ties_go_to_the_earlier_link() -> None:
    square = ["a:0 p:0", "a:1 q:0", "p:1 z:0", "q:1 z:1"]
    plan = graph(square, routers="pq")
    assert lines(plan, "a", "route") == ["route add 10.0.2.0/24 via 10.0.0.2", "route add 10.0.3.0/24 via 10.0.1.2"]
    assert plan.flows[0].address == "10.0.2.2"


def test_the_shortest_path_is_taken() -> None:
    plan = graph(["a:0 p:0", "p:1 q:0", "q:1 z:0", "p:2 z:1"], routers="pq")
    assert plan.flows[0].address == "10.0.3.2"
    assert lines(plan, "z", "route") == ["route add 10.0.0.0/24 via 10.0.3.1", "route add 10.0.1.0/24 via 10.0.2.1"]


def test_a_router_has_a_route_for_each_block_of_subnets() -> None:
    """Subnets 10.0.0.0/24 to 10.0.4.0/24 are at p, the cable between p and q is 10.0.5.0/24."""
    links = [f"n{index}:0 p:{index}" for index in range(5)] + ["p:up q:up", "q:1 z:0"]
    plan = graph(links, routers="pq", test={"client": "n0", "server": "z"})
    assert lines(plan, "q", "route") == ["route add 10.0.0.0/22 via 10.0.5.1", "route add 10.0.4.0/24 via 10.0.5.1"]
    assert lines(plan, "p", "route") == ["route add 10.0.6.0/24 via 10.0.5.2"]
    assert {line for index in range(5) for line in lines(plan, f"n{index}", "route")} == {
        f"route add default via 10.0.{index}.2" for index in range(5)
    }


def test_machines_have_no_default_route_of_a_plan() -> None:
    testbed = load("L100M").testbed
    assert [route.subnet for route in Network(testbed).routes("client")] == [None]
    exact = [str(route.subnet) for route in Network(testbed, default_routes=False).routes("client")]
    assert exact == ["10.0.1.0/24"]


def test_hosts_do_not_forward() -> None:
    with pytest.raises(InputError, match=r'test.server = .*not reachable.*give b role = "router"'):
        graph(["a:0 b:0", "b:1 z:0"])


def test_two_hosts_on_one_cable_need_no_route() -> None:
    plan = graph(["a:0 b:0"])
    assert not lines(plan, "a", "route")
    assert plan.flows[0].address == "10.0.0.2"


def test_three_hundred_links_have_separate_subnets() -> None:
    links = [f"n{number}:0 r:{number}" for number in range(300)]
    plan = graph(links, routers="r", test={"client": "n0", "server": "n299"})
    assert plan.flows[0].address == "10.1.43.1"
    addresses = [line for node in plan.nodes for line in lines(plan, node, "link add")]
    assert len(set(addresses)) == len(addresses) == 600
    assert len({line.split()[5] for line in addresses}) == 600


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (["10.0.1.1/24", "10.0.1.2/24"], None, "overlaps the subnet 10.0.1.0/24 of testbed.link.1; "),
        (["10.0.0.1/8", "10.0.0.2/8"], None, 'links share a subnet at a node with role = "switch"'),
        (["192.168.1.1/24", "192.168.2.2/24"], None, "in one subnet"),
        (["192.168.1.1/24", "192.168.1.2/25"], None, "in one subnet"),
        (["192.168.1.1/24", "192.168.1.1/24"], None, "a and r have this address"),
        (["192.168.1.0/24", "192.168.1.1/24"], None, "the subnet's network address"),
        (["192.168.1.1/24", "192.168.1.255/24"], None, "broadcast address"),
        (["127.0.0.1/24", "127.0.0.2/24"], None, "not an address for a host's NIC"),
        (["0.0.0.1/24", "0.0.0.2/24"], None, "not an address for a host's NIC"),
        (["224.0.0.1/24", "224.0.0.2/24"], None, "not an address for a host's NIC"),
        (
            ["192.168.1.1/24", "192.168.1.2/24"],
            ["192.168.1.5/30", "192.168.1.6/30"],
            "overlaps the subnet 192.168.1.0/24",
        ),
        (["192.168.1.1/24"], None, "two addresses"),
        (["192.168.1.1", "192.168.1.2"], None, "prefix lengths"),
        (["192.168.1.300/24", "192.168.1.2/24"], None, "prefix lengths"),
        (["fd00::1%x/64", "fd00::2/64"], None, "prefix lengths"),
    ],
)
def test_invalid_addresses_are_refused(first: list[str], second: list[str] | None, message: str) -> None:
    near_link: dict[str, Any] = {"ends": ["a:0", "r:0"], "addresses": first}
    far_link: dict[str, Any] = {"ends": ["r:1", "z:0"], **({"addresses": second} if second else {})}
    with pytest.raises(InputError, match=r"testbed\.link\.[01]\.addresses = ") as caught:
        graph([near_link, far_link], routers="r")
    assert message in str(caught.value)


def test_addresses_can_be_declared() -> None:
    link = {"ends": ["a:0", "r:0"], "addresses": ["192.168.1.1/31", "192.168.1.0/31"]}
    plan = graph([link, "r:1 z:0"], routers="r")
    assert lines(plan, "a", "addr") == ["addr add 192.168.1.1/31 dev d0"]
    assert lines(plan, "a", "route") == ["route add default via 192.168.1.0"]


def test_each_direction_of_a_link_has_its_own_parameters() -> None:
    link = {"ends": ["a:0", "b:0"], "rate": ["1mbit", "2mbit"], "delay": [0, "1ms"], "reorder": ["1%", 0]}
    plan = graph([link])
    assert writes(plan, "rate_bps") == ["1000000", "2000000"]
    assert writes(plan, "delay_ns") == ["1000000"]
    assert writes(plan, "reorder_ppb") == ["10000000"]
    assert writes(plan, "reorder_ns") == ["1000000"]
    assert writes(plan, "cable") == ["0", "0"]


def test_losses_are_independent_or_come_in_bursts() -> None:
    bursts = {"model": "gilbert-elliott", "rate": "0.1%", "burst": 2.5}
    for loss, ppb, milli in (
        ("1%", ["10000000"] * 2, []),
        (bursts, ["1000000"] * 2, ["2500"] * 2),
        (["1%", bursts], ["10000000", "1000000"], ["2500"]),
        ([{"rate": "1%"}, "0%"], ["10000000"], []),
    ):
        plan = graph([{"ends": ["a:0", "b:0"], "loss": loss}])
        assert (writes(plan, "loss_ppb"), writes(plan, "loss_burst_milli")) == (ppb, milli)


def test_policers_and_shapers_as_attributes_of_the_driver() -> None:
    """Only the direction with a shaper has attributes. Peak bucket and default burst are a frame of the larger MTU."""
    shaper = {"rate": "20mbit", "peak": "30mbit", "latency": "20ms", "grant_cycle": "2ms", "grant_delay": "4ms"}
    policer = {"rate": "50mbit", "burst": "64KB"}
    link = {"ends": ["a:0", "b:0"], "mtu": 9000, "shaper": {"forward": shaper}, "policer": {"reverse": policer}}
    plan = graph([link])
    names = ("bps", "burst", "peak_bps", "mtu", "latency_ns", "grant_cycle_ns", "grant_delay_ns")
    assert [writes(plan, f"shaper_{name}") for name in names] == [
        ["20000000"], ["9014"], ["30000000"], ["9014"], ["20000000"], ["2000000"], ["4000000"],
    ]  # fmt: skip
    assert (writes(plan, "policer_bps"), writes(plan, "policer_burst")) == (["50000000"], ["64000"])
    assert writes(plan, "shaper_limit") == writes(plan, "shaper_ce_threshold_ns") == writes(plan, "medium") == []
    epochs = [step.path for step in plan.setup if isinstance(step, EpochStep)]
    assert epochs == ["/sys/class/net/d0/wire/shaper_grant_epoch_ns"]


def test_directions_on_a_shared_medium_have_its_number() -> None:
    """A half-duplex link has a separate number. Links that name a medium share its number, by direction."""
    ends = [["a:0", "b:0"], ["a:1", "c:0"], ["a:2", "d:0"]]
    half, straight, crossed = ({"ends": pair} for pair in ends)
    plan = graph(
        [half | {"duplex": "half"}, straight | {"medium": ["up", "down"]}, crossed | {"medium": ["down", "up"]}]
    )
    media = {(step.node, step.path.split("/")[4]): step.value for step in plan.setup
             if isinstance(step, WriteStep) and step.path.endswith("/medium")}  # fmt: skip
    assert media == {
        ("a", "d0"): "0", ("b", "d0"): "0", ("a", "d1"): "1", ("c", "d0"): "2", ("a", "d2"): "2", ("d", "d0"): "1",
    }  # fmt: skip


def test_traces_as_texts_of_the_driver() -> None:
    link = {
        "ends": ["a:0", "b:0"],
        "trace": {
            "forward": {"rate": [[1, "1mbit"], [2.5, 0]], "repeat": 3},
            "reverse": {"opportunity_ms": [0, 4, 4, 12]},
        },
    }
    plan = graph([link])
    assert writes(plan, "trace") == [
        "rate 3000000000\n1000000000 1000000\n2500000000 0\n",
        "opportunity 12000000 1538\n0\n4000000\n4000000\n12000000\n",
    ]
    assert [step.path for step in plan.setup if isinstance(step, EpochStep)] == ["/sys/class/net/d0/wire/epoch_ns"] * 2


def test_outages_are_part_of_the_rate_trace() -> None:
    steps = [[2, "3mbit"], [4, "5mbit"]]
    plan = graph([{"ends": ["a:0", "b:0"], "rate": "1mbit", "outage": [[1, 3], [3.5, 4]], "trace": {"forward": steps}}])
    forward, backward = writes(plan, "trace")
    assert forward.split("\n")[1:-1] == [
        "1000000000 0", "2000000000 0", "3000000000 3000000", "3500000000 0", "4000000000 5000000"
    ]  # fmt: skip
    assert backward.split("\n")[1:-1] == ["1000000000 0", "3000000000 1000000", "3500000000 0", "4000000000 1000000"]


def test_flows_take_their_turn() -> None:
    test = {"name": "tcp_nup", "upload_streams": 3, "flow_cc": ["cubic", "bbr"], "stream_delays": [0, 0.1], "length": 1}
    flows = graph(["a:0 b:0"], test=test).flows
    assert [flow.cc for flow in flows] == ["cubic", "bbr", "cubic"]
    assert [flow.start_ns for flow in flows] == [5_000_000_000, 5_100_000_000, 5_000_000_000]
    assert {flow.stop_ns for flow in flows} == {6_000_000_000}
    assert [flow.name for flow in flows] == ["upload::1", "upload::2", "upload::3"]


def test_a_flow_has_the_congestion_control_of_its_sender() -> None:
    changes = ["test.name=tcp_bidirectional", "stack.server.cc=bbr"]
    flows = build(load("L100M", changes)).flows
    assert [(flow.name, flow.sender, flow.cc) for flow in flows] == [
        ("upload::1", "client", "cubic"),
        ("download::1", "server", "bbr"),
    ]


def test_default_congestion_controls_of_nodes_are_allowed() -> None:
    plan = build(load("L100M", ["stack.cc=illinois", "stack.server.cc=bbr"]))
    assert writes(plan, "tcp_allowed_congestion_control") == ["reno bbr illinois"]
    assert writes(plan, "tcp_congestion_control") == ["illinois", "illinois", "bbr"]


def test_a_ping_test_has_no_flows_and_no_delay() -> None:
    plan = build(load("L100M", ["test.name=ping", "test.length=7"]))
    assert (plan.flows, plan.end_ns) == ((), 7_000_000_000)
    assert [(ping.protocol, ping.stop_ns, ping.jitter_ns) for ping in plan.pings] == [
        ("icmp", 7_000_000_000, 20_000_000),
        ("udp", 7_000_000_000, 20_000_000),
    ]


@pytest.mark.parametrize(
    ("tsq", "written"),
    [
        ("default", {}),
        ("off", {"tcp_tsq_mode": "3"}),
        ("3ms", {"tcp_tsq_mode": "1", "tcp_tsq_usecs": "3000"}),
        ("64KiB", {"tcp_tsq_mode": "2", "tcp_tsq_bytes": "65536"}),
    ],
)
def test_the_knobs_of_tsq(tsq: str, written: dict[str, str]) -> None:
    plan = build(load("L100M", [f"stack.client.tsq={tsq}"]))
    steps = [step for step in plan.setup if isinstance(step, WriteStep) and "tcp_tsq" in step.path]
    assert {step.path.rsplit("/", 1)[1]: step.value for step in steps} == written
    assert all((step.node, step.origin) == ("client", "stack.client.tsq") for step in steps)


def test_defaults_of_new_devices_are_written_before_their_creation() -> None:
    settings = ["stack.sysctl.net.ipv4.conf.default.rp_filter=1", "stack.sysctl.net.ipv4.conf.eth0.rp_filter=0"]
    setup = build(load("L100M", settings)).setup
    position = {step.path: n for n, step in enumerate(setup) if isinstance(step, WriteStep) and step.node == "client"}
    creation = next(n for n, step in enumerate(setup) if isinstance(step, DeviceStep) and step.node == "client")
    assert (
        position["/proc/sys/net/ipv4/conf/default/rp_filter"]
        < creation
        < position["/proc/sys/net/ipv4/conf/eth0/rp_filter"]
    )


WAN = "stack.router.device.eth1"


def test_a_device_has_its_own_qdisc_offloads_ring_and_mtu() -> None:
    """A device's keys take precedence over the node's, the stack's and the link's."""
    device_settings = [
        f"{WAN}.qdisc=cake",
        f"{WAN}.tso=true",
        f"{WAN}.gro=false",
        f"{WAN}.tx_ring=64",
        f"{WAN}.mtu=1492",
    ]
    changes = ["stack.qdisc=fq", "stack.router.qdisc=codel", "testbed.link.1.tso=false", *device_settings]
    plan = build(load("L100M", changes))
    assert [line for node in plan.nodes for line in lines(plan, node, "qdisc add") if " 10: " in line] == [
        "qdisc add dev eth0 parent 1:1 handle 10: fq",
        "qdisc add dev eth0 parent 1:1 handle 10: codel",
        "qdisc add dev eth1 root handle 10: cake",
        "qdisc add dev eth0 root handle 10: fq",
    ]
    assert [(step.node, *step.args) for step in plan.setup if step.do == "ethtool"] == [
        ("router", "-G", "eth1", "tx", "64"), ("router", "-K", "eth1", "gro", "off"),
        ("server", "-K", "eth0", "tso", "off"),
    ]  # fmt: skip
    assert "link set dev eth1 mtu 1492" in lines(plan, "router", "link set")
    assert {step.origin for step in plan.setup if step.origin and step.origin.startswith(WAN)} == {
        WAN, f"{WAN}.qdisc", f"{WAN}.mtu",
    }  # fmt: skip


def test_a_radio_bounds_the_segments_of_an_skb() -> None:
    plan = build(load("wifi-ath9k", ["stack.client.device.wlan0.gso_max_segs=1"]))
    (step,) = [step for step in plan.setup if step.do == "ip" and "gso_max_segs" in step.lines[0]]
    assert (step.node, step.lines) == ("client", ["link set dev wlan0 gso_max_segs 1"])
    with pytest.raises(InputError, match="is a setting of radios"):
        build(load("L100M", [f"{WAN}.gso_max_segs=1"]))


def test_checksums_off_at_a_device_are_tso_off() -> None:
    plan = build(load("L100M", [f"{WAN}.checksum=false"]))
    assert [step.args for step in plan.setup if step.do == "ethtool"] == [
        ["-K", "eth1", "rx", "off", "tx", "off", "tso", "off"]
    ]


@pytest.mark.parametrize("version", [4, 6])
def test_arriving_packets_are_queued_on_an_ifb(version: int) -> None:
    plan = build(load("L100M", [f"{WAN}.ingress=cake bandwidth 95mbit", f"testbed.ip={version}"]))
    quiet = ["ip link set dev ifb4eth1 addrgenmode none"] if version == 6 else []
    steps = [step for step in plan.setup if isinstance(step, ToolStep) and step.origin == f"{WAN}.ingress"]
    assert [f"{step.tool} {line}" for step in steps for line in step.lines] == [
        "ip link add dev ifb4eth1 type ifb",
        *quiet,
        "ip link set dev ifb4eth1 up",
        "tc qdisc add dev eth1 handle ffff: ingress",
        "tc filter add dev eth1 parent ffff: matchall action mirred egress redirect dev ifb4eth1",
        "tc qdisc add dev ifb4eth1 root handle 10: cake bandwidth 95mbit",
    ]


def test_a_radio_s_device_can_have_a_separate_qdisc() -> None:
    plan = build(load("wifi-ath9k", ["stack.ap.device.wlan0.qdisc=fq_codel"]))
    assert "qdisc add dev wlan0 root handle 10: fq_codel" in lines(plan, "ap", "qdisc")
    assert lines(plan, "client", "qdisc") == []


def test_a_veth_pair_has_no_ring_at_either_end() -> None:
    with pytest.raises(InputError, match=rf"{WAN}\.tx_ring = 64: .*veth"):
        build(load("L100M", [f"{WAN}.tx_ring=64"]), VETH)


@pytest.mark.parametrize("change", ["delay=1ms", "rate=100mbit", "loss=1%", "tx_ring=100", "outage=[[1,2]]"])
def test_a_veth_pair_refuses_settings_of_a_wire(change: str) -> None:
    with pytest.raises(InputError, match=f"testbed.link.0.{change.split('=')[0]} = .*veth"):
        build(load("L100M", [f"testbed.link.0.{change}"]), VETH)


def test_a_guest_makes_the_devices_that_are_interfaces_elsewhere() -> None:
    data = load("L100M").model_dump(mode="json")
    for node in data["testbed"]["node"]:
        node["real"] = {"eth0": "enp1s0"}
    devices = [step for step in build(load(data)).setup if isinstance(step, DeviceStep) and step.kind == "wire"]
    expected = [step for step in build(load("L100M")).setup if isinstance(step, DeviceStep) and step.kind == "wire"]
    assert devices == expected


def test_on_a_real_machine_nothing_global_is_written() -> None:
    assert all(step.node for step in build(load("L100M"), VETH).setup if isinstance(step, WriteStep))


def test_splitmix64_is_the_published_one() -> None:
    """Compare with the first outputs of the reference implementation from the state 1234567."""
    state, outputs = 1234567, []
    for _ in range(3):
        outputs.append(splitmix64(state))
        state = (state + 0x9E3779B97F4A7C15) % 2**64
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_no_two_directions_share_a_seed() -> None:
    seeds = {link_seed(seed, link, side) for seed in range(20) for link in range(100) for side in (0, 1)}
    assert len(seeds) == 20 * 100 * 2


def test_a_search_finds_every_node_of_a_row_of_routers() -> None:
    network = Network(load("parking-lot").testbed)
    assert set(network.search("h1a")) == set(network.nodes) - {"h1a"}
    hops = network.port_pairs("h1a", network.arrival("h1a", "h4b"))
    assert [enters.node for _, enters in hops] == ["r1", "r2", "r3", "r4", "h4b"]


def test_stations_reach_the_world_and_each_other() -> None:
    """Nodes behind the access point need a route; a station of the same cell needs none."""
    plan = build(load("wifi-ath9k", ["testbed.wifi.0.others.count=1"]))
    assert lines(plan, "client", "addr") == ["addr add 10.0.1.2/24 dev wlan0"]
    assert lines(plan, "other1", "addr") == ["addr add 10.0.1.3/24 dev wlan0"]
    assert lines(plan, "client", "route") == ["route add default via 10.0.1.1"]
    assert lines(plan, "server", "route") == ["route add default via 10.0.0.1"]
    assert not lines(plan, "ap", "route")
    assert [radio.address[-2:] for radio in plan.radios] == ["02", "01", "03"]


def test_a_radio_of_another_name_is_renamed_before_it_moves() -> None:
    changes = ["testbed.wifi.0.station.0.at=client:air"]
    steps = [step for step in build(load("wifi-ath9k", changes)).setup if step.node is None]
    renaming = [step.lines for step in steps if isinstance(step, ToolStep)]
    assert renaming == [["link set dev wlan0 name air"]]


def test_radios_differ_in_their_seeds_and_follow_the_scenario_s() -> None:
    def seeds(seed: int) -> list[str]:
        options = [
            step.value.split() for step in build(load("wifi-ax", seed=seed)).setup if isinstance(step, WriteStep)
        ]
        return [word for line in options for word in line if word.startswith("seed=")]

    assert len(set(seeds(1) + seeds(2))) == 6


def test_radios_need_an_engine_that_has_them() -> None:
    with pytest.raises(InputError, match=r"testbed\.wifi = 1: this engine has no radios"):
        build(load("wifi-ath9k"), VETH)


def test_the_driver_s_defaults_are_the_first_profile() -> None:
    """Read the values that `ethtool` does not print in the driver (`tests/guest/test_defaults.py` has the others)."""
    source = (resources.KERNEL / "drivers/wire/wire_nic.c").read_text()
    defaults = nics.defaults(nics.DEFAULT, nics.STANDARD_MTU, {})
    names = ("vectors", "tx_wake", "tx_fifo", "rx_copy", "rx_buffer", "rx_large")
    values = {name: int(re.search(rf"nic->{name} = (\d+);", source)[1]) for name in names}
    assert values == {name: defaults[name] for name in names}
    assert defaults["moderation"] == "delay", "the first of the laws, 0"


def test_a_profile_is_written_while_the_nic_is_down() -> None:
    link = {"ends": ["a:x", "b:y"], "nic": "ixgbe", "mtu": 9000, "rx_ring": 4096}
    plan = build(load({"name": "t", "testbed": {"node": [{"name": "a"}, {"name": "b"}], "link": [link]}}), ALL)
    steps = [step for step in plan.setup if step.node == "a"]
    written = {
        step.path.rsplit("/", 1)[1]: step.value for step in steps if step.do == "write" and "/wire/" in step.path
    }
    expected = {"moderation": "ixgbe", "tx_fifo": "163840", "tx_wake": "42", "phc": "1"}
    expected |= {"tx_context": "1", "bql_headers": "1", "rx_copy": "0", "rx_buffer": "4096", "rx_large": "0"}
    assert written.items() >= expected.items()
    assert "vectors" not in written
    up = next(number for number, step in enumerate(steps) if isinstance(step, LinkStep) and step.state == "up")
    chip = [
        number
        for number, step in enumerate(steps)
        if step.do == "write" and step.path.endswith(("tx_fifo", "moderation"))
    ]
    assert max(chip) < up
    rings = next(step for step in steps if step.do == "ethtool" and step.args[0] == "-G")
    assert rings.args == ["-G", "x", "rx", "4096", "tx", "512"]


@pytest.mark.parametrize(
    ("keys", "moderation", "usecs", "wake"),
    [
        ({}, "delay", 20, 128),
        ({"tx_ring": 400}, "delay", 20, 101),
        ({"nic": "igb"}, "igb", 162, 42),
        ({"nic": "igb", "rx_usecs": 30}, "interval", 30, 42),
        ({"nic": "igc", "queues": 4}, "igb", 162, 42),
        ({"nic": "igb", "rx_usecs": 30, "moderation": "igb"}, "igb", 30, 42),
        ({"nic": "r8169", "rx_usecs": 30, "tx_wake": 99}, "delay", 30, 99),
    ],
)
def test_explicit_keys_override_the_profile(keys: dict, moderation: str, usecs: int, wake: int) -> None:
    link = {"ends": ["a:x", "b:y"], **keys}
    scenario = load({"name": "t", "testbed": {"node": [{"name": "a"}, {"name": "b"}], "link": [link]}})
    (resolved,) = scenario.testbed.link
    assert (resolved.moderation, resolved.rx_usecs, resolved.tx_wake) == (moderation, usecs, wake)
    reloaded = load(json.loads(scenario.to_json()))
    assert reloaded == scenario, "resolving it again changes nothing"


@pytest.mark.parametrize(("links", "patience_s"), [(49, 10), (50, 11), (500, 20)])
def test_the_first_ping_waits_until_all_devices_have_a_carrier(links: int, patience_s: int) -> None:
    """The kernel announces the carriers of 100 devices a second."""
    plan = graph([f"r:{number} {chr(0x61 + number % 16)}:{number}" for number in range(links)], routers="r")
    (reach,) = (step for step in plan.setup if isinstance(step, ReachStep))
    assert reach.timeout_ns == patience_s * 10**9
