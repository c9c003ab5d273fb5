# SPDX-License-Identifier: Apache-2.0
"""Reads a `.flent.gz` as a `Recording`, so that tables and figures show it next to Hourglass runs.

A TCP series becomes a flow: the receiver's bytes grow by `val` over `dur`, or since the previous point if `dur` is
missing. A ping series becomes a ping. Both get the names that Hourglass's tests use. Values from ss become the
sender's samples, VoIP becomes datagrams, and http-getter's requests become fetches. Series that Flent computed (avg,
sum, fairness) and floods, which have no packets, are omitted. So are series without data, because their tool failed.

A flow's goodput is the mean that its tool reported. Otherwise it is the mean from its first to its last point, as in
Flent's summary. The time under load is that from the first flow's start to the last one's end. Without a TCP series it
is the whole test.
"""

import re
from collections import Counter
from collections.abc import Iterator
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
from hourglass.flent.contradictions import contradictions
from hourglass.flent.data_file import STEPS_MAX, read_document
from hourglass.flent.document import Document, SeriesMeta
from hourglass.flent.measurement import FLOW, MeasuredSeries, length_s, measurement, step_s
from hourglass.flent.rows import Row
from hourglass.results.flat import flat
from hourglass.results.recording import Experiment, Recording, TestInfo, TrafficPlan
from hourglass.results.records import Tables
from hourglass.results.run_files import FLENT_SUFFIXES
from hourglass.results.series import NS_PER_S
from hourglass.results.summarize import summarize
from hourglass.scenario.testkinds import TESTS, VOIP_BYTES, VOIP_INTERVAL_S

UNKNOWN = "0.0.0.0"
"""The address of a server, since files contain only its name."""
PING_BYTES = 56


def is_flent(path: Path) -> bool:
    """Return whether the path has the name of a Flent file."""
    return path.name.endswith(FLENT_SUFFIXES)


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
        self._measured = measurement(document)
        if self._measured.end_s > STEPS_MAX * (step_s(document)):
            raise InputError("run", str(path), f"its points span more than {STEPS_MAX} steps")

    def info(self) -> RunInfo:
        """Return the run's information; wall time and virtual time are equal."""
        release = self._meta.kernel_release or "unknown"
        length = length_s(self._document)
        return RunInfo(
            schema=SCHEMA,
            status="complete",
            engine=FLENT,
            kernel=Kernel(name=release, release=release, key=""),
            identity="",
            seed=None,
            virtual_s=length,
            wall_s=length,
            digest=self._digest,
            results="",
            warnings=list(contradictions(self._document, self._measured)),
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
        meta, total_s = self._meta, length_s(self._document)
        host = meta.host or "server"
        load_s = meta.length or total_s
        return TestInfo(
            name=meta.name or "unknown",
            client=meta.local_host or "client",
            server=host,
            hosts=meta.hosts or (host,),
            length_s=load_s,
            delay_s=max(0.0, (total_s - load_s) / 2) if self._measured.of_kind("flow") else 0.0,
            step_s=step_s(self._document),
            parameters=meta.test_parameters,
        )

    def scenario(self) -> None:
        return None

    def summary(self, recording: Recording) -> Summary:
        return summarize(recording)

    def _series_meta(self, name: str) -> SeriesMeta:
        return self._meta.series_meta.get(name, SeriesMeta())

    def traffic(self) -> TrafficPlan:
        """Return two nodes and the streams between them."""
        nodes = tuple(dict.fromkeys([self._test.client, self._test.server]))
        streams = tuple(stream for stream, _ in self._series)
        means = {
            stream.name: mean
            for stream, series in self._series
            if series.kind == "flow" and (mean := self._series_meta(series.name).mean_value)
        }
        unmeasured = {"download" not in name for name in self._measured.empty if name.startswith(FLOW)}
        return TrafficPlan(
            _ns(self._measured.end_s),
            nodes,
            streams,
            paths=(),
            radios=(),
            goodputs_mbps=means,
            unmeasured=frozenset(unmeasured - {flow.upload for flow in streams if flow.kind == "flow"}),
        )

    @cached_property
    def _series(self) -> list[tuple[Stream, MeasuredSeries]]:
        """The series, each as a stream."""
        builders = {"flow": self._flow, "ping": self._ping, "voice": self._voice, "fetch": self._fetches}
        return [
            (builders[series.kind](position, series), series) for position, series in enumerate(self._measured.series)
        ]

    def _common(self, position: int, start_s: float, stop_s: float) -> _CommonKeys:
        return {"id": position, "client": self._test.client, "server": self._test.server, "address": UNKNOWN, "port": 0,
                "dscp": 0, "start_ns": _ns(start_s), "stop_ns": _ns(stop_s)}  # fmt: skip

    def _flow(self, position: int, series: MeasuredSeries) -> Stream:
        return FlowStream(
            **self._common(position, series.start_s, series.stop_s),
            kind="flow",
            name=_flow_name(series.name, self._test.name),
            sender=self._test.server if "download" in series.name else self._test.client,
            cc=self._series_meta(series.name).cong_control,
            pace_bps=None,
            writes=None,
            backend="socket",
        )

    def _ping(self, position: int, series: MeasuredSeries) -> Stream:
        return PingStream(
            **self._common(position, 0, self._measured.end_s),
            kind="ping",
            ecn="not_ect",
            name=_ping_name(series.name),
            protocol="udp" if "UDP" in series.name else "icmp",
            payload_bytes=PING_BYTES,
            interval_ns=_ns(self._test.step_s),
            jitter_ns=0,
            jitter_seed=0,
        )

    def _voice(self, position: int, series: MeasuredSeries) -> Stream:
        common = self._common(position, 0, self._measured.end_s)
        sizes = Counter(point.size for _, point in series.points if point.size)
        return DatagramStream(
            **common,
            kind="datagrams",
            ecn="not_ect",
            name=series.name.lower(),
            payload_bytes=max(sizes, key=lambda size: sizes[size]) if sizes else VOIP_BYTES,
            burst=1,
            phases=[Phase(start_ns=0, stop_ns=common["stop_ns"], interval_ns=_ns(VOIP_INTERVAL_S))],
        )

    def _fetches(self, position: int, series: MeasuredSeries) -> Stream:
        return FetchStream(
            **self._common(position, 0, self._measured.end_s),
            kind="fetches",
            name=series.name.replace("HTTP latency", "http").replace("::", " "),
            cc="",
            request_bytes=0,
            sizes=sorted({point.bytes for _, point in series.points if point.bytes}),
            interval_ns=_ns(self._test.step_s),
        )

    def tables(self) -> Tables:
        """Return the tables `tcp`, `ping`, `datagram` and `fetch`, as in the records of a run."""
        rows_by_table: dict[str, list[Row]] = {}
        for stream, series in self._series:
            rows_by_table.setdefault(stream.table, []).extend(self._rows(stream, series))
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

    def _rows(self, stream: Stream, series: MeasuredSeries) -> Iterator[Row]:
        """Yield the rows of a stream's table."""
        if isinstance(stream, FlowStream):
            return self._tcp_rows(stream, series)
        build_rows = {"ping": rows.answers, "voice": rows.voice, "fetch": rows.fetches}[series.kind]
        return build_rows(stream.id, series.points)

    def _tcp_rows(self, flow: FlowStream, series: MeasuredSeries) -> Iterator[Row]:
        """Yield the receiver's bytes, and the sender's samples if ss reported them."""
        samples = self._measured.timed(
            point for point in self._document.raw_values.get(series.name, ()) if point.tcp_rtt is not None
        )
        yield from chain(rows.received(flow.id, series.points, series.start_s), rows.sent(flow.id, samples))
        retransmitted = self._series_meta(series.name).tcp_retransmit
        if retransmitted is not None:
            yield {"t_ns": flow.stop_ns, "stream": flow.id, "sender": True, "total_retrans": retransmitted}


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)


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
