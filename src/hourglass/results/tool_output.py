# SPDX-License-Identifier: Apache-2.0
"""Figures from the output of well-known tools: `iperf3 --json`, `ping`, `irtt client -o -`, `curl -w`.

| tool | format | figures |
|---|---|---|
| iperf3 | JSON with `start` and `end` | received and sent rate, retransmits; UDP's packets, jitter, loss |
| ping | lines `time=… ms` | round trips, echoes lost |
| irtt | JSON with `round_trips` | round trips, packets lost, jitter |
| irtt | the line `packets sent/received: …` | packets lost |
| curl | lines `time_total=…` or JSON (`-w '%{json}'`) | times of requests, download rate of the last |

The name of the program selects the parser. Output of another name or format is stored without figures.
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
class ToolFigures:
    """The figures that a tool printed."""

    goodput_mbps: float | None = None
    sent_mbps: float | None = None
    retransmits: int | None = None
    sent: int | None = None
    lost: int | None = None
    jitter_ms: float | None = None
    latency_ms: Statistics = field(default_factory=lambda: statistics([]))

    @property
    def total_loss(self) -> str:
        """Return a clause that reports a total loss; "" if data arrived or nothing is known."""
        if self.sent and self.lost == self.sent:
            return f"all {self.sent} packets that it sent were lost" if self.sent > 1 else "its only packet was lost"
        return "none of the data that it sent arrived" if self.sent_mbps and self.goodput_mbps == 0 else ""


def tool_figures(command: list[str], output: str) -> ToolFigures:
    """Return the figures of a tool, by its name and its stdout."""
    parse = TOOLS.get(PurePosixPath(command[0]).name)
    try:
        return parse(output) if parse else ToolFigures()
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return ToolFigures()


def _iperf3(output: str) -> ToolFigures:
    end = json.loads(output[output.index("{") :])["end"]
    if "sum" in end:  # UDP
        total = end["sum"]
        received, sent = end.get("sum_received", total), int(total.get("packets", 0))
        return ToolFigures(
            goodput_mbps=rounded(received["bits_per_second"] / MBIT),
            sent_mbps=rounded(total["bits_per_second"] / MBIT),
            sent=sent,
            lost=sent if received.get("bytes") == 0 else int(total["lost_packets"]),  # iperf3 says 0 if all are lost
            jitter_ms=rounded(total["jitter_ms"]),
        )
    return ToolFigures(
        goodput_mbps=rounded(end["sum_received"]["bits_per_second"] / MBIT),
        sent_mbps=rounded(end["sum_sent"]["bits_per_second"] / MBIT),
        retransmits=end["sum_sent"].get("retransmits"),
    )


_ECHO = re.compile(r"time=([0-9.]+) ms")
_PING_COUNTS = re.compile(r"(\d+) packets transmitted, (\d+) (?:packets )?received")


def _ping(output: str) -> ToolFigures:
    times = [float(text) for text in _ECHO.findall(output)]
    counts = _PING_COUNTS.search(output)
    sent, received = map(int, counts.groups()) if counts else (None, None)
    lost = None if sent is None or received is None else sent - received
    return ToolFigures(sent=sent, lost=lost, latency_ms=statistics(times))


_PACKET_COUNTS = re.compile(r"packets sent/received: (\d+)/(\d+)")


def _irtt(output: str) -> ToolFigures:
    if counts := _PACKET_COUNTS.search(output):  # without `-o -`
        sent, received = map(int, counts.groups())
        return ToolFigures(sent=sent, lost=sent - received)
    report = json.loads(output[output.index("{") :])
    trips = [trip for trip in report["round_trips"] if trip.get("lost") in ("false", False)]
    stats = report["stats"]
    jitter = stats.get("ipdv_round_trip", {}).get("mean")
    sent = int(stats["packets_sent"])
    return ToolFigures(
        sent=sent,
        lost=sent - int(stats["packets_received"]),
        jitter_ms=None if jitter is None else rounded(jitter / NS_PER_MS),
        latency_ms=statistics([trip["delay"]["rtt"] / NS_PER_MS for trip in trips]),
    )


_TOTAL = re.compile(r"time_total[=:]\s*([0-9.]+)")
_SPEED = re.compile(r"speed_download[=:]\s*([0-9.]+)")


def _curl(output: str) -> ToolFigures:
    objects = list(_objects(output))
    totals = [float(entry["time_total"]) for entry in objects] or [float(entry) for entry in _TOTAL.findall(output)]
    speeds = [float(entry["speed_download"]) for entry in objects] or [float(entry) for entry in _SPEED.findall(output)]
    return ToolFigures(
        goodput_mbps=rounded(speeds[-1] * 8 / MBIT) if speeds else None,
        latency_ms=statistics([seconds * MS_PER_S for seconds in totals]),
    )


def _objects(output: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects that have curl's times."""
    for line in output.splitlines():
        if line.startswith("{") and '"time_total"' in line:
            yield json.loads(line)


TOOLS: dict[str, Callable[[str], ToolFigures]] = {"iperf3": _iperf3, "ping": _ping, "irtt": _irtt, "curl": _curl}
"""Parsers by the name of the program."""
