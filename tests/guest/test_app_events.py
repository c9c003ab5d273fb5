# SPDX-License-Identifier: Apache-2.0
"""Programs and nodes that fail in the middle of a run: killed, paused, restarted, without power."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hourglass import runner, scenario
from hourglass.contract.kernels import DEFAULT, KERNELS
from hourglass.results.apps import Program
from hourglass.results.recording import Recording

from .conftest import line, records

pytestmark = pytest.mark.guest

TICK = ["sh", "-c", "n=0; while :; do echo $n; n=$((n+1)); sleep 0.1; done"]
"""Prints a line every 100 ms."""


def run(folder: Path, apps: list[dict[str, Any]], events: list[dict[str, Any]], kernel: str = DEFAULT) -> Recording:
    data = {
        **line(nodes=2, link_up="1s"),
        "apps": {"packages": ["python3"]},
        "test": {"length": 20},
        "app": apps,
        "event": events,
    }
    return runner.run(scenario.load(data, kernel=kernel), folder)


def times(program: Program, start: int = 0) -> list[float]:
    """Return the times of a start's lines, in s."""
    rows = program.output.filter(pl.col("run") == start)
    return [round(t_ns / 1e9, 2) for t_ns in rows["t_ns"]]


def starts(program: Program) -> list[tuple[float, float, str]]:
    rows = program.starts.select("t_ns", "end_ns", "why").rows()
    return [(round(t_ns / 1e9, 3), round(end_ns / 1e9, 3), why) for t_ns, end_ns, why in rows]


@pytest.mark.parametrize("kernel", KERNELS)
def test_programs_are_killed_paused_and_restarted_at_their_instant(kernel: str, tmp_path: Path) -> None:
    apps = [
        {"name": "one", "node": "client", "command": TICK, "expect": "SIGKILL", "restart": 3},
        {"name": "two", "node": "client", "command": TICK, "stop": 3, "expect": "any"},
        {"name": "sub", "node": "server", "command": ["sh", "-c", "sleep 100 & sleep 100; echo no"], "expect": "any"},
    ]
    events = [
        {"at": 1.05, "node": "client", "pause": "*"},
        {"at": 2.05, "node": "client", "resume": "*"},
        {"at": 2.25, "node": "client", "kill": "one"},
        {"at": 2.5, "node": "client", "restart": ["two"]},
        {"at": 2.5, "node": "server", "kill": "sub"},
    ]
    recording = run(tmp_path / "run", apps, events, kernel)
    before, after = [n / 10 for n in range(11)], [2.05, 2.15]
    first, second, shell = recording.apps.values()
    assert times(first) == [*before, *after, 2.25][: len(times(first))]
    assert times(first)[:13] == [*before, *after]
    assert starts(first) == [(0, 2.25, "killed")], "killed by an event, it is not restarted"
    assert starts(second) == [(0, 2.5, "stopped"), (2.5, 3, "stopped")]
    assert times(second, 1) == [2.5, 2.6, 2.7, 2.8, 2.9]
    assert starts(shell) == [(0, 2.5, "killed")]
    assert all(check.ok for check in recording.summary.checks)
    assert recording.events["name"].to_list()[2] == "kill one"
    assert recording.info.virtual_s == pytest.approx(3, abs=0.01), "the test waits for programs that stop at their time"


SERVE = """
import socket
with socket.create_server(("0.0.0.0", 7)) as listening:
    print("up", flush=True)
    while True:
        connection, _ = listening.accept()
        while data := connection.recv(100):
            connection.sendall(data)
"""
ASK = """
import socket, time
begun = time.monotonic()
def ask():
    with socket.create_connection(("server", 7), timeout=0.4) as connection:
        for _ in range(10):
            connection.sendall(b"word")
            assert connection.recv(100) == b"word"
            time.sleep(0.1)
while time.monotonic() < begun + 8:
    try:
        ask()
        print("answered")
    except OSError as error:
        print(type(error).__name__)
    time.sleep(0.05)
"""


def test_a_node_without_power_is_silent_and_restarts_with_its_programs(tmp_path: Path) -> None:
    """Peers get no answer from a node without power, until its NIC has negotiated. If only the program is killed, its
    kernel refuses connections."""
    server = {"name": "server", "node": "server", "command": ["python3", "-c", SERVE], "ready": {"listen": "tcp:7"}}
    client = {"name": "client", "node": "client", "command": ["python3", "-uc", ASK], "after": ["server"]}
    outputs = []
    for name, events in (
        ("power", [{"at": 2, "node": "server", "power": "off"}, {"at": 4, "node": "server", "power": "on"}]),
        ("kill", [{"at": 2, "node": "server", "kill": "*"}, {"at": 4, "node": "server", "restart": "*"}]),
    ):
        recording = run(tmp_path / name, [server, client], events)
        restarted, *_ = starts(recording.apps["server"])[1]
        assert restarted == (5 if name == "power" else 4), "with power, when the cable carries"
        assert all(check.ok for check in recording.summary.checks)
        outputs.append(recording.apps["client"].stdout.split())
    silent, refused = outputs
    assert silent[:3] == ["answered", "answered", "TimeoutError"]
    assert set(silent) == {"answered", "TimeoutError", "OSError"}, "the neighbour entry fails after 3 s"
    assert "ConnectionRefusedError" in refused
    assert silent[-2:] == refused[-2:] == ["answered"] * 2


def test_faults_are_the_same_bytes_twice(tmp_path: Path) -> None:
    apps = [{"name": "one", "node": "client", "command": TICK, "expect": "any", "stop": 4}]
    events = [{"at": 0.5, "node": "client", "restart": "one", "every": 0.7, "count": 4}]
    first, second = (run(tmp_path / name, apps, events) for name in ("a", "b"))
    assert len(first.apps["one"].starts) == 5
    assert records(first).read_bytes() == records(second).read_bytes()
