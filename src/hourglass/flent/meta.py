# SPDX-License-Identifier: Apache-2.0
"""Builds the metadata of a Flent file from a run, as Flent fills it. Unknown values are absent.

The facts (table `fact`) are the client's, because Flent would run on that machine.
"""

import json
from ipaddress import ip_address, ip_interface
from typing import Any

import polars as pl
from pydantic import JsonValue

from hourglass.contract.plan import DatagramStream, FlowStream, PingStream
from hourglass.flent.document import Egress, FlentPart, FlentQdisc, Metadata, SeriesMeta
from hourglass.flent.raw_values import Points
from hourglass.results.connections import Connection
from hourglass.results.frames import belongs_to
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, Window, goodput_mbps

EPOCH = "1970-01-01T00:00:00.000000Z"


class EgressInfo(Egress):
    """A device: its addresses, driver, offloads, BQL limits and qdiscs."""

    iface: str
    src: str
    target: str
    nexthop: str | None
    driver: str | None
    offloads: dict[str, bool]
    bql: dict[str, str] | None
    classes: None


class HourglassOrigin(FlentPart):
    """The keys that identify a Hourglass run and reproduce it."""

    seed: int | None
    digest: str
    scenario: dict[str, JsonValue]
    events: list[dict[str, JsonValue]]
    """The events during the test, each at `t_s`."""


class RunMetadata(Metadata):
    """The metadata of an exported run."""

    ip_version: int
    data_filename: str
    batch_name: None
    batch_time: None
    batch_title: None
    batch_uuid: None
    kernel_name: str
    sysctls: dict[str, int | str]
    egress_info: EgressInfo | None
    remote_metadata: dict[str, str]
    hourglass: HourglassOrigin


def run_metadata(
    run: Recording, test_name: str, parameters: tuple[str, ...], series: dict[str, SeriesMeta], name: str
) -> RunMetadata:
    """Return the metadata of the file `name`. `test_name`: Flent's test; `parameters`: its parameters."""
    test = run.test
    scenario = run.scenario
    assert scenario is not None, "every Hourglass run has a scenario"
    return RunMetadata(
        name=test_name,
        title=" ".join([run.name, *run.axes.values()]),
        note=run.description or None,
        host=test.hosts[0],
        hosts=test.hosts,
        local_host=test.client,
        time=EPOCH,
        t0=EPOCH,
        length=test.length_s,
        total_length=run.end_ns / NS_PER_S,
        step_size=test.step_s,
        ip_version=scenario.testbed.ip,
        test_parameters={key: test.parameters[key] for key in parameters if key in test.parameters},
        data_filename=name,
        batch_name=None,
        batch_time=None,
        batch_title=None,
        batch_uuid=None,
        kernel_name="Linux",
        kernel_release=run.info.kernel.release,
        failed_runners=run.flow_events.filter(pl.col("event") == "failed").height,
        sysctls=sysctls(client_facts(run)),
        egress_info=egress(run),
        remote_metadata={},
        series_meta=series,
        hourglass=HourglassOrigin(
            seed=run.info.seed,
            digest=run.info.digest,
            scenario=json.loads(scenario.to_json()),
            events=[event.model_dump() for event in run.summary.events],
        ),
    )


def client_facts(run: Recording) -> list[tuple[str, str]]:
    """Return the client's facts as (key, value)."""
    client_rows = run.facts.filter(pl.col("node") == run.test.client)
    return [(str(key), str(value)) for key, value in client_rows.select("key", "value").iter_rows()]


def sysctls(facts: list[tuple[str, str]]) -> dict[str, int | str]:
    """Return the sysctls, with numbers as numbers, as Flent does."""
    values = {key.removeprefix("sysctl."): value for key, value in facts if key.startswith("sysctl.")}
    return {key: int(value) if value.lstrip("-").isdecimal() else value for key, value in values.items()}


def egress(run: Recording) -> EgressInfo | None:
    """Return the client's device towards the server; None if there is no stream."""
    if not run.streams or not run.paths or not run.paths[0].there:
        return None
    facts, stream, hop = client_facts(run), run.streams[0], run.paths[0].there[0]
    device, target = hop.device, ip_address(stream.address)
    source = ip_interface(str(hop.address))
    gateway = next(ip_interface(each.to_address) for each in run.paths[0].there if each.to_address)
    device_facts = {key: value for key, value in facts if key.count(".") and key.split(".")[1] == device}
    return EgressInfo(
        iface=device,
        src=str(source.ip),
        target=stream.address,
        nexthop=None if target in source.network else str(gateway.ip),
        driver=device_facts.get(f"driver.{device}"),
        offloads={
            key.split(".")[2]: value == "on" for key, value in device_facts.items() if key.startswith("offload.")
        },
        bql={key.split(".")[2]: value for key, value in device_facts.items() if key.startswith("bql.")} or None,
        qdiscs=[qdisc for key, line in facts if key == "tc" and (qdisc := _qdisc(line, device))],
        classes=None,
    )


def _qdisc(line: str, device: str) -> FlentQdisc | None:
    """Parse a line of `tc qdisc show`: "qdisc KIND HANDLE: dev DEVICE root|parent X: refcnt 2 key value …"."""
    tokens = line.split()
    if len(tokens) < 6 or tokens[0] != "qdisc" or tokens[3:5] != ["dev", device]:
        return None
    root = tokens[5] == "root"
    options = tokens[6:] if root else tokens[7:]
    if len(options) % 2:
        options.append("")
    params = dict(zip(options[::2], options[1::2], strict=True))
    return FlentQdisc(name=tokens[1], id=tokens[2], parent="root" if root else tokens[6], params=params)


SeriesValues = dict[str, float | int | str]
"""Flent's keys of a series, in capitals."""

TCP_INFO = (
    "rto", "ato", "snd_mss", "rcv_mss", "unacked", "sacked", "lost", "retrans", "fackets", "last_data_sent",
    "last_data_recv", "last_ack_recv", "pmtu", "rcv_ssthresh", "rtt", "rttvar", "snd_ssthresh", "snd_cwnd", "advmss",
    "reordering", "rcv_rtt", "rcv_space", "total_retrans",
)  # fmt: skip
"""The fields of `struct tcp_info` that netperf reports."""


def flow_meta(run: Recording, flow: FlowStream, index: int) -> SeriesValues:
    """Return the values of a flow. MEAN_VALUE is the goodput from start to stop, like netperf's THROUGHPUT."""
    mark = flow.dscp << 2
    window = Window(flow.start_ns, flow.stop_ns)
    return {
        "UNITS": "Mbits/s",
        "RUNNER": "HourglassFlow",
        "IDX": index,
        "MEAN_VALUE": goodput_mbps(run, flow, window),
        "CONG_CONTROL": flow.cc,
        "ELAPSED_TIME": window.length_s,
        "DATA_TOS": mark,
        "UPSTREAM_TOS": mark,
        "DOWNSTREAM_TOS": mark,
        **_socket_values(run, flow),
    }


def connection_meta(connection: Connection, upload: bool, index: int) -> SeriesValues:
    """Return the values of one direction of a program's connection. MEAN_VALUE covers its lifetime."""
    window = Window(connection.start_ns, connection.end_ns)
    received = connection.bytes_up if upload else connection.bytes_down
    return {
        "UNITS": "Mbits/s",
        "RUNNER": "HourglassProgram",
        "IDX": index,
        "MEAN_VALUE": window.per_s(received * 8 / 1e6) or 0.0,
        "ELAPSED_TIME": window.length_s,
        "BYTES_RECVD": received,
    }


def _socket_values(run: Recording, flow: FlowStream) -> SeriesValues:
    """Return the values from the last samples of both ends."""
    sender, receiver = (_last_sample(run, flow, side) for side in (True, False))
    values = {f"TCPI_{key.upper()}": sender[key] for key in TCP_INFO if sender.get(key) is not None}
    for name, sample, key in (
        ("TCP_MSS", sender, "snd_mss"),
        ("TCP_RETRANSMIT", sender, "total_retrans"),
        ("BYTES_SENT", sender, "bytes_sent"),
        ("BYTES_RECVD", receiver, "bytes_received"),
    ):
        if sample.get(key) is not None:
            values[name] = sample[key]
    return values


def _last_sample(run: Recording, flow: FlowStream, sender: bool) -> dict[str, Any]:
    rows = run.tcp.filter(belongs_to(flow) & (pl.col("sender") == sender)).sort("t_ns").tail(1)
    return rows.row(0, named=True) if rows.height else {}


def ping_meta(ping: PingStream, points: Points, index: int) -> SeriesValues:
    """Return the values of a ping."""
    mark = ping.dscp << 2
    meta: SeriesValues = {
        "UNITS": "ms",
        "RUNNER": "HourglassProbe",
        "IDX": index,
        "UPSTREAM_TOS": mark,
        "DOWNSTREAM_TOS": mark,
    }
    return meta | packet_values(points) | value_statistics(points)


def datagram_meta(stream: DatagramStream, points: Points, index: int, units: str) -> SeriesValues:
    """Return the values of a datagram stream."""
    mark = stream.dscp << 2
    meta: SeriesValues = {"UNITS": units, "RUNNER": "HourglassDatagrams", "IDX": index, "UPSTREAM_TOS": mark}
    return meta | packet_values(points) if units == "ms" else meta


def packet_values(points: Points) -> SeriesValues:
    """Return the counts of packets and losses, and the means of one-way delays and their changes, as irtt does."""
    received = [point for point in points if point.val is not None]
    meta: SeriesValues = {"PACKETS_SENT": len(points), "PACKETS_RECEIVED": len(received)}
    if points:
        meta["PACKET_LOSS_RATE"] = 1 - len(received) / len(points)
    for key in ("owd_up", "owd_down", "ipdv_up", "ipdv_down"):
        samples = [abs(value) for point in received if (value := getattr(point, key)) is not None]
        if samples:
            meta[f"{key.upper()}_MEAN"] = sum(samples) / len(samples)
    return meta


def value_statistics(points: Points) -> SeriesValues:
    """Return mean, minimum and maximum."""
    samples = [point.val for point in points if point.val is not None]
    if not samples:
        return {}
    return {"MEAN_VALUE": sum(samples) / len(samples), "MIN_VALUE": min(samples), "MAX_VALUE": max(samples)}
