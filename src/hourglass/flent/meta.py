# SPDX-License-Identifier: Apache-2.0
"""The metadata of a Flent file, as Flent fills it, from what the run knows of itself. What it does not know is absent.

The guest's facts (table `fact`) are those of the client, the machine that Flent would have run on.
"""

import json
from ipaddress import ip_address, ip_interface
from typing import Any

import polars as pl

from hourglass.contract.plan import Datagrams, Flow, Ping
from hourglass.flent.points import Points
from hourglass.results.frames import of
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, Window, goodput_mbps

EPOCH = "1970-01-01T00:00:00.000000Z"


def of_run(run: Recording, parameters: tuple[str, ...], series: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """The metadata of the file `name`; `parameters`: what can be set of the test."""
    test = run.test
    scenario = run.scenario
    assert scenario is not None, "a run of ours"
    return {
        "NAME": test.name,
        "TITLE": run.name,
        "NOTE": run.description or None,
        "HOST": test.hosts[0],
        "HOSTS": list(test.hosts),
        "LOCAL_HOST": test.client,
        "TIME": EPOCH,
        "T0": EPOCH,
        "LENGTH": test.length_s,
        "TOTAL_LENGTH": run.end_ns / NS_PER_S,
        "STEP_SIZE": test.step_s,
        "IP_VERSION": scenario.testbed.ip,
        "TEST_PARAMETERS": {key: test.parameters[key] for key in parameters if key in test.parameters},
        "DATA_FILENAME": name,
        "BATCH_NAME": None,
        "BATCH_TIME": None,
        "BATCH_TITLE": None,
        "BATCH_UUID": None,
        "KERNEL_NAME": "Linux",
        "KERNEL_RELEASE": run.info.kernel.release,
        "FAILED_RUNNERS": run.flow_events.filter(pl.col("event") == "failed").height,
        "SYSCTLS": sysctls(facts(run)),
        "EGRESS_INFO": egress(run),
        "REMOTE_METADATA": {},
        "SERIES_META": series,
        "HOURGLASS": {"seed": run.info.seed, "digest": run.info.digest, "scenario": json.loads(scenario.to_json())},
    }


def facts(run: Recording) -> list[tuple[str, str]]:
    """(key, value) of the client."""
    mine = run.facts.filter(pl.col("node") == run.test.client)
    return [(str(key), str(value)) for key, value in mine.select("key", "value").iter_rows()]


def sysctls(told: list[tuple[str, str]]) -> dict[str, int | str]:
    """Numbers as numbers, as Flent does."""
    found = {key.removeprefix("sysctl."): value for key, value in told if key.startswith("sysctl.")}
    return {key: int(value) if value.lstrip("-").isdecimal() else value for key, value in found.items()}


def egress(run: Recording) -> dict[str, Any]:
    """The client's device towards the server: its driver, offloads, BQL limits and qdiscs."""
    if not run.paths or not run.paths[0].there:
        return {}
    told, stream, hop = facts(run), run.streams[0], run.paths[0].there[0]
    device, target = hop.device, ip_address(stream.address)
    direct = target in ip_interface(hop.address).network
    own = {key: value for key, value in told if key.count(".") and key.split(".")[1] == device}
    offloads = {key.split(".")[2]: value == "on" for key, value in own.items() if key.startswith("offload.")}
    bql = {key.split(".")[2]: value for key, value in own.items() if key.startswith("bql.")}
    return {
        "iface": device,
        "src": str(ip_interface(hop.address).ip),
        "target": stream.address,
        "nexthop": None if direct else str(ip_interface(hop.to_address).ip),
        "driver": own.get(f"driver.{device}"),
        "offloads": offloads,
        "bql": bql or None,
        "qdiscs": [found for key, line in told if key == "tc" and (found := _qdisc(line, device))],
        "classes": None,
    }


def _qdisc(line: str, device: str) -> dict[str, Any] | None:
    """A line of `tc qdisc show`: "qdisc KIND HANDLE: dev DEVICE root|parent X: refcnt 2 key value …"."""
    words = line.split()
    if len(words) < 6 or words[0] != "qdisc" or words[3:5] != ["dev", device]:
        return None
    root = words[5] == "root"
    rest = words[6:] if root else words[7:]
    if len(rest) % 2:
        rest.append("")
    parent = "root" if root else words[6]
    return {"name": words[1], "id": words[2], "parent": parent, "params": dict(zip(rest[::2], rest[1::2], strict=True))}


TCP_INFO = (
    "rto", "ato", "snd_mss", "rcv_mss", "unacked", "sacked", "lost", "retrans", "fackets", "last_data_sent",
    "last_data_recv", "last_ack_recv", "pmtu", "rcv_ssthresh", "rtt", "rttvar", "snd_ssthresh", "snd_cwnd", "advmss",
    "reordering", "rcv_rtt", "rcv_space", "total_retrans",
)  # fmt: skip
"""What netperf tells of `struct tcp_info`."""


def of_flow(run: Recording, flow: Flow, place: int) -> dict[str, Any]:
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


def _sockets(run: Recording, flow: Flow) -> dict[str, Any]:
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


def of_ping(ping: Ping, points: Points, place: int) -> dict[str, Any]:
    """Of a ping."""
    mark = ping.dscp << 2
    meta = {"UNITS": "ms", "RUNNER": "HourglassProbe", "IDX": place, "UPSTREAM_TOS": mark, "DOWNSTREAM_TOS": mark}
    return meta | packets(points) | values(points)


def of_stream(stream: Datagrams, points: Points, place: int, units: str) -> dict[str, Any]:
    """Of one-way datagrams."""
    mark = stream.dscp << 2
    meta = {"UNITS": units, "RUNNER": "HourglassDatagrams", "IDX": place, "UPSTREAM_TOS": mark}
    return meta | packets(points) if units == "ms" else meta


def packets(points: Points) -> dict[str, Any]:
    """How many there were, how many were lost, and the means of the one-way delays and their changes, as irtt's."""
    received = [point for point in points if point["val"] is not None]
    meta: dict[str, Any] = {"PACKETS_SENT": len(points), "PACKETS_RECEIVED": len(received)}
    if points:
        meta["PACKET_LOSS_RATE"] = 1 - len(received) / len(points)
    for key in ("owd_up", "owd_down", "ipdv_up", "ipdv_down"):
        found = [abs(point[key]) for point in received if key in point]
        if found:
            meta[f"{key.upper()}_MEAN"] = sum(found) / len(found)
    return meta


def values(points: Points) -> dict[str, Any]:
    """Mean, least and largest."""
    found = [point["val"] for point in points if point["val"] is not None]
    if not found:
        return {}
    return {"MEAN_VALUE": sum(found) / len(found), "MIN_VALUE": min(found), "MAX_VALUE": max(found)}
