# SPDX-License-Identifier: Apache-2.0
"""The paths of a plan in both directions: the routes, cables, cells, shapers and qdiscs of each hop."""

from ipaddress import ip_interface, ip_network

import pytest

from hourglass.contract.plan import Hop, Plan, RouteStep
from hourglass.plan import build
from hourglass.scenario import builtin, load

from .able import ALL


def plan_of(source: object, *settings: str) -> Plan:
    return build(load(source, settings), ALL)  # type: ignore[arg-type]


def ends(hops: list[Hop]) -> list[str]:
    return [f"{hop.node}:{hop.device}" for hop in hops]


@pytest.mark.parametrize("name", [name for name, _ in builtin()])
def test_a_path_is_a_chain_from_end_to_end_and_streams_go_to_its_last_address(name: str) -> None:
    plan = plan_of(name)
    for path in plan.paths:
        for start, stop, hops in ((path.client, path.server, path.there), (path.server, path.client, path.back)):
            assert (hops[0].node, hops[-1].to_node) == (start, stop)
            assert [hop.to_node for hop in hops[:-1]] == [hop.node for hop in hops[1:]]
    for stream in plan.streams:
        assert plan.path(stream.client, stream.server).there[-1].to_address.split("/")[0] == stream.address


@pytest.mark.parametrize("name", [name for name, _ in builtin()])
def test_every_hop_follows_the_node_s_routes(name: str) -> None:
    """Look up the longest prefix in the plan's routes; a node reaches its own subnets without a route. Switches have
    none: packets pass them to the next address on the path."""
    plan = plan_of(name)
    routes = [step for step in plan.setup if isinstance(step, RouteStep)]
    for path in plan.paths:
        for hops in (path.there, path.back):
            target = ip_interface(str(hops[-1].to_address)).ip
            for index, hop in enumerate(hops):
                gateway = next(ip_interface(hop.to_address) for hop in hops[index:] if hop.to_address)
                if hop.address is None or target in gateway.network:
                    continue
                blocks = [(ip_network(step.subnet or f"{target}/0", strict=False), step.via)
                          for step in routes if step.node == hop.node]  # fmt: skip
                matching = [(block.prefixlen, via) for block, via in blocks if target in block]
                assert max(matching)[1] == str(gateway.ip)


def test_rates_and_delays_of_a_hop() -> None:
    changes = ['testbed.link.0.delay=["3ms", "4ms"]', 'testbed.link.1.rate=["50mbit", "1gbit"]']
    (path,) = plan_of("L100M", *changes, "stack.router.qdisc=cake bandwidth 40mbit").paths
    forward, backward = path.there, path.back
    assert ends(forward) == ["client:eth0", "router:eth1"]
    assert ends(backward) == ["server:eth0", "router:eth0"]
    assert [(hop.line_bps, hop.shaper_bps, hop.rate_bps, hop.delay_ns) for hop in (*forward, *backward)] == [
        (10**9, 10**8, 10**8, 3_000_000),
        (50 * 10**6, None, 40 * 10**6, 0),
        (10**9, None, 10**9, 0),
        (10**9, 10**8, 40 * 10**6, 4_000_000),
    ]
    assert [hop.qdisc for hop in forward] == ["pfifo_fast", "cake bandwidth 40mbit"]


def test_a_hop_has_the_qdiscs_at_its_end() -> None:
    changes = [
        "stack.home.device.wan.qdisc=cake bandwidth 19mbit",
        "stack.home.device.wan.ingress=cake bandwidth 95mbit",
    ]
    (path,) = plan_of("asymmetric", *changes).paths
    up, down = path.there[1], path.back[1]
    assert (up.node, up.qdisc, up.ingress, up.rate_bps) == ("home", "cake bandwidth 19mbit", None, 19 * 10**6)
    assert (down.to_node, down.qdisc, down.ingress) == ("home", "pfifo limit 500", "cake bandwidth 95mbit")
    assert (down.line_bps, down.rate_bps) == (10**8, 95 * 10**6)
    assert path.back[-1].qdisc == "fq_codel", "home's other device has the node's"


def test_a_radio_s_rate_is_its_link_s_and_its_queue_mac80211_s() -> None:
    def first(*changes: str) -> Hop:
        return plan_of("wifi-ath9k", *changes).paths[0].there[0]

    air = first()
    assert (air.medium, air.line_bps, air.qdisc, air.origin) == ("air", 144_444_444, "noqueue", "testbed.wifi.0")
    assert first("testbed.wifi.0.station.0.mcs=0").line_bps == 14_444_444
    assert first("stack.qdisc=fq_codel").qdisc == "fq_codel"
    assert plan_of("wifi-ath9k-htc").paths[0].there[0].qdisc == "pfifo_fast"


def test_the_delay_of_netem_counts_where_packets_leave() -> None:
    (path,) = plan_of("wifi-ath9k", "testbed.netem.0.delay=20ms").paths
    assert [hop.delay_ns for hop in path.there] == [0, 20_000_000]
    assert [hop.delay_ns for hop in path.back] == [0, 0]


def test_impairments_have_the_scenario_s_keys() -> None:
    hop = plan_of("mobile", 'testbed.link.0.reorder=["1%", 0]').paths[0].there[0]
    assert hop.impairments == ["jitter 2ms", "loss 0.01%", "reorder 1%", "trace", "outage"]
    assert plan_of("L100M").paths[0].there[0].impairments == []
    (path,) = plan_of("L100M", 'testbed.link.0.loss=["1%", {model="gilbert-elliott", rate="0.1%", burst=5}]').paths
    assert path.there[0].impairments == ["loss 1%"]
    assert path.back[-1].impairments == ["loss model gilbert-elliott, rate 0.1%, burst 5"]


def test_policer_and_shaper_of_a_link_limit_its_rate() -> None:
    (path,) = plan_of(
        "L100M",
        'testbed.link.0.shaper={forward={rate="20mbit",limit="64KB"}}',
        'testbed.link.1.policer={reverse={rate="50mbit",burst="64KB"}}',
        "testbed.link.1.duplex=half",
    ).paths
    assert path.there[0].impairments == ["shaper rate 20mbit, burst 1514B, limit 64KB"]
    assert path.back[0].impairments == ["half duplex", "policer rate 50mbit, burst 64KB"]
    assert path.there[1].impairments == ["half duplex"]
    assert [hop.rate_bps for hop in (*path.there, *path.back)] == [20 * 10**6, 10**9, 50 * 10**6, 10**8]


def test_with_two_shortest_paths_the_directions_may_differ() -> None:
    """Plan a square in which each end declares another link first."""
    rows = ["a:0 p:0", "q:1 z:1", "p:1 z:0", "a:1 q:0"]
    nodes = [{"name": name, "role": "router" if name in "pq" else "host"} for name in "apqz"]
    links = [{"ends": [end.replace(":", ":d") for end in row.split()]} for row in rows]
    (path,) = plan_of({"testbed": {"node": nodes, "link": links}, "test": {"client": "a", "server": "z"}}).paths
    assert ends(path.there) == ["a:d0", "p:d1"]
    assert path.back[-1].to_address == path.there[0].address


def test_each_pair_of_nodes_has_one_path() -> None:
    plan = plan_of("rtt-fair", "test.name=rtt_fair")
    assert [path.server for path in plan.paths] == ["near", "city", "country", "continent"]
    crowd = plan_of("wifi-ath9k", "testbed.wifi.0.others.count=3")
    assert [path.client for path in crowd.paths] == ["client", "other1", "other2", "other3"]
