# SPDX-License-Identifier: Apache-2.0
"""Makes run directories by formula, in the contract's form, so that every figure has a known value."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from hourglass.results.probe import SCHEMAS

S = 1_000_000_000
MS = 1_000_000


@dataclass
class Flow:
    """A flow by formulas of the seconds since its start, sampled every 10 ms."""

    name: str = "upload::1"
    upload: bool = True
    bytes_at: Callable[[float], int] = lambda t: int(t * 1_000_000)
    rtt_us: Callable[[float], int] = lambda t: 2000
    retrans_at: Callable[[float], int] = lambda t: 0
    cc: str = "cubic"


@dataclass
class Probe:
    """A probe with one packet per 200 ms; `rtt_ns(seq)` None = lost."""

    name: str = "icmp"
    rtt_ns: Callable[[int], int | None] = lambda seq: 1 * MS


@dataclass
class Recipe:
    """What the synthetic run holds. Times in s; the flows run from `delay` to `delay + length`."""

    flows: list[Flow] = field(default_factory=lambda: [Flow()])
    probes: list[Probe] = field(default_factory=lambda: [Probe()])
    name: str = "synthetic"
    length: float = 10
    delay: float = 2
    step: float = 0.2
    qdisc_drops: int = 7
    nic_drops: int = 3
    receiver: bool = True
    wall_s: float = 1.25
    nodes: tuple[str, ...] = ("client", "server")
    further: Callable[["Recipe"], list[dict[str, Any]]] = lambda recipe: []
    """More tables, or `tcp` in place of the plain one."""

    @property
    def end_s(self) -> float:
        return self.length + 2 * self.delay


def make(path: Path, recipe: Recipe | None = None) -> Path:
    """Writes a complete run directory at `path` and returns it."""
    recipe = recipe or Recipe()
    path.mkdir(parents=True)
    write_records(path / "records.arrows", [(t["table"], t["rows"]) for t in tables(recipe)])
    digest = hashlib.sha256((path / "records.arrows").read_bytes()).hexdigest()
    test = {"name": "tcp_nup", "length": recipe.length, "delay": recipe.delay, "step": recipe.step}
    scenario = {"name": recipe.name, "kernel": "6.1", "seed": 1, "testbed": {}, "stack": {}, "test": test}
    info = {
        "schema": 1,
        "status": "complete",
        "engine": "virtual",
        "kernel": {"name": "6.1", "release": "6.1.192", "key": "0123456789abcdef"},
        "seed": 1,
        "virtual_s": recipe.end_s,
        "wall_s": recipe.wall_s,
        "digest": digest,
        "warnings": [],
    }
    for file, value in (("scenario.json", scenario), ("plan.json", plan(recipe)), ("run.json", info)):
        (path / file).write_text(json.dumps(value))
    (path / "console.log").write_text("synthetic\n")
    return path


def summed_up(place: Path) -> Path:
    """With its summary beside the records, as a run leaves them."""
    from hourglass.results.run import Run
    from hourglass.results.summary import code

    run = Run(place)
    (place / "run.json").write_text(json.dumps(run.info | {"results": code()}))
    (place / "summary.json").write_text(json.dumps(run.summary))
    return place


def plan(recipe: Recipe) -> dict[str, Any]:
    """The part of a plan that readers of a run need."""
    start, stop = round(recipe.delay * S), round((recipe.delay + recipe.length) * S)
    ends = {"client": "client", "server": "server"}
    flows = [
        {"id": i, "name": f.name, **ends, "sender": "client" if f.upload else "server", "address": "10.0.1.2",
         "port": 5000 + i, "cc": f.cc, "dscp": 0, "start_ns": start, "stop_ns": stop}
        for i, f in enumerate(recipe.flows)
    ]  # fmt: skip
    probes = [
        {"id": i, "name": p.name, "kind": p.name.split()[0], **ends, "address": "10.0.1.2", "port": 0, "dscp": 0,
         "payload_bytes": 56, "start_ns": 0, "stop_ns": round(recipe.end_s * S), "interval_ns": 200 * MS,
         "jitter_ns": 0}
        for i, p in enumerate(recipe.probes)
    ]  # fmt: skip
    return {"version": 1, "seed": 1, "end_ns": round(recipe.end_s * S), "nodes": list(recipe.nodes), "setup": [],
            "flows": flows, "probes": probes, "captures": [],
            "sampling": {"tcp_ns": 10 * MS, "device_ns": 200 * MS, "totals_ns": 200 * MS, "packets": 1}}  # fmt: skip


def tables(recipe: Recipe) -> list[dict[str, Any]]:
    """All record tables; tcp and ping come in two pieces, as a long run's do."""
    tcp = tcp_rows(recipe)
    ping = ping_rows(recipe)
    device = [
        {"t_ns": t, "node": "client", "device": "eth0", "rx_packets": 0, "tx_packets": 0, "rx_bytes": 0, "tx_bytes": 0,
         "rx_dropped": 0, "tx_dropped": n, "rx_errors": 0, "tx_errors": 0}
        for t, n in ((0, 100), (S, 100 + recipe.nic_drops))
    ]  # fmt: skip
    qdisc = [
        {"t_ns": t, "node": "client", "device": "eth0", "kind": kind, "handle": handle, "parent": parent, "bytes": 0,
         "packets": 0, "drops": n, "overlimits": 0, "requeues": 0, "qlen": 0, "backlog": 0}
        for t, n in ((0, 5), (S, 5 + recipe.qdisc_drops))
        for kind, handle, parent in (("htb", "1:", "root"), ("htb class", "1:1", "root"), ("pfifo_fast", "11:", "1:1"))
    ]  # fmt: skip
    flow = [
        {"t_ns": round(recipe.delay * S), "flow": i, "event": "connected", "detail": ""}
        for i in range(len(recipe.flows))
    ]
    fact = [{"t_ns": 0, "node": None, "key": "kernel.release", "value": "6.1.192"}]
    half = len(tcp) // 2
    pieces = [("tcp", tcp[:half]), ("ping", ping[:5]), ("tcp", tcp[half:]), ("ping", ping[5:])]
    pieces += [("device", device), ("qdisc", qdisc), ("flow", flow), ("fact", fact)]
    further = recipe.further(recipe)
    kept = [piece for piece in pieces if piece[0] not in {table["table"] for table in further}]
    return [{"table": name, "rows": rows} for name, rows in kept] + further


def tcp_rows(recipe: Recipe) -> list[dict[str, Any]]:
    rows = []
    for tick in range(round(recipe.length * 100) + 1):
        since = tick / 100
        for i, flow in enumerate(recipe.flows):
            common = {"t_ns": round(recipe.delay * S) + tick * 10 * MS, "flow": i}
            sent = flow.bytes_at(since)
            rows.append({**common, "sender": True, "rtt": flow.rtt_us(since), "bytes_acked": sent, "bytes_received": 0,
                         "total_retrans": flow.retrans_at(since)})  # fmt: skip
            if recipe.receiver:
                rows.append({**common, "sender": False, "rtt": 77, "bytes_acked": 0, "bytes_received": sent,
                             "total_retrans": 0})  # fmt: skip
    return rows


def ping_rows(recipe: Recipe) -> list[dict[str, Any]]:
    return [
        {"t_ns": seq * 200 * MS, "probe": i, "seq": seq, "rtt_ns": probe.rtt_ns(seq), "owd_up_ns": None,
         "owd_down_ns": None}
        for seq in range(round(recipe.end_s * 5))
        for i, probe in enumerate(recipe.probes)
    ]  # fmt: skip


TYPES = {"t_ns": pa.int64(), "flow": pa.uint16(), "probe": pa.uint16(), "sender": pa.bool_(), "seq": pa.uint32(),
         "rtt_ns": pa.int64(), "owd_up_ns": pa.int64(), "owd_down_ns": pa.int64(), "rtt": pa.uint32(),
         "total_retrans": pa.uint32(), "qlen": pa.uint32(), "backlog": pa.uint32()}  # fmt: skip
WORDS = ("tsq_term", "node", "device", "kind", "handle", "parent", "event", "detail", "key", "value")
COLUMNS = {"tcp": ("t_ns", "flow", "sender", "rtt", "bytes_acked", "bytes_received", "total_retrans"),
           "ping": ("t_ns", "probe", "seq", "rtt_ns", "owd_up_ns", "owd_down_ns"),
           "flow": ("t_ns", "flow", "event", "detail")}  # fmt: skip


COUNTER = {"name": pa.utf8(), "value": pa.int64(), "station": pa.utf8()}
"""Columns of the tables `radio` and `station`."""


def schema(name: str, rows: list[dict[str, Any]]) -> pa.Schema:
    columns = tuple(rows[0]) if rows else COLUMNS[name]
    own = COUNTER if name in ("radio", "station") else {}
    types = [(c, own.get(c) or (pa.utf8() if c in WORDS else TYPES.get(c, pa.uint64()))) for c in columns]
    return pa.schema(types, metadata={"table": name})


def write_records(path: Path, pieces: list[tuple[str, list[dict[str, Any]]]]) -> None:
    """Arrow IPC streams one after another, each naming its table."""
    with path.open("wb") as file:
        for name, rows in pieces:
            if name in SCHEMAS:
                table = pl.DataFrame(rows, schema=SCHEMAS[name], orient="row").to_arrow()
                table = table.replace_schema_metadata({"table": name})
            else:
                table = pa.Table.from_pylist(rows, schema=schema(name, rows))
            with pa.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table)
