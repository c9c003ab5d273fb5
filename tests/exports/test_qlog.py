# SPDX-License-Identifier: Apache-2.0
"""qlog files have the samples of the sockets, and the form of draft-ietf-quic-qlog-main-schema-02 in JSON-SEQ."""

import json

import jsonschema
import polars as pl
import pytest
from results import synthetic_probe
from results.synthetic import make

import hourglass
from hourglass.exports import qlog

HEADER = {
    "type": "object",
    "required": ["qlog_version", "qlog_format", "trace"],
    "properties": {
        "qlog_version": {"const": "0.3"},
        "qlog_format": {"const": "JSON-SEQ"},
        "trace": {
            "type": "object",
            "required": ["vantage_point"],
            "properties": {
                "vantage_point": {
                    "required": ["type"],
                    "properties": {"type": {"enum": ["client", "server", "network", "unknown"]}},
                },
                "common_fields": {
                    "properties": {
                        "time_format": {"enum": ["absolute", "delta", "relative"]},
                        "reference_time": {"type": "number"},
                        "protocol_type": {"type": "array", "items": {"type": "string"}},
                    }
                },
                "events": False,
            },
        },
        "traces": False,
    },
}
"""Section 3 of the main schema: a file that is a sequence has one trace without events."""
MILLISECONDS, BYTES = {"type": "number", "minimum": 0}, {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}
DATA = {
    "recovery:metrics_updated": {
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {
            **dict.fromkeys(("smoothed_rtt", "min_rtt", "rtt_variance"), MILLISECONDS),
            **dict.fromkeys(("congestion_window", "bytes_in_flight", "ssthresh", "pacing_rate"), BYTES),
        },
    },
    "recovery:congestion_state_updated": {
        "required": ["new"],
        "additionalProperties": False,
        "properties": {"old": {"type": "string"}, "new": {"type": "string"}},
    },
    "transport:packet_sent": {
        "required": ["header"],
        "additionalProperties": False,
        "properties": {
            "header": {
                "required": ["packet_type"],
                "properties": {"packet_type": {"const": "1RTT"}, "packet_number": BYTES},
            },
            "raw": {"additionalProperties": False, "properties": {"payload_length": BYTES}},
        },
    },
}
"""The events of draft-ietf-quic-qlog-quic-events that the files have."""
EVENT = {"required": ["time", "name", "data"], "properties": {"time": MILLISECONDS, "name": {"enum": list(DATA)}}}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    run = hourglass.load(make(folder / "run", synthetic_probe.recipe()))
    (path,) = qlog.write(run, folder, "stem")
    assert path.name == "stem.upload-1.sqlog"
    records = path.read_text().split("\x1e")
    assert records[0] == ""
    assert all(record.endswith("}\n") for record in records[1:])
    header, *events = map(json.loads, records[1:])
    return run, header, events


def test_the_file_has_the_form_of_the_draft(exported):
    _, header, events = exported
    jsonschema.validate(header, HEADER)
    for event in events:
        jsonschema.validate(event, EVENT)
        jsonschema.validate(event["data"], DATA[event["name"]])
    times = [event["time"] for event in events]
    assert times == sorted(times)
    assert {event["name"] for event in events} == set(DATA)


def test_the_metrics_are_the_samples_of_the_socket(exported):
    run, _, events = exported
    rows = run.tcp.filter(pl.col("sender")).sort("t_ns")
    updates = {e["time"]: e["data"] for e in events if e["name"] == "recovery:metrics_updated"}
    rtt, values = None, []
    for t_ns, *_ in rows.select("t_ns").iter_rows():
        rtt = updates.get(t_ns / 1e6, {}).get("smoothed_rtt", rtt)
        values.append(rtt)
    assert values == [value / 1000 for value in rows["rtt"]]


def test_the_states_are_the_kernels(exported):
    run, _, events = exported
    states = [(e["time"], e["data"]["new"]) for e in events if e["name"] == "recovery:congestion_state_updated"]
    rows = run.tcp.filter(pl.col("sender")).sort("t_ns").select("t_ns", pl.col("snd_cwnd") < pl.col("snd_ssthresh"))
    expected, last = [], None
    for t_ns, grows in rows.iter_rows():
        if grows != last:
            expected.append((t_ns / 1e6, "slow_start" if grows else "congestion_avoidance"))
            last = grows
    assert states == expected
    assert len(states) > 2


def test_a_packet_is_sent_when_it_leaves_the_socket(exported):
    run, _, events = exported
    sent = [(e["time"], e["data"]["header"]["packet_number"]) for e in events if e["name"] == "transport:packet_sent"]
    rows = run.packets.filter(pl.col("stream") == "upload::1", pl.col("visit") == 0)
    assert sent == [
        ((t_ns + tsq_ns) / 1e6, number) for t_ns, tsq_ns, number in rows.select("t_ns", "tsq_ns", "packet").rows()
    ]
