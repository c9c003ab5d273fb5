# SPDX-License-Identifier: Apache-2.0
"""`.flent.gz` → a `Run`: a file measured elsewhere stands beside runs of ours, in the same tables and figures.

A TCP series becomes a flow whose receiver's bytes grow by `val` over `dur` (from the last point on where there is no
`dur`), a ping series becomes a probe; both have the names that our own tests give them. What ss told of a sender
becomes its samples. A telephone becomes datagrams, what http-getter did becomes fetches. Series that Flent computed
from others (avg, sum, fairness) and a flood's, of which it has no packets, are left out. The time under load is LENGTH
seconds in the middle of TOTAL_LENGTH, as Flent's tests have it; of a test without TCP series it is all of it.
"""

import bz2
import gzip
import hashlib
import json
import re
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from hourglass.errors import InputError
from hourglass.results import probe
from hourglass.results.records import Tables
from hourglass.results.run import Run
from hourglass.scenario.testkinds import TESTS, VOIP_BYTES, VOIP_INTERVAL_S

NEWEST = 4
OLDEST = 2
"""Versions of the format with points (`raw_values`) in them."""
SUFFIXES = (".flent", ".flent.gz", ".flent.bz2", ".flnt")
MS_NS, S_NS = 1_000_000, 1_000_000_000
COMPUTED = re.compile(r"(avg|sum|fairness|totals)$")
SOCKETS = {"tcp_cwnd": ("snd_cwnd", 1.0), "tcp_rtt": ("rtt", 1e3), "tcp_rtt_var": ("rttvar", 1e3),
           "tcp_pacing_rate": ("pacing_rate", 1e6 / 8), "tcp_delivery_rate": ("delivery_rate", 1e6 / 8)}  # fmt: skip
"""Keys of points from ss → our column and what one of Flent's units is in it."""

Point = dict[str, Any]


def is_flent(path: Path) -> bool:
    """Whether the name is that of a Flent file."""
    return path.name.endswith(SUFFIXES)


def load(path: Path) -> "FlentRun":
    """The file as a run. Raises `InputError` when it is none that can be read."""
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
    return FlentRun(path, data, hashlib.sha256(content).hexdigest())


class FlentRun(Run):
    """A Flent file as a run: the engine is `flent`, there is no seed, and what Flent does not measure is empty."""

    def __init__(self, path: Path, data: dict[str, Any], digest: str) -> None:
        self.path = path
        self._data = data
        self._meta: dict[str, Any] = data["metadata"]
        self._digest = digest

    @cached_property
    def info(self) -> dict[str, Any]:
        """As `run.json`."""
        release = self._meta.get("KERNEL_RELEASE") or "unknown"
        failed = self._meta.get("FAILED_RUNNERS") or 0
        return {
            "status": "complete",
            "engine": "flent",
            "kernel": {"name": release, "release": release, "key": ""},
            "seed": None,
            "virtual_s": self._total_s,
            "wall_s": self._total_s,
            "digest": self._digest,
            "warnings": [f"{failed} of Flent's runners failed"] if failed else [],
        }

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """As `scenario.json`: what the file says of the test; testbed and stack are not known."""
        meta = self._meta
        host = str(meta.get("HOST") or "server")
        test = {
            "name": str(meta.get("NAME") or "unknown"),
            "client": str(meta.get("LOCAL_HOST") or "client"),
            "server": host,
            "hosts": meta.get("HOSTS") or [host],
            "length": self._length_s,
            "delay": self._delay_s,
            "step": float(meta.get("STEP_SIZE") or 0.2),
            "parameters": meta.get("TEST_PARAMETERS") or {},
        }
        title = str(meta.get("TITLE") or meta.get("NAME") or self.path.name)
        return {"name": title, "description": str(meta.get("NOTE") or ""), "kernel": meta.get("KERNEL_RELEASE"),
                "seed": None, "testbed": {}, "stack": {}, "test": test}  # fmt: skip

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

    @cached_property
    def plan(self) -> dict[str, Any]:
        """As `plan.json`, of which readers of a run need flows and probes."""
        test = self.scenario["test"]
        ends = {"client": test["client"], "server": test["server"], "address": "", "port": 0}
        start, end = round(self._delay_s * S_NS), round(self._total_s * S_NS)
        stop = start + round(self._length_s * S_NS)
        flows = []
        for place, name in enumerate(self._tcp):
            told = (self._meta.get("SERIES_META") or {}).get(name) or {}
            upload = "download" not in name
            flows.append(ends | {
                "id": place, "name": _flow_name(name, test["name"]), "cc": told.get("CONG_CONTROL") or "", "dscp": 0,
                "sender": test["client"] if upload else test["server"], "start_ns": start, "stop_ns": stop,
            })  # fmt: skip
        probes = [
            ends | {"id": place, "name": _ping_name(name), "kind": "udp" if "UDP" in name else "icmp", "dscp": 0,
                    "payload_bytes": 56, "start_ns": 0, "stop_ns": end, "interval_ns": round(test["step"] * S_NS),
                    "jitter_ns": 0}
            for place, name in enumerate(self._pings)
        ]  # fmt: skip
        span = {"dscp": 0, "start_ns": 0, "stop_ns": end}
        datagrams = [ends | span | {"id": len(probes), "name": "voip", "payload_bytes": VOIP_BYTES,
                                    "interval_ns": round(VOIP_INTERVAL_S * S_NS)}] if self._voice else []  # fmt: skip
        fetches = [
            ends | span | {"id": place, "name": name.replace("HTTP latency", "http").replace("::", " "), "cc": "",
                           "request_bytes": 0, "interval_ns": 0, "sizes": sorted({_size(one) for _, one in points})}
            for place, (name, points) in enumerate(self._pages.items())
        ]  # fmt: skip
        return {"version": 1, "end_ns": end, "nodes": list(dict.fromkeys([test["client"], test["server"]])),
                "setup": [], "flows": flows, "probes": probes, "datagrams": datagrams,
                "fetches": fetches}  # fmt: skip

    @cached_property
    def _voice(self) -> list[tuple[float, Point]]:
        """The packets of a telephone whose one-way delays are known."""
        points = [one for one in (self._data.get("raw_values") or {}).get("VoIP") or [] if "seq" in one]
        found = [(float(one["t"]) - self._zero_s, one) for one in points if "owd_up" in one or one.get("lost")]
        return sorted(found, key=lambda one: one[0])

    @cached_property
    def _pages(self) -> dict[str, list[tuple[float, Point]]]:
        """The fetches, at the time of completion."""
        return {name: self._points(name) for name in self._names if name.startswith("HTTP latency")}

    @cached_property
    def tables(self) -> Tables:
        """The tables `tcp`, `ping`, `datagram` and `fetch`, as our records have them."""
        tcp = [row for place, name in enumerate(self._tcp) for row in self._tcp_rows(place, name)]
        ping = [row for place, name in enumerate(self._pings) for row in self._ping_rows(place, name)]
        first = len(self._pings)
        voice = [{"t_ns": round(t_s * S_NS), "datagram": first, "seq": one["seq"], "refused": False,
                  "owd_ns": round(one["owd_up"] * MS_NS) if "owd_up" in one else None}
                 for t_s, one in self._voice]  # fmt: skip
        pages = [{"t_ns": round(t_s * S_NS - one["val"] * MS_NS), "fetch": place, "seq": seq, "bytes": _size(one),
                  "first_ns": None, "done_ns": round(one["val"] * MS_NS)}
                 for place, points in enumerate(self._pages.values())
                 for seq, (t_s, one) in enumerate(points)]  # fmt: skip
        made = {"tcp": pl.DataFrame(tcp, TCP), "ping": pl.DataFrame(ping, PING),
                "datagram": pl.DataFrame(voice, probe.SCHEMAS["datagram"]),
                "fetch": pl.DataFrame(pages, probe.SCHEMAS["fetch"])}  # fmt: skip
        return Tables.of({name: table for name, table in made.items() if not table.is_empty()})

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

    def _tcp_rows(self, flow: int, name: str) -> list[dict[str, Any]]:
        """Bytes that the receiver has; the sender's samples where ss told of them."""
        rows: list[dict[str, Any]] = []
        received, last_s = 0.0, self._delay_s
        for t_s, point in self._points(name):
            lasted_s = float(point.get("dur") or max(0.0, t_s - last_s))
            begins_s = t_s - lasted_s
            if not rows or begins_s > last_s + 1e-9:
                rows.append(_received(flow, begins_s, received))
            received += float(point["val"] or 0.0) * 1e6 / 8 * lasted_s
            rows.append(_received(flow, t_s, received))
            last_s = t_s
        for t_s, point in self._points(name, "tcp_rtt") if self._has_sockets(name) else []:
            told = {ours: round(float(point[key]) * unit) for key, (ours, unit) in SOCKETS.items()
                    if point.get(key) is not None}  # fmt: skip
            rows.append({"t_ns": round(t_s * S_NS), "flow": flow, "sender": True, **told})
        retransmitted = ((self._meta.get("SERIES_META") or {}).get(name) or {}).get("TCP_RETRANSMIT")
        if retransmitted is not None:
            stop_ns = round((self._delay_s + self._length_s) * S_NS)
            rows.append({"t_ns": stop_ns, "flow": flow, "sender": True, "total_retrans": int(retransmitted)})
        return rows

    def _has_sockets(self, name: str) -> bool:
        return any("tcp_rtt" in point for point in (self._data.get("raw_values") or {}).get(name) or [])

    def _ping_rows(self, probe: int, name: str) -> list[dict[str, Any]]:
        """One row a packet. A gap in the sequence numbers is as many lost ones, spread over the gap."""
        rows: list[dict[str, Any]] = []
        for place, (t_s, point) in enumerate(self._points(name)):
            value, seq = point.get("val"), int(point.get("seq", place))
            t_ns = round(t_s * S_NS)
            if rows and seq > rows[-1]["seq"] + 1:
                before = rows[-1]
                apart = (t_ns - before["t_ns"]) // (seq - before["seq"])
                rows += [_answer(before["t_ns"] + apart * (missing - before["seq"]), probe, missing, None)
                         for missing in range(before["seq"] + 1, seq)]  # fmt: skip
            lost = point.get("lost") or value is None
            row = _answer(t_ns, probe, seq, None if lost else value)
            rows.append(row | {f"{key}_ns": round(float(point[key]) * MS_NS) for key in ("owd_up", "owd_down")
                               if point.get(key) is not None})  # fmt: skip
        return rows


TCP = {"t_ns": pl.Int64, "flow": pl.UInt16, "sender": pl.Boolean, "rtt": pl.UInt32, "rttvar": pl.UInt32,
       "snd_cwnd": pl.UInt32, "pacing_rate": pl.UInt64, "delivery_rate": pl.UInt64, "bytes_acked": pl.UInt64,
       "bytes_received": pl.UInt64, "total_retrans": pl.UInt32}  # fmt: skip
PING = {"t_ns": pl.Int64, "probe": pl.UInt16, "seq": pl.UInt32, "rtt_ns": pl.Int64, "owd_up_ns": pl.Int64,
        "owd_down_ns": pl.Int64}  # fmt: skip


def _received(flow: int, t_s: float, received: float) -> dict[str, Any]:
    return {"t_ns": round(t_s * S_NS), "flow": flow, "sender": False, "bytes_received": round(received)}


def _answer(t_ns: int, probe: int, seq: int, ms: float | None) -> dict[str, Any]:
    return {"t_ns": t_ns, "probe": probe, "seq": seq, "rtt_ns": None if ms is None else round(ms * MS_NS)}


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
