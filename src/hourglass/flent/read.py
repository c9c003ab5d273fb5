# SPDX-License-Identifier: Apache-2.0
"""Reads a `.flent.gz` as a `Recording`, so that tables and figures show it next to Hourglass runs.

A TCP series becomes a flow: the receiver's bytes grow by `val` over `dur`, or since the previous point if `dur` is
missing. A ping series becomes a ping. Both get the names that Hourglass's tests use. Values from ss become the
sender's samples, VoIP becomes datagrams, and http-getter's requests become fetches. Series that Flent computed (avg,
sum, fairness) and floods, which have no packets, are omitted. The time under load is LENGTH seconds in the middle of
TOTAL_LENGTH, as in Flent's tests. Without a TCP series it is the whole test.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TypedDict

import polars as pl

from hourglass.contract.plan import DatagramStream, FetchStream, FlowStream, Phase, PingStream, Stream
from hourglass.contract.record_tables import SCHEMAS
from hourglass.contract.run_json import FLENT, SCHEMA, Kernel, RunInfo
from hourglass.contract.summary import Summary
from hourglass.errors import InputError
from hourglass.flent import rows
from hourglass.flent.document import Document, Point, SeriesMeta, read_document
from hourglass.flent.rows import Row, Timed
from hourglass.results.flat import flat
from hourglass.results.recording import Experiment, Recording, TestInfo, TrafficPlan
from hourglass.results.records import Tables
from hourglass.results.series import NS_PER_S
from hourglass.results.summarize import summarize
from hourglass.scenario.testkinds import TESTS, VOIP_BYTES, VOIP_INTERVAL_S

SUFFIXES = (".flent", ".flent.gz", ".flent.bz2", ".flnt")
UNKNOWN = "0.0.0.0"
"""The address of a server, since files contain only its name."""
PING_BYTES = 56
STEP_S = 0.2
"""Flent's default, for files without a step size."""
COMPUTED = re.compile(r"(avg|sum|fairness|totals)$")
VOICE = "VoIP"


def is_flent(path: Path) -> bool:
    """Return whether the path has the name of a Flent file."""
    return path.name.endswith(SUFFIXES)


def load(path: Path) -> Recording:
    """Return the file as a recording. Raises `InputError` if it is not a readable Flent file."""
    return Recording(FlentFile(path, *read_document(path)))


class _CommonKeys(TypedDict):
    """The common keys of streams."""

    id: int
    client: str
    server: str
    address: str
    port: int
    dscp: int
    start_ns: int
    stop_ns: int


class FlentFile:
    """A Flent file as the source of a recording: the engine is `flent`, the seed is missing, and tables that Flent does
    not measure are empty."""

    def __init__(self, path: Path, document: Document, digest: str) -> None:
        self.path = path
        self._document = document
        self._meta = document.metadata
        self._digest = digest
        if any(map(_is_flow, self._names)) and not self._length_s:
            raise InputError("run", str(path), "lacks the length of the test: it has neither LENGTH nor x_values")

    def info(self) -> RunInfo:
        """Return the run's information; wall time and virtual time are equal."""
        release = self._meta.kernel_release or "unknown"
        failed = self._meta.failed_runners
        return RunInfo(
            schema=SCHEMA,
            status="complete",
            engine=FLENT,
            kernel=Kernel(name=release, release=release, key=""),
            identity="",
            seed=None,
            virtual_s=self._total_s,
            wall_s=self._total_s,
            digest=self._digest,
            results="",
            warnings=[f"{failed} of Flent's runners failed"] if failed else [],
        )

    def experiment(self) -> Experiment:
        """Return the file's description of the test; testbed and stack are unknown."""
        meta, test = self._meta, self._test
        name = meta.title or meta.name or self.path.name
        test_settings = {"name": test.name, "client": test.client, "server": test.server, "length": test.length_s,
                "delay": test.delay_s, "step": test.step_s, "parameters": test.parameters}  # fmt: skip
        settings = dict(flat({"name": name, "kernel": meta.kernel_release or None, "test": test_settings}))
        return Experiment(name, meta.note or "", test, settings)

    @cached_property
    def _test(self) -> TestInfo:
        meta = self._meta
        host = meta.host or "server"
        return TestInfo(
            name=meta.name or "unknown",
            client=meta.local_host or "client",
            server=host,
            hosts=meta.hosts or (host,),
            length_s=self._length_s,
            delay_s=self._delay_s,
            step_s=meta.step_size or STEP_S,
            parameters=meta.test_parameters,
        )

    def scenario(self) -> None:
        return None

    def summary(self, recording: Recording) -> Summary:
        return summarize(recording)

    @cached_property
    def _length_s(self) -> float:
        return self._meta.length or self._total_s

    @cached_property
    def _total_s(self) -> float:
        return self._meta.total_length or max(self._document.x_values, default=0.0)

    @cached_property
    def _delay_s(self) -> float:
        return max(0.0, (self._total_s - self._length_s) / 2) if any(map(_is_flow, self._names)) else 0.0

    @cached_property
    def _names(self) -> list[str]:
        """The names of the measured series."""
        series_names = dict.fromkeys([*self._document.results, *self._document.raw_values])
        return [
            name for name in series_names if not COMPUTED.search(name) and not self._series_meta(name).computed_late
        ]

    def _series_meta(self, name: str) -> SeriesMeta:
        return self._meta.series_meta.get(name, SeriesMeta())

    def traffic(self) -> TrafficPlan:
        """Return two nodes and the streams between them."""
        nodes = tuple(dict.fromkeys([self._test.client, self._test.server]))
        streams = tuple(stream for stream, _ in self._series)
        return TrafficPlan(round(self._total_s * NS_PER_S), nodes, streams, paths=(), radios=())

    @cached_property
    def _series(self) -> list[tuple[Stream, str]]:
        """The supported series as streams, each with its name."""
        flows = sorted(filter(_is_flow, self._names))
        pings = sorted(filter(_is_ping, self._names), key=lambda name: ("ICMP" not in name, name))
        builders = [
            *((self._flow, name) for name in flows),
            *((self._ping, name) for name in pings),
            *((self._voip, name) for name in ([VOICE] if self._voice else [])),
            *((self._fetches, name) for name in filter(_is_fetch, self._names)),
        ]
        return [(build_stream(position, name), name) for position, (build_stream, name) in enumerate(builders)]

    def _common(self, position: int, start_s: float, stop_s: float) -> _CommonKeys:
        return {"id": position, "client": self._test.client, "server": self._test.server, "address": UNKNOWN, "port": 0,
                "dscp": 0, "start_ns": round(start_s * NS_PER_S), "stop_ns": round(stop_s * NS_PER_S)}  # fmt: skip

    def _flow(self, position: int, name: str) -> Stream:
        return FlowStream(
            **self._common(position, self._delay_s, self._delay_s + self._length_s),
            kind="flow",
            name=_flow_name(name, self._test.name),
            sender=self._test.server if "download" in name else self._test.client,
            cc=self._series_meta(name).cong_control,
            pace_bps=None,
            writes=None,
            backend="socket",
        )

    def _ping(self, position: int, name: str) -> Stream:
        return PingStream(
            **self._common(position, 0, self._total_s),
            kind="ping",
            ecn="not_ect",
            name=_ping_name(name),
            protocol="udp" if "UDP" in name else "icmp",
            payload_bytes=PING_BYTES,
            interval_ns=round(self._test.step_s * NS_PER_S),
            jitter_ns=0,
            jitter_seed=0,
        )

    def _voip(self, position: int, name: str) -> Stream:
        common = self._common(position, 0, self._total_s)
        start_ns, stop_ns = common["start_ns"], common["stop_ns"]
        return DatagramStream(
            **common,
            kind="datagrams",
            ecn="not_ect",
            name=name.lower(),
            payload_bytes=VOIP_BYTES,
            burst=1,
            phases=[Phase(start_ns=start_ns, stop_ns=stop_ns, interval_ns=round(VOIP_INTERVAL_S * NS_PER_S))],
        )

    def _fetches(self, position: int, name: str) -> Stream:
        return FetchStream(
            **self._common(position, 0, self._total_s),
            kind="fetches",
            name=name.replace("HTTP latency", "http").replace("::", " "),
            cc="",
            request_bytes=0,
            sizes=sorted({point.bytes for _, point in self._points(name) if point.bytes}),
            interval_ns=round(self._test.step_s * NS_PER_S),
        )

    def tables(self) -> Tables:
        """Return the tables `tcp`, `ping`, `datagram` and `fetch`, as in the records of a run."""
        rows_by_table: dict[str, list[Row]] = {}
        for stream, name in self._series:
            rows_by_table.setdefault(stream.table, []).extend(self._rows(stream, name))
        try:
            return Tables.of(
                {
                    table: pl.DataFrame(rows_of_table, SCHEMAS[table])
                    for table, rows_of_table in rows_by_table.items()
                    if rows_of_table
                }
            )
        except (OverflowError, TypeError, pl.exceptions.PolarsError):
            raise InputError("run", str(self.path), "contains figures that exceed 64 bits") from None

    def _rows(self, stream: Stream, name: str) -> Iterator[Row]:
        """Yield the rows of a stream's table."""
        if isinstance(stream, FlowStream):
            return self._tcp_rows(stream, name)
        if isinstance(stream, DatagramStream):
            return rows.voice(stream.id, self._voice)
        build_rows = rows.fetches if isinstance(stream, FetchStream) else rows.answers
        return build_rows(stream.id, self._points(name))

    def _tcp_rows(self, flow: FlowStream, name: str) -> Iterator[Row]:
        """Yield the receiver's bytes, and the sender's samples if ss reported them."""
        samples = self._raw(name, "tcp_rtt")
        yield from chain(rows.received(flow.id, self._points(name), self._delay_s), rows.sent(flow.id, samples))
        retransmitted = self._series_meta(name).tcp_retransmit
        if retransmitted is not None:
            yield {"t_ns": flow.stop_ns, "stream": flow.id, "sender": True, "total_retrans": retransmitted}

    @cached_property
    def _zero_s(self) -> float:
        """The time of x = 0, s since 1970."""
        try:
            return datetime.fromisoformat((self._meta.t0 or self._meta.time).replace("Z", "+00:00")).timestamp()
        except ValueError:
            return 0.0

    def _raw(self, name: str, *keys: str) -> list[Timed]:
        """Return (s since x = 0, point) for the points that have one of the keys, by time."""
        points = (
            point for point in self._document.raw_values.get(name, ()) if not point.model_fields_set.isdisjoint(keys)
        )
        return sorted(((point.t - self._zero_s, point) for point in points), key=lambda pair: pair[0])

    def _points(self, name: str) -> list[Timed]:
        """Return the points of a series, or else the values at the file's steps."""
        steps = zip(self._document.x_values, self._document.results.get(name, ()), strict=False)
        return self._raw(name, "val") or [(x_s, Point(t=x_s, val=value)) for x_s, value in steps if value is not None]

    @cached_property
    def _voice(self) -> list[Timed]:
        """The packets of a VoIP stream that have a number and a delay or a loss."""
        return [timed for timed in self._raw(VOICE, "owd_up", "lost") if timed[1].seq is not None]


def _is_flow(name: str) -> bool:
    """Return whether the series is a flow, not ss's values of a flow ("TCP upload::tcp_cwnd")."""
    return name.startswith("TCP ") and not name.rsplit("::", 1)[-1].startswith("tcp_")


def _is_ping(name: str) -> bool:
    return name.startswith("Ping (ms)")


def _is_fetch(name: str) -> bool:
    return name.startswith("HTTP latency")


def _flow_name(name: str, test: str) -> str:
    """Return the name in Hourglass's tests: "TCP upload BE" is "upload::BE"."""
    kind = TESTS.get(test)
    match = re.fullmatch(r"TCP (upload|download)(?:::| )?(.*)", name)
    if match is None:
        stream = name.removeprefix("TCP stream ").removeprefix("TCP ")
        return f"upload::{stream}"
    label = match[2] or "1"
    if kind and kind.series.startswith("TCP {way} BE::"):
        label = label.removeprefix("BE::")
    return f"{match[1]}::{label}"


def _ping_name(name: str) -> str:
    """Return the name in Hourglass's tests: "Ping (ms) UDP BE" is "udp BE"."""
    label = name.removeprefix("Ping (ms)").removeprefix("::").strip()
    return re.sub(r"^(ICMP|UDP)\b", lambda match: match[1].lower(), label)
