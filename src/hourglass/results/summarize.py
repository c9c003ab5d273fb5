# SPDX-License-Identifier: Apache-2.0
"""`summarize`: the figures of a recording (`contract/summary.py` says what they mean). A pure function."""

import hashlib
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

import hourglass.contract.summary
from hourglass.contract import plan
from hourglass.contract.summary import SCHEMA, Event, Flow, Pings, Summary, Totals, Warning
from hourglass.results import connections, traffic
from hourglass.results.anatomy import connection_layers_ms, layers_ms, trip_layers_ms
from hourglass.results.checks import judge_stored
from hourglass.results.drops import drops, drops_by_reason, links
from hourglass.results.lint import lint
from hourglass.results.marks import ecn, marks
from hourglass.results.phases import hystart_exit_ns
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, Window, goodput_mbps, loaded_window, ping_ms, retransmits, tcp_rtt_ms
from hourglass.results.stats import fairness, rounded, statistics
from hourglass.results.wifi import wifi


@cache
def code() -> str:
    """Names the code that makes summaries: 16 hex digits of this package's sources and of the contract's."""
    total = hashlib.sha256()
    contract = Path(hourglass.contract.summary.__file__).parent
    named = [contract / f"{name}.py" for name in ("summary", "figures", "names", "bounds")]
    for path in (*sorted(Path(__file__).parent.rglob("*.py")), *named):
        total.update(path.read_bytes())
    return total.hexdigest()[:16]


def summarize(run: Recording) -> Summary:
    """The figures of one run."""
    window = loaded_window(run)
    goodputs = [goodput_mbps(run, flow, window) for flow in run.flows]
    found = Summary(
        schema=SCHEMA,
        scenario=run.name,
        engine=run.info.engine,
        kernel=run.info.kernel.release,
        seed=run.info.seed,
        virtual_s=rounded(run.info.virtual_s),
        wall_s=rounded(run.info.wall_s),
        digest=run.info.digest,
        totals=_totals(run, goodputs),
        flows=[_flow(run, flow, goodput, window) for flow, goodput in zip(run.flows, goodputs, strict=True)],
        tcp_rtt_ms=statistics(tcp_rtt_ms(run).within(window).values),
        ping_ms={ping.name: _ping(run, ping, window) for ping in run.pings},
        wifi=wifi(run, window),
        drops=drops(run),
        drops_by_reason=drops_by_reason(run),
        qdiscs=qdiscs(run),
        links=links(run),
        layers_ms=layers_ms(run, window),
        ping_layers_ms=trip_layers_ms(run, run.pings, window),
        apps=[one.figures() for one in run.apps.values()],
        warnings=warnings(run),
        **traffic.parts(run, window),
    )
    if run.connections:
        opened = [*connections.figures(run.connections, run.tcp)]
        found = found.model_copy(update={"connections": opened, "connection_layers_ms": connection_layers_ms(run)})
    if sent := ecn(run):
        found = found.model_copy(update={"ecn": sent, "marks": marks(run)})
    if happened := events(run):
        found = found.model_copy(update={"events": happened})
    judged = [one.check() for one in run.apps.values()] + judge_stored(run.experiment.checks, found)
    return found.model_copy(update={"checks": judged}) if judged else found


def warnings(run: Recording) -> list[Warning]:
    """What the console warned of (id `console`), then what the lints found."""
    said = [Warning(id="console", text=text, remedy="") for text in run.info.warnings]
    return said + lint(run)


def events(run: Recording) -> list[Event]:
    """What changed during the test, in its order."""
    rows = run.events.select("t_ns", "node", "name", "said").iter_rows()
    return [Event(t_s=t_ns / NS_PER_S, node=node, name=name, said=said) for t_ns, node, name, said in rows]


def _totals(run: Recording, goodputs: list[float]) -> Totals:
    def total(upload: bool) -> float:
        return rounded(sum(rate for flow, rate in zip(run.flows, goodputs, strict=True) if flow.upload == upload))

    def even(upload: bool) -> float | None:
        return fairness([rate for flow, rate in zip(run.flows, goodputs, strict=True) if flow.upload == upload])

    return Totals(
        upload_mbps=total(True),
        download_mbps=total(False),
        fairness=fairness(goodputs),
        upload_fairness=even(True),
        download_fairness=even(False),
    )


def _flow(run: Recording, flow: plan.Flow, goodput: float, window: Window) -> Flow:
    ended_ns = hystart_exit_ns(run.tcp, flow)
    return Flow(
        id=flow.name,
        cc=flow.cc,
        goodput_mbps=rounded(goodput),
        retransmits=retransmits(run, flow, window),
        tcp_rtt_ms=statistics(tcp_rtt_ms(run, flow).within(window).values),
        hystart_exit_s=None if ended_ns is None else rounded((ended_ns - flow.start_ns) / NS_PER_S),
    )


def _ping(run: Recording, ping: plan.Ping, window: Window) -> Pings:
    sent = ping_ms(run, ping).within(window).values
    return Pings(lost=int(np.isnan(sent).sum()), **statistics(sent).model_dump())


def qdiscs(run: Recording) -> dict[str, dict[str, dict[str, dict[str, int]]]]:
    """{node: {device: {"fq_codel 11:": {name: value}}}}: the qdiscs' own counters at the end, in tc's order."""
    keys = ["node", "device", "kind", "handle", "name"]
    last = run.qdisc_stats.group_by(keys, maintain_order=True).agg(pl.col("value").sort_by("t_ns").last())
    found: dict[str, dict[str, dict[str, dict[str, int]]]] = {}
    for node, device, kind, handle, name, value in last.iter_rows():
        found.setdefault(node, {}).setdefault(device, {}).setdefault(f"{kind} {handle}", {})[name] = value
    return found
