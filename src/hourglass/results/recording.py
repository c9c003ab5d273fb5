# SPDX-License-Identifier: Apache-2.0
"""`Recording`: the measurements of a run as an object. Each part is read on first use.

Its `Source` is a run directory (`run_directory.py`) or a Flent file (`flent/read.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from hourglass.contract import plan
from hourglass.contract.plan import FlowStream, PlanRadio, Stream, StreamsByKind
from hourglass.contract.plan.apps import Container, PlanApp
from hourglass.contract.record_tables import SCHEMAS
from hourglass.contract.run_json import RunInfo
from hourglass.contract.summary import Summary
from hourglass.errors import InputError, closest
from hourglass.results import frames, phases
from hourglass.results.apps import TABLES, Program, programs
from hourglass.results.connections import Connection, connections
from hourglass.results.flat import Key
from hourglass.results.records import Tables
from hourglass.results.run_files import RECORDS_FILE
from hourglass.results.sockets import Sockets

if TYPE_CHECKING:
    from hourglass.scenario import Scenario


@dataclass(frozen=True)
class TestInfo:
    """The test of a run. `hosts` are the servers, `parameters` its other settings, in the test's words."""

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
    """The input of a run. `settings`: every value of the scenario by its path (in a list of tables, the index),
    except its bounds, which are `checks`: text by the figure's name."""

    name: str
    description: str
    test: TestInfo
    settings: dict[Key, Any]
    checks: dict[str, str] = field(default_factory=dict)
    expected: dict[str, int | str] = field(default_factory=dict)
    """The expected ends of programs, by name."""


@dataclass(frozen=True)
class TrafficPlan:
    """The part of a plan with the streams and their paths. Times in ns of test time. `goodputs_mbps`: the mean goodput
    of flows by name, as another tool reported it. `unmeasured`: the directions (true: upload) without data of any
    flow."""

    end_ns: int
    nodes: tuple[str, ...]
    streams: tuple[Stream, ...]
    paths: tuple[plan.Path, ...]
    radios: tuple[PlanRadio, ...]
    apps: tuple[PlanApp, ...] = ()
    rooms: tuple[Container, ...] = ()
    goodputs_mbps: Mapping[str, float] = field(default_factory=dict)
    unmeasured: frozenset[bool] = frozenset()


class RecordingSource(Protocol):
    """The source of a recording. Each part is read once; `HourglassError` gives the reason if it is missing."""

    path: Path

    def info(self) -> RunInfo: ...

    def experiment(self) -> Experiment: ...

    def traffic(self) -> TrafficPlan: ...

    def scenario(self) -> "Scenario | None": ...

    def tables(self) -> Tables: ...

    def summary(self, recording: "Recording") -> Summary: ...


SMALL = {"_source", "axes", "sweep", "info", "experiment", "scenario", "_traffic", "nodes", "path_order", "summary"}
"""Attributes of a recording that have no records."""


def _frame(table: str) -> cached_property[pl.DataFrame]:
    """A record table as an attribute of a recording."""
    return cached_property(lambda run: run.table(table))


class Recording(StreamsByKind):
    """One finished run, of Hourglass or of another tool.

    The record tables (columns and units: docs/reference/records.md) are `tcp`, `ping_rows`, `datagram_rows`,
    `fetch_rows`, `transaction_rows`, `flow_events`, `devices`, `qdisc`, `qdisc_stats`, `qdisc_changes`, `ethtool`,
    `events`, `facts`, `radio_counters`, `station_counters`, `cpu`, and from the packet probe `packets`, `layer_totals`
    (the table `layer`), `queues`, `tx_queues`, `drops`, `balance`, `opened` (the table `socket`). `table(name)` returns
    any of them by its recorded name.
    The column `stream` has the stream's name. A table that was not written is empty, and a missing column is null.
    `layers` is `packets` in long form.
    """

    def __init__(self, source: RecordingSource, axes: Mapping[str, str] | None = None, sweep: str = "") -> None:
        self._source = source
        self.axes = axes or {}
        """For a run of a sweep: the name of its value by axis ("stack.tsq": "tsq=off")."""
        self.sweep = sweep
        """The name of that sweep's folder."""

    def __repr__(self) -> str:
        return f"Recording({str(self.path)!r})"

    def _repr_html_(self) -> str:
        from hourglass.results import notebook

        return notebook.html(self)

    @property
    def path(self) -> Path:
        """The run directory or file."""
        return self._source.path

    def relocate(self, path: Path) -> None:
        """Adapt to a renamed directory: its files are not read again."""
        self._source.path = path
        vars(self).pop("apps", None)  # they have the paths of their files
        if "tables" in vars(self):
            self.tables.path = path / RECORDS_FILE

    def forget(self) -> None:
        """Release the record tables and what is made of them. They are read again on next use."""
        for name in vars(self).keys() - SMALL:
            del vars(self)[name]

    @cached_property
    def info(self) -> RunInfo:
        """Engine, kernel, seed, virtual and wall seconds, digest, warnings."""
        return self._source.info()

    @cached_property
    def experiment(self) -> Experiment:
        return self._source.experiment()

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self.experiment.name

    @property
    def description(self) -> str:
        return self.experiment.description

    @property
    def test(self) -> TestInfo:
        return self.experiment.test

    @cached_property
    def scenario(self) -> "Scenario | None":
        """The resolved scenario; None for a run of another tool, or if this version cannot read it."""
        return self._source.scenario()

    @cached_property
    def _traffic(self) -> TrafficPlan:
        return self._source.traffic()

    @property
    def end_ns(self) -> int:
        """The end of the test."""
        return self._traffic.end_ns

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of the plan, then the network namespaces that programs made."""
        return (*self._traffic.nodes, *self.namespaces["node"].unique(maintain_order=True))

    @property
    def streams(self) -> tuple[Stream, ...]:
        return self._traffic.streams

    @property
    def reported_goodputs_mbps(self) -> Mapping[str, float]:
        """The mean goodput of flows by name, as another tool reported it."""
        return self._traffic.goodputs_mbps

    @property
    def unmeasured_directions(self) -> frozenset[bool]:
        """The directions (true: upload) with flows, but without data of any of them."""
        return self._traffic.unmeasured

    @property
    def paths(self) -> tuple[plan.Path, ...]:
        """The paths of the streams, hop by hop; empty for a run of another tool."""
        return self._traffic.paths

    @property
    def radios(self) -> tuple[PlanRadio, ...]:
        return self._traffic.radios

    @cached_property
    def apps(self) -> dict[str, Program]:
        """The programs by name: their ends, their output, their collected files."""
        traffic = self._traffic
        nodes = {index: room.node for index, room in enumerate(traffic.rooms)}
        if not traffic.apps:
            return {}
        tables = {name: self.table(name) for name in TABLES}
        expected, cpu_s = self.experiment.expected, self.info.apps_cpu_s
        run_programs = programs(traffic.apps, nodes, expected, tables, cpu_s, self.path)
        return {program.name: program for program in run_programs}

    @cached_property
    def connections(self) -> tuple[Connection, ...]:
        """The streams that programs opened, in the order of their first packets."""
        apps = self._traffic.apps
        return connections(frames.complete(self.tables.get("socket"), "socket"), apps) if apps else ()

    @cached_property
    def path_order(self) -> list[str]:
        """The nodes from client to server, then all others."""
        return frames.path_order(self.nodes, self.streams, self.paths)

    @cached_property
    def summary(self) -> Summary:
        """The figures: the output of `--json`."""
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
        tables = dict.fromkeys(stream.table for stream in self.streams if not isinstance(stream, FlowStream))
        parts = [part for name in tables for part in self.table(name).sort("t_ns", "seq").partition_by("stream")]
        return {part["stream"][0]: part for part in parts}

    def rows(self, stream: Stream) -> pl.DataFrame:
        """Return the packets, fetches or transactions of one stream, by time. For a flow, use `sockets`."""
        stream_rows = self._rows.get(stream.name)
        return self.table(stream.table).clear() if stream_rows is None else stream_rows

    flow_events = _frame("flow")
    """Starts and ends of flows: `event` is connected, stopped or failed."""

    @cached_property
    def packets(self) -> pl.DataFrame:
        """A row per packet and node that it passed, a column of ns per layer."""
        return frames.with_enums(self.table("packet"), self.nodes)

    @cached_property
    def layers(self) -> pl.DataFrame:
        """`packets` in long form: `t_ns, end_ns, stream, way, packet, data, visit, node, layer, ns`; no zeros."""
        return frames.long_form(self.packets)

    @cached_property
    def layer_totals(self) -> pl.DataFrame:
        """Sums over all packets of a stream so far, per node, over time."""
        return frames.with_enums(self.table("layer"), self.nodes)

    opened = _frame("socket")
    """Connections that programs opened: their ends, times and bytes; `connections` has its rows as objects."""
    namespaces = _frame("namespace")
    """Network namespaces that programs made: `t_ns`, `node` (its name in other tables), `parent`."""
    queues = _frame("queue")
    tx_queues = _frame("tx_queue")
    """The transmit queues of NICs that have several."""
    drops = _frame("drop")
    marks = _frame("mark")
    """Packets whose ECN field was changed, with place and time: `was` before, `ecn` after."""
    codepoints = _frame("codepoint")
    """The fates of the packets of a stream, by their ECN field."""
    balance = _frame("balance")
    devices = _frame("device")
    ethtool = _frame("ethtool")
    qdisc = _frame("qdisc")
    qdisc_stats = _frame("qdisc_stat")
    """The qdiscs' counters over time, in tc's words."""
    qdisc_changes = _frame("qdisc_change")
    """Qdiscs that events and programs made or changed: `t_ns, node, device, handle, parent, options` in tc's words."""
    radio_counters = _frame("radio")
    """The radios' counters at sampling instants, in long form: `t_ns, node, device, name, value`."""
    station_counters = _frame("station")
    """The same for each of its peers; `station` is the peer's node."""
    cpu = _frame("cpu")
    """The work of the nodes' CPUs so far: `t_ns`, `node`, and ns of received frames, sent skbs, calls, pending work."""
    facts = _frame("fact")
    """Facts about the machine: `node` (null: all nodes), `key`, `value`."""

    @cached_property
    def events(self) -> pl.DataFrame:
        """Changes during the test: `t_ns`, `node`, `name` (the action), `done_ns`, `said` (the tools' warnings). Steps
        of traces, which have no name, are left out."""
        return self.table("event").filter(pl.col("name") != "")

    def table(self, name: str) -> pl.DataFrame:
        """Return a record table by its name, with all its columns, even if it was not written."""
        if name not in SCHEMAS:
            raise InputError("table", name, f"{closest(name, SCHEMAS)}A table is one of {', '.join(SCHEMAS)}")
        return frames.with_stream_names(
            frames.complete(self.tables.get(name), name), [*self.streams, *self.connections]
        )
