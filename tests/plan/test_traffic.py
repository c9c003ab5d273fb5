# SPDX-License-Identifier: Apache-2.0
"""Tests with hosts, marks and other traffic than bulk flows: their parameters in the plan."""

import json
import subprocess
from typing import Any

import pytest

from hourglass.contract.plan import STREAMS_MAX, DatagramStream, Plan
from hourglass.errors import InputError
from hourglass.plan import build
from hourglass.plan.streams import FIRST_PORT, OVERFLOW_PORT
from hourglass.scenario import TESTS, load
from tests import tools

from .able import ALL


def plan_of(scenario: str, *settings: str) -> Plan:
    return build(load(scenario, settings), ALL)


def flows(plan: Plan) -> list[tuple[str, str, int, str]]:
    return [(flow.name, flow.server, flow.dscp, flow.cc) for flow in plan.flows]


def test_rrul_var_has_marked_streams_each_way_and_a_ping_of_each() -> None:
    plan = plan_of("L100M", "test.name=rrul_var", "test.bidir_streams=3", "test.markings=EF,CS1", "test.cc_algos=bbr")
    labels = ["0 (EF)", "1 (CS1)", "2 (CS0)"]
    streams = list(zip(labels, (46, 8, 0), ("bbr", "cubic", "cubic"), strict=True))
    expected = [
        (f"{direction}::{label}", "server", dscp, cc)
        for direction in ("upload", "download")
        for label, dscp, cc in streams
    ]
    assert flows(plan) == expected
    assert [(ping.name, ping.dscp) for ping in plan.pings] == [
        ("icmp", 0),
        *((f"udp {label}", dscp) for label, dscp, _ in streams),
    ]


def test_rtt_fair_has_a_flow_each_way_with_each_of_four_servers() -> None:
    plan = plan_of("rtt-fair", "test.name=rtt_fair")
    servers = ["near", "city", "country", "continent"]
    marked = list(zip(("BE1", "BE2", "BK1", "BK2"), servers, (0, 0, 8, 8), strict=True))
    expected = [(f"{direction}::{label} {host}", host, dscp, "cubic")
                for direction in ("upload", "download") for label, host, dscp in marked]  # fmt: skip
    assert flows(plan) == expected
    assert len({flow.address for flow in plan.flows}) == 4
    assert [ping.name for ping in plan.pings][:4] == [f"ICMP{i + 1} {host}" for i, host in enumerate(servers)]
    assert [ping.server for ping in plan.pings] == servers * 2
    assert [step.do for step in plan.setup][-4:] == ["reach"] * 4


def test_the_forms_of_rtt_fair() -> None:
    counts = {}
    for name in ("rtt_fair4be", "rtt_fair6be", "rtt_fair_up", "rtt_fair_var", "rtt_fair_var_up", "rtt_fair_var_down"):
        plan = plan_of("rtt-fair", f"test.name={name}")
        directions = [flow.name.split("::")[0] for flow in plan.flows]
        counts[name] = (directions.count("upload"), directions.count("download"))
    assert counts == {
        "rtt_fair4be": (4, 4), "rtt_fair6be": (6, 6), "rtt_fair_up": (4, 0), "rtt_fair_var": (6, 6),
        "rtt_fair_var_up": (6, 0), "rtt_fair_var_down": (0, 6),
    }  # fmt: skip


def test_a_mixed_rtt_fair_has_the_declared_directions() -> None:
    plan = plan_of(
        "rtt-fair", "test.name=rtt_fair_var_mixed", "test.hosts=far,near,city", "test.data_directions=u,d,ud"
    )
    assert [flow.name for flow in plan.flows] == [
        "upload::BE far", "upload::BE city", "download::BE near", "download::BE city",
    ]  # fmt: skip
    assert {ping.name for ping in plan.pings} >= {"ICMP far", "ICMP near", "ICMP city"}


def test_congestion_controls_by_direction_and_by_stream() -> None:
    plan = plan_of("L100M", "test.name=rrul_be", "test.tcp_cong_control=bbr,reno")
    assert {(flow.name.split("::")[0], flow.cc) for flow in plan.flows} == {("upload", "bbr"), ("download", "reno")}
    plan = plan_of("L100M", "test.upload_streams=3", "test.tcp_cong_control=bbr", "test.cc_algos=reno,vegas")
    assert [flow.cc for flow in plan.flows] == ["reno", "vegas", "bbr"]


def spans(stream: DatagramStream) -> list[tuple[int, int, int]]:
    return [(phase.start_ns, phase.stop_ns, phase.interval_ns) for phase in stream.phases]


def with_datagrams(*rows: dict[str, Any], **test: Any) -> Plan:
    """Return the plan of a 10 s test with datagrams, after 1 s of pings."""
    source = {"testbed": {"preset": "L100M"}, "test": {"length": 10, "delay": 1, "datagrams": list(rows), **test}}
    return build(load(source), ALL)


def test_datagrams_are_sent_at_a_rate_that_changes() -> None:
    rate = [[0, "1mbit"], [5, 0], [6, "20mbit"]]
    plan = with_datagrams({"name": "game", "rate": rate, "size": 1000, "start": 1, "stop": 9, "marking": "EF"})
    (game,) = plan.datagrams
    second = 10**9
    assert (game.name, game.client, game.server, game.dscp, game.burst) == ("game", "client", "server", 46, 1)
    assert spans(game) == [(2 * second, 7 * second, 8_000_000), (8 * second, 10 * second, 400_000)]
    assert (game.start_ns, game.stop_ns) == (2 * second, 10 * second)
    assert game.id == len(plan.streams) - 1


def test_datagrams_on_and_off_and_in_bursts() -> None:
    plan = with_datagrams(
        {"rate": [[0, "8mbit"], [0.5, 0]], "repeat": 4, "burst": 5, "size": 1000},
        {"interval": "40ms", "burst": 9, "sender": "server", "receiver": "client"},
    )
    on_off, camera = plan.datagrams
    second = 10**9
    assert spans(on_off) == [(t * second, t * second + second // 2, 5_000_000) for t in (1, 5, 9)]
    assert (on_off.name, on_off.burst, on_off.payload_bytes) == ("datagrams 1", 5, 1000)
    assert spans(camera) == [(second, 11 * second, 40_000_000)]
    assert (camera.client, camera.server, camera.address) == ("server", "client", "10.0.0.1")
    assert [stream.port - FIRST_PORT for stream in plan.datagrams] == [on_off.id, camera.id]


def test_flows_start_stop_and_are_paced_in_turn() -> None:
    test = {"upload_streams": 3, "stream_delays": [0, 2], "stream_stops": [4, 10, 5], "stream_rates": [0, "8mbit"]}
    competing = {"client": "router", "start": 3, "stop": 7, "rate": "1mbit"}
    plan = with_datagrams({"rate": "1mbit"}, **test, competing=[competing])
    assert [(flow.start_ns // 10**9, flow.stop_ns // 10**9, flow.pace_bps) for flow in plan.flows] == [
        (1, 5, None), (3, 11, 8 * 10**6), (1, 6, None), (4, 8, 10**6),
    ]  # fmt: skip


def test_flows_have_the_write_rates_in_turn() -> None:
    test = {"upload_streams": 3, "stream_writes": ["5mbit", 0], "write_interval": 0.1}
    plan = with_datagrams({"rate": "1mbit"}, **test, competing=[{"client": "router", "writes": "1mbit"}])
    writes = [flow.writes and (flow.writes.rate_bps, flow.writes.interval_ns) for flow in plan.flows]
    assert writes == [(5_000_000, 10**8), None, (5_000_000, 10**8), (10**6, 10**8)]


def test_a_test_lasts_as_long_as_its_datagrams() -> None:
    plan = with_datagrams({"rate": "1mbit"}, name="ping")
    assert (plan.datagrams[0].start_ns, plan.end_ns) == (10**9, 12 * 10**9)


def test_the_packet_rate_of_a_flood_follows_from_its_bandwidth() -> None:
    (flood,) = plan_of("L100M", "test.name=udp_flood").datagrams
    assert (flood.payload_bytes, flood.burst) == (1470, 1)
    assert (flood.start_ns, flood.stop_ns) == (5 * 10**9, 35 * 10**9)
    assert spans(flood) == [(5 * 10**9, 35 * 10**9, 11_760_000)], "iperf's 1 Mbit/s"
    plan = plan_of("L100M", "test.name=udp_flood", "test.udp_bandwidth=100mbit", "test.udp_pktsize=1250")
    assert plan.datagrams[0].phases[0].interval_ns == 100_000
    assert plan.datagrams[0].id == len(plan.pings)


def test_a_telephone_is_g711_from_the_first_to_the_last_moment() -> None:
    plan = plan_of("L100M", "test.name=voip-1up", "test.voip_marking=EF")
    (voice,) = plan.datagrams
    assert (voice.payload_bytes, voice.burst, voice.dscp) == (172, 1, 46)
    assert spans(voice) == [(0, plan.end_ns, 20_000_000)]
    assert plan_of("L100M", "test.name=voip").end_ns == 30 * 10**9, "it waits for no flow"


def test_the_web_has_its_clients() -> None:
    plan = plan_of("L100M", "test.name=http-1down", "test.http_workers=2", "test.http_sizes=1KB,2MB")
    assert [(stream.name, stream.sizes) for stream in plan.fetches] == [
        ("http 1", [1000, 2_000_000]), ("http 2", [1000, 2_000_000]),
    ]  # fmt: skip


def test_transactions_have_a_connection_each() -> None:
    plan = plan_of("L100M", "test.name=tcp_rr-1up", "test.rr_streams=2", "test.rr_request=300B", "test.rr_response=1KB")
    assert [(stream.name, stream.request_bytes, stream.response_bytes) for stream in plan.transactions] == [
        ("tcp_rr 1", 300, 1000), ("tcp_rr 2", 300, 1000),
    ]  # fmt: skip
    assert {(stream.start_ns, stream.stop_ns) for stream in plan.transactions} == {(0, plan.end_ns)}
    (default,) = plan_of("L100M", "test.name=tcp_rr").transactions
    assert (default.name, default.request_bytes, default.response_bytes) == ("tcp_rr", 1, 1)


def test_every_stream_has_a_separate_unregistered_port() -> None:
    """A port is neither in Linux' default range of clients nor a protocol's in Wireshark's tables."""
    tests = ["udp_flood", "voip-1up", "http-1down", "tcp_rr-1up", "rrul"]
    for plan in (plan_of("L100M", f"test.name={name}") for name in tests):
        ports = [stream.port for stream in plan.streams if getattr(stream, "protocol", "") != "icmp"]
        assert len(set(ports)) == len(ports) > 1
        assert min(ports) >= FIRST_PORT > 60999
    assert OVERFLOW_PORT + STREAMS_MAX < 32768
    tshark = tools.need("tshark")
    decodes = subprocess.run([tshark, "-G", "decodes"], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in decodes.splitlines()]
    registered = {int(row[1], 0) for row in rows if row[0] in ("tcp.port", "udp.port")}
    assert 5000 in registered
    assert not registered & set(range(FIRST_PORT, 65536))


def test_many_streams_also_use_ports_below_those_of_clients() -> None:
    competing = {"client": "client", "server": "server", "upload_streams": 1000}
    test = {"name": "tcp_nup", "upload_streams": 1000, "competing": [competing] * 9}
    plan = build(load({"name": "many", "testbed": {"preset": "L100M"}, "test": test}), ALL)
    ports = [stream.port for stream in plan.streams if getattr(stream, "protocol", "") != "icmp"]
    assert len(set(ports)) == len(ports) > 10_000
    assert ports[4535:4537] == [65535, OVERFLOW_PORT]
    assert not set(ports) & set(range(32768, 61000))


@pytest.mark.parametrize(
    ("scenario", "settings", "complaint"),
    [
        ("L100M", ["test.name=rtt_fair"], "test.hosts = ['server']: must be 4 servers for the test rtt_fair"),
        (
            "L100M",
            ["test.upload_streams=1", "test.markings=EF,EF"],
            "at most one for each of the 1 streams",
        ),
        ("L100M", ["test.name=rrul", "test.markings=EF"], "is not a parameter of the test rrul"),
        ("L100M", ["test.name=rrul_var", "test.bidir_streams=2", "test.labels=a,a"], "would give two streams the name"),
        ("L100M", ["test.markings=EG"], "test.markings = 'EG': "),
        ("L100M", ["test.name=voip", "test.voip_marking=64"], "or a DSCP from 0 to 63"),
        ("L100M", ["test.tcp_cong_control=bbr", "test.flow_cc=reno"], "is the same as test.flow_cc"),
        ("L100M", ["test.name=rrul", "test.tcp_cong_control=bbr,reno,cubic"], "one for all flows, or [up, down]"),
        ("L100M", ["test.name=http", "test.http_sizes=0B"], "test.http_sizes"),
        ("L100M", ["test.name=http", "test.http_sizes=[]"], "at least one size"),
        ("L100M", ["test.name=tcp_rr", "test.rr_request=0B"], "test.rr_request"),
        ("L100M", ["test.name=http", "test.rr_request=1B"], "is not a parameter of the test http"),
        ("L100M", ["test.name=udp_flood", "test.udp_pktsize=3"], "from 4 to 65507"),
        ("rtt-fair", ["test.hosts=far,far,near,city"], "names of nodes, each once"),
        ("rtt-fair", ["test.hosts=far,near,city,client"], "is the client; give the other hosts"),
        ("rtt-fair", ["test.hosts=far,near,city,router7"], "no such node"),
        ("rtt-fair", ["test.server=near", "test.hosts=far,near,city,ocean"], "differs from the first of test.hosts"),
    ],
)
def test_an_invalid_test_is_refused_in_one_line(scenario: str, settings: list[str], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        load(scenario, settings)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", TESTS)
def test_every_parameter_of_a_test_is_a_key_and_survives_a_round_trip(name: str) -> None:
    loaded = load("rtt-fair" if TESTS[name].hosts else "L100M", [f"test.name={name}"])
    assert set(TESTS[name].parameters) <= set(type(loaded.test).model_fields)
    assert load(json.loads(loaded.to_json())) == loaded


def test_responsiveness_adds_a_flow_each_interval_and_spreads_its_probes() -> None:
    """Probes are limited to 5 % of the slowest link: 62 per second of 1000 B on 10 Mbit/s."""
    plan = plan_of("L10M", "test.name=rpm", "test.length=12", "test.delay=1", "test.rpm_connections=3")
    starts = [(flow.name, flow.start_ns // 10**9) for flow in plan.flows]
    assert starts == [(f"{way}::{n}", 1 + 5 * (n - 1)) for way in ("upload", "download") for n in (1, 2, 3)]
    assert len(plan.fetches) == 20
    assert {(probe.stop_ns, *probe.sizes) for probe in plan.fetches} == {(plan.end_ns, 1)}
    assert [probe.start_ns for probe in plan.fetches] == [number * 10**9 // 62 for number in range(20)]
    assert {probe.interval_ns for probe in plan.fetches} == {20 * 10**9 // 62}


def test_responsiveness_leaves_out_flows_that_would_start_after_the_end() -> None:
    plan = plan_of("L100M", "test.name=rpm_down", "test.length=11")
    assert [(flow.name, flow.start_ns // 10**9) for flow in plan.flows] == [
        ("download::1", 5), ("download::2", 10), ("download::3", 15),
    ]  # fmt: skip
    assert {probe.interval_ns for probe in plan.fetches} == {20 * 10**9 // 100}


def test_a_short_test_of_responsiveness_has_fewer_probes() -> None:
    """Their starts are 1/62 s apart."""
    plan = plan_of("L10M", "test.name=rpm_up", "test.length=0.1", "test.step=0.1", "test.delay=0")
    assert len(plan.fetches) == 7
