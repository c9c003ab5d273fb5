# SPDX-License-Identifier: Apache-2.0
"""What programs open is followed as the plan's own streams are: found, counted to the byte, timed to the ns."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hourglass import runner
from hourglass.contract.probe import LAYER_COLUMNS
from hourglass.flent.write import document
from hourglass.results.connections import Connection
from hourglass.results.recording import Recording
from hourglass.scenario import load

from .conftest import KERNELS

pytestmark = pytest.mark.guest

COMMON = "import socket, sys, time\n"
SERVE = (
    COMMON
    + """
listener = socket.create_server(("", 9000), backlog=200)
for _ in range(int(sys.argv[1])):
    one, _ = listener.accept()
    with one:
        got = 0
        while block := one.recv(65536):
            got += len(block)
        one.sendall(b"%08d" % got)
"""
)
FETCH = (
    COMMON
    + """
for _ in range(int(sys.argv[2])):
    with socket.create_connection((sys.argv[1], 9000)) as one:
        one.sendall(bytes(int(sys.argv[3])))
        one.shutdown(socket.SHUT_WR)
        assert int(one.recv(8, socket.MSG_WAITALL)) == int(sys.argv[3])
"""
)
ECHO = (
    COMMON
    + """
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.bind(("", 4433))
for _ in range(200):
    data, peer = one.recvfrom(65536)
    one.sendto(data[:100], peer)
"""
)
SEGMENTS = (
    COMMON
    + """
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.setsockopt(17, 103, 1200)  # SOL_UDP, UDP_SEGMENT
for number in range(20):
    one.sendto(b"".join(bytes(40) + bytes([number, part]) + bytes(1158) for part in range(10)), (sys.argv[1], 4433))
    time.sleep(0.02)
time.sleep(0.1)
"""
)
NAT = "nft add table ip t && nft 'add chain ip t {0} {{ type nat hook {0} priority 0; }}' && nft add rule ip t {0} {1}"


def program(node: str, name: str, code: str, *words: str, **more: Any) -> dict[str, Any]:
    command = ["python3", "-u", "/srv/code.py", *words]
    return {"node": node, "name": name, "command": command, "files": {"/srv/code.py": {"text": code}}, **more}


def run(kernel: str, place: Path, *apps: dict[str, Any], **more: Any) -> Recording:
    ends = [{"ends": ["home:eth0", "gate:lan"], "rate": "100mbit", "delay": "1ms"},
            {"ends": ["gate:wan", "server:eth0"], "rate": "20mbit", "delay": "5ms"}]  # fmt: skip
    nodes = [{"name": "home"}, {"name": "gate", "role": "router"}, {"name": "server"}]
    described: dict[str, Any] = {
        "kernel": kernel,
        "testbed": {"node": nodes, "link": ends},
        "apps": {"packages": ["nftables", "python3"]},
        "app": list(apps),
        **more,
    }
    return runner.run(load(described), place)


def served(count: int, size: int, code: str = FETCH, server: str = SERVE) -> tuple[dict[str, Any], dict[str, Any]]:
    """A server, and a client that sends `size` bytes over `count` connections, one after the other."""
    return (
        program("server", "store", server, str(count), ready={"listen": "tcp:9000"}),
        program("home", "send", code, "{server.address}", str(count), str(size), after=["store"]),
    )


def check_laws(one: Recording) -> None:
    """Nothing is lost from view, and a packet's layers are its life."""
    balance = one.balance.with_columns(pl.col(pl.UInt64).cast(pl.Int64))
    assert balance.height == 2 * len(one.connections)
    there = pl.col("sent") + pl.col("duplicated") - pl.col("delivered") - pl.col("dropped") - pl.col("in_flight")
    assert balance.select(there.abs().sum()).item() == 0
    assert balance["unmatched"].sum() == 0
    lives = one.packets.group_by("stream", "way", "packet").agg(
        pl.sum_horizontal(LAYER_COLUMNS).sum(), (pl.col("end_ns") - pl.col("t_ns")).first().alias("life")
    )
    assert lives.height
    assert (lives["rx_ns"] == lives["life"]).all()


def only(one: Recording) -> Connection:
    assert len(one.connections) == 1
    return one.connections[0]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_connection_is_known_by_its_programs_and_counted_to_the_byte(kernel: str, tmp_path: Path) -> None:
    one = run(kernel, tmp_path / "run", *served(1, 2_000_000), measure={"packets": "all", "tcp": "5ms"})
    check_laws(one)
    found = only(one)
    assert (found.name, found.app, found.node, found.to_app, found.to_node) == (
        "send#1",
        "send",
        "home",
        "store",
        "server",
    )
    assert (found.to_address, found.to_port, found.protocol) == ("10.0.1.2", 9000, "tcp")
    assert (found.bytes_up, found.bytes_down) == (2_000_000, 8)
    wire = pl.col("node").is_in(["gate"]) & pl.col("data") & (pl.col("way") == "up")
    rows = one.packets.filter(wire & (pl.col("bytes") == 1448))
    assert rows.height > 1000
    assert rows["wire_ns"].unique().to_list() == [(1448 + 52 + 38) * 8 * 50]  # at 20 Mbit/s
    assert rows["propagation_ns"].unique().to_list() == [5_000_000]
    samples = one.tcp.filter(pl.col("sender"))
    assert samples.height > 100
    assert samples["hold"].is_in(["cwnd", "tsq", "rwnd", "none", "push", "pacing"]).all()
    figures = one.summary.connections[0]
    assert figures.up_mbps == pytest.approx(2e6 * 8 / 1e6 / (found.end_ns - found.start_ns) * 1e9, rel=1e-5)
    assert figures.tcp_rtt_ms.n > 0
    assert one.summary.connection_layers_ms["send#1"]["gate"]["propagation"].mean == pytest.approx(5)
    flent = document(one)
    assert (flent.metadata.name, [*flent.results]) == ("rrul_be", ["TCP upload::send#1"])
    points = flent.raw_values["TCP upload::send#1"]
    received = sum((point.val or 0) * (point.dur or 0) * 1e6 / 8 for point in points)
    assert 1_800_000 < received <= 2_000_000  # between the first sample and the last


@pytest.mark.parametrize("kernel", KERNELS)
def test_following_programs_moves_no_packet(kernel: str, tmp_path: Path) -> None:
    both = [
        run(kernel, tmp_path / name, *served(3, 300_000), measure=measure)
        for name, measure in {"all": {"packets": "all"}, "none": {"packets": 0, "tcp": 0}}.items()
    ]
    assert both[0].connections
    assert not both[1].connections
    digests = [one.ethtool.filter(pl.col("name") == "tx_digest").sort("node", "device")["value"] for one in both]
    assert digests[0].equals(digests[1])


@pytest.mark.parametrize("kernel", KERNELS)
def test_segments_of_a_datagram_are_packets(kernel: str, tmp_path: Path) -> None:
    echo = program("server", "echo", ECHO, ready={"listen": "udp:4433"})
    quic = program("home", "quic", SEGMENTS, "{server.address}", after=["echo"])
    one = run(kernel, tmp_path / "run", echo, quic, measure={"packets": "all"})
    check_laws(one)
    found = only(one)
    assert (found.app, found.to_app, found.protocol) == ("quic", "echo", "udp")
    assert (found.bytes_up, found.bytes_down) == (20 * 10 * 1200, 200 * 100)
    assert one.balance.sort("way")["delivered"].to_list() == [200, 200]
    waited = one.packets.filter(
        (pl.col("way") == "up") & (pl.col("node") == "home") & (pl.col("t_ns") == found.start_ns)
    )
    frame_ns = (1200 + 28 + 38) * 80  # at 100 Mbit/s, one after the other
    spent = waited.select((pl.col("qdisc_ns") + pl.col("ring_ns")).alias("ns")).sort("ns")["ns"]
    assert spent.diff().drop_nulls().to_list() == [frame_ns] * 9


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("rule", ["masquerade", "forward"])
def test_a_connection_through_nat_is_one(kernel: str, rule: str, tmp_path: Path) -> None:
    chains = {
        "masquerade": NAT.format("postrouting", 'oifname "wan" masquerade'),
        "forward": NAT.format("prerouting", 'iifname "lan" tcp dport 9000 dnat to {server.address}'),
    }
    store, send = served(1, 50_000)
    if rule == "forward":
        send["command"][3] = "10.0.0.2"
    nat = {"node": "gate", "name": "nat", "command": ["sh", "-c", chains[rule]], "ready": {"exit": True}}
    one = run(kernel, tmp_path / "run", nat, store, {**send, "after": ["nat", "store"]}, measure={"packets": "all"})
    check_laws(one)
    found = only(one)
    assert (found.node, found.to_node, found.to_app) == ("home", "server", "store")
    assert (found.bytes_up, found.bytes_down) == (50_000, 8)
    passed = one.packets.filter(pl.col("data")).group_by("way", "packet").agg(pl.col("node").sort_by("visit"))
    assert passed.group_by("way").agg(pl.col("node").unique()).sort("way").rows() == [
        ("up", [["home", "gate", "server"]]),
        ("down", [["server", "gate", "home"]]),
    ]


@pytest.mark.parametrize("kernel", KERNELS)
def test_many_connections_are_one_stream_after_the_first(kernel: str, tmp_path: Path) -> None:
    one = run(kernel, tmp_path / "run", *served(100, 500), measure={"packets": "all"})
    check_laws(one)
    assert [each.connections for each in one.connections] == [1] * 64 + [36]
    rest = one.connections[-1]
    assert (rest.port, rest.bytes_up, rest.bytes_down) == (None, 36 * 500, 36 * 8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_subflow_of_mptcp_is_followed_to_the_stack(kernel: str, tmp_path: Path) -> None:
    made = "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)"  # IPPROTO_MPTCP
    bound = f'{made}\nlistener.bind(("", 9000))\nlistener.listen()'
    server = SERVE.replace('socket.create_server(("", 9000), backlog=200)', bound)
    connected = f"{made} as one:\n        one.connect((sys.argv[1], 9000))"
    client = FETCH.replace("socket.create_connection((sys.argv[1], 9000)) as one:", connected)
    assert made in server
    assert made in client
    one = run(kernel, tmp_path / "run", *served(1, 500_000, client, server), measure={"packets": "all"})
    check_laws(one)
    assert only(one).protocol == "mptcp"
    assert only(one).bytes_up == 500_000
    assert only(one).bytes_down == 8


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_test_and_programs_side_by_side_are_the_same_bytes_twice(kernel: str, tmp_path: Path) -> None:
    """The test's own upload begins 5 s in, the programs' connection in the middle of it; both are in all tables."""
    store, send = served(1, 2_000_000)
    test = {"name": "tcp_nup", "upload_streams": 1, "length": 4, "client": "home", "server": "server"}
    given = {"test": test, "measure": {"packets": 1000}}
    first, second = (run(kernel, tmp_path / name, store, {**send, "start": 7}, **given) for name in ("a", "b"))
    assert first.info.digest == second.info.digest
    found = only(first)
    assert (found.bytes_up, found.start_ns > 7_000_000_000) == (2_000_000, True)
    alone = first.summary.flows[0]
    assert 8 < alone.goodput_mbps < 19, "20 Mbit/s are shared for a part of the time"
    balance = first.balance.with_columns(pl.col(pl.UInt64).cast(pl.Int64))
    there = pl.col("sent") + pl.col("duplicated") - pl.col("delivered") - pl.col("dropped") - pl.col("in_flight")
    assert balance.select(there.abs().sum()).item() == 0
    assert balance["unmatched"].sum() == 0
