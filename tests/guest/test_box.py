# SPDX-License-Identifier: Apache-2.0
"""`hourglass box`: any program as root of a fresh guest, with the current folder, the environment and the exit status
that it would have here."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import hourglass

pytestmark = pytest.mark.guest

NODES = ("box/1", "box/right")
BOX = [str(Path(sys.executable).with_name("hourglass")), "box"]
PAIR = """
set -e
ip netns add left
ip link add v0 type veth peer name v1 netns left
ip addr add 192.168.7.1/24 dev v0
ip -n left addr add 192.168.7.2/24 dev v1
ip link set v0 up
ip -n left link set v1 up
tc qdisc add dev v0 root netem delay 50ms
ping -c 3 -q 192.168.7.2
"""


NAMESPACES = """
set -e
unshare -n sleep 5 &
left=$!
sleep 0.01
ip netns add right
ip -n right link add v1 type veth peer name v0 netns $left
nsenter -n -t $left ip addr add 192.168.7.1/24 dev v0
ip -n right addr add 192.168.7.2/24 dev v1
nsenter -n -t $left ip link set v0 up
ip -n right link set v1 up
ip -n right link add b0 type bridge
ip netns exec right tc qdisc add dev v1 root netem delay 5ms rate 10mbit limit 10
ip netns exec right python3 -c "
import socket
connection = socket.create_server(('', 80)).accept()[0]
connection.sendall(bytes(1000000))" &
sleep 0.01
nsenter -n -t $left python3 -c "
import socket
connection = socket.create_connection(('192.168.7.2', 80))
while connection.recv(65536): pass"
"""


def box(folder: Path, *arguments: str, stdin: bytes = b"", **environment: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [*BOX, *arguments], cwd=folder, env=os.environ | environment, input=stdin, capture_output=True, check=False
    )


def test_namespaces_qdiscs_and_time(tmp_path: Path) -> None:
    (tmp_path / "pair.sh").write_text(PAIR)
    reports: list[dict[str, Any]] = [
        json.loads(box(tmp_path, "--root", "debian:12", "--json", "--", "sh", "pair.sh").stdout) for _ in range(2)
    ]
    assert reports[0]["exit"] == 0
    assert "3 packets transmitted, 3 received" in reports[0]["stdout"]
    assert "= 50.000/66.666/100.000/" in reports[0]["stdout"]  # ARP crosses the delay, too
    assert 2 < reports[0]["virtual_s"] < 3
    assert reports[0]["digest"] == reports[1]["digest"]


@pytest.mark.slow
def test_the_records_have_what_a_program_makes(tmp_path: Path) -> None:
    (tmp_path / "namespaces.sh").write_text(NAMESPACES)
    for name in ("first", "second"):
        result = box(tmp_path, "--out", str(tmp_path / "runs" / name), "--", "sh", "namespaces.sh")
        assert result.returncode == 0, result.stderr
    run, repeated = (hourglass.load(tmp_path / "runs" / name) for name in ("first", "second"))
    assert run.info.digest == repeated.info.digest
    assert run.namespaces.select("node", "parent").rows() == [(node, "box") for node in NODES]
    assert {*run.devices.select("node", "device").unique().rows()} == {
        ("box/1", "v0"), ("box/right", "v1"), ("box/right", "b0")
    }  # fmt: skip
    (connection,) = run.connections
    assert (connection.node, connection.to_node, connection.bytes_down) == (*NODES, 1_000_000)
    tc = run.qdisc.filter((pl.col("kind") == "netem") & (pl.col("t_ns") == run.qdisc["t_ns"].max()))
    assert tc["node"].to_list() == ["box/right"]
    dropped = run.drops.filter(pl.col("place") == "qdisc")
    assert dropped.height == tc["drops"].sum() > 0
    assert {*dropped.select("node", "device").rows()} == {("box/right", "v1")}
    assert run.summary.drops["box/right"]["v1"].qdisc == dropped["packets"].sum()


def test_the_current_folder_the_environment_and_the_exit_status(tmp_path: Path) -> None:
    (tmp_path / "input.txt").write_text("input\n")
    script = 'cat input.txt; echo "$WORD" >&2; id -u; pwd; echo lost > lost.txt; exit 7'
    result = box(tmp_path, "--", "sh", "-c", script, WORD="word")
    assert (result.returncode, result.stdout.decode()) == (7, f"input\n0\n{tmp_path}\n")
    assert result.stderr.decode().splitlines()[-1] == "word"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input.txt"]


BIG = "truncate -s 200M big1 big2; echo late > big3; : > big4"


def test_files_come_back(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    script = "mkdir -p results/deep; echo a > results/a; echo b > results/deep/.b; echo c > log.txt; echo d > lost"
    result = box(tmp_path, "--collect", "results", "--collect", "*.txt", "--", "sh", "-c", script)
    assert result.returncode == 0, result.stderr
    contents = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert contents == {"results/a": "a\n", "results/deep/.b": "b\n", "log.txt": "c\n"}


def test_files_that_do_not_come_back_are_named(tmp_path: Path) -> None:
    deep = "mkdir -p $(printf 'd/%.0s' $(seq 100)); echo a > $(printf 'd/%.0s' $(seq 100))a"
    result = box(tmp_path, "--collect", "d", "--collect", "big*", "--", "sh", "-c", f"{deep}; {BIG}")
    assert result.returncode == 0, result.stderr
    (line,) = [line for line in result.stderr.decode().splitlines() if "collect" in line]
    parts = len(tmp_path.parts) - 1
    first = f"{tmp_path}/{'/'.join('d' * (64 - parts))}"
    assert line == (
        "hourglass: box: collect: 3 files or folders incomplete or missing, beyond 256 MiB or 64 levels of folders; "
        f"the first: {first}"
    )
    sizes = {path.name: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}
    assert sizes == {"big1": 200 << 20, "big2": 56 << 20, "big4": 0}


def test_only_files_of_the_current_folder_come_back(tmp_path: Path) -> None:
    result = box(tmp_path, "--collect", "../x", "--", "true")
    assert result.returncode == 2
    assert b"--collect = '../x': must be a file, a folder or a pattern below the current folder" in result.stderr


def test_standard_input_reaches_the_program_with_stdin_only(tmp_path: Path) -> None:
    assert box(tmp_path, "--stdin", "--", "cat", stdin="né\n".encode()).stdout == "né\n".encode()
    assert box(tmp_path, "--", "cat", stdin=b"unread").stdout == b""


def test_a_signal_ends_the_command(tmp_path: Path) -> None:
    assert box(tmp_path, "--", "sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_virtual_time_ends_the_command(tmp_path: Path) -> None:
    result = box(tmp_path, "--timeout", "5", "--", "sh", "-c", "echo begun; sleep 1000")
    assert (result.returncode, result.stdout) == (124, b"begun\n")
    assert b"ended after 5 s of virtual time" in result.stderr


@pytest.mark.slow
def test_wall_time_ends_the_command(tmp_path: Path) -> None:
    result = box(tmp_path, "--wall-timeout", "6", "--", "sh", "-c", "echo begun; while true; do true; done")
    assert (result.returncode, result.stdout) == (124, b"begun\n")
    assert b"ended after 6 s of wall time" in result.stderr


def test_output_is_printed_as_it_comes(tmp_path: Path) -> None:
    command = [*BOX, "--", "sh", "-c", "echo begun; while true; do true; done"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"begun\n"  # the loop never ends, and no virtual time passes
        running.terminate()


def test_a_box_has_only_a_loopback_device(tmp_path: Path) -> None:
    result = box(tmp_path, "--root", "debian:12", "--", "ip", "-brief", "address")
    assert result.stdout.decode().split() == ["lo", "UNKNOWN", "127.0.0.1/8", "::1/128"]


def test_more_files_than_this_machine_lets_a_user_open(tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / f"{number:03}").write_text(f"{number}\n")
    limited = ["prlimit", "--nofile=350", *BOX, "--", "sh", "-c", "cat ??? | md5sum; cat ??? | md5sum"]
    lines = subprocess.run(limited, cwd=tmp_path, capture_output=True, check=True).stdout.splitlines()
    digest = hashlib.md5("".join(f"{number}\n" for number in range(400)).encode()).hexdigest()
    assert lines == [f"{digest}  -".encode()] * 2


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    result = box(tmp_path, "--", "no-such-program")
    assert result.returncode == 2
    assert b"no-such-program" in result.stderr
