# SPDX-License-Identifier: Apache-2.0
"""The summary object: what `hourglass run --json` prints and `summary.json` holds. Schema 1.

Statistics cover the loaded window: the `length` seconds under load, or the whole run when nothing loads it. Drops cover
the whole run. Goodput is payload bytes received per second. RTT samples of TCP are the sender's smoothed RTT at each
sampling instant. A ping belongs to the window it was sent in; it is lost when no answer came.
"""

import hashlib
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hourglass.results import traffic
from hourglass.results.anatomy import drops_by_reason, layers_ms, ping_layers_ms
from hourglass.results.run import Run
from hourglass.results.series import (
    NS_PER_S,
    Window,
    goodput_mbps,
    is_upload,
    loaded_window,
    ping_ms,
    retransmits,
    tcp_rtt_ms,
)
from hourglass.results.sockets import hystart_exit_ns
from hourglass.results.stats import fairness, rounded, statistics
from hourglass.results.wifi import given_up, txq_drops, wifi

SCHEMA = 1
INGRESS_KINDS = ("ingress", "clsact")


@cache
def code() -> str:
    """Names the code that makes summaries: 16 hex digits of this package's sources."""
    total = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        total.update(path.read_bytes())
    return total.hexdigest()[:16]


def summarize(run: Run) -> dict[str, Any]:
    """The JSON object of one run: plain data, no NaN, floats of six significant digits."""
    window = loaded_window(run)
    goodputs = [goodput_mbps(run, flow, window) for flow in run.plan["flows"]]
    return {
        "schema": SCHEMA,
        "scenario": run.scenario["name"],
        "engine": run.info["engine"],
        "kernel": run.info["kernel"]["release"],
        "seed": run.info["seed"],
        "virtual_s": rounded(run.info["virtual_s"]),
        "wall_s": rounded(run.info["wall_s"]),
        "digest": run.info["digest"],
        "totals": _totals(run, goodputs),
        "flows": [_flow(run, flow, goodput, window) for flow, goodput in zip(run.plan["flows"], goodputs, strict=True)],
        "tcp_rtt_ms": statistics(tcp_rtt_ms(run).within(window).values),
        "ping_ms": {probe["name"]: _ping(run, probe["id"], window) for probe in run.plan["probes"]},
        "datagrams": traffic.datagrams(run, window),
        "fetches": traffic.fetches(run, window),
        "wifi": wifi(run, window),
        "drops": drops(run),
        "drops_by_reason": drops_by_reason(run),
        "layers_ms": layers_ms(run, window),
        "ping_layers_ms": ping_layers_ms(run, window),
        "warnings": warnings(run),
    }


def warnings(run: Run) -> list[dict[str, str]]:
    """[{id, text, remedy}]: what the guest's console warned of (id `console`), then what the lints found."""
    from hourglass.results.lint import lint

    said = [{"id": "console", "text": text, "remedy": ""} for text in run.info.get("warnings", [])]
    return said + [asdict(finding) for finding in lint(run)]


def _totals(run: Run, goodputs: list[float]) -> dict[str, float | None]:
    ways = {"upload_mbps": True, "download_mbps": False}
    flows = run.plan["flows"]
    totals: dict[str, float | None] = {
        key: rounded(sum(rate for flow, rate in zip(flows, goodputs, strict=True) if is_upload(flow) == way))
        for key, way in ways.items()
    }
    return totals | {"fairness": fairness(goodputs)}


def _flow(run: Run, flow: dict[str, Any], goodput: float, window: Window) -> dict[str, Any]:
    return {
        "id": flow["name"],
        "cc": flow["cc"],
        "goodput_mbps": rounded(goodput),
        "retransmits": retransmits(run, flow["id"], window),
        "tcp_rtt_ms": statistics(tcp_rtt_ms(run, flow["id"]).within(window).values),
        "hystart_exit_s": _hystart_exit_s(run, flow),
    }


def _hystart_exit_s(run: Run, flow: dict[str, Any]) -> float | None:
    """Seconds after the flow's start."""
    ended_ns = hystart_exit_ns(run.tcp, flow)
    return None if ended_ns is None else rounded((ended_ns - flow["start_ns"]) / NS_PER_S)


def _ping(run: Run, probe: int, window: Window) -> dict[str, Any]:
    sent = ping_ms(run, probe).within(window).values
    return {"lost": int(np.isnan(sent).sum())} | statistics(sent)


NIC_DROPS = ("rx_missed", "rx_corrupted")
CABLE_DROPS = ("tx_lost",)
"""Counters of the wire driver (`ethtool -S`) that the kernel's own `rx_dropped` and `tx_dropped` do not hold."""


def drops(run: Run) -> dict[str, dict[str, dict[str, int]]]:
    """{node: {device: {"qdisc": packets, "nic": packets, "cable": frames}}} dropped during the run.

    `qdisc` counts at the roots (egress and ingress): the kernel passes a child's drops up to its parents, so adding the
    children would count a packet twice. `nic`: `rx_dropped`, `tx_dropped`, frames beyond the ring and frames with a
    wrong FCS. `cable`: lost on the way away from the device. Of a radio `qdisc` has mac80211's queues too, and `cable`
    the MPDUs that were given up after all their tries.
    """
    result: dict[str, dict[str, dict[str, int]]] = {}

    def add(node: str, device: str, place: str, count: int) -> None:
        result.setdefault(node, {}).setdefault(device, {"qdisc": 0, "nic": 0, "cable": 0})[place] += count

    if not run.devices.is_empty():
        nic = run.devices.with_columns(lost=pl.col("rx_dropped") + pl.col("tx_dropped"))
        for node, device, count in _growth(nic, "lost", []):
            add(node, device, "nic", count)
    if not run.qdisc.is_empty():
        top = (pl.col("parent") == "root") & ~pl.col("kind").str.ends_with(" class")  # a class's drops are its qdisc's
        roots = run.qdisc.filter(top | pl.col("kind").is_in(INGRESS_KINDS))
        for node, device, count in _growth(roots, "drops", ["kind", "handle"]):
            add(node, device, "qdisc", count)
    if not run.ethtool.is_empty():
        for node, device, name, value in run.ethtool.select("node", "device", "name", "value").iter_rows():
            if name in NIC_DROPS or name in CABLE_DROPS:
                add(node, device, "nic" if name in NIC_DROPS else "cable", value)
    if not run.radios.is_empty():
        t_ns = run.radios["t_ns"].to_numpy()
        whole = Window(int(t_ns.min()), int(t_ns.max()))
        for radio in run.plan["radios"]:
            place = radio["node"], radio["device"]
            add(*place, "qdisc", txq_drops(run, *place, whole))
            add(*place, "cable", given_up(run, *place, whole))
    return result


def _growth(table: pl.DataFrame, counter: str, further: list[str]) -> list[tuple[str, str, int]]:
    """(node, device, last - first of a counter) of every device, in name order; summed over the `further` keys."""
    keys = ["node", "device", *further]
    grown = (
        table.sort("t_ns", maintain_order=True)
        .group_by(keys)
        .agg(pl.col(counter).last().cast(pl.Int64) - pl.col(counter).first().cast(pl.Int64))
    )
    total = grown.group_by("node", "device").agg(pl.col(counter).sum()).sort("node", "device")
    return [(node, device, int(count)) for node, device, count in total.iter_rows()]
