# SPDX-License-Identifier: Apache-2.0
"""Make run directories by formula, in the contract's form, so that every figure has a known value."""

import hashlib
import json
import pathlib
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import polars as pl
import pyarrow as pa

from hourglass.contract.plan import (
    DatagramStream,
    FetchStream,
    Hop,
    Path,
    Phase,
    PingStream,
    Plan,
    PlanRadio,
    Sampling,
    TransactionStream,
)
from hourglass.contract.plan import FlowStream as PlanFlow
from hourglass.contract.plan.apps import Container, PlanApp, ReadyAtStart, Root
from hourglass.contract.record_tables import SCHEMAS
from hourglass.results.run_directory import open_run
from hourglass.results.summarize import code_version

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
    """The content of a synthetic run. Times in s; the flows run from `delay` to `delay + length`."""

    flows: list[Flow] = field(default_factory=lambda: [Flow()])
    probes: list[Probe] = field(default_factory=lambda: [Probe()])
    name: str = "synthetic"
    length: float = 10
    delay: float = 2
    step: float = 0.2
    qdisc_drops: int = 7
    """skbs of two packets each."""
    nic_drops: int = 3
    receiver: bool = True
    wall_s: float = 1.25
    nodes: tuple[str, ...] = ("client", "server")
    route: tuple[str, ...] = ("client", "server")
    """The nodes that packets to the server pass."""
    radios: list[PlanRadio] = field(default_factory=list)
    datagrams: int | None = None
    """Payload bytes of a stream `voip` of the whole run, in packets 20 ms apart, or 0."""
    sizes: list[int] = field(default_factory=list)
    """Sizes of the objects that a client `http` fetches in turn, if any."""
    probed: bool = True
    """With the tables of the packet probe."""
    checks: dict[str, str] = field(default_factory=dict)
    """Bounds of its scenario."""
    expected: dict[str, int | str] = field(default_factory=dict)
    """Programs of the client, and their expected ends."""
    requests: int | None = None
    """Bytes of the requests of a client `tcp_rr` and of their answers, or 0."""
    further: Callable[["Recipe"], list[dict[str, Any]]] = lambda recipe: []
    """More tables, or a replacement of `tcp`."""

    @property
    def end_s(self) -> float:
        return self.length + 2 * self.delay


def make(path: pathlib.Path, recipe: Recipe | None = None) -> pathlib.Path:
    """Write a complete run directory at `path` and return it."""
    recipe = recipe or Recipe()
    path.mkdir(parents=True)
    write_records(path / "records.arrows", [(t["table"], t["rows"]) for t in tables(recipe)])
    digest = hashlib.sha256((path / "records.arrows").read_bytes()).hexdigest()
    test = {"name": "tcp_nup", "client": "client", "server": "server"}
    test |= {"length": recipe.length, "delay": recipe.delay, "step": recipe.step}
    scenario = {"name": recipe.name, "kernel": "6.1", "seed": 1, "testbed": {}, "stack": {}, "test": test}
    scenario |= {"check": recipe.checks} if recipe.checks else {}
    scenario |= {"app": [{"name": name, "expect": ending} for name, ending in recipe.expected.items()]}
    info = {
        "schema": 1,
        "status": "complete",
        "engine": "virtual",
        "kernel": {"name": "6.1", "release": "6.1.192", "key": "0123456789abcdef"},
        "identity": "0123456789abcdef fedcba9876543210",
        "seed": 1,
        "virtual_s": recipe.end_s,
        "wall_s": recipe.wall_s,
        "digest": digest,
        "results": "",
        "warnings": [],
    }
    for file, value in (("scenario.json", scenario), ("run.json", info)):
        (path / file).write_text(json.dumps(value))
    (path / "plan.json").write_bytes(plan(recipe).to_json())
    (path / "console.log").write_text("synthetic\n")
    return path


def write_summary(folder: pathlib.Path) -> pathlib.Path:
    """Write the summary next to the records, as a run does. Return the run directory."""
    run = open_run(folder)
    info = run.info.model_copy(update={"results": code_version()})
    (folder / "run.json").write_text(info.model_dump_json(by_alias=True))
    (folder / "summary.json").write_text(run.summary.to_json())
    return folder


def plan(recipe: Recipe) -> Plan:
    """Return a plan without set-up steps."""
    start, stop, end = (round(s * S) for s in (recipe.delay, recipe.delay + recipe.length, recipe.end_s))
    ends = {"client": "client", "server": "server", "address": "10.0.1.2", "dscp": 0}
    full_span = ends | {"start_ns": 0, "stop_ns": end}
    makers = [
        *(
            lambda i, f=f: PlanFlow(
                id=i,
                kind="flow",
                name=f.name,
                **ends,
                port=5000 + i,
                sender="client" if f.upload else "server",
                cc=f.cc,
                start_ns=start,
                stop_ns=stop,
                pace_bps=None,
                writes=None,
                backend="load",
            )
            for f in recipe.flows
        ),
        *(
            lambda i, p=p, number=number: PingStream(
                id=i,
                kind="ping",
                name=p.name,
                **full_span,
                port=number,
                ecn="not_ect",
                protocol="udp" if p.name.startswith("udp") else "icmp",
                payload_bytes=56,
                interval_ns=200 * MS,
                jitter_ns=0,
                jitter_seed=0,
            )
            for number, p in enumerate(recipe.probes)
        ),
        *(
            lambda i, size=size: DatagramStream(
                id=i,
                kind="datagrams",
                name="voip",
                **full_span,
                port=8999,
                ecn="not_ect",
                payload_bytes=size,
                burst=1,
                phases=[Phase(start_ns=0, stop_ns=end, interval_ns=20 * MS)],
            )
            for size in [recipe.datagrams]
            if size
        ),
        *(
            lambda i, sizes=sizes: FetchStream(
                id=i,
                kind="fetches",
                name="http",
                **full_span,
                port=8080,
                cc="cubic",
                request_bytes=300,
                sizes=sizes,
                interval_ns=200 * MS,
            )
            for sizes in [recipe.sizes]
            if sizes
        ),
        *(
            lambda i, size=size: TransactionStream(
                id=i,
                kind="transactions",
                name="tcp_rr",
                **full_span,
                port=12865,
                cc="cubic",
                request_bytes=size,
                response_bytes=size,
            )
            for size in [recipe.requests]
            if size
        ),
    ]
    return Plan(
        version=8,
        seed=1,
        end_ns=end,
        nodes=list(recipe.nodes),
        setup=[],
        streams=[make(i) for i, make in enumerate(makers)],
        paths=[Path(client="client", server="server", there=hops(recipe.route), back=hops(recipe.route[::-1]))],
        sampling=Sampling(tcp_ns=10 * MS, device_ns=200 * MS, totals_ns=200 * MS, packets=1),
        captures=[],
        radios=recipe.radios,
        events=[],
        roots=[Root(kind="debian", place="12", packages=[])],
        rooms=[Container(node="client", root=0, mounts=[], files=[])],
        apps=[app(number, name) for number, name in enumerate(recipe.expected)],
        apps_end=False,
    )


def app(number: int, name: str) -> PlanApp:
    """Return a program whose command is its name."""
    return PlanApp(
        id=number, name=name, room=0, command=[name], env={}, folder="/", user="root", stdin="", start_ns=0, after=[],
        stop_ns=None, stop_signal=15, grace_ns=0, ready=ReadyAtStart(when="start"), ready_ns=0, restarts=0,
        restart_ns=0, background=False, output_bytes=1000, collect=[], origin=None,
    )  # fmt: skip


def hops(route: tuple[str, ...]) -> list[Hop]:
    """Return a cable of 100 Mbit/s from each node to the next, eth0 towards the server."""
    return [
        Hop(
            node=node,
            device="eth0",
            address=f"10.0.{number}.1/24",
            to_node=next_node,
            to_device="eth1",
            to_address=f"10.0.{number}.2/24",
            medium="cable",
            line_bps=10**8,
            shaper_bps=None,
            rate_bps=10**8,
            delay_ns=0,
            qdisc="pfifo_fast",
            ingress=None,
            impairments=[],
            origin=f"testbed.link.{number}",
        )
        for number, (node, next_node) in enumerate(pairwise(route))
    ]


def tables(recipe: Recipe) -> list[dict[str, Any]]:
    """Return all record tables; tcp and ping are in two pieces, as in a long run."""
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
    drop = [
        {"t_ns": S, "stream": 0, "way": "up", "node": "client", "device": "eth0", "place": "qdisc",
         "reason": "QDISC_DROP", "packets": 2, "bytes": 2896}
        for _ in range(recipe.qdisc_drops)
    ]  # fmt: skip
    balance = [
        {"t_ns": round(recipe.end_s * S), "stream": 0, "way": "up", "sent": 100, "duplicated": 0,
         "delivered": 100 - 2 * recipe.qdisc_drops, "dropped": 2 * recipe.qdisc_drops, "in_flight": 0, "unmatched": 0}
    ]  # fmt: skip
    flow = [
        {"t_ns": round(recipe.delay * S), "stream": i, "event": "connected", "detail": ""}
        for i in range(len(recipe.flows))
    ]
    fact = [{"t_ns": 0, "node": None, "key": "kernel.release", "value": "6.1.192"}]
    half = len(tcp) // 2
    pieces = [("tcp", tcp[:half]), ("ping", ping[:5]), ("tcp", tcp[half:]), ("ping", ping[5:])]
    pieces += [("device", device), ("qdisc", qdisc), ("flow", flow), ("fact", fact)]
    pieces += [("drop", drop), ("balance", balance)] if recipe.probed else []
    further = recipe.further(recipe)
    replaced = [piece for piece in pieces if piece[0] not in {table["table"] for table in further}]
    return [{"table": name, "rows": rows} for name, rows in replaced] + further


def tcp_rows(recipe: Recipe) -> list[dict[str, Any]]:
    rows = []
    for tick in range(round(recipe.length * 100) + 1):
        since = tick / 100
        for i, flow in enumerate(recipe.flows):
            common = {"t_ns": round(recipe.delay * S) + tick * 10 * MS, "stream": i}
            sent = flow.bytes_at(since)
            rows.append({**common, "sender": True, "rtt": flow.rtt_us(since), "bytes_acked": sent, "bytes_received": 0,
                         "total_retrans": flow.retrans_at(since)})  # fmt: skip
            if recipe.receiver:
                rows.append({**common, "sender": False, "rtt": 77, "bytes_acked": 0, "bytes_received": sent,
                             "total_retrans": 0})  # fmt: skip
    return rows


def ping_rows(recipe: Recipe) -> list[dict[str, Any]]:
    return [
        {"t_ns": seq * 200 * MS, "stream": i, "seq": seq, "rtt_ns": probe.rtt_ns(seq), "owd_up_ns": None,
         "owd_down_ns": None}
        for seq in range(round(recipe.end_s * 5))
        for i, probe in enumerate(recipe.probes, len(recipe.flows))
    ]  # fmt: skip


def write_records(path: pathlib.Path, pieces: list[tuple[str, list[dict[str, Any]]]]) -> None:
    """Write Arrow IPC streams one after another, each with its table's name. Columns without values are omitted."""
    with path.open("wb") as file:
        for name, rows in pieces:
            schema = {column: kind for column, kind in SCHEMAS[name].items() if not rows or column in rows[0]}
            table = pl.DataFrame(rows, schema, orient="row").to_arrow().replace_schema_metadata({"table": name})
            with pa.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table)
