# SPDX-License-Identifier: Apache-2.0
"""The metadata of a Flent file, as Flent fills it, from what the run knows of itself. What it does not know is absent.

The guest's facts (table `fact`) are those of the client, the machine that Flent would have run on.
"""

from ipaddress import ip_address, ip_interface, ip_network
from typing import Any

import polars as pl

from hourglass.flent.points import Points
from hourglass.results.run import Run
from hourglass.results.series import NS_PER_S, Window, goodput_mbps

EPOCH = "1970-01-01T00:00:00.000000Z"


def of_run(run: Run, parameters: tuple[str, ...], series: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """The metadata of the file `name`; `parameters`: what can be set of the test."""
    test = run.scenario["test"]
    hosts = list(test.get("hosts") or [test["server"]])
    return {
        "NAME": test["name"],
        "TITLE": run.scenario["name"],
        "NOTE": run.scenario["description"] or None,
        "HOST": hosts[0],
        "HOSTS": hosts,
        "LOCAL_HOST": test["client"],
        "TIME": EPOCH,
        "T0": EPOCH,
        "LENGTH": test["length"],
        "TOTAL_LENGTH": run.plan["end_ns"] / NS_PER_S,
        "STEP_SIZE": test["step"],
        "IP_VERSION": run.scenario["testbed"]["ip"],
        "TEST_PARAMETERS": {key: _text(test[key]) for key in parameters if test.get(key) not in (None, [])},
        "DATA_FILENAME": name,
        "BATCH_NAME": None,
        "BATCH_TIME": None,
        "BATCH_TITLE": None,
        "BATCH_UUID": None,
        "KERNEL_NAME": "Linux",
        "KERNEL_RELEASE": run.info["kernel"]["release"],
        "FAILED_RUNNERS": 0 if run.flows.is_empty() else run.flows.filter(pl.col("event") == "failed").height,
        "SYSCTLS": sysctls(facts(run)),
        "EGRESS_INFO": egress(run),
        "REMOTE_METADATA": {},
        "SERIES_META": series,
        "HOURGLASS": {"seed": run.info["seed"], "digest": run.info["digest"], "scenario": run.scenario},
    }


def _text(value: Any) -> str:
    """As one writes it behind `--te KEY=`."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def facts(run: Run) -> list[tuple[str, str]]:
    """(key, value) of the client."""
    if run.facts.is_empty():
        return []
    mine = run.facts.filter(pl.col("node") == run.scenario["test"]["client"])
    return [(str(key), str(value)) for key, value in mine.select("key", "value").iter_rows()]


def sysctls(told: list[tuple[str, str]]) -> dict[str, int | str]:
    """Numbers as numbers, as Flent does."""
    found = {key.removeprefix("sysctl."): value for key, value in told if key.startswith("sysctl.")}
    return {key: int(value) if value.lstrip("-").isdecimal() else value for key, value in found.items()}


def egress(run: Run) -> dict[str, Any]:
    """The client's device towards the server: its driver, offloads, BQL limits and qdiscs."""
    told = facts(run)
    device, nexthop, source = _route(run)
    if device is None:
        return {}
    own = {key: value for key, value in told if key.count(".") and key.split(".")[1] == device}
    offloads = {key.split(".")[2]: value == "on" for key, value in own.items() if key.startswith("offload.")}
    bql = {key.split(".")[2]: value for key, value in own.items() if key.startswith("bql.")}
    return {
        "iface": device,
        "src": source,
        "target": _target(run),
        "nexthop": nexthop,
        "driver": own.get(f"driver.{device}"),
        "offloads": offloads,
        "bql": bql or None,
        "qdiscs": [found for key, line in told if key == "tc" and (found := _qdisc(line, device))],
        "classes": None,
    }


def _target(run: Run) -> str | None:
    streams = [*run.plan["flows"], *run.plan["probes"]]
    return str(streams[0]["address"]) if streams else None


def _route(run: Run) -> tuple[str | None, str | None, str | None]:
    """(device, next hop, own address) of the client's packets to the server, by the plan's `ip` lines."""
    client, target = run.scenario["test"]["client"], _target(run)
    lines = [line.split() for step in run.plan["setup"] if step["do"] == "ip" and step["node"] == client
             for line in step["lines"]]  # fmt: skip
    own = [(ip_interface(words[2]), words[4]) for words in lines if words[:2] == ["addr", "add"]]
    if target is None or not own:
        return None, None, None
    routes = [(ip_network(words[2]), words[4]) for words in lines if words[:2] == ["route", "add"]]
    fitting = [(net.prefixlen, via) for net, via in routes if ip_address(target) in net]
    nexthop = max(fitting)[1] if fitting else None
    for address, device in own:
        if ip_address(nexthop or target) in address.network:
            return device, nexthop, str(address.ip)
    return None, None, None


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


def of_flow(run: Run, flow: dict[str, Any], place: int) -> dict[str, Any]:
    """MEAN_VALUE is the goodput from the flow's start to its stop, as netperf's THROUGHPUT."""
    mark = flow["dscp"] << 2
    whole = Window(flow["start_ns"], flow["stop_ns"])
    return {
        "UNITS": "Mbits/s",
        "RUNNER": "HourglassFlow",
        "IDX": place,
        "MEAN_VALUE": goodput_mbps(run, flow, whole),
        "CONG_CONTROL": flow["cc"],
        "ELAPSED_TIME": whole.length_s,
        "DATA_TOS": mark,
        "UPSTREAM_TOS": mark,
        "DOWNSTREAM_TOS": mark,
        **_sockets(run, flow),
    }


def _sockets(run: Run, flow: dict[str, Any]) -> dict[str, Any]:
    """From the last samples of both ends."""
    sender, receiver = (_last(run, flow["id"], side) for side in (True, False))
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


def _last(run: Run, flow: int, sender: bool) -> dict[str, Any]:
    if run.tcp.is_empty():
        return {}
    rows = run.tcp.filter((pl.col("flow") == flow) & (pl.col("sender") == sender)).sort("t_ns").tail(1)
    return rows.row(0, named=True) if rows.height else {}


def of_ping(probe: dict[str, Any], points: Points, place: int) -> dict[str, Any]:
    """Of a probe."""
    mark = probe["dscp"] << 2
    meta = {"UNITS": "ms", "RUNNER": "HourglassProbe", "IDX": place, "UPSTREAM_TOS": mark, "DOWNSTREAM_TOS": mark}
    return meta | packets(points) | values(points)


def of_stream(stream: dict[str, Any], points: Points, place: int, units: str) -> dict[str, Any]:
    """Of one-way datagrams."""
    mark = stream["dscp"] << 2
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
