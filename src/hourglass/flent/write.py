# SPDX-License-Identifier: Apache-2.0
"""Exports a run as `.flent.gz`. The same run always gives the same bytes.

Test time 0 is Flent's T0, written as 1970-01-01T00:00:00Z, because a run in virtual time has no date.
"""

import gzip
import json
import re
from pathlib import Path

import numpy as np

from hourglass import files
from hourglass.contract.plan import DatagramStream, FlowStream
from hourglass.errors import InputError
from hourglass.flent import meta, raw_values
from hourglass.flent.document import NEWEST, Document, Point, SeriesMeta
from hourglass.flent.meta import SeriesValues
from hourglass.flent.raw_values import Points, Steps
from hourglass.results import traffic
from hourglass.results.connections import Connection
from hourglass.results.recording import Recording
from hourglass.results.run_files import flent_stem
from hourglass.results.series import NS_PER_S, Window
from hourglass.scenario.testkinds import TESTS

DIGEST_CHARS = 8


def stem(run: Recording) -> str:
    """Return NAME-TIME.TITLE, Flent's convention, with the run's digest after the title to tell runs apart; for a Flent
    file, its name."""
    if run.info.elsewhere:
        return flent_stem(run.path)
    title = re.sub(r"[^A-Za-z0-9-]+", "_", run.name)
    time = meta.EPOCH.replace(":", "").rstrip("Z")
    name = f"{flent_test(run)}-{time}.{title}-{run.info.digest[:DIGEST_CHARS]}"
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)  # it may be a stranger's run: no folders


def file_name(run: Recording) -> str:
    """Return the name of the run's Flent file."""
    return f"{stem(run)}.flent.gz"


def write(run: Recording, folder: Path) -> Path:
    """Write the run's file into `folder` and return its path."""
    path = folder / file_name(run)
    text = json.dumps(document(run).to_data(), indent=2, sort_keys=True, allow_nan=False)
    with files.output(path, "the Flent file") as temporary:
        temporary.write_bytes(gzip.compress(text.encode(), mtime=0))
    return path


class _FlentFile:
    """The content of the file so far. `x_s`: its steps, s."""

    def __init__(self, run: Recording) -> None:
        self.step_s = run.test.step_s
        self.x_s = np.arange(0, run.end_ns / NS_PER_S, self.step_s)
        self.raw: dict[str, Points] = {}
        self.meta: dict[str, SeriesMeta] = {}
        self.results: dict[str, Steps] = {}

    def add(self, name: str, points: Points, values: SeriesValues) -> None:
        """Add a series with its points."""
        self.raw[name], self.meta[name] = points, SeriesMeta.model_validate(values)
        self.results[name] = self.resample(points)

    def resample(self, points: Points, key: str = "val") -> Steps:
        return raw_values.resample(points, key, self.x_s, self.step_s)


def document(run: Recording) -> Document:
    """Return the file. Raises `InputError` if Hourglass did not make the run, or if Flent lacks its test."""
    kind = TESTS.get(run.test.name)
    if kind is None or run.info.elsewhere or run.scenario is None:
        raise InputError("RUN", str(run.path), "not a run of Hourglass; export a Hourglass run directory")
    if not kind.in_flent and run.test.name != NO_TEST:
        raise InputError("RUN", str(run.path), f"Flent has no test {run.test.name}; export it as csv or parquet")
    file = _FlentFile(run)
    for flow in run.flows:
        _add_flow(file, run, flow, kind.flow_series(flow.name))
    for ping in run.pings:
        samples = raw_values.pings(run, ping)
        file.add(kind.ping_series(ping.name), samples, meta.ping_meta(ping, samples, len(file.meta)))
    for stream in run.datagrams:
        (_add_voice if stream.name == traffic.VOICE else _add_flood)(file, run, stream)
    for client in run.fetches:
        samples = raw_values.fetches(run, client)
        values: SeriesValues = {
            "UNITS": "ms",
            "RUNNER": "HourglassFetches",
            "IDX": len(file.meta),
            **meta.value_statistics(samples),
        }
        file.add(client.name.replace("http", "HTTP latency").replace("y ", "y::"), samples, values)
    for connection in run.connections:
        _add_connection(file, run, connection)
    return Document(
        version=NEWEST,
        x_values=[round(float(x), 9) for x in file.x_s],
        results=file.results,
        raw_values=file.raw,
        metadata=meta.run_metadata(run, flent_test(run), kind.parameters, file.meta, file_name(run)),
    )


NO_TEST = "none"
"""The test of scenarios that only have programs."""
TEST_OF_PROGRAMS = "rrul_be"
"""The test that the file states for them: Flent plots its uploads and downloads with any names."""


def flent_test(run: Recording) -> str:
    """Return the test with which Flent plots the run."""
    return TEST_OF_PROGRAMS if run.test.name == NO_TEST else run.test.name


def _add_connection(file: _FlentFile, run: Recording, connection: Connection) -> None:
    """Add a program's TCP connection: the goodput of each direction with data, if it lasted two samples."""
    for direction, sender in (("upload", True), ("download", False)):
        points = raw_values.received(run, connection, sender, file.step_s)
        if any(point.val for point in points):
            file.add(
                f"TCP {direction}::{connection.name}",
                points,
                meta.connection_meta(connection, direction == "upload", len(file.meta)),
            )


FLOOD = "udp upload"
"""The stream of Flent's test udp_flood. Its series has a fixed name."""


def _add_flow(file: _FlentFile, run: Recording, flow: FlowStream, name: str) -> None:
    """Add the goodput of a flow, and the socket values that `ss` would report."""
    file.add(name, raw_values.goodput(run, flow, file.step_s), meta.flow_meta(run, flow, len(file.meta)))
    sockets = raw_values.sockets(run, flow, file.step_s)
    for key in raw_values.SOCKET_KEYS if sockets else ():
        file.results[f"{name}::{key}"] = file.resample(sockets, key)
    file.raw[name] = sorted(file.raw[name] + sockets, key=lambda point: point.t)


def _add_flood(file: _FlentFile, run: Recording, stream: DatagramStream) -> None:
    """Add a datagram stream. MEAN_VALUE is the mean from start to stop."""
    window = Window(stream.start_ns, stream.stop_ns)
    values = meta.datagram_meta(stream, [], len(file.meta), "Mbits/s")
    first, last = traffic.arrived(run, stream, np.array([window.start_ns, window.end_ns], dtype=np.float64))
    mean_values: SeriesValues = {
        "MEAN_VALUE": window.per_s(float(last - first) * 8 / 1e6) or 0.0,
        "ELAPSED_TIME": window.length_s,
    }
    file.add(
        "UDP upload" if stream.name == FLOOD else f"UDP {stream.name}",
        raw_values.flood(run, stream, file.step_s),
        values | mean_values,
    )


def _add_voice(file: _FlentFile, run: Recording, stream: DatagramStream) -> None:
    """Add a VoIP stream: packets, and delay, jitter, loss and bit rate at each step."""
    packets = raw_values.voice(run, stream)
    values = meta.datagram_meta(stream, packets, len(file.meta), "ms")
    file.raw["VoIP"], file.meta["VoIP"] = packets, SeriesMeta.model_validate(values | meta.value_statistics(packets))
    rates = [Point(t=point.t, val=1000 * (point.val or 0)) for point in raw_values.flood(run, stream, file.step_s)]
    jitter = [Point(t=point.t, val=abs(point.ipdv_up)) for point in packets if point.ipdv_up is not None]
    lost = [point.t for point in packets if point.lost]
    file.results |= {
        "VoIP::bitrate": file.resample(rates),
        "VoIP::delay": file.resample(packets),
        "VoIP::jitter": file.resample(jitter),
        "VoIP::loss": raw_values.count_per_step(lost, file.x_s, file.step_s),
    }
    file.meta["VoIP::delay"] = SeriesMeta.model_validate({"UNITS": "ms"} | meta.value_statistics(packets))
