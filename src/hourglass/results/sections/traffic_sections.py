# SPDX-License-Identifier: Apache-2.0
"""Sections on traffic: flows, pings, one-way streams, fetches, transactions."""

from hourglass.contract.summary import AppFigures, Statistics, Summary, Totals
from hourglass.results.sections.section import Column, Section, Value
from hourglass.results.stats import known_sum

MOST_CONNECTIONS = 16
MOST_WAITS = 3
PERCENTILES = ("p10", "p50", "p90", "p99")


def _columns(*titles: str, unit: str = "ms") -> tuple[Column, ...]:
    return tuple(Column(title, unit=unit) for title in titles)


def _percentiles(figures: Statistics) -> tuple[Value, ...]:
    return figures.p10, figures.p50, figures.p90, figures.p99


def flows(summary: Summary) -> Section:
    """Build the section of goodput, retransmitted segments and RTT of each flow, and of all flows if there are
    several."""
    columns = (Column("flow", "text"), Column("cc", "text"), Column("Mbit/s"), Column("retrans"),
               *_columns(*(f"RTT {p}" for p in PERCENTILES)))  # fmt: skip
    rows: list[tuple[Value, ...]] = [
        (flow.id, flow.cc, flow.goodput_mbps, flow.retransmits, *_percentiles(flow.tcp_rtt_ms))
        for flow in summary.flows
    ]
    if len(rows) > 1:
        retransmits = known_sum([flow.retransmits for flow in summary.flows])
        rows.append(("all", "", summary.totals.mbps, retransmits, *_percentiles(summary.tcp_rtt_ms)))
    return Section("flows", "Flows", "flow", columns, tuple(rows))


def totals(summary: Summary) -> Section:
    """Build the single row of goodput in each direction and fairness."""
    fair = fairness(summary.totals)
    columns = (
        Column("upload", unit="Mbit/s"),
        Column("download", unit="Mbit/s"),
        *map(Column, fair),
    )
    row = summary.totals.upload_mbps, summary.totals.download_mbps, *fair.values()
    return Section("totals", "Totals", "", columns, (row,) if summary.flows else (), note="TCP RTT in ms")


def fairness(totals: Totals) -> dict[str, float | None]:
    """Return Jain's index by its name: per direction for flows in both directions, since links are often asymmetric."""
    if totals.upload_fairness is None or totals.download_fairness is None:
        return {"fairness": totals.fairness}
    return {"fair up": totals.upload_fairness, "fair down": totals.download_fairness}


def pings(summary: Summary) -> Section:
    columns = (
        Column("ping", "text"),
        *_columns(*PERCENTILES, "max"),
        Column("answered"),
        Column("lost"),
    )
    rows = [(name, *_percentiles(ping), ping.max, ping.n, ping.lost) for name, ping in summary.ping_ms.items()]
    return Section("pings", "Pings", "ping", columns, tuple(rows), unit="ms")


def datagrams(summary: Summary) -> Section:
    """Build the section of one-way streams: arrival, delay, jitter, losses, and those refused by the sender's
    socket, if any; of VoIP the MOS."""
    full = any(stream.refused for stream in summary.datagrams)
    columns = (Column("stream", "text"), Column("Mbit/s"), *_columns(*PERCENTILES, "jitter"),
               Column("sent"), Column("lost"), *((Column("refused"),) if full else ()), Column("MOS"))  # fmt: skip
    rows = [
        (stream.id, stream.goodput_mbps, *_percentiles(stream.owd_ms), stream.jitter_ms, stream.sent, stream.lost,
         *((stream.refused,) if full else ()), stream.mos)
        for stream in summary.datagrams
    ]  # fmt: skip
    return Section("datagrams", "One-way streams", "one way", columns, tuple(rows), unit="ms")


def ecn(summary: Summary) -> Section:
    """Build the section of streams that send ECT, and of their packets that arrived marked."""
    columns = (
        Column("stream", "text"),
        Column("ECT(1)"),
        Column("ECT(0)"),
        Column("CE"),
        Column("CE %"),
    )
    rows = [(name, stream.ect1, stream.ect0, stream.ce, stream.ce_percent) for name, stream in summary.ecn.items()]
    note = "Packets sent with ECT(1) and ECT(0), and delivered with CE. CE %: share of all delivered packets."
    return Section("ecn", "ECN", "ECN", columns, tuple(rows), unit="packets", note=note)


def responsiveness(summary: Summary) -> Section:
    """Build the section of round trips per minute: of both kinds of probes, of each kind, and without load."""
    columns = (Column("probes", "text"), Column("per minute"), Column("ms"), Column("n"))
    figures = summary.responsiveness
    if figures is None:
        return Section("responsiveness", "Responsiveness", "responsiveness", columns, ())
    rows: tuple[tuple[Value, ...], ...] = (
        ("RPM", figures.rpm, None, None),
        ("on new connections", figures.foreign_rpm, figures.foreign_ms, figures.probes),
        ("on the flows", figures.loaded_rpm, figures.loaded_ms, None),
        ("without load", figures.idle_rpm, None, None),
    )
    spans = [f"{name} stable after {end_s:g} s" if end_s else f"{name} not stable"
             for name, end_s in (("goodput", figures.saturated_s), ("RPM", figures.stable_s))]  # fmt: skip
    more = f"{', '.join(spans)}, with {figures.flows} flows: confidence {figures.confidence}"
    return Section("responsiveness", "Responsiveness", "responsiveness", columns, rows, more=more)


def fetches(summary: Summary) -> Section:
    """Build the section of completion times, of all fetches and, if there are several sizes, of each size."""
    columns = (Column("client", "text"), Column("bytes", "text"), *_columns(*PERCENTILES, "max"),
               Column("done"), Column("unfinished"))  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for client in summary.fetches if summary.responsiveness is None else ():
        sizes = client.by_bytes if len(client.by_bytes) == 1 else {"all": client.done_ms} | client.by_bytes
        for size, times in sizes.items():
            unfinished = client.unfinished if times is next(iter(sizes.values())) else None
            rows.append((client.id, size, *_percentiles(times), times.max, times.n, unfinished))
    return Section("fetches", "Fetches", "fetch", columns, tuple(rows), unit="ms")


def transactions(summary: Summary) -> Section:
    """Build the section of requests on one connection each: their number per second and their duration."""
    columns = (Column("client", "text"), Column("per s"), *_columns(*PERCENTILES, "max"),
               Column("done"), Column("unfinished"))  # fmt: skip
    rows = [
        (
            client.id,
            client.rate_per_s,
            *_percentiles(client.done_ms),
            client.done_ms.max,
            client.done_ms.n,
            client.unfinished,
        )
        for client in summary.transactions
    ]
    return Section("transactions", "Transactions", "transaction", columns, tuple(rows), unit="ms")


def apps(summary: Summary) -> Section:
    """Build the section of programs: how and when they ended, and the figures of known tools."""
    columns = (
        Column("program", "text"), Column("node", "text"), Column("status", "text"), Column("from s", "instant"),
        Column("to s", "instant"), Column("Mbit/s"), Column("p50 ms"), Column("p99 ms"), Column("lost"),
        Column("calls", wide=True), Column("CPU s", wide=True), Column("longest in", "text", wide=True),
        Column("bytes out", wide=True), Column("last words", "text", wide=True),
    )  # fmt: skip
    rows = [
        (app.id, app.node, app.status, app.start_s, app.end_s, app.goodput_mbps, app.latency_ms.p50,
         app.latency_ms.p99, app.lost, app.calls, app.cpu_s, _waits(app), app.output_bytes,
         app.tail.rpartition("\n")[2])
        for app in summary.apps
    ]  # fmt: skip
    return Section("apps", "Programs", "program", columns, tuple(rows))


def _waits(app: AppFigures) -> str:
    """Return where a program spent most of its virtual time."""
    return ", ".join(f"{cause} {seconds:.4g} s" for cause, seconds in [*app.waits.items()][:MOST_WAITS])


def connections(summary: Summary) -> Section:
    """Build the section of programs' connections, those with the most payload."""
    columns = (
        Column("connection", "text"), Column("node", "text", wide=True), Column("to", "text"), Column("with", "text"),
        Column("from s", "instant"), Column("to s", "instant"), Column("up", "rate", "Mbit/s"),
        Column("down", "rate", "Mbit/s"),
        Column("bytes up", wide=True), Column("bytes down", wide=True), Column("retrans"), *_columns("RTT p50"),
        Column("connections", wide=True),
    )  # fmt: skip
    largest = sorted(summary.connections, key=lambda connection: -(connection.bytes_up + connection.bytes_down))[
        :MOST_CONNECTIONS
    ]
    rows = [
        (connection.id, connection.node, connection.to_app or connection.to_node or connection.peer,
         connection.protocol, connection.start_s, connection.end_s, connection.up_mbps, connection.down_mbps,
         connection.bytes_up, connection.bytes_down, connection.retransmits, connection.tcp_rtt_ms.p50,
         connection.connections)
        for connection in summary.connections if connection in largest
    ]  # fmt: skip
    hidden = len(summary.connections) - len(rows)
    more = f"... and {hidden} more, with less payload." if hidden else ""
    return Section("connections", "Connections of programs", "connection", columns, tuple(rows), more=more)


SECTIONS = (apps, connections, flows, totals, responsiveness, pings, datagrams, ecn, fetches, transactions)
