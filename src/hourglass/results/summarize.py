# SPDX-License-Identifier: Apache-2.0
"""`summarize`: the figures of a recording (`contract/summary.py` defines them). A pure function."""

import hashlib
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

import hourglass.contract.summary
from hourglass.contract import plan
from hourglass.contract.summary import SCHEMA, EventFigures, FlowFigures, PingFigures, RunWarning, Summary, Totals
from hourglass.results import connections, traffic
from hourglass.results.anatomy import connection_layers_ms, layers_ms, trip_layers_ms
from hourglass.results.check_verdicts import judge_stored
from hourglass.results.cpus import cpus
from hourglass.results.drops import drops, drops_by_reason, links
from hourglass.results.ecn_marks import ecn, marks
from hourglass.results.lint import lint
from hourglass.results.phases import hystart_exit_ns
from hourglass.results.recording import Recording
from hourglass.results.responsiveness import responsiveness
from hourglass.results.series import NS_PER_S, Window, goodput_mbps, loaded_window, ping_ms, retransmits, tcp_rtt_ms
from hourglass.results.stats import fairness, rounded, statistics
from hourglass.results.wifi import wifi


@cache
def code_version() -> str:
    """Return the version of the code that makes summaries: 16 hex digits of the SHA-256 of this package's sources and
    of the contract's files on summaries."""
    total = hashlib.sha256()
    contract = Path(hourglass.contract.summary.__file__).parent
    contract_files = [contract / f"{name}.py" for name in ("summary", "figures", "names", "bounds")]
    for path in (*sorted(Path(__file__).parent.rglob("*.py")), *contract_files):
        total.update(path.read_bytes())
    return total.hexdigest()[:16]


def summarize(run: Recording) -> Summary:
    """Return the figures of one run."""
    window = loaded_window(run)
    goodputs = [goodput_mbps(run, flow) for flow in run.flows]
    summary = Summary(
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
        apps=[app.figures() for app in run.apps.values()],
        warnings=warnings(run),
        **traffic.parts(run, window),
    )
    if run.connections:
        connection_figures = [*connections.figures(run.connections, run.tcp, run.drops)]
        update = {"connections": connection_figures, "connection_layers_ms": connection_layers_ms(run)}
        summary = summary.model_copy(update=update)
    if cpu_figures := cpus(run, window):
        summary = summary.model_copy(update={"cpu": cpu_figures})
    if ecn_figures := ecn(run):
        summary = summary.model_copy(update={"ecn": ecn_figures, "marks": marks(run)})
    if responsiveness_figures := responsiveness(run):
        summary = summary.model_copy(update={"responsiveness": responsiveness_figures})
    if event_figures := events(run):
        summary = summary.model_copy(update={"events": event_figures})
    checks = run.experiment.checks
    judged = [app.check(checks) for app in run.apps.values()] + judge_stored(checks, summary)
    return summary.model_copy(update={"checks": judged}) if judged else summary


def warnings(run: Recording) -> list[RunWarning]:
    """Return the warnings of the run, then those of the lints. Those of the run have the id `console`, or `file` if
    another tool made the recording."""
    source = "file" if run.info.elsewhere else "console"
    return [RunWarning(id=source, text=text, remedy="") for text in run.info.warnings] + lint(run)


def events(run: Recording) -> list[EventFigures]:
    """Return the changes during the test, in order."""
    rows = run.events.select("t_ns", "node", "name", "said").iter_rows()
    return [
        EventFigures(t_s=t_ns / NS_PER_S, node=node, name=name, said=messages) for t_ns, node, name, messages in rows
    ]


def _totals(run: Recording, goodputs: list[float]) -> Totals:
    def total(upload: bool) -> float | None:
        if upload in run.unmeasured_directions:
            return None
        return rounded(sum(rate for flow, rate in zip(run.flows, goodputs, strict=True) if flow.upload == upload))

    def fairness_of(upload: bool) -> float | None:
        return fairness([rate for flow, rate in zip(run.flows, goodputs, strict=True) if flow.upload == upload])

    return Totals(
        upload_mbps=total(True),
        download_mbps=total(False),
        fairness=fairness(goodputs),
        upload_fairness=fairness_of(True),
        download_fairness=fairness_of(False),
    )


def _flow(run: Recording, flow: plan.FlowStream, goodput: float, window: Window) -> FlowFigures:
    hystart_end_ns = hystart_exit_ns(run.tcp, flow)
    return FlowFigures(
        id=flow.name,
        cc=flow.cc,
        goodput_mbps=rounded(goodput),
        retransmits=retransmits(run, flow, window),
        tcp_rtt_ms=statistics(tcp_rtt_ms(run, flow).within(window).values),
        hystart_exit_s=None if hystart_end_ns is None else rounded((hystart_end_ns - flow.start_ns) / NS_PER_S),
    )


def _ping(run: Recording, ping: plan.PingStream, window: Window) -> PingFigures:
    round_trips_ms = ping_ms(run, ping).within(window).values
    has_numbers = run.rows(ping)["seq"].null_count() == 0
    return PingFigures(
        lost=int(np.isnan(round_trips_ms).sum()) if has_numbers else None, **statistics(round_trips_ms).model_dump()
    )


def qdiscs(run: Recording) -> dict[str, dict[str, dict[str, dict[str, int]]]]:
    """Return {node: {device: {"fq_codel 11:": {name: value}}}}: the qdiscs' counters at the end, in tc's order."""
    keys = ["node", "device", "kind", "handle", "name"]
    last = run.qdisc_stats.group_by(keys, maintain_order=True).agg(pl.col("value").sort_by("t_ns").last())
    counters: dict[str, dict[str, dict[str, dict[str, int]]]] = {}
    for node, device, kind, handle, name, value in last.iter_rows():
        counters.setdefault(node, {}).setdefault(device, {}).setdefault(f"{kind} {handle}", {})[name] = value
    return counters
