# SPDX-License-Identifier: Apache-2.0
"""Write a run as a trace that Perfetto opens (ui.perfetto.dev).

A node is a process, and a layer one of its tracks. A packet that spent time in a layer is a slice there, and arrows
lead from each to the next. The track `packets` has a slice for each node that a packet passed, also without any time.
Timestamps are ns of test time.

The time in a layer is exact. If a packet was in a layer several times at one node (cwnd, pacing, cwnd again), it has
one slice of the total time. The slices at a node have the order of the layers.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from hourglass import files
from hourglass.contract.probe import LAYER_COLUMNS, LAYERS
from hourglass.exports.trace_file import TraceFile, lanes
from hourglass.results import frames
from hourglass.results.cpus import BUSY_NS
from hourglass.results.recording import Recording
from hourglass.results.series import loaded_window

PACKETS, DROPS = "packets", "drops"

SOCKET_COUNTERS = (
    ("cwnd", "segments", "snd_cwnd", 1),
    ("pacing rate", "bit/s", "pacing_rate", 8),
    ("data below TCP", "bytes", "sk_wmem_alloc", 1),
    ("TSQ limit", "bytes", "tsq_limit", 1),
    ("smoothed RTT", "µs", "rtt", 1),
)
"""Counters of a sender: name, unit, column of table `tcp`, factor."""
DEVICE_COUNTERS = (
    ("qdisc backlog", "bytes", "qdisc_bytes"),
    ("txq backlog", "bytes", "txq_bytes"),
    ("ring", "bytes", "ring_bytes"),
    ("BQL inflight", "bytes", "bql_inflight"),
    ("BQL limit", "bytes", "bql_limit"),
)
"""Counters of a device: name, unit, column of table `queue`."""
RADIO_COUNTERS = (("on the air", "tx_ns"), ("channel busy", "medium_busy_ns"))
"""Counters of a radio, % of the time since the sample before: name, counter in table `radio`."""


def write(run: Recording, path: Path) -> Path:
    """Write the trace. Raises `InputError` if the file cannot be written."""
    with files.output(path, "the trace") as half, half.open("wb", buffering=2**20) as file:
        trace = TraceFile(file)
        _test(trace, run)
        processes = {node: trace.process(node) for node in run.path_order}
        for node, process in processes.items():
            _sockets(trace, run, node, process)
            _devices(trace, run, node, process)
            _radios(trace, run, node, process)
            _cpu(trace, run, node, process)
            _drops(trace, run, node, process)
        _packets(trace, run, processes)
    return path


def _test(trace: TraceFile, run: Recording) -> None:
    """Add a track of the test: its whole time, the window of the figures, and its events."""
    track, window = trace.track("test"), loaded_window(run)
    about = {"kernel": run.info.kernel.release, "digest": run.info.digest}
    about |= {} if run.info.elsewhere else {"seed": str(run.info.seed)}
    trace.begin(track, 0, run.name, about)
    trace.begin(track, window.start_ns, "window of the figures", {})
    trace.end(track, window.end_ns)
    trace.end(track, max(run.end_ns, window.end_ns))
    if not run.events.is_empty():
        events = trace.track("events")
        for t_ns, node, name in run.events.select("t_ns", "node", "name").iter_rows():
            trace.instant(events, t_ns, name, {"node": node})


def _sockets(trace: TraceFile, run: Recording, node: str, process: int) -> None:
    names = [flow.name for flow in run.flows if flow.sender == node]
    names += [connection.name for connection in run.connections if connection.node == node]
    rows = run.tcp.filter(pl.col("sender") & pl.col("stream").is_in(names)).sort("t_ns")
    for samples in rows.partition_by("stream", maintain_order=True):
        for name, unit, column, factor in SOCKET_COUNTERS:
            _counter(trace, f"{samples['stream'][0]} {name}", unit, process, samples, pl.col(column) * factor)


def _devices(trace: TraceFile, run: Recording, node: str, process: int) -> None:
    rows = run.queues.filter(pl.col("node") == node).sort("t_ns")
    for samples in rows.partition_by("device", maintain_order=True):
        for name, unit, column in DEVICE_COUNTERS:
            if samples[column].max():
                _counter(trace, f"{samples['device'][0]} {name}", unit, process, samples, pl.col(column))


def _radios(trace: TraceFile, run: Recording, node: str, process: int) -> None:
    for name, counter in RADIO_COUNTERS:
        rows = run.radio_counters.filter(pl.col("node") == node, pl.col("name") == counter).sort("t_ns")
        for samples in rows.partition_by("device", maintain_order=True):
            share = 100 * pl.col("value").diff() / pl.col("t_ns").diff()
            _counter(trace, f"{samples['device'][0]} {name}", "%", process, samples, share)


def _cpu(trace: TraceFile, run: Recording, node: str, process: int) -> None:
    samples = run.cpu.filter(pl.col("node") == node).sort("t_ns")
    _counter(trace, "CPU busy", "%", process, samples, 100 * BUSY_NS.diff() / pl.col("t_ns").diff())


def _counter(trace: TraceFile, name: str, unit: str, process: int, samples: pl.DataFrame, values: pl.Expr) -> None:
    rows = samples.select("t_ns", value=values).drop_nulls()
    if rows.height:
        trace.counter(name, unit, process, rows.iter_rows())


def _drops(trace: TraceFile, run: Recording, node: str, process: int) -> None:
    rows = run.drops.filter(pl.col("node") == node, pl.col("t_ns") >= 0).sort("t_ns")  # a trace begins at 0
    track = trace.track(DROPS, process) if rows.height else 0
    for row in rows.iter_rows(named=True):
        details = {key: row[key] for key in ("place", "device", "stream", "way", "packets", "bytes")}
        arguments = {key: value for key, value in details.items() if value is not None}
        trace.instant(track, row["t_ns"], row["reason"], arguments)


def _packets(trace: TraceFile, run: Recording, processes: dict[str, int]) -> None:
    """Add the packets of each node: their visits, then their slices by layer."""
    visits = frames.visits(run.packets.drop_nulls("stream"))
    kinds: dict[str, str] = {stream.name: stream.kind for stream in run.streams}
    details = ("stream", "way", "packet", "data", "bytes", "ecn", "end_ns", "visit_id")
    for node, process in processes.items():
        passed = visits.filter(pl.col("node") == node)
        columns = passed.sort("start_ns", "leave_ns").select("start_ns", "leave_ns", *details)
        for (start_ns, leave_ns, *values), track in _in_lanes(trace, PACKETS, process, columns):
            row = dict(zip(details, values, strict=True))
            row |= {"kind": kinds.get(row["stream"], "connection"), "ecn": row["ecn"] or "not_ect"}
            trace.begin(track, start_ns, row["stream"], row, row["way"])
            trace.end(track, leave_ns)
        before = pl.col("start_ns")
        for layer, column in zip(LAYERS, LAYER_COLUMNS, strict=True):
            times = passed.filter(pl.col(column) > 0).select(
                before.alias("from_ns"), before + pl.col(column), "packet_id", "stream", "way", "data", "visit_id"
            )
            before = before + pl.col(column)
            for row_values, track in _in_lanes(trace, layer, process, times.sort("from_ns", "start_ns")):
                start_ns, end_ns, packet, stream, way, data, visit = row_values
                name = stream if data else f"{stream}, no data"
                trace.begin(track, start_ns, name, {"visit_id": visit}, way, flow=packet)
                trace.end(track, end_ns)


def _in_lanes(trace: TraceFile, name: str, process: int, rows: pl.DataFrame) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Yield each row, which begins with the start and the end of a slice, with a track of this name that is free."""
    tracks: dict[int, int] = {}
    spans = rows.select(pl.nth(0), pl.nth(1)).iter_rows()
    for row, lane in zip(rows.iter_rows(), lanes(spans), strict=True):
        if lane not in tracks:
            tracks[lane] = trace.track(name, process)
        yield row, tracks[lane]
