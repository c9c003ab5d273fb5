# SPDX-License-Identifier: Apache-2.0
"""Programs and nodes that fail in the middle of a run: killed, stopped for a while, started again, without power."""

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
"""A line each 100 ms."""


def run(place: Path, apps: list[dict[str, Any]], events: list[dict[str, Any]], kernel: str = DEFAULT) -> Recording:
    made = {**line(nodes=2), "apps": {"packages": ["python3"]}, "test": {"length": 20}, "app": apps, "event": events}
    return runner.run(scenario.load(made, kernel=kernel), place)


def times(program: Program, start: int = 0) -> list[float]:
    """When the lines of a start were written, s."""
    rows = program.output.filter(pl.col("run") == start)
    return [round(t_ns / 1e9, 2) for t_ns in rows["t_ns"]]


def starts(program: Program) -> list[tuple[float, float, str]]:
    rows = program.starts.select("t_ns", "end_ns", "why").rows()
    return [(round(t_ns / 1e9, 3), round(end_ns / 1e9, 3), why) for t_ns, end_ns, why in rows]


@pytest.mark.parametrize("kernel", KERNELS)
def test_programs_are_killed_paused_and_started_again_at_their_instant(kernel: str, tmp_path: Path) -> None:
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
    made = run(tmp_path / "run", apps, events, kernel)
    before, after = [n / 10 for n in range(11)], [2.05, 2.15]
    one, two, sub = made.apps.values()
    assert times(one) == [*before, *after, 2.25][: len(times(one))]
    assert times(one)[:13] == [*before, *after]
    assert starts(one) == [(0, 2.25, "killed")], "killed by an event, it is not started again"
    assert starts(two) == [(0, 2.5, "stopped"), (2.5, 3, "stopped")]
    assert times(two, 1) == [2.5, 2.6, 2.7, 2.8, 2.9]
    assert starts(sub) == [(0, 2.5, "killed")]
    assert all(check.ok for check in made.summary.checks)
    assert made.events["name"].to_list()[2] == "kill one"
    assert made.info.virtual_s == pytest.approx(3, abs=0.01), "the test waits for what is stopped at its time"


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
while time.monotonic() < begun + 6:
    try:
        ask()
        print("answered")
    except OSError as error:
        print(type(error).__name__)
    time.sleep(0.05)
"""


def test_a_node_without_power_is_silent_and_comes_back_with_its_programs(tmp_path: Path) -> None:
    """Nobody is told: who asks hears nothing at all, where a killed program alone would have its kernel say so."""
    server = {"name": "server", "node": "server", "command": ["python3", "-c", SERVE], "ready": {"listen": "tcp:7"}}
    client = {"name": "client", "node": "client", "command": ["python3", "-uc", ASK], "after": ["server"]}
    told = []
    for name, events in (
        ("power", [{"at": 2, "node": "server", "power": "off"}, {"at": 4, "node": "server", "power": "on"}]),
        ("kill", [{"at": 2, "node": "server", "kill": "*"}, {"at": 4, "node": "server", "restart": "*"}]),
    ):
        made = run(tmp_path / name, [server, client], events)
        assert len(made.apps["server"].starts) == 2
        assert all(check.ok for check in made.summary.checks)
        told.append(made.apps["client"].stdout.split())
    silent, refused = told
    assert silent[:3] == ["answered", "answered", "TimeoutError"]
    assert set(silent) == {"answered", "TimeoutError"}
    assert "ConnectionRefusedError" in refused
    assert silent[-2:] == refused[-2:] == ["answered"] * 2


def test_faults_are_the_same_bytes_twice(tmp_path: Path) -> None:
    apps = [{"name": "one", "node": "client", "command": TICK, "expect": "any", "stop": 4}]
    events = [{"at": 0.5, "node": "client", "restart": "one", "every": 0.7, "count": 4}]
    first, again = (run(tmp_path / name, apps, events) for name in ("a", "b"))
    assert len(first.apps["one"].starts) == 5
    assert records(first).read_bytes() == records(again).read_bytes()
