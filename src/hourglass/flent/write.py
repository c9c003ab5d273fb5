# SPDX-License-Identifier: Apache-2.0
"""Run → `.flent.gz`. The same run always gives the same bytes.

Test time 0 is Flent's T0, told as 1970-01-01T00:00:00Z: a run in virtual time has no date.
"""

import gzip
import json
import re
from pathlib import Path

import numpy as np

from hourglass.contract.plan import Datagrams, Flow
from hourglass.errors import InputError
from hourglass.flent import meta, points
from hourglass.flent.form import NEWEST, Document, Point, SeriesMeta
from hourglass.flent.meta import Told
from hourglass.flent.points import Points, Steps
from hourglass.results import traffic
from hourglass.results.connections import Connection
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, Window
from hourglass.scenario.testkinds import TESTS

DIGEST_CHARS = 8


def stem(run: Recording) -> str:
    """NAME-TIME.TITLE, Flent's convention; behind the title, what tells this run from others of its name."""
    title = re.sub(r"[^A-Za-z0-9-]+", "_", run.name)
    time = meta.EPOCH.replace(":", "").rstrip("Z")
    return f"{test(run)}-{time}.{title}-{run.info.digest[:DIGEST_CHARS]}"


def file_name(run: Recording) -> str:
    """The name of the run's Flent file."""
    return f"{stem(run)}.flent.gz"


def write(run: Recording, folder: Path) -> Path:
    """Writes the run's file into `folder`; the path of it."""
    place = folder / file_name(run)
    text = json.dumps(document(run).told(), indent=2, sort_keys=True, allow_nan=False)
    place.write_bytes(gzip.compress(text.encode(), mtime=0))
    return place


class _File:
    """What is in the file so far; `x_s`: its steps, s."""

    def __init__(self, run: Recording) -> None:
        self.step_s = run.test.step_s
        self.x_s = np.arange(0, run.end_ns / NS_PER_S, self.step_s)
        self.raw: dict[str, Points] = {}
        self.meta: dict[str, SeriesMeta] = {}
        self.results: dict[str, Steps] = {}

    def add(self, name: str, found: Points, told: Told) -> None:
        """A series with its points."""
        self.raw[name], self.meta[name] = found, SeriesMeta.model_validate(told)
        self.results[name] = self.resampled(found)

    def resampled(self, found: Points, key: str = "val") -> Steps:
        return points.resampled(found, key, self.x_s, self.step_s)


def document(run: Recording) -> Document:
    """The file. Raises InputError for a run that is no Hourglass run, or of a test that Flent does not have."""
    kind = TESTS.get(run.test.name)
    if kind is None or run.info.elsewhere:
        raise InputError("RUN", str(run.path), "is no run of Hourglass: it cannot be exported as one")
    if not kind.in_flent and run.test.name != NOTHING:
        raise InputError("RUN", str(run.path), f"Flent has no test {run.test.name}: export it as csv or parquet")
    file = _File(run)
    for flow in run.flows:
        _flow(file, run, flow, kind.flow_series(flow.name))
    for ping in run.pings:
        found = points.pings(run, ping)
        file.add(kind.ping_series(ping.name), found, meta.of_ping(ping, found, len(file.meta)))
    for stream in run.datagrams:
        (_voice if stream.name == traffic.VOICE else _flood)(file, run, stream)
    for client in run.fetches:
        found = points.fetches(run, client)
        told: Told = {"UNITS": "ms", "RUNNER": "HourglassFetches", "IDX": len(file.meta), **meta.values(found)}
        file.add(client.name.replace("http", "HTTP latency").replace("y ", "y::"), found, told)
    for opened in run.connections:
        _connection(file, run, opened)
    return Document(
        version=NEWEST,
        x_values=[round(float(x), 9) for x in file.x_s],
        results=file.results,
        raw_values=file.raw,
        metadata=meta.of_run(run, test(run), kind.parameters, file.meta, file_name(run)),
    )


NOTHING = "none"
"""The test of programs alone."""
OF_PROGRAMS = "rrul_be"
"""What Flent is told that it was: it draws uploads and downloads of any names."""


def test(run: Recording) -> str:
    """The test by which Flent draws the run."""
    return OF_PROGRAMS if run.test.name == NOTHING else run.test.name


def _connection(file: _File, run: Recording, opened: Connection) -> None:
    """TCP of programs: the goodput of each way that has data, of those that lasted two samples."""
    for way, sender in (("upload", True), ("download", False)):
        found = points.received(run, opened, sender, file.step_s)
        if any(point.val for point in found):
            file.add(f"TCP {way}::{opened.name}", found, meta.of_connection(opened, way == "upload", len(file.meta)))


FLOOD = "udp upload"
"""The stream that Flent's own udp_flood has; others have their names."""


def _flow(file: _File, run: Recording, flow: Flow, name: str) -> None:
    """The goodput, and what `ss` tells beside it."""
    file.add(name, points.goodput(run, flow, file.step_s), meta.of_flow(run, flow, len(file.meta)))
    sockets = points.sockets(run, flow, file.step_s)
    for key in points.SOCKET_KEYS if sockets else ():
        file.results[f"{name}::{key}"] = file.resampled(sockets, key)
    file.raw[name] = sorted(file.raw[name] + sockets, key=lambda point: point.t)


def _flood(file: _File, run: Recording, stream: Datagrams) -> None:
    """MEAN_VALUE is the mean from start to stop."""
    whole = Window(stream.start_ns, stream.stop_ns)
    told = meta.of_stream(stream, [], len(file.meta), "Mbits/s")
    first, last = traffic.arrived(run, stream, np.array([whole.start_ns, whole.end_ns], dtype=np.float64))
    mean: Told = {"MEAN_VALUE": float(last - first) * 8 / 1e6 / whole.length_s, "ELAPSED_TIME": whole.length_s}
    file.add(
        "UDP upload" if stream.name == FLOOD else f"UDP {stream.name}",
        points.flood(run, stream, file.step_s),
        told | mean,
    )


def _voice(file: _File, run: Recording, stream: Datagrams) -> None:
    """The packets, and delay, jitter, loss and bit rate of them in each step."""
    found = points.voice(run, stream)
    told = meta.of_stream(stream, found, len(file.meta), "ms")
    file.raw["VoIP"], file.meta["VoIP"] = found, SeriesMeta.model_validate(told | meta.values(found))
    rates = [Point(t=one.t, val=1000 * (one.val or 0)) for one in points.flood(run, stream, file.step_s)]
    jitter = [Point(t=one.t, val=abs(one.ipdv_up)) for one in found if one.ipdv_up is not None]
    lost = [one.t for one in found if one.lost]
    file.results |= {
        "VoIP::bitrate": file.resampled(rates),
        "VoIP::delay": file.resampled(found),
        "VoIP::jitter": file.resampled(jitter),
        "VoIP::loss": points.counted(lost, file.x_s, file.step_s),
    }
    file.meta["VoIP::delay"] = SeriesMeta.model_validate({"UNITS": "ms"} | meta.values(found))
