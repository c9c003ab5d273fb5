# SPDX-License-Identifier: Apache-2.0
"""Connections of programs are followed like the plan's streams: detected, counted to the byte, timed to the ns."""

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


def program(node: str, name: str, code: str, *arguments: str, **keys: Any) -> dict[str, Any]:
    command = ["python3", "-u", "/srv/code.py", *arguments]
    return {"node": node, "name": name, "command": command, "files": {"/srv/code.py": {"text": code}}, **keys}


def run(kernel: str, folder: Path, *apps: dict[str, Any], **tables: Any) -> Recording:
    ends = [{"ends": ["home:eth0", "gate:lan"], "rate": "100mbit", "delay": "1ms"},
            {"ends": ["gate:wan", "server:eth0"], "rate": "20mbit", "delay": "5ms"}]  # fmt: skip
    nodes = [{"name": "home"}, {"name": "gate", "role": "router"}, {"name": "server"}]
    data: dict[str, Any] = {
        "kernel": kernel,
        "testbed": {"node": nodes, "link": ends},
        "apps": {"packages": ["nftables", "python3"]},
        "app": list(apps),
        **tables,
    }
    return runner.run(load(data), folder)


def served(count: int, size: int, code: str = FETCH, server: str = SERVE) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a scenario with a server, and a client that sends `size` bytes over `count` successive connections."""
    return (
        program("server", "store", server, str(count), ready={"listen": "tcp:9000"}),
        program("home", "send", code, "{server.address}", str(count), str(size), after=["store"]),
    )


def check_laws(recording: Recording) -> None:
    """Check that every packet is accounted for, and that its layers add up to its total time."""
    balance = recording.balance.with_columns(pl.col(pl.UInt64).cast(pl.Int64))
    assert balance.height == 2 * len(recording.connections)
    difference = pl.col("sent") + pl.col("duplicated") - pl.col("delivered") - pl.col("dropped") - pl.col("in_flight")
    assert balance.select(difference.abs().sum()).item() == 0
    assert balance["unmatched"].sum() == 0
    lives = recording.packets.group_by("stream", "way", "packet").agg(
        pl.sum_horizontal(LAYER_COLUMNS).sum(), (pl.col("end_ns") - pl.col("t_ns")).first().alias("life")
    )
    assert lives.height
    assert (lives["rx_ns"] == lives["life"]).all()


def only(recording: Recording) -> Connection:
    assert len(recording.connections) == 1
    return recording.connections[0]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_connection_has_its_programs_and_exact_byte_counts(kernel: str, tmp_path: Path) -> None:
    recording = run(kernel, tmp_path / "run", *served(1, 2_000_000), measure={"packets": "all", "tcp": "5ms"})
    check_laws(recording)
    connection = only(recording)
    assert (connection.name, connection.app, connection.node, connection.to_app, connection.to_node) == (
        "send#1",
        "send",
        "home",
        "store",
        "server",
    )
    assert (connection.to_address, connection.to_port, connection.protocol) == ("10.0.1.2", 9000, "tcp")
    assert (connection.bytes_up, connection.bytes_down) == (2_000_000, 8)
    wire = pl.col("node").is_in(["gate"]) & pl.col("data") & (pl.col("way") == "up")
    rows = recording.packets.filter(wire & (pl.col("bytes") == 1448))
    assert rows.height > 1000
    assert rows["wire_ns"].unique().to_list() == [(1448 + 52 + 38) * 8 * 50]  # at 20 Mbit/s
    assert rows["propagation_ns"].unique().to_list() == [5_000_000]
    samples = recording.tcp.filter(pl.col("sender"))
    assert samples.height > 100
    assert samples["hold"].is_in(["cwnd", "tsq", "rwnd", "none", "push", "pacing"]).all()
    figures = recording.summary.connections[0]
    assert figures.up_mbps == pytest.approx(2e6 * 8 / 1e6 / (connection.end_ns - connection.start_ns) * 1e9, rel=1e-5)
    assert figures.tcp_rtt_ms.n > 0
    assert recording.summary.connection_layers_ms["send#1"]["gate"]["propagation"].mean == pytest.approx(5)
    flent = document(recording)
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
    digests = [
        recording.ethtool.filter(pl.col("name") == "tx_digest").sort("node", "device")["value"] for recording in both
    ]
    assert digests[0].equals(digests[1])


@pytest.mark.parametrize("kernel", KERNELS)
def test_segments_of_a_datagram_are_packets(kernel: str, tmp_path: Path) -> None:
    echo = program("server", "echo", ECHO, ready={"listen": "udp:4433"})
    quic = program("home", "quic", SEGMENTS, "{server.address}", after=["echo"])
    recording = run(kernel, tmp_path / "run", echo, quic, measure={"packets": "all"})
    check_laws(recording)
    connection = only(recording)
    assert (connection.app, connection.to_app, connection.protocol) == ("quic", "echo", "udp")
    assert (connection.bytes_up, connection.bytes_down) == (20 * 10 * 1200, 200 * 100)
    assert recording.balance.sort("way")["delivered"].to_list() == [200, 200]
    waited = recording.packets.filter(
        (pl.col("way") == "up") & (pl.col("node") == "home") & (pl.col("t_ns") == connection.start_ns)
    )
    frame_ns = (1200 + 28 + 38) * 80  # at 100 Mbit/s, one after the other
    spent = waited.select((pl.col("qdisc_ns") + pl.col("ring_ns")).alias("ns")).sort("ns")["ns"]
    assert spent.diff().drop_nulls().to_list() == [frame_ns] * 9


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("rule", ["masquerade", "forward"])
def test_a_connection_through_nat_is_one_stream(kernel: str, rule: str, tmp_path: Path) -> None:
    chains = {
        "masquerade": NAT.format("postrouting", 'oifname "wan" masquerade'),
        "forward": NAT.format("prerouting", 'iifname "lan" tcp dport 9000 dnat to {server.address}'),
    }
    store, send = served(1, 50_000)
    if rule == "forward":
        send["command"][3] = "10.0.0.2"
    nat = {
        "node": "gate",
        "name": "nat",
        "user": "root",
        "command": ["sh", "-c", chains[rule]],
        "ready": {"exit": True},
    }
    recording = run(
        kernel, tmp_path / "run", nat, store, {**send, "after": ["nat", "store"]}, measure={"packets": "all"}
    )
    check_laws(recording)
    connection = only(recording)
    assert (connection.node, connection.to_node, connection.to_app) == ("home", "server", "store")
    assert (connection.bytes_up, connection.bytes_down) == (50_000, 8)
    passed = recording.packets.filter(pl.col("data")).group_by("way", "packet").agg(pl.col("node").sort_by("visit"))
    assert passed.group_by("way").agg(pl.col("node").unique()).sort("way").rows() == [
        ("up", [["home", "gate", "server"]]),
        ("down", [["server", "gate", "home"]]),
    ]


@pytest.mark.parametrize("kernel", KERNELS)
def test_many_connections_are_one_stream_after_the_first(kernel: str, tmp_path: Path) -> None:
    recording = run(kernel, tmp_path / "run", *served(100, 500), measure={"packets": "all"})
    check_laws(recording)
    assert [figure.connections for figure in recording.connections] == [1] * 64 + [36]
    last = recording.connections[-1]
    assert (last.port, last.bytes_up, last.bytes_down) == (None, 36 * 500, 36 * 8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_subflow_of_mptcp_is_followed_to_the_stack(kernel: str, tmp_path: Path) -> None:
    creation = "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)"  # IPPROTO_MPTCP
    bound = f'{creation}\nlistener.bind(("", 9000))\nlistener.listen()'
    server = SERVE.replace('socket.create_server(("", 9000), backlog=200)', bound)
    connected = f"{creation} as one:\n        one.connect((sys.argv[1], 9000))"
    client = FETCH.replace("socket.create_connection((sys.argv[1], 9000)) as one:", connected)
    assert creation in server
    assert creation in client
    recording = run(kernel, tmp_path / "run", *served(1, 500_000, client, server), measure={"packets": "all"})
    check_laws(recording)
    assert only(recording).protocol == "mptcp"
    assert only(recording).bytes_up == 500_000
    assert only(recording).bytes_down == 8


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_test_next_to_programs_gives_the_same_bytes_twice(kernel: str, tmp_path: Path) -> None:
    """The test's upload begins at 5 s, during the programs' connection. Both are in all tables."""
    store, send = served(1, 2_000_000)
    test = {"name": "tcp_nup", "upload_streams": 1, "length": 4, "client": "home", "server": "server"}
    tables = {"test": test, "measure": {"packets": 1000}}
    first, second = (run(kernel, tmp_path / name, store, {**send, "start": 7}, **tables) for name in ("a", "b"))
    assert first.info.digest == second.info.digest
    connection = only(first)
    assert (connection.bytes_up, connection.start_ns > 7_000_000_000) == (2_000_000, True)
    flow = first.summary.flows[0]
    assert 8 < flow.goodput_mbps < 19, "20 Mbit/s are shared for a part of the time"
    balance = first.balance.with_columns(pl.col(pl.UInt64).cast(pl.Int64))
    difference = pl.col("sent") + pl.col("duplicated") - pl.col("delivered") - pl.col("dropped") - pl.col("in_flight")
    assert balance.select(difference.abs().sum()).item() == 0
    assert balance["unmatched"].sum() == 0
