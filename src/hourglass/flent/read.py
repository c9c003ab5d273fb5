# SPDX-License-Identifier: Apache-2.0
"""`.flent.gz` → a `Recording`: a file measured elsewhere stands beside runs of ours, in the same tables and figures.

A TCP series becomes a flow whose receiver's bytes grow by `val` over `dur` (from the last point on where there is no
`dur`), a ping series becomes a ping; both have the names that our own tests give them. What ss told of a sender
becomes its samples. VoIP becomes datagrams, what http-getter did becomes fetches. Series that Flent computed
from others (avg, sum, fairness) and a flood's, of which it has no packets, are left out. The time under load is LENGTH
seconds in the middle of TOTAL_LENGTH, as Flent's tests have it; of a test without TCP series it is all of it.
"""

import bz2
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from hourglass.contract.plan import Datagrams, Fetches, Flow, Ping, Stream
from hourglass.contract.records import SCHEMAS
from hourglass.contract.run import SCHEMA, Kernel, RunInfo
from hourglass.contract.summary import Summary
from hourglass.errors import InputError
from hourglass.results.flat import flat
from hourglass.results.recording import Experiment, Recording, TestInfo, Traffic
from hourglass.results.records import Tables
from hourglass.results.series import NS_PER_MS, NS_PER_S
from hourglass.results.summarize import summarize
from hourglass.scenario.testkinds import TESTS, VOIP_BYTES, VOIP_INTERVAL_S

NEWEST = 4
OLDEST = 2
"""Versions of the format with points (`raw_values`) in them."""
SUFFIXES = (".flent", ".flent.gz", ".flent.bz2", ".flnt")
UNKNOWN = "0.0.0.0"
"""The address of a server: files have its name only."""
PING_BYTES = 56
COMPUTED = re.compile(r"(avg|sum|fairness|totals)$")
SOCKETS = {"tcp_cwnd": ("snd_cwnd", 1.0), "tcp_rtt": ("rtt", 1e3), "tcp_rtt_var": ("rttvar", 1e3),
           "tcp_pacing_rate": ("pacing_rate", 1e6 / 8), "tcp_delivery_rate": ("delivery_rate", 1e6 / 8)}  # fmt: skip
"""Keys of points from ss → our column and what one of Flent's units is in it."""

Point = dict[str, Any]
Row = dict[str, int | bool | None]


def is_flent(path: Path) -> bool:
    """Whether the name is that of a Flent file."""
    return path.name.endswith(SUFFIXES)


def load(path: Path) -> Recording:
    """The file as a recording. Raises `InputError` when it is none that can be read."""
    try:
        content = path.read_bytes()
        packed = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".flnt": bz2.decompress}.get(path.suffix)
        data = json.loads(packed(content) if packed else content)
    except FileNotFoundError:
        raise InputError("run", str(path), "there is no such file") from None
    except (OSError, EOFError, ValueError) as error:
        raise InputError("run", str(path), f"is no Flent file: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("metadata"), dict):
        raise InputError("run", str(path), "is no Flent file: it has no metadata")
    version = data.get("version")
    if not isinstance(version, int) or not OLDEST <= version <= NEWEST:
        raise InputError("run", str(path), f"has version {version}; versions {OLDEST} to {NEWEST} are read")
    return Recording(FlentFile(path, data, hashlib.sha256(content).hexdigest()))


class FlentFile:
    """A Flent file as the source of a recording: the engine is `flent`, there is no seed, and what Flent does not
    measure is empty."""

    def __init__(self, path: Path, data: dict[str, Any], digest: str) -> None:
        self.path = path
        self._data = data
        self._meta: dict[str, Any] = data["metadata"]
        self._digest = digest

    def info(self) -> RunInfo:
        """Wall and virtual time are the same."""
        release = str(self._meta.get("KERNEL_RELEASE") or "unknown")
        failed = self._meta.get("FAILED_RUNNERS") or 0
        return RunInfo(
            schema=SCHEMA,
            status="complete",
            engine="flent",
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
        name = str(meta.get("TITLE") or meta.get("NAME") or self.path.name)
        told = {"name": test.name, "client": test.client, "server": test.server, "length": test.length_s,
                "delay": test.delay_s, "step": test.step_s, "parameters": test.parameters}  # fmt: skip
        settings = dict(flat({"name": name, "kernel": meta.get("KERNEL_RELEASE"), "test": told}))
        return Experiment(name, str(meta.get("NOTE") or ""), test, settings)

    @cached_property
    def _test(self) -> TestInfo:
        meta = self._meta
        host = str(meta.get("HOST") or "server")
        return TestInfo(
            name=str(meta.get("NAME") or "unknown"),
            client=str(meta.get("LOCAL_HOST") or "client"),
            server=host,
            hosts=tuple(map(str, meta.get("HOSTS") or [host])),
            length_s=self._length_s,
            delay_s=self._delay_s,
            step_s=float(meta.get("STEP_SIZE") or 0.2),
            parameters={key: str(value) for key, value in (meta.get("TEST_PARAMETERS") or {}).items()},
        )

    def scenario(self) -> None:
        return None

    def summary(self, recording: Recording) -> Summary:
        return summarize(recording)

    @cached_property
    def _length_s(self) -> float:
        return float(self._meta.get("LENGTH") or self._total_s)

    @cached_property
    def _total_s(self) -> float:
        x_values = self._data.get("x_values") or [0]
        return float(self._meta.get("TOTAL_LENGTH") or max(x_values))

    @cached_property
    def _delay_s(self) -> float:
        return max(0.0, (self._total_s - self._length_s) / 2) if self._tcp else 0.0

    @cached_property
    def _names(self) -> list[str]:
        known = dict.fromkeys([*(self._data.get("results") or {}), *(self._data.get("raw_values") or {})])
        computed = self._meta.get("SERIES_META") or {}
        return [
            name for name in known if not COMPUTED.search(name) and not (computed.get(name) or {}).get("COMPUTED_LATE")
        ]

    @cached_property
    def _tcp(self) -> list[str]:
        return sorted(name for name in self._names if name.startswith("TCP ") and not _of_socket(name))

    @cached_property
    def _pings(self) -> list[str]:
        found = (name for name in self._names if name.startswith("Ping (ms)"))
        return sorted(found, key=lambda name: ("ICMP" not in name, name))

    def traffic(self) -> Traffic:
        """Two nodes and what went between them."""
        nodes = tuple(dict.fromkeys([self._test.client, self._test.server]))
        return Traffic(round(self._total_s * NS_PER_S), nodes, tuple(self._streams), paths=(), radios=())

    @cached_property
    def _streams(self) -> list[Stream]:
        """One for each series that is read, in the order of `tables`."""
        makers = [
            *((self._flow, name) for name in self._tcp),
            *((self._ping, name) for name in self._pings),
            *((self._voip, name) for name in (["VoIP"] if self._voice else [])),
            *((self._fetches, name) for name in self._pages),
        ]
        return [make(place, name) for place, (make, name) in enumerate(makers)]

    def _common(self, place: int, start_s: float, stop_s: float) -> dict[str, Any]:
        """What every stream has."""
        return {"id": place, "client": self._test.client, "server": self._test.server, "address": UNKNOWN, "port": 0,
                "dscp": 0, "start_ns": round(start_s * NS_PER_S), "stop_ns": round(stop_s * NS_PER_S)}  # fmt: skip

    def _flow(self, place: int, name: str) -> Stream:
        told = (self._meta.get("SERIES_META") or {}).get(name) or {}
        return Flow(
            **self._common(place, self._delay_s, self._delay_s + self._length_s),
            kind="flow",
            name=_flow_name(name, self._test.name),
            sender=self._test.server if "download" in name else self._test.client,
            cc=str(told.get("CONG_CONTROL") or ""),
            backend="socket",
        )

    def _ping(self, place: int, name: str) -> Stream:
        return Ping(
            **self._common(place, 0, self._total_s),
            kind="ping",
            name=_ping_name(name),
            protocol="udp" if "UDP" in name else "icmp",
            payload_bytes=PING_BYTES,
            interval_ns=round(self._test.step_s * NS_PER_S),
            jitter_ns=0,
            jitter_seed=0,
        )

    def _voip(self, place: int, name: str) -> Stream:
        return Datagrams(
            **self._common(place, 0, self._total_s),
            kind="datagrams",
            name=name.lower(),
            payload_bytes=VOIP_BYTES,
            interval_ns=round(VOIP_INTERVAL_S * NS_PER_S),
        )

    def _fetches(self, place: int, name: str) -> Stream:
        return Fetches(
            **self._common(place, 0, self._total_s),
            kind="fetches",
            name=name.replace("HTTP latency", "http").replace("::", " "),
            cc="",
            request_bytes=0,
            sizes=sorted({_size(point) for _, point in self._pages[name]} - {0}),
            interval_ns=round(self._test.step_s * NS_PER_S),
        )

    @cached_property
    def _voice(self) -> list[tuple[float, Point]]:
        """The packets of a VoIP stream whose one-way delays are known."""
        points = [one for one in (self._data.get("raw_values") or {}).get("VoIP") or [] if "seq" in one]
        found = [(float(one["t"]) - self._zero_s, one) for one in points if "owd_up" in one or one.get("lost")]
        return sorted(found, key=lambda one: one[0])

    @cached_property
    def _pages(self) -> dict[str, list[tuple[float, Point]]]:
        """The fetches, at the time of completion."""
        return {name: self._points(name) for name in self._names if name.startswith("HTTP latency")}

    def tables(self) -> Tables:
        """The tables `tcp`, `ping`, `datagram` and `fetch`, as our records have them."""
        rows = {
            "tcp": [row for place, name in self._places("flow") for row in self._tcp_rows(place, name)],
            "ping": [row for place, name in self._places("ping") for row in self._ping_rows(place, name)],
            "datagram": [row for place, _ in self._places("datagrams") for row in self._voice_rows(place)],
            "fetch": [row for place, name in self._places("fetches") for row in self._page_rows(place, name)],
        }
        return Tables.of({name: pl.DataFrame(found, SCHEMAS[name]) for name, found in rows.items() if found})

    def _places(self, kind: str) -> Iterator[tuple[int, str]]:
        """(stream, series) of a kind."""
        series = [*self._tcp, *self._pings, *(["VoIP"] if self._voice else []), *self._pages]
        return ((one.id, name) for one, name in zip(self._streams, series, strict=True) if one.kind == kind)

    def _voice_rows(self, stream: int) -> Iterator[Row]:
        for t_s, point in self._voice:
            owd_ns = round(point["owd_up"] * NS_PER_MS) if "owd_up" in point else None
            yield {"t_ns": round(t_s * NS_PER_S), "stream": stream, "seq": point["seq"], "owd_ns": owd_ns,
                   "refused": False}  # fmt: skip

    def _page_rows(self, stream: int, name: str) -> Iterator[Row]:
        for seq, (t_s, point) in enumerate(self._pages[name]):
            done_ns = round(point["val"] * NS_PER_MS)
            yield {"t_ns": round(t_s * NS_PER_S - point["val"] * NS_PER_MS), "stream": stream, "seq": seq,
                   "bytes": _size(point), "first_ns": None, "done_ns": done_ns}  # fmt: skip

    @cached_property
    def _zero_s(self) -> float:
        """The points' time of x = 0, s since 1970."""
        told = self._meta.get("T0") or self._meta.get("TIME")
        try:
            return datetime.fromisoformat(str(told).replace("Z", "+00:00")).timestamp()
        except ValueError:
            return 0.0

    def _points(self, name: str, key: str = "val") -> list[tuple[float, Point]]:
        """(s since x = 0, point) by time; from the file's steps where it has no points."""
        raw = [point for point in (self._data.get("raw_values") or {}).get(name) or [] if key in point]
        if raw:
            found = [(float(point["t"]) - self._zero_s, point) for point in raw]
            return sorted(found, key=lambda one: one[0])
        values = (self._data.get("results") or {}).get(name) or []
        return [
            (float(x), {"val": value})
            for x, value in zip(self._data["x_values"], values, strict=False)
            if value is not None
        ]

    def _tcp_rows(self, stream: int, name: str) -> list[Row]:
        """Bytes that the receiver has; the sender's samples where ss told of them."""
        rows: list[Row] = []
        received, last_s = 0.0, self._delay_s
        for t_s, point in self._points(name):
            lasted_s = float(point.get("dur") or max(0.0, t_s - last_s))
            begins_s = t_s - lasted_s
            if not rows or begins_s > last_s + 1e-9:
                rows.append(_received(stream, begins_s, received))
            received += float(point["val"] or 0.0) * 1e6 / 8 * lasted_s
            rows.append(_received(stream, t_s, received))
            last_s = t_s
        for t_s, point in self._points(name, "tcp_rtt") if self._has_sockets(name) else []:
            told = {ours: round(float(point[key]) * unit) for key, (ours, unit) in SOCKETS.items()
                    if point.get(key) is not None}  # fmt: skip
            rows.append({"t_ns": round(t_s * NS_PER_S), "stream": stream, "sender": True, **told})
        retransmitted = ((self._meta.get("SERIES_META") or {}).get(name) or {}).get("TCP_RETRANSMIT")
        if retransmitted is not None:
            stop_ns = round((self._delay_s + self._length_s) * NS_PER_S)
            rows.append({"t_ns": stop_ns, "stream": stream, "sender": True, "total_retrans": int(retransmitted)})
        return rows

    def _has_sockets(self, name: str) -> bool:
        return any("tcp_rtt" in point for point in (self._data.get("raw_values") or {}).get(name) or [])

    def _ping_rows(self, stream: int, name: str) -> list[Row]:
        """One row a packet. A gap in the sequence numbers is as many lost ones, spread over the gap."""
        rows: list[Row] = []
        last_ns, last = 0, -1
        for place, (t_s, point) in enumerate(self._points(name)):
            value, seq = point.get("val"), int(point.get("seq", place))
            t_ns = round(t_s * NS_PER_S)
            if rows and seq > last + 1:
                apart = (t_ns - last_ns) // (seq - last)
                rows += [_answer(last_ns + apart * (lost - last), stream, lost, None) for lost in range(last + 1, seq)]
            last_ns, last = t_ns, seq
            lost = point.get("lost") or value is None
            row = _answer(t_ns, stream, seq, None if lost else value)
            rows.append(row | {f"{key}_ns": round(float(point[key]) * NS_PER_MS) for key in ("owd_up", "owd_down")
                               if point.get(key) is not None})  # fmt: skip
        return rows


def _received(stream: int, t_s: float, received: float) -> Row:
    return {"t_ns": round(t_s * NS_PER_S), "stream": stream, "sender": False, "bytes_received": round(received)}


def _answer(t_ns: int, stream: int, seq: int, ms: float | None) -> Row:
    return {"t_ns": t_ns, "stream": stream, "seq": seq, "rtt_ns": None if ms is None else round(ms * NS_PER_MS)}


def _size(point: Point) -> int:
    """Bytes of a fetch: our own files tell them, Flent's do not."""
    return int(point.get("bytes", 0))


def _of_socket(name: str) -> bool:
    """Whether the series is what ss told of another one: "TCP upload::tcp_cwnd"."""
    return name.rsplit("::", 1)[-1].startswith("tcp_")


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
