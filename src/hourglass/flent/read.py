# SPDX-License-Identifier: Apache-2.0
"""`.flent.gz` → a `Recording`: a file measured elsewhere stands beside runs of ours, in the same tables and figures.

A TCP series becomes a flow whose receiver's bytes grow by `val` over `dur` (from the last point on where there is no
`dur`), a ping series becomes a ping; both have the names that our own tests give them. What ss told of a sender
becomes its samples. VoIP becomes datagrams, what http-getter did becomes fetches. Series that Flent computed
from others (avg, sum, fairness) and a flood's, of which it has no packets, are left out. The time under load is LENGTH
seconds in the middle of TOTAL_LENGTH, as Flent's tests have it; of a test without TCP series it is all of it.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TypedDict

import polars as pl

from hourglass.contract.plan import Datagrams, Fetches, Flow, Phase, Ping, Stream
from hourglass.contract.records import SCHEMAS
from hourglass.contract.run import FLENT, SCHEMA, Kernel, RunInfo
from hourglass.contract.summary import Summary
from hourglass.flent import rows
from hourglass.flent.form import Document, Point, SeriesMeta, read
from hourglass.flent.rows import Row, Timed
from hourglass.results.flat import flat
from hourglass.results.recording import Experiment, Recording, TestInfo, Traffic
from hourglass.results.records import Tables
from hourglass.results.series import NS_PER_S
from hourglass.results.summarize import summarize
from hourglass.scenario.testkinds import TESTS, VOIP_BYTES, VOIP_INTERVAL_S

SUFFIXES = (".flent", ".flent.gz", ".flent.bz2", ".flnt")
UNKNOWN = "0.0.0.0"
"""The address of a server: files have its name only."""
PING_BYTES = 56
STEP_S = 0.2
"""Flent's own, of a file that does not tell it."""
COMPUTED = re.compile(r"(avg|sum|fairness|totals)$")
VOICE = "VoIP"


def is_flent(path: Path) -> bool:
    """Whether the name is that of a Flent file."""
    return path.name.endswith(SUFFIXES)


def load(path: Path) -> Recording:
    """The file as a recording. Raises `InputError` when it is none that can be read."""
    return Recording(FlentFile(path, *read(path)))


class _Common(TypedDict):
    """What every stream has."""

    id: int
    client: str
    server: str
    address: str
    port: int
    dscp: int
    start_ns: int
    stop_ns: int


class FlentFile:
    """A Flent file as the source of a recording: the engine is `flent`, there is no seed, and what Flent does not
    measure is empty."""

    def __init__(self, path: Path, document: Document, digest: str) -> None:
        self.path = path
        self._document = document
        self._meta = document.metadata
        self._digest = digest

    def info(self) -> RunInfo:
        """Wall and virtual time are the same."""
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
        """What the file says of the test; testbed and stack are not known."""
        meta, test = self._meta, self._test
        name = meta.title or meta.name or self.path.name
        told = {"name": test.name, "client": test.client, "server": test.server, "length": test.length_s,
                "delay": test.delay_s, "step": test.step_s, "parameters": test.parameters}  # fmt: skip
        settings = dict(flat({"name": name, "kernel": meta.kernel_release or None, "test": told}))
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
        """The series that were measured."""
        known = dict.fromkeys([*self._document.results, *self._document.raw_values])
        return [name for name in known if not COMPUTED.search(name) and not self._told(name).computed_late]

    def _told(self, name: str) -> SeriesMeta:
        return self._meta.series_meta.get(name, SeriesMeta())

    def traffic(self) -> Traffic:
        """Two nodes and what went between them."""
        nodes = tuple(dict.fromkeys([self._test.client, self._test.server]))
        streams = tuple(stream for stream, _ in self._series)
        return Traffic(round(self._total_s * NS_PER_S), nodes, streams, paths=(), radios=())

    @cached_property
    def _series(self) -> list[tuple[Stream, str]]:
        """Every series that is read, as a stream."""
        flows = sorted(filter(_is_flow, self._names))
        pings = sorted(filter(_is_ping, self._names), key=lambda name: ("ICMP" not in name, name))
        makers = [
            *((self._flow, name) for name in flows),
            *((self._ping, name) for name in pings),
            *((self._voip, name) for name in ([VOICE] if self._voice else [])),
            *((self._fetches, name) for name in filter(_is_page, self._names)),
        ]
        return [(make(place, name), name) for place, (make, name) in enumerate(makers)]

    def _common(self, place: int, start_s: float, stop_s: float) -> _Common:
        return {"id": place, "client": self._test.client, "server": self._test.server, "address": UNKNOWN, "port": 0,
                "dscp": 0, "start_ns": round(start_s * NS_PER_S), "stop_ns": round(stop_s * NS_PER_S)}  # fmt: skip

    def _flow(self, place: int, name: str) -> Stream:
        return Flow(
            **self._common(place, self._delay_s, self._delay_s + self._length_s),
            kind="flow",
            name=_flow_name(name, self._test.name),
            sender=self._test.server if "download" in name else self._test.client,
            cc=self._told(name).cong_control,
            pace_bps=None,
            writes=None,
            backend="socket",
        )

    def _ping(self, place: int, name: str) -> Stream:
        return Ping(
            **self._common(place, 0, self._total_s),
            kind="ping",
            ecn="not_ect",
            name=_ping_name(name),
            protocol="udp" if "UDP" in name else "icmp",
            payload_bytes=PING_BYTES,
            interval_ns=round(self._test.step_s * NS_PER_S),
            jitter_ns=0,
            jitter_seed=0,
        )

    def _voip(self, place: int, name: str) -> Stream:
        common = self._common(place, 0, self._total_s)
        start_ns, stop_ns = common["start_ns"], common["stop_ns"]
        return Datagrams(
            **common,
            kind="datagrams",
            ecn="not_ect",
            name=name.lower(),
            payload_bytes=VOIP_BYTES,
            burst=1,
            phases=[Phase(start_ns=start_ns, stop_ns=stop_ns, interval_ns=round(VOIP_INTERVAL_S * NS_PER_S))],
        )

    def _fetches(self, place: int, name: str) -> Stream:
        return Fetches(
            **self._common(place, 0, self._total_s),
            kind="fetches",
            name=name.replace("HTTP latency", "http").replace("::", " "),
            cc="",
            request_bytes=0,
            sizes=sorted({point.bytes for _, point in self._points(name) if point.bytes}),
            interval_ns=round(self._test.step_s * NS_PER_S),
        )

    def tables(self) -> Tables:
        """The tables `tcp`, `ping`, `datagram` and `fetch`, as our records have them."""
        found: dict[str, list[Row]] = {}
        for stream, name in self._series:
            found.setdefault(stream.table, []).extend(self._rows(stream, name))
        return Tables.of({table: pl.DataFrame(every, SCHEMAS[table]) for table, every in found.items() if every})

    def _rows(self, stream: Stream, name: str) -> Iterator[Row]:
        """The rows of a stream's table."""
        if isinstance(stream, Flow):
            return self._tcp_rows(stream, name)
        if isinstance(stream, Datagrams):
            return rows.voice(stream.id, self._voice)
        make = rows.fetches if isinstance(stream, Fetches) else rows.answers
        return make(stream.id, self._points(name))

    def _tcp_rows(self, flow: Flow, name: str) -> Iterator[Row]:
        """Bytes that the receiver has; the sender's samples where ss told of them."""
        samples = self._raw(name, "tcp_rtt")
        yield from chain(rows.received(flow.id, self._points(name), self._delay_s), rows.sent(flow.id, samples))
        retransmitted = self._told(name).tcp_retransmit
        if retransmitted is not None:
            yield {"t_ns": flow.stop_ns, "stream": flow.id, "sender": True, "total_retrans": retransmitted}

    @cached_property
    def _zero_s(self) -> float:
        """The points' time of x = 0, s since 1970."""
        try:
            return datetime.fromisoformat((self._meta.t0 or self._meta.time).replace("Z", "+00:00")).timestamp()
        except ValueError:
            return 0.0

    def _raw(self, name: str, *keys: str) -> list[Timed]:
        """(s since x = 0, point) of the points that tell one of the keys, by time."""
        told = (one for one in self._document.raw_values.get(name, ()) if not one.model_fields_set.isdisjoint(keys))
        return sorted(((one.t - self._zero_s, one) for one in told), key=lambda one: one[0])

    def _points(self, name: str) -> list[Timed]:
        """The points of a series; from the file's steps where it has none."""
        steps = zip(self._document.x_values, self._document.results.get(name, ()), strict=False)
        return self._raw(name, "val") or [(x_s, Point(t=x_s, val=value)) for x_s, value in steps if value is not None]

    @cached_property
    def _voice(self) -> list[Timed]:
        """The packets of a VoIP stream whose one-way delays are known."""
        return [one for one in self._raw(VOICE, "owd_up", "lost") if one[1].seq is not None]


def _is_flow(name: str) -> bool:
    """Not what ss told of another one, "TCP upload::tcp_cwnd"."""
    return name.startswith("TCP ") and not name.rsplit("::", 1)[-1].startswith("tcp_")


def _is_ping(name: str) -> bool:
    return name.startswith("Ping (ms)")


def _is_page(name: str) -> bool:
    return name.startswith("HTTP latency")


def _flow_name(name: str, test: str) -> str:
    """As the tests here call it: "TCP upload BE" is "upload::BE"."""
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
    """As the tests here call it: "Ping (ms) UDP BE" is "udp BE"."""
    rest = name.removeprefix("Ping (ms)").removeprefix("::").strip()
    return re.sub(r"^(ICMP|UDP)\b", lambda match: match[1].lower(), rest)
