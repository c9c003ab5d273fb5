# SPDX-License-Identifier: Apache-2.0
"""Write the kernel's TCP as qlog, a file for each flow as its sender sees it.

The form is that of draft-ietf-quic-qlog-main-schema-02 (qlog 0.3, JSON-SEQ). The events are those of
draft-ietf-quic-qlog-quic-events:

* `recovery:metrics_updated` at each sample of the socket that changes a value
* `recovery:congestion_state_updated`
* `transport:packet_sent` for the packets that are followed individually

Times are ms of test time. A segment stands for a packet; its number is that of table `packet`. Losses and
acknowledgments have no events: the records say where a packet was dropped, not when the sender noticed.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from hourglass import files
from hourglass.contract.plan import FlowStream
from hourglass.contract.probe import LAYER_COLUMNS
from hourglass.errors import InputError
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_MS, tcp_rtt_ms

RECORD_SEPARATOR = "\x1e"
UNACKED = pl.col("unacked").cast(pl.Int64) - pl.col("sacked") - pl.col("lost") + pl.col("retrans")
METRICS = {
    "smoothed_rtt": pl.col("rtt") / 1000,
    "min_rtt": pl.when(pl.col("min_rtt") < 2**32 - 1).then(pl.col("min_rtt") / 1000),
    "rtt_variance": pl.col("rttvar") / 1000,
    "congestion_window": pl.col("snd_cwnd").cast(pl.Int64) * pl.col("snd_mss"),
    "bytes_in_flight": UNACKED.clip(0) * pl.col("snd_mss"),
    "ssthresh": pl.when(pl.col("snd_ssthresh") < 2**31 - 1).then(
        pl.col("snd_ssthresh").cast(pl.Int64) * pl.col("snd_mss")
    ),
    "pacing_rate": pl.when(pl.col("pacing_rate") < 2**62).then(pl.col("pacing_rate").cast(pl.Int64) * 8),
}
"""The fields of `metrics_updated` by columns of table `tcp`: ms, bytes, bit/s. Null: the kernel has no value yet."""
CWR = 2
"""The first of the kernel's congestion states that reduce the window."""
STATE = (
    pl.when(pl.col("bbr_phase").is_not_null())
    .then(pl.col("bbr_phase").cast(pl.String).str.to_lowercase())
    .when(pl.col("ca_state") >= CWR)
    .then(pl.lit("recovery"))
    .when(pl.col("snd_cwnd") < pl.col("snd_ssthresh"))
    .then(pl.lit("slow_start"))
    .when(pl.col("snd_cwnd").is_not_null())
    .then(pl.lit("congestion_avoidance"))
)

Event: TypeAlias = tuple[int, str, dict[str, Any]]
"""A time (ns), a name and its data."""


def write(run: Recording, folder: Path, stem: str) -> list[Path]:
    """Write STEM.FLOW.sqlog for each flow; for a Flent file, for each with samples of ss. Raises `InputError` without
    any, or if a file cannot be written."""
    flows = [flow for flow in run.flows if not run.info.elsewhere or tcp_rtt_ms(run, flow).t_s.size]
    if run.info.elsewhere and not flows:
        raise InputError("RUN", str(run.path), "has no samples of ss for qlog; flent --socket-stats records them")
    if not flows:
        raise InputError("RUN", str(run.path), f"has no flows for qlog: the test {run.test.name} has none")
    return [_write(run, flow, folder / f"{stem}.{re.sub(r'[^A-Za-z0-9]+', '-', flow.name)}.sqlog") for flow in flows]


def _write(run: Recording, flow: FlowStream, path: Path) -> Path:
    seed = "" if run.info.elsewhere else f", seed {run.info.seed}"
    header = {
        "qlog_version": "0.3",
        "qlog_format": "JSON-SEQ",
        "title": run.name,
        "description": f"{flow.name}: {flow.cc} of Linux {run.info.kernel.release}{seed}",
        "trace": {
            "vantage_point": {"name": flow.sender, "type": "client" if flow.upload else "server"},
            "common_fields": {"protocol_type": ["TCP"], "time_format": "relative", "reference_time": 0},
        },
    }
    events = sorted([*_packets(run, flow), *_samples(run, flow)], key=lambda event: event[0])
    with files.output(path, "the qlog file") as half, half.open("w", encoding="utf-8") as file:
        file.write(f"{RECORD_SEPARATOR}{json.dumps(header)}\n")
        for t_ns, name, data in events:
            record = {"time": t_ns / NS_PER_MS, "name": name, "data": data}
            file.write(f"{RECORD_SEPARATOR}{json.dumps(record)}\n")
    return path


def _samples(run: Recording, flow: FlowStream) -> Iterator[Event]:
    rows = run.tcp.filter(pl.col("sender") & (pl.col("stream") == flow.name)).sort("t_ns")
    columns = [expression.alias(name) for name, expression in METRICS.items()]
    last: dict[str, Any] = dict.fromkeys(METRICS)
    state = None
    for row in rows.select("t_ns", STATE.alias("state"), *columns).iter_rows(named=True):
        t_ns, now = row.pop("t_ns"), row.pop("state")
        if changed := {name: value for name, value in row.items() if value is not None and value != last[name]}:
            last |= changed
            yield t_ns, "recovery:metrics_updated", changed
        if now is not None and now != state:
            yield t_ns, "recovery:congestion_state_updated", ({"old": state} if state else {}) | {"new": now}
            state = now


def _packets(run: Recording, flow: FlowStream) -> Iterator[Event]:
    """Yield the packets with data at the time when they left the socket."""
    before = LAYER_COLUMNS[: LAYER_COLUMNS.index("stack_ns")]
    sent = run.packets.filter(
        (pl.col("stream") == flow.name) & pl.col("data") & (pl.col("visit") == 0) & (pl.col("node") == flow.sender)
    )
    times = pl.col("t_ns") + pl.sum_horizontal(before)
    for t_ns, number, size in sent.select(times, "packet", "bytes").iter_rows():
        header = {"packet_type": "1RTT", "packet_number": number}
        yield t_ns, "transport:packet_sent", {"header": header, "raw": {"payload_length": size}}
