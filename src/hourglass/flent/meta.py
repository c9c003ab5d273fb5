# SPDX-License-Identifier: Apache-2.0
"""The metadata of a Flent file, as Flent fills it, from what the run knows of itself. What it does not know is absent.

The guest's facts (table `fact`) are those of the client, the machine that Flent would have run on.
"""

import json
from ipaddress import ip_address, ip_interface
from typing import Any

import polars as pl
from pydantic import JsonValue

from hourglass.contract.plan import Datagrams, Flow, Ping
from hourglass.flent.form import Metadata, Part, SeriesMeta
from hourglass.flent.points import Points
from hourglass.results.connections import Connection
from hourglass.results.frames import of
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, Window, goodput_mbps

EPOCH = "1970-01-01T00:00:00.000000Z"


class Qdisc(Part):
    """One line of `tc qdisc show`."""

    name: str
    id: str
    parent: str
    params: dict[str, str]


class Egress(Part):
    """A device: its addresses, driver, offloads, BQL limits and qdiscs."""

    iface: str
    src: str
    target: str
    nexthop: str | None
    driver: str | None
    offloads: dict[str, bool]
    bql: dict[str, str] | None
    qdiscs: list[Qdisc]
    classes: None


class Origin(Part):
    """What tells a run of ours from others, and makes it again."""

    seed: int | None
    digest: str
    scenario: dict[str, JsonValue]
    events: list[dict[str, JsonValue]]
    """What changed during the test, each at `t_s`."""


class RunMetadata(Metadata):
    """The metadata that we write."""

    ip_version: int
    data_filename: str
    batch_name: None
    batch_time: None
    batch_title: None
    batch_uuid: None
    kernel_name: str
    sysctls: dict[str, int | str]
    egress_info: Egress | None
    remote_metadata: dict[str, str]
    hourglass: Origin


def of_run(
    run: Recording, named: str, parameters: tuple[str, ...], series: dict[str, SeriesMeta], name: str
) -> RunMetadata:
    """The metadata of the file `name`; `named`: Flent's test; `parameters`: what can be set of it."""
    test = run.test
    scenario = run.scenario
    assert scenario is not None, "a run of ours"
    return RunMetadata(
        name=named,
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
        sysctls=sysctls(facts(run)),
        egress_info=egress(run),
        remote_metadata={},
        series_meta=series,
        hourglass=Origin(
            seed=run.info.seed,
            digest=run.info.digest,
            scenario=json.loads(scenario.to_json()),
            events=[one.model_dump() for one in run.summary.events],
        ),
    )


def facts(run: Recording) -> list[tuple[str, str]]:
    """(key, value) of the client."""
    mine = run.facts.filter(pl.col("node") == run.test.client)
    return [(str(key), str(value)) for key, value in mine.select("key", "value").iter_rows()]


def sysctls(told: list[tuple[str, str]]) -> dict[str, int | str]:
    """Numbers as numbers, as Flent does."""
    found = {key.removeprefix("sysctl."): value for key, value in told if key.startswith("sysctl.")}
    return {key: int(value) if value.lstrip("-").isdecimal() else value for key, value in found.items()}


def egress(run: Recording) -> Egress | None:
    """The client's device towards the server; None when nothing was sent."""
    if not run.streams or not run.paths or not run.paths[0].there:
        return None
    told, stream, hop = facts(run), run.streams[0], run.paths[0].there[0]
    device, target = hop.device, ip_address(stream.address)
    own = {key: value for key, value in told if key.count(".") and key.split(".")[1] == device}
    return Egress(
        iface=device,
        src=str(ip_interface(hop.address).ip),
        target=stream.address,
        nexthop=None if target in ip_interface(hop.address).network else str(ip_interface(hop.to_address).ip),
        driver=own.get(f"driver.{device}"),
        offloads={key.split(".")[2]: value == "on" for key, value in own.items() if key.startswith("offload.")},
        bql={key.split(".")[2]: value for key, value in own.items() if key.startswith("bql.")} or None,
        qdiscs=[found for key, line in told if key == "tc" and (found := _qdisc(line, device))],
        classes=None,
    )


def _qdisc(line: str, device: str) -> Qdisc | None:
    """A line of `tc qdisc show`: "qdisc KIND HANDLE: dev DEVICE root|parent X: refcnt 2 key value …"."""
    words = line.split()
    if len(words) < 6 or words[0] != "qdisc" or words[3:5] != ["dev", device]:
        return None
    root = words[5] == "root"
    rest = words[6:] if root else words[7:]
    if len(rest) % 2:
        rest.append("")
    params = dict(zip(rest[::2], rest[1::2], strict=True))
    return Qdisc(name=words[1], id=words[2], parent="root" if root else words[6], params=params)


Told = dict[str, float | int | str]
"""Flent's words of a series, in capitals."""

TCP_INFO = (
    "rto", "ato", "snd_mss", "rcv_mss", "unacked", "sacked", "lost", "retrans", "fackets", "last_data_sent",
    "last_data_recv", "last_ack_recv", "pmtu", "rcv_ssthresh", "rtt", "rttvar", "snd_ssthresh", "snd_cwnd", "advmss",
    "reordering", "rcv_rtt", "rcv_space", "total_retrans",
)  # fmt: skip
"""What netperf tells of `struct tcp_info`."""


def of_flow(run: Recording, flow: Flow, place: int) -> Told:
    """MEAN_VALUE is the goodput from the flow's start to its stop, as netperf's THROUGHPUT."""
    mark = flow.dscp << 2
    whole = Window(flow.start_ns, flow.stop_ns)
    return {
        "UNITS": "Mbits/s",
        "RUNNER": "HourglassFlow",
        "IDX": place,
        "MEAN_VALUE": goodput_mbps(run, flow, whole),
        "CONG_CONTROL": flow.cc,
        "ELAPSED_TIME": whole.length_s,
        "DATA_TOS": mark,
        "UPSTREAM_TOS": mark,
        "DOWNSTREAM_TOS": mark,
        **_sockets(run, flow),
    }


def of_connection(opened: Connection, upload: bool, place: int) -> Told:
    """Of a connection of programs, one way. MEAN_VALUE: over its life."""
    length_s = (opened.end_ns - opened.start_ns) / NS_PER_S
    received = opened.bytes_up if upload else opened.bytes_down
    return {
        "UNITS": "Mbits/s",
        "RUNNER": "HourglassProgram",
        "IDX": place,
        "MEAN_VALUE": received * 8 / 1e6 / length_s,
        "ELAPSED_TIME": length_s,
        "BYTES_RECVD": received,
    }


def _sockets(run: Recording, flow: Flow) -> Told:
    """From the last samples of both ends."""
    sender, receiver = (_last(run, flow, side) for side in (True, False))
    found = {f"TCPI_{key.upper()}": sender[key] for key in TCP_INFO if sender.get(key) is not None}
    for name, one, key in (
        ("TCP_MSS", sender, "snd_mss"),
        ("TCP_RETRANSMIT", sender, "total_retrans"),
        ("BYTES_SENT", sender, "bytes_sent"),
        ("BYTES_RECVD", receiver, "bytes_received"),
    ):
        if one.get(key) is not None:
            found[name] = one[key]
    return found


def _last(run: Recording, flow: Flow, sender: bool) -> dict[str, Any]:
    rows = run.tcp.filter(of(flow) & (pl.col("sender") == sender)).sort("t_ns").tail(1)
    return rows.row(0, named=True) if rows.height else {}


def of_ping(ping: Ping, points: Points, place: int) -> Told:
    """Of a ping."""
    mark = ping.dscp << 2
    meta: Told = {"UNITS": "ms", "RUNNER": "HourglassProbe", "IDX": place, "UPSTREAM_TOS": mark, "DOWNSTREAM_TOS": mark}
    return meta | packets(points) | values(points)


def of_stream(stream: Datagrams, points: Points, place: int, units: str) -> Told:
    """Of one-way datagrams."""
    mark = stream.dscp << 2
    meta: Told = {"UNITS": units, "RUNNER": "HourglassDatagrams", "IDX": place, "UPSTREAM_TOS": mark}
    return meta | packets(points) if units == "ms" else meta


def packets(points: Points) -> Told:
    """How many there were, how many were lost, and the means of the one-way delays and their changes, as irtt's."""
    received = [point for point in points if point.val is not None]
    meta: Told = {"PACKETS_SENT": len(points), "PACKETS_RECEIVED": len(received)}
    if points:
        meta["PACKET_LOSS_RATE"] = 1 - len(received) / len(points)
    for key in ("owd_up", "owd_down", "ipdv_up", "ipdv_down"):
        found = [abs(value) for point in received if (value := getattr(point, key)) is not None]
        if found:
            meta[f"{key.upper()}_MEAN"] = sum(found) / len(found)
    return meta


def values(points: Points) -> Told:
    """Mean, least and largest."""
    found = [point.val for point in points if point.val is not None]
    if not found:
        return {}
    return {"MEAN_VALUE": sum(found) / len(found), "MIN_VALUE": min(found), "MAX_VALUE": max(found)}
