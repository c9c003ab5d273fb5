# SPDX-License-Identifier: Apache-2.0
"""Names of machines in a stranger's scenario, and messages of a stranger's machine."""

import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hourglass import files
from hourglass.contract.plan import HostStep
from hourglass.engine.console import parse_event
from hourglass.engine.ssh import channel, inspection
from hourglass.engine.ssh.channel import Channel, argv
from hourglass.engine.ssh.clocks import Clock, Exchange, estimate_clock
from hourglass.engine.ssh.merge import merge
from hourglass.engine.ssh.one_way_delay import HostRecords
from hourglass.errors import GuestError, HourglassError, InputError, MissingError
from hourglass.scenario import load
from tests.engine.test_ssh_split import LINKS, NODES, plan

NAMES = [
    "-oProxyCommand=touch /tmp/x", "-F/tmp/x", "--", "", " ", "a b", "a\nb", "a\0b", "a;b", "$(id)", "`id`", "a|b",
    "%h`id`",
    "-l@a", "me@-oProxyCommand=x", "-me@a", "ssh://-oProxyCommand=x", "ssh://me@-x", "a'b", 'a"b', "a\\b", "a/../b",
    "me:password@a", "a@b@c", "\x1b[2J", "ä", "a" * 400, "me@a -oProxyCommand=x", "*", "a,b", "a=b", "a\tb",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:30])
def test_a_host_is_a_destination_and_nothing_else(name: str) -> None:
    nodes = [{**NODES[0], "host": name}, *NODES[1:]]
    table = {"testbed": {"node": nodes, "link": LINKS}, "test": {"name": "ping"}}
    if name not in ("me:password@a", "a" * 400):  # lengths are the scenario's to check, and passwords
        with pytest.raises(InputError, match="host"):
            argv(name, "true")
    with pytest.raises(InputError, match=r"testbed\.node\.0\.host"):
        load(table)


@pytest.mark.parametrize("name", ["a", "me@a.b", "root@[fe80::1%eth0]", "10.0.0.1", "ssh://me@a:22"])
def test_destinations_follow_the_end_of_options(name: str) -> None:
    command = argv(name, "true")
    assert command[command.index("--") + 1] == name


@pytest.mark.parametrize("name", ["lo", "-x", "eth0 up", "a/b", "../x", "a;b", "", "x" * 16, "a\nb"])
def test_an_interface_is_a_name(name: str) -> None:
    nodes = [{**NODES[0], "real": {"eth0": name}}, *NODES[1:]]
    with pytest.raises(InputError, match=r"testbed\.node\.0\.real"):
        load({"testbed": {"node": nodes, "link": LINKS}, "test": {"name": "ping"}})


@pytest.fixture
def machine(tmp_path: Path) -> Channel:
    host = HostStep(do="host", node="client", destination="a", devices={"eth0": "enp1s0"}, origin=None)
    return Channel(host, io.BytesIO(), tmp_path / ".client.arrows", b"")


def event(**fields: Any) -> bytes:
    return b"hourglass: " + json.dumps(fields).encode() + b"\n"


def test_a_line_without_end_is_refused(machine: Channel) -> None:
    tracemalloc.start()
    try:
        for _ in range(channel.LINE_MAX >> 16):
            machine.receive(b"x" * 2**16)
        with pytest.raises(GuestError, match="a line of more than"):
            machine.receive(b"x" * 2**16)
        assert tracemalloc.get_traced_memory()[1] < 16 * channel.LINE_MAX
    finally:
        tracemalloc.stop()


def test_a_log_has_an_end(machine: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LOG_MAX", 1000)
    for _ in range(1000):
        machine.receive(b"x" * 99 + b"\n")
    assert isinstance(machine.log, io.BytesIO)
    assert len(machine.log.getvalue()) < 2000


@pytest.mark.parametrize("count", [-1, 2**63, 10**30])
def test_records_have_a_size(machine: Channel, count: int) -> None:
    with pytest.raises(GuestError, match="bytes of records"):
        machine.receive(event(event="records", bytes=count))


EVENTS = [
    b"hourglass: " + b"[" * 10**5 + b"\n",
    b"hourglass: " + b'{"a":' * 10**5 + b"\n", b"hourglass: {" + b"9" * 10**5 + b"\n",
    event(event="clock", number=1, received_ns="x", sent_ns=None, ahead_ns=[]), event(event="clock", number=1),
    event(event="clock", number=1, received_ns=2**80, sent_ns=1, ahead_ns=1), event(event="time", ns=10**300),
    event(event="time", ns="x"), event(event="measured", ns="x"), event(event="measured", ns=2**80),
    event(event="records"),
    event(event="records", bytes="x"), event(event="x" * 1000), event(event=1), b"hourglass: {}\n", b"\xff\0\x1b[2J\n",
]  # fmt: skip


@pytest.mark.parametrize("line", EVENTS, ids=lambda line: repr(line)[:50])
def test_invalid_events_are_ignored(machine: Channel, line: bytes) -> None:
    machine.pending = {1: 0}
    machine.receive(line)
    assert not machine.exchanges
    assert machine.test_ns == 0
    assert machine.end_ns is None
    assert machine.milestones <= {"measured", ""}
    assert not machine.records.exists()


def test_any_number_of_events_needs_little_memory(machine: Channel) -> None:
    for number in range(5000):
        machine.receive(event(event=f"word {number}"))
    assert len(machine.milestones) <= 1


def test_events_of_the_console_may_be_nested() -> None:
    assert parse_event(b'{"event": ' + b"[" * 10**5) is None


@pytest.mark.slow
@pytest.mark.parametrize("spoken", ["yes", "yes >&2", "sleep 60", "while :; do printf 'hourglass machine x\\n'; done"])
def test_answers_have_an_end(monkeypatch: pytest.MonkeyPatch, spoken: str) -> None:
    monkeypatch.setattr(inspection, "PATIENCE_S", 1.0)
    monkeypatch.setattr(inspection, "argv", lambda _, __: ["sh", "-c", spoken])
    host = HostStep(do="host", node="client", destination="a", devices={}, origin=None)
    tracemalloc.start()
    try:
        with pytest.raises(MissingError, match="did not answer"):
            inspection.inspect(host)
        assert tracemalloc.get_traced_memory()[1] < 32 * 2**20
    finally:
        tracemalloc.stop()


def test_answers_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "argv", lambda _, __: ["sh", "-c", "echo hourglass machine x86_64; echo no >&2"])
    host = HostStep(do="host", node="client", destination="a", devices={}, origin=None)
    assert inspection.inspect(host).machine == "x86_64"


@pytest.mark.parametrize("ns", [-(2**61) + 1, 0, 2**61 - 1])
def test_clocks_may_have_any_offset(ns: int) -> None:
    clock = estimate_clock(
        [Exchange(0, ns, ns, 100, ns), Exchange(200, -ns, -ns, 300, -ns)], [], [Exchange(400, ns, -ns, 500, 0)]
    )
    assert isinstance(clock.host_ns(10**9), int)


def records(path: Path, *tables: tuple[str | None, dict[str, Any]]) -> None:
    with path.open("wb") as sink:
        for name, columns in tables:
            table = pa.table(columns)
            table = table.replace_schema_metadata({"table": name} if name is not None else None)
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)


CLOCK = Clock(0, 0, 0, 0, 0, 1, 0, 0)
HOSTILE: dict[str, list[tuple[str | None, dict[str, Any]]]] = {
    "no name": [(None, {"t_ns": [1]})],
    "no time": [("ping", {"a": [1]})],
    "texts as times": [("ping", {"t_ns": ["x"], "stream": ["y"], "owd_up_ns": ["z"], "rtt_ns": ["z"]})],
    "floats as times": [("flow", {"t_ns": [1e300]})],
    "numbers as devices": [("device", {"t_ns": [1], "device": [1]})],
    "facts without keys": [("fact", {"a": [1]})],
    "facts of numbers": [("fact", {"key": [1], "value": [2], "node": ["a"]})],
    "too large": [("tcp", {"t_ns": [2**63 - 1], "stream": [2**40], "sender": [True]})],
    "nothing as times": [("ping", {"t_ns": [None], "stream": [None]})],
    "two of other columns": [("tcp", {"t_ns": [1]}), ("tcp", {"t_ns": ["x"]})],
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_records_of_any_form_are_an_error(tmp_path: Path, kind: str) -> None:
    records(tmp_path / "r", *HOSTILE[kind])
    part = HostRecords("client", tmp_path / "r", 0, 0, CLOCK, {"eth0": "enp1s0"}, 0)
    with pytest.raises(HourglassError, match="cannot be joined"):
        merge(plan(), [part], tmp_path / "out")


@pytest.mark.parametrize(
    "content", [b"x", b"\xff\xff\xff\xff\x00\x00\x00\x7f", b"\xff\xff\xff\xff" + b"\x10\0\0\0" + b"x" * 64]
)
def test_invalid_records_are_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r").write_bytes(content)
    part = HostRecords("client", tmp_path / "r", 0, 0, CLOCK, {"eth0": "enp1s0"}, 0)
    with pytest.raises(HourglassError, match="cannot be joined"):
        merge(plan(), [part], tmp_path / "out")


def test_unknown_tables_are_omitted(tmp_path: Path) -> None:
    records(tmp_path / "r", ("../../x", {"t_ns": [1]}))
    part = HostRecords("client", tmp_path / "r", 0, 0, CLOCK, {"eth0": "enp1s0"}, 0)
    merge(plan(), [part], tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"r", "out"}
