# SPDX-License-Identifier: Apache-2.0
"""What was sent and how it fared: flows, pings, one-way streams, fetches, transactions."""

from hourglass.contract.summary import App, Statistics, Summary, Totals
from hourglass.results.sections.model import Column, Section, Value
from hourglass.results.stats import known_sum

MOST_CONNECTIONS = 16
MOST_WAITS = 3
PERCENTILES = ("p10", "p50", "p90", "p99")


def _columns(*titles: str, unit: str = "ms") -> tuple[Column, ...]:
    return tuple(Column(title, unit=unit) for title in titles)


def _percentiles(figures: Statistics) -> tuple[Value, ...]:
    return figures.p10, figures.p50, figures.p90, figures.p99


def flows(summary: Summary) -> Section:
    """Goodput, retransmitted segments and RTT of each flow, and of all when there are several."""
    columns = (Column("flow", "text"), Column("cc", "text"), Column("Mbit/s"), Column("retrans"),
               *_columns(*(f"RTT {p}" for p in PERCENTILES)))  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (flow.id, flow.cc, flow.goodput_mbps, flow.retransmits, *_percentiles(flow.tcp_rtt_ms))
        for flow in summary.flows
    ]
    if len(rows) > 1:
        goodput = summary.totals.upload_mbps + summary.totals.download_mbps
        retransmits = known_sum([flow.retransmits for flow in summary.flows])
        rows.append(("all", "", goodput, retransmits, *_percentiles(summary.tcp_rtt_ms)))
    return Section("flows", "Flows", "flow", columns, tuple(rows))


def totals(summary: Summary) -> Section:
    """Goodput each way and fairness, a single row."""
    fair = fairness(summary.totals)
    columns = (Column("upload", unit="Mbit/s"), Column("download", unit="Mbit/s"), *map(Column, fair))
    row = summary.totals.upload_mbps, summary.totals.download_mbps, *fair.values()
    return Section("totals", "Totals", "", columns, (row,) if summary.flows else (), note="TCP RTT in ms")


def fairness(totals: Totals) -> dict[str, float | None]:
    """Jain's index by its name: of each way where there are flows both ways, as lines are seldom as fast up as down."""
    if totals.upload_fairness is None or totals.download_fairness is None:
        return {"fairness": totals.fairness}
    return {"fair up": totals.upload_fairness, "fair down": totals.download_fairness}


def pings(summary: Summary) -> Section:
    columns = (Column("ping", "text"), *_columns(*PERCENTILES, "max"), Column("answered"), Column("lost"))
    rows = [(name, *_percentiles(one), one.max, one.n, one.lost) for name, one in summary.ping_ms.items()]
    return Section("pings", "Pings", "ping", columns, tuple(rows), unit="ms")


def datagrams(summary: Summary) -> Section:
    """One-way streams: what arrived, how late, how unevenly, what was lost, of that what the sender's own socket had no
    room for, where there is such; of VoIP how it sounds."""
    full = any(one.refused for one in summary.datagrams)
    columns = (Column("stream", "text"), Column("Mbit/s"), *_columns(*PERCENTILES, "jitter"),
               Column("sent"), Column("lost"), *((Column("refused"),) if full else ()), Column("MOS"))  # fmt: skip
    rows = [
        (one.id, one.goodput_mbps, *_percentiles(one.owd_ms), one.jitter_ms, one.sent, one.lost,
         *((one.refused,) if full else ()), one.mos)
        for one in summary.datagrams
    ]  # fmt: skip
    return Section("datagrams", "One-way streams", "one way", columns, tuple(rows), unit="ms")


def ecn(summary: Summary) -> Section:
    """The streams that send ECT, and how many of their packets arrived marked."""
    columns = (Column("stream", "text"), Column("ECT(1)"), Column("ECT(0)"), Column("CE"), Column("CE %"))
    rows = [(name, one.ect1, one.ect0, one.ce, one.ce_percent) for name, one in summary.ecn.items()]
    note = "Packets sent with ECT(1) and ECT(0), and delivered with CE: of all that were delivered, CE %."
    return Section("ecn", "ECN", "ECN", columns, tuple(rows), unit="packets", note=note)


def fetches(summary: Summary) -> Section:
    """Completion times, of all fetches and, where there are several sizes, of each."""
    columns = (Column("client", "text"), Column("bytes", "text"), *_columns(*PERCENTILES, "max"),
               Column("done"), Column("unfinished"))  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for one in summary.fetches:
        sizes = one.by_bytes if len(one.by_bytes) == 1 else {"all": one.done_ms} | one.by_bytes
        for size, times in sizes.items():
            unfinished = one.unfinished if times is next(iter(sizes.values())) else None
            rows.append((one.id, size, *_percentiles(times), times.max, times.n, unfinished))
    return Section("fetches", "Fetches", "fetch", columns, tuple(rows), unit="ms")


def transactions(summary: Summary) -> Section:
    """Requests on one connection each: how many a second, and how long they took."""
    columns = (Column("client", "text"), Column("per s"), *_columns(*PERCENTILES, "max"),
               Column("done"), Column("unfinished"))  # fmt: skip
    rows = [
        (one.id, one.rate_per_s, *_percentiles(one.done_ms), one.done_ms.max, one.done_ms.n, one.unfinished)
        for one in summary.transactions
    ]
    return Section("transactions", "Transactions", "transaction", columns, tuple(rows), unit="ms")


def apps(summary: Summary) -> Section:
    """Programs: how they ended, when, what tools among them told."""
    columns = (
        Column("program", "text"), Column("node", "text"), Column("status", "text"), Column("from s"), Column("to s"),
        Column("Mbit/s"), Column("p50 ms"), Column("p99 ms"), Column("lost"), Column("calls", wide=True),
        Column("CPU s", wide=True), Column("longest in", "text", wide=True), Column("bytes out", wide=True),
        Column("last words", "text", wide=True),
    )  # fmt: skip
    rows = [
        (one.id, one.node, one.status, one.start_s, one.end_s, one.goodput_mbps, one.latency_ms.p50,
         one.latency_ms.p99, one.lost, one.calls, one.cpu_s, _waits(one), one.output_bytes,
         one.tail.rpartition("\n")[2])
        for one in summary.apps
    ]  # fmt: skip
    return Section("apps", "Programs", "program", columns, tuple(rows))


def _waits(app: App) -> str:
    """What its virtual time went by with for the most part."""
    return ", ".join(f"{what} {seconds:.4g} s" for what, seconds in [*app.waits.items()][:MOST_WAITS])


def connections(summary: Summary) -> Section:
    """What programs opened, those with the most payload."""
    columns = (
        Column("connection", "text"), Column("node", "text", wide=True), Column("to", "text"), Column("with", "text"),
        Column("from s"), Column("to s"), Column("up", unit="Mbit/s"), Column("down", unit="Mbit/s"),
        Column("bytes up", wide=True), Column("bytes down", wide=True), Column("retrans"), *_columns("RTT p50"),
        Column("connections", wide=True),
    )  # fmt: skip
    shown = sorted(summary.connections, key=lambda one: -(one.bytes_up + one.bytes_down))[:MOST_CONNECTIONS]
    rows = [
        (one.id, one.node, one.to_app or one.to_node or one.peer, one.protocol, one.start_s, one.end_s, one.up_mbps,
         one.down_mbps, one.bytes_up, one.bytes_down, one.retransmits, one.tcp_rtt_ms.p50, one.connections)
        for one in summary.connections if one in shown
    ]  # fmt: skip
    more = len(summary.connections) - len(rows)
    note = f"... and {more} more, with less payload." if more else ""
    return Section("connections", "Connections of programs", "connection", columns, tuple(rows), note=note)


SECTIONS = (apps, connections, flows, totals, pings, datagrams, ecn, fetches, transactions)
