# SPDX-License-Identifier: Apache-2.0
"""What well-known tools say of themselves, as figures: `iperf3 --json`, `ping`, `irtt client -o -`, `curl -w`.

| tool | how it is known | figures |
|---|---|---|
| iperf3 | JSON with `start` and `end` | goodput at the receiver, what was sent, retransmits, UDP's jitter and loss |
| ping | lines `time=… ms` | round trips, echoes lost |
| irtt | JSON with `round_trips` | round trips, packets lost, jitter |
| curl | lines `time_total=…` or JSON (`-w '%{json}'`) | times of requests, rate of the last |

A tool whose words are not understood has no figures: its output is there as it is.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from hourglass.contract.summary import Statistics
from hourglass.results.stats import rounded, statistics

MBIT, MS_PER_S, NS_PER_MS = 10**6, 1000, 10**6


@dataclass(frozen=True)
class Told:
    """What a tool told."""

    goodput_mbps: float | None = None
    sent_mbps: float | None = None
    retransmits: int | None = None
    lost: int | None = None
    jitter_ms: float | None = None
    latency_ms: Statistics = field(default_factory=lambda: statistics([]))


def told(command: list[str], output: str) -> Told:
    """The figures of a tool, by its name and what it wrote to stdout."""
    read = TOOLS.get(PurePosixPath(command[0]).name)
    try:
        return read(output) if read else Told()
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return Told()


def _iperf3(output: str) -> Told:
    end = json.loads(output[output.index("{") :])["end"]
    if "sum" in end:  # UDP
        found = end["sum"]
        received = end.get("sum_received", found)
        return Told(
            goodput_mbps=rounded(received["bits_per_second"] / MBIT),
            sent_mbps=rounded(found["bits_per_second"] / MBIT),
            lost=int(found["lost_packets"]),
            jitter_ms=rounded(found["jitter_ms"]),
        )
    return Told(
        goodput_mbps=rounded(end["sum_received"]["bits_per_second"] / MBIT),
        sent_mbps=rounded(end["sum_sent"]["bits_per_second"] / MBIT),
        retransmits=end["sum_sent"].get("retransmits"),
    )


_ECHO = re.compile(r"time=([0-9.]+) ms")
_ECHOES = re.compile(r"(\d+) packets transmitted, (\d+) received")


def _ping(output: str) -> Told:
    times = [float(one) for one in _ECHO.findall(output)]
    counted = _ECHOES.search(output)
    lost = int(counted[1]) - int(counted[2]) if counted else None
    return Told(lost=lost, latency_ms=statistics(times))


def _irtt(output: str) -> Told:
    read = json.loads(output[output.index("{") :])
    trips = [one for one in read["round_trips"] if one.get("lost") in ("false", False)]
    stats = read["stats"]
    jitter = stats.get("ipdv_round_trip", {}).get("mean")
    return Told(
        lost=int(stats["packets_sent"]) - int(stats["packets_received"]),
        jitter_ms=None if jitter is None else rounded(jitter / NS_PER_MS),
        latency_ms=statistics([one["delay"]["rtt"] / NS_PER_MS for one in trips]),
    )


_TOTAL = re.compile(r"time_total[=:]\s*([0-9.]+)")
_SPEED = re.compile(r"speed_download[=:]\s*([0-9.]+)")


def _curl(output: str) -> Told:
    objects = list(_objects(output))
    totals = [float(one["time_total"]) for one in objects] or [float(one) for one in _TOTAL.findall(output)]
    speeds = [float(one["speed_download"]) for one in objects] or [float(one) for one in _SPEED.findall(output)]
    return Told(
        goodput_mbps=rounded(speeds[-1] * 8 / MBIT) if speeds else None,
        latency_ms=statistics([one * MS_PER_S for one in totals]),
    )


def _objects(output: str) -> Iterator[dict[str, Any]]:
    """The lines that are JSON objects with curl's times."""
    for line in output.splitlines():
        if line.startswith("{") and '"time_total"' in line:
            yield json.loads(line)


TOOLS: dict[str, Callable[[str], Told]] = {"iperf3": _iperf3, "ping": _ping, "irtt": _irtt, "curl": _curl}
"""By the name of the program."""
