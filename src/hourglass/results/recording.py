# SPDX-License-Identifier: Apache-2.0
"""`Recording`: what was measured, as an object. Everything is read when it is first asked for.

Where it is read from is its `Source`: a run directory (`opening.py`) or a Flent file (`flent/read.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from hourglass.contract import plan
from hourglass.contract.plan import ByKind, Flow, Radio, Stream
from hourglass.contract.plan_apps import App, Room
from hourglass.contract.run import RunInfo
from hourglass.contract.summary import Summary
from hourglass.results import frames, phases
from hourglass.results.apps import TABLES, Program, programs
from hourglass.results.connections import Connection, connections
from hourglass.results.files import RECORDS_FILE
from hourglass.results.flat import Key
from hourglass.results.records import Tables
from hourglass.results.sockets import Sockets

if TYPE_CHECKING:
    from hourglass.scenario import Scenario


@dataclass(frozen=True)
class TestInfo:
    """The test that was run. `hosts` are the servers, `parameters` what else was set of it, in the test's own words."""

    __test__ = False

    name: str
    client: str
    server: str
    hosts: tuple[str, ...]
    length_s: float
    delay_s: float
    step_s: float
    parameters: dict[str, str]


@dataclass(frozen=True)
class Experiment:
    """What was asked. `settings`: every value of the scenario by its path (of a list of tables, the place in it), but
    its bounds, which are `checks`: text by the figure's name."""

    name: str
    description: str
    test: TestInfo
    settings: dict[Key, Any]
    checks: dict[str, str] = field(default_factory=dict)
    expected: dict[str, int | str] = field(default_factory=dict)
    """How programs end, by name."""


@dataclass(frozen=True)
class Traffic:
    """What was sent, over what: the part of a plan that tells it. Times in ns of test time."""

    end_ns: int
    nodes: tuple[str, ...]
    streams: tuple[Stream, ...]
    paths: tuple[plan.Path, ...]
    radios: tuple[Radio, ...]
    apps: tuple[App, ...] = ()
    rooms: tuple[Room, ...] = ()


class Source(Protocol):
    """Where a recording is read from. Each part is asked for once, and `HourglassError` says why it cannot be had."""

    path: Path

    def info(self) -> RunInfo: ...

    def experiment(self) -> Experiment: ...

    def traffic(self) -> Traffic: ...

    def scenario(self) -> "Scenario | None": ...

    def tables(self) -> Tables: ...

    def summary(self, recording: "Recording") -> Summary: ...


def _frame(table: str) -> cached_property[pl.DataFrame]:
    """A record table as an attribute of a recording."""
    return cached_property(lambda run: run.table(table))


class Recording(ByKind):
    """One finished run, ours or measured elsewhere.

    The record tables (columns and units: docs/records.md) are `tcp`, `ping_rows`, `datagram_rows`, `fetch_rows`,
    `transaction_rows`, `flow_events`, `devices`, `qdisc`, `qdisc_stats`, `ethtool`, `events`, `facts`,
    `radio_counters`, `station_counters`, and from the packet probe `packets`, `layer_totals` (the table `layer`),
    `queues`, `drops`, `balance`, `opened` (the table `socket`); every one, by its own name, is `table(name)`. The
    column `stream` has the stream's name. A table that was not written is empty, a column null. `layers` is `packets`
    in long form.
    """

    def __init__(self, source: Source, axes: Mapping[str, str] | None = None, sweep: str = "") -> None:
        self._source = source
        self.axes = axes or {}
        """Of a run of a sweep, by axis ("stack.tsq"), what its value is called ("tsq=off")."""
        self.sweep = sweep
        """The name of that sweep's folder."""

    def __repr__(self) -> str:
        return f"Recording({str(self.path)!r})"

    @property
    def path(self) -> Path:
        """The run directory or file."""
        return self._source.path

    def moved(self, place: Path) -> None:
        """Says that the directory has been renamed: what has been read of it is not read again."""
        self._source.path = place
        vars(self).pop("apps", None)  # they know where their files are
        if "tables" in vars(self):
            self.tables.path = place / RECORDS_FILE

    @cached_property
    def info(self) -> RunInfo:
        """Engine, kernel, seed, virtual and wall seconds, digest, warnings."""
        return self._source.info()

    @cached_property
    def experiment(self) -> Experiment:
        return self._source.experiment()

    @property
    def name(self) -> str:
        """The scenario's."""
        return self.experiment.name

    @property
    def description(self) -> str:
        return self.experiment.description

    @property
    def test(self) -> TestInfo:
        return self.experiment.test

    @cached_property
    def scenario(self) -> "Scenario | None":
        """The resolved scenario; None of what was measured elsewhere, or when this version cannot read it."""
        return self._source.scenario()

    @cached_property
    def _traffic(self) -> Traffic:
        return self._source.traffic()

    @property
    def end_ns(self) -> int:
        """When the test ended."""
        return self._traffic.end_ns

    @property
    def nodes(self) -> tuple[str, ...]:
        return self._traffic.nodes

    @property
    def streams(self) -> tuple[Stream, ...]:
        return self._traffic.streams

    @property
    def paths(self) -> tuple[plan.Path, ...]:
        """The ways of the streams, hop by hop; of what was measured elsewhere they are not known."""
        return self._traffic.paths

    @property
    def radios(self) -> tuple[Radio, ...]:
        return self._traffic.radios

    @cached_property
    def apps(self) -> dict[str, Program]:
        """The programs by name: how they fared, what they wrote, what was collected of them."""
        known = self._traffic
        nodes = {place: room.node for place, room in enumerate(known.rooms)}
        if not known.apps:
            return {}
        tables = {name: self.table(name) for name in TABLES}
        expected, cpu_s = self.experiment.expected, self.info.apps_cpu_s
        found = programs(known.apps, nodes, expected, tables, cpu_s, self.path)
        return {one.name: one for one in found}

    @cached_property
    def connections(self) -> tuple[Connection, ...]:
        """The streams that programs opened, in the order of their first packets."""
        known = self._traffic.apps
        return connections(frames.complete(self.tables.get("socket"), "socket"), known) if known else ()

    @cached_property
    def path_order(self) -> list[str]:
        """The nodes from client to server, then those beside the path."""
        return frames.path_order(self.nodes, self.streams, self.paths)

    @cached_property
    def summary(self) -> Summary:
        """The figures: what `--json` prints."""
        return self._source.summary(self)

    @cached_property
    def tables(self) -> Tables:
        """All record tables by name, as they were written."""
        return self._source.tables()

    @cached_property
    def sockets(self) -> Sockets:
        """The samples of the sockets as arrays, cut by stream."""
        return Sockets(self.tables, len(self.streams))

    @cached_property
    def tcp(self) -> pl.DataFrame:
        """Sockets at sampling instants; `bbr_phase` is derived from BBR's gains."""
        return phases.with_phase(self.table("tcp"))

    ping_rows = _frame("ping")
    """Packets of pings: `t_ns` (sent), `seq`, `rtt_ns` (null: lost), `owd_up_ns`, `owd_down_ns`."""
    datagram_rows = _frame("datagram")
    """One-way packets: `t_ns` (sent), `seq`, `owd_ns` (null: lost), `refused` (by the sender's socket)."""
    fetch_rows = _frame("fetch")
    """Fetches: `t_ns`, `seq`, `bytes`, and since `t_ns`: `first_ns` (byte), `done_ns` (null: not finished)."""
    transaction_rows = _frame("transaction")
    """Transactions: `t_ns`, `seq`, and since `t_ns`: `done_ns` (null: not finished)."""

    @cached_property
    def _rows(self) -> dict[str, pl.DataFrame]:
        tables = dict.fromkeys(one.table for one in self.streams if not isinstance(one, Flow))
        parts = [part for name in tables for part in self.table(name).sort("t_ns", "seq").partition_by("stream")]
        return {part["stream"][0]: part for part in parts}

    def rows(self, stream: Stream) -> pl.DataFrame:
        """The packets, fetches or whatever else one stream sent, by time; not of a flow, which `sockets` tells of."""
        found = self._rows.get(stream.name)
        return self.table(stream.table).clear() if found is None else found

    flow_events = _frame("flow")
    """When flows began and ended: `event` is connected, stopped or failed."""

    @cached_property
    def packets(self) -> pl.DataFrame:
        """A row per packet and node that it passed, a column of ns per layer."""
        return frames.coded(self.table("packet"), self.nodes)

    @cached_property
    def layers(self) -> pl.DataFrame:
        """`packets` in long form: `t_ns, end_ns, stream, way, packet, data, visit, node, layer, ns`; no zeros."""
        return frames.long(self.packets)

    @cached_property
    def layer_totals(self) -> pl.DataFrame:
        """Sums over all packets of a stream so far, per node, over time."""
        return frames.coded(self.table("layer"), self.nodes)

    opened = _frame("socket")
    """What programs opened: who, to whom, when, how many bytes; `connections` are its rows as objects."""
    queues = _frame("queue")
    drops = _frame("drop")
    marks = _frame("mark")
    """Packets whose ECN field was changed, where and when: `was` this, then `ecn`."""
    codepoints = _frame("codepoint")
    """What became of the packets of a stream, by what stood in their ECN field."""
    balance = _frame("balance")
    devices = _frame("device")
    ethtool = _frame("ethtool")
    qdisc = _frame("qdisc")
    qdisc_stats = _frame("qdisc_stat")
    """The qdiscs' own counters over time, in tc's words."""
    radio_counters = _frame("radio")
    """The radios' own counters at sampling instants, in long form: `t_ns, node, device, name, value`."""
    station_counters = _frame("station")
    """The same of each radio they talk to; `station` is its node."""
    events = _frame("event")
    """What changed during the test: `t_ns`, `node`, `name` (what was done), `done_ns`, `said` (the tools' warnings)."""
    facts = _frame("fact")
    """What the machine told of itself: `node` (null: of all), `key`, `value`."""

    def table(self, name: str) -> pl.DataFrame:
        """A record table by its name, with all its columns, also when it was not written."""
        return frames.named(frames.complete(self.tables.get(name), name), [*self.streams, *self.connections])
