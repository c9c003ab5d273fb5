# SPDX-License-Identifier: Apache-2.0
"""The tests with hosts, marks and other traffic than bulk flows: what their parameters come to in the plan."""

import json
import shutil
import subprocess
from typing import Any

import pytest

from hourglass.contract.plan import STREAMS_MAX, Datagrams, Plan
from hourglass.errors import InputError
from hourglass.plan import build
from hourglass.plan.streams import FIRST_PORT, FURTHER_PORT
from hourglass.scenario import TESTS, load

from .able import ALL


def plan(scenario: str, *settings: str) -> Plan:
    return build(load(scenario, settings), ALL)


def flows(made: Plan) -> list[tuple[str, str, int, str]]:
    return [(flow.name, flow.server, flow.dscp, flow.cc) for flow in made.flows]


def test_rrul_var_has_marked_streams_each_way_and_a_ping_of_each() -> None:
    made = plan("L100M", "test.name=rrul_var", "test.bidir_streams=3", "test.markings=EF,CS1", "test.cc_algos=bbr")
    labels = ["0 (EF)", "1 (CS1)", "2 (CS0)"]
    streams = list(zip(labels, (46, 8, 0), ("bbr", "cubic", "cubic"), strict=True))
    expected = [
        (f"{way}::{label}", "server", dscp, cc) for way in ("upload", "download") for label, dscp, cc in streams
    ]
    assert flows(made) == expected
    assert [(ping.name, ping.dscp) for ping in made.pings] == [
        ("icmp", 0),
        *((f"udp {label}", dscp) for label, dscp, _ in streams),
    ]


def test_rtt_fair_has_a_flow_each_way_with_each_of_four_servers() -> None:
    made = plan("rtt-fair", "test.name=rtt_fair")
    servers = ["near", "city", "country", "continent"]
    marked = list(zip(("BE1", "BE2", "BK1", "BK2"), servers, (0, 0, 8, 8), strict=True))
    expected = [(f"{way}::{label} {host}", host, dscp, "cubic")
                for way in ("upload", "download") for label, host, dscp in marked]  # fmt: skip
    assert flows(made) == expected
    assert len({flow.address for flow in made.flows}) == 4
    assert [ping.name for ping in made.pings][:4] == [f"ICMP{i + 1} {host}" for i, host in enumerate(servers)]
    assert [ping.server for ping in made.pings] == servers * 2
    assert [step.do for step in made.setup][-4:] == ["reach"] * 4


def test_the_forms_of_rtt_fair() -> None:
    counts = {}
    for name in ("rtt_fair4be", "rtt_fair6be", "rtt_fair_up", "rtt_fair_var", "rtt_fair_var_up", "rtt_fair_var_down"):
        made = plan("rtt-fair", f"test.name={name}")
        ways = [flow.name.split("::")[0] for flow in made.flows]
        counts[name] = (ways.count("upload"), ways.count("download"))
    assert counts == {
        "rtt_fair4be": (4, 4), "rtt_fair6be": (6, 6), "rtt_fair_up": (4, 0), "rtt_fair_var": (6, 6),
        "rtt_fair_var_up": (6, 0), "rtt_fair_var_down": (0, 6),
    }  # fmt: skip


def test_a_mixed_rtt_fair_has_the_directions_it_is_told() -> None:
    made = plan("rtt-fair", "test.name=rtt_fair_var_mixed", "test.hosts=far,near,city", "test.data_directions=u,d,ud")
    assert [flow.name for flow in made.flows] == [
        "upload::BE far", "upload::BE city", "download::BE near", "download::BE city",
    ]  # fmt: skip
    assert {ping.name for ping in made.pings} >= {"ICMP far", "ICMP near", "ICMP city"}


def test_congestion_controls_by_direction_and_by_stream() -> None:
    made = plan("L100M", "test.name=rrul_be", "test.tcp_cong_control=bbr,reno")
    assert {(flow.name.split("::")[0], flow.cc) for flow in made.flows} == {("upload", "bbr"), ("download", "reno")}
    made = plan("L100M", "test.upload_streams=3", "test.tcp_cong_control=bbr", "test.cc_algos=reno,vegas")
    assert [flow.cc for flow in made.flows] == ["reno", "vegas", "bbr"]


def spans(stream: Datagrams) -> list[tuple[int, int, int]]:
    return [(one.start_ns, one.stop_ns, one.interval_ns) for one in stream.phases]


def beside(*rows: dict[str, Any], **test: Any) -> Plan:
    """A test of 10 s after 1 s of pings, with datagrams beside it."""
    source = {"testbed": {"preset": "L100M"}, "test": {"length": 10, "delay": 1, "datagrams": list(rows), **test}}
    return build(load(source), ALL)


def test_datagrams_are_sent_at_a_rate_that_changes() -> None:
    rate = [[0, "1mbit"], [5, 0], [6, "20mbit"]]
    made = beside({"name": "game", "rate": rate, "size": 1000, "start": 1, "stop": 9, "marking": "EF"})
    (game,) = made.datagrams
    second = 10**9
    assert (game.name, game.client, game.server, game.dscp, game.burst) == ("game", "client", "server", 46, 1)
    assert spans(game) == [(2 * second, 7 * second, 8_000_000), (8 * second, 10 * second, 400_000)]
    assert (game.start_ns, game.stop_ns) == (2 * second, 10 * second)
    assert game.id == len(made.streams) - 1


def test_datagrams_on_and_off_and_in_bursts() -> None:
    made = beside(
        {"rate": [[0, "8mbit"], [0.5, 0]], "repeat": 4, "burst": 5, "size": 1000},
        {"interval": "40ms", "burst": 9, "sender": "server", "receiver": "client"},
    )
    on_off, camera = made.datagrams
    second = 10**9
    assert spans(on_off) == [(t * second, t * second + second // 2, 5_000_000) for t in (1, 5, 9)]
    assert (on_off.name, on_off.burst, on_off.payload_bytes) == ("datagrams 1", 5, 1000)
    assert spans(camera) == [(second, 11 * second, 40_000_000)]
    assert (camera.client, camera.server, camera.address) == ("server", "client", "10.0.0.1")
    assert [one.port - FIRST_PORT for one in made.datagrams] == [on_off.id, camera.id]


def test_flows_start_stop_and_are_paced_in_turn() -> None:
    test = {"upload_streams": 3, "stream_delays": [0, 2], "stream_stops": [4, 10, 5], "stream_rates": [0, "8mbit"]}
    competing = {"client": "router", "start": 3, "stop": 7, "rate": "1mbit"}
    made = beside({"rate": "1mbit"}, **test, competing=[competing])
    assert [(flow.start_ns // 10**9, flow.stop_ns // 10**9, flow.pace_bps) for flow in made.flows] == [
        (1, 5, None), (3, 11, 8 * 10**6), (1, 6, None), (4, 8, 10**6),
    ]  # fmt: skip


def test_applications_write_in_turn_and_beside() -> None:
    test = {"upload_streams": 3, "stream_writes": ["5mbit", 0], "write_interval": 0.1}
    made = beside({"rate": "1mbit"}, **test, competing=[{"client": "router", "writes": "1mbit"}])
    told = [flow.writes and (flow.writes.rate_bps, flow.writes.interval_ns) for flow in made.flows]
    assert told == [(5_000_000, 10**8), None, (5_000_000, 10**8), (10**6, 10**8)]


def test_datagrams_are_something_to_wait_for() -> None:
    made = beside({"rate": "1mbit"}, name="ping")
    assert (made.datagrams[0].start_ns, made.end_ns) == (10**9, 12 * 10**9)


def test_a_flood_is_as_many_packets_as_its_bandwidth_says() -> None:
    (flood,) = plan("L100M", "test.name=udp_flood").datagrams
    assert (flood.payload_bytes, flood.burst) == (1470, 1)
    assert (flood.start_ns, flood.stop_ns) == (5 * 10**9, 35 * 10**9)
    assert spans(flood) == [(5 * 10**9, 35 * 10**9, 11_760_000)], "iperf's 1 Mbit/s"
    made = plan("L100M", "test.name=udp_flood", "test.udp_bandwidth=100mbit", "test.udp_pktsize=1250")
    assert made.datagrams[0].phases[0].interval_ns == 100_000
    assert made.datagrams[0].id == len(made.pings)


def test_a_telephone_is_g711_from_the_first_to_the_last_moment() -> None:
    made = plan("L100M", "test.name=voip-1up", "test.voip_marking=EF")
    (voice,) = made.datagrams
    assert (voice.payload_bytes, voice.burst, voice.dscp) == (172, 1, 46)
    assert spans(voice) == [(0, made.end_ns, 20_000_000)]
    assert plan("L100M", "test.name=voip").end_ns == 30 * 10**9, "it waits for no flow"


def test_the_web_has_its_clients() -> None:
    made = plan("L100M", "test.name=http-1down", "test.http_workers=2", "test.http_sizes=1KB,2MB")
    assert [(one.name, one.sizes) for one in made.fetches] == [
        ("http 1", [1000, 2_000_000]), ("http 2", [1000, 2_000_000]),
    ]  # fmt: skip


def test_transactions_have_a_connection_each() -> None:
    made = plan("L100M", "test.name=tcp_rr-1up", "test.rr_streams=2", "test.rr_request=300B", "test.rr_response=1KB")
    assert [(one.name, one.request_bytes, one.response_bytes) for one in made.transactions] == [
        ("tcp_rr 1", 300, 1000), ("tcp_rr 2", 300, 1000),
    ]  # fmt: skip
    assert {(one.start_ns, one.stop_ns) for one in made.transactions} == {(0, made.end_ns)}
    (alone,) = plan("L100M", "test.name=tcp_rr").transactions
    assert (alone.name, alone.request_bytes, alone.response_bytes) == ("tcp_rr", 1, 1)


def test_every_stream_has_a_port_of_its_own_that_nobody_knows() -> None:
    """Neither a client's, by Linux' default, nor a protocol's, by Wireshark's tables."""
    tests = ["udp_flood", "voip-1up", "http-1down", "tcp_rr-1up", "rrul"]
    for made in (plan("L100M", f"test.name={name}") for name in tests):
        ports = [one.port for one in made.streams if getattr(one, "protocol", "") != "icmp"]
        assert len(set(ports)) == len(ports) > 1
        assert min(ports) >= FIRST_PORT > 60999
    assert FURTHER_PORT + STREAMS_MAX < 32768
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("no tshark here: apt-get install -y tshark")
    told = subprocess.run([tshark, "-G", "decodes"], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in told.splitlines()]
    known = {int(row[1], 0) for row in rows if row[0] in ("tcp.port", "udp.port")}
    assert 5000 in known
    assert not known & set(range(FIRST_PORT, 65536))


def test_so_many_streams_that_ports_above_those_of_clients_do_not_do_have_others() -> None:
    beside = {"client": "client", "server": "server", "upload_streams": 1000}
    test = {"name": "tcp_nup", "upload_streams": 1000, "competing": [beside] * 9}
    made = build(load({"name": "many", "testbed": {"preset": "L100M"}, "test": test}), ALL)
    ports = [one.port for one in made.streams if getattr(one, "protocol", "") != "icmp"]
    assert len(set(ports)) == len(ports) > 10_000
    assert ports[4535:4537] == [65535, FURTHER_PORT]
    assert not set(ports) & set(range(32768, 61000))


@pytest.mark.parametrize(
    ("scenario", "settings", "complaint"),
    [
        ("L100M", ["test.name=rtt_fair"], "test.hosts = ['server']: rtt_fair needs 4 servers"),
        (
            "L100M",
            ["test.upload_streams=1", "test.markings=EF,EF"],
            "at most one for each of the 1 streams",
        ),
        ("L100M", ["test.name=rrul", "test.markings=EF"], "the test rrul has no such parameter"),
        ("L100M", ["test.name=rrul_var", "test.bidir_streams=2", "test.labels=a,a"], "names of their own"),
        ("L100M", ["test.markings=EG"], "test.markings = 'EG': "),
        ("L100M", ["test.name=voip", "test.voip_marking=64"], "or a DSCP from 0 to 63"),
        ("L100M", ["test.tcp_cong_control=bbr", "test.flow_cc=reno"], "test.flow_cc says the same"),
        ("L100M", ["test.name=rrul", "test.tcp_cong_control=bbr,reno,cubic"], "one for all flows, or [up, down]"),
        ("L100M", ["test.name=http", "test.http_sizes=0B"], "test.http_sizes"),
        ("L100M", ["test.name=http", "test.http_sizes=[]"], "at least one size"),
        ("L100M", ["test.name=tcp_rr", "test.rr_request=0B"], "test.rr_request"),
        ("L100M", ["test.name=http", "test.rr_request=1B"], "the test http has no such parameter"),
        ("L100M", ["test.name=udp_flood", "test.udp_pktsize=3"], "from 4 to 65507"),
        ("rtt-fair", ["test.hosts=far,far,near,city"], "names of nodes, each once"),
        ("rtt-fair", ["test.hosts=far,near,city,client"], "is the client: name the others"),
        ("rtt-fair", ["test.hosts=far,near,city,router7"], "no such node"),
        ("rtt-fair", ["test.server=near", "test.hosts=far,near,city,ocean"], "is the first of test.hosts"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(scenario: str, settings: list[str], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        load(scenario, settings)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", TESTS)
def test_every_parameter_of_a_test_is_a_key_of_the_scenario_and_comes_back(name: str) -> None:
    made = load("rtt-fair" if TESTS[name].hosts else "L100M", [f"test.name={name}"])
    assert set(TESTS[name].parameters) <= set(type(made.test).model_fields)
    assert load(json.loads(made.to_json())) == made
