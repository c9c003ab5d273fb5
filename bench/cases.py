# SPDX-License-Identifier: Apache-2.0
"""What is run. Loaded seconds are the difference of two lengths, so boot, set-up, slow start and reading cancel.

The figures beside ours are quoted, not measured here: they were taken on a machine like this one (two x86-64 cores) and
say in which region ours are, not by how many per cent they differ.
"""

from dataclasses import dataclass
from typing import Any

from hourglass import scenario
from hourglass.scenario import Scenario

PROTOTYPE = "throw-away prototype, load inside the kernel"
USER_LOAD = "throw-away prototype, load in user space"
NS3 = "ns-3, optimised build, same topology and flows"


@dataclass(frozen=True)
class Peer:
    """Somebody else's figure, wall ms per loaded second: a range."""

    what: str
    low: float
    high: float


@dataclass(frozen=True)
class Case:
    """A scenario whose loaded seconds are counted from `short_s` to `long_s`."""

    name: str
    source: str | dict[str, Any]
    settings: tuple[str, ...]
    kernel: str
    short_s: float
    long_s: float
    peers: tuple[Peer, ...] = ()

    def scenario(self, length_s: float) -> Scenario:
        return scenario.load(self.source, [*self.settings, f"test.length={length_s}"], kernel=self.kernel)


def line(rate: str) -> dict[str, Any]:
    """Client, router, server; the first cable is the bottleneck; a base round trip of 20 ms."""
    return {
        "name": "bench",
        "testbed": {
            "node": [{"name": "client"}, {"name": "router", "role": "router"}, {"name": "server"}],
            "link": [
                {"ends": ["client:eth0", "router:eth0"], "rate": rate, "delay": "5ms"},
                {"ends": ["router:eth1", "server:eth0"], "delay": "5ms"},
            ],
        },
        "test": {"name": "tcp_nup", "delay": 0.2},
    }


def loaded(cc: str, rate: str, seconds: tuple[float, float], *peers: Peer, flows: int = 4, note: str = "") -> Case:
    settings = [f"stack.cc={cc}", f"test.upload_streams={flows}"]
    if note:
        settings.append("measure.tcp=0")
    name = f"{flows} {cc.upper()}, {rate.removesuffix('bit').upper()}{note}"
    return Case(name, line(rate), tuple(settings), "6.1", *seconds, peers)


UNSAMPLED = ", no samples"
SAMPLED_CASE = "4 CUBIC, 100M"
WITHOUT_SAMPLES = SAMPLED_CASE + UNSAMPLED

CASES = [
    loaded("cubic", "10mbit", (2, 22), Peer(PROTOTYPE, 26, 26)),
    loaded("bbr", "10mbit", (2, 22)),
    loaded("cubic", "100mbit", (2, 12), Peer(NS3, 147, 147), Peer(PROTOTYPE, 16, 45), Peer(USER_LOAD, 1000, 1300)),
    loaded("cubic", "100mbit", (2, 12), note=UNSAMPLED),
    loaded("bbr", "100mbit", (2, 12), Peer(PROTOTYPE, 30, 42), Peer(USER_LOAD, 1000, 1000)),
    loaded("cubic", "1gbit", (2, 5), Peer(NS3, 1360, 1500), Peer(PROTOTYPE, 250, 410), Peer(USER_LOAD, 2800, 2800)),
    loaded("bbr", "1gbit", (2, 5), Peer(PROTOTYPE, 270, 350)),
    loaded("cubic", "100mbit", (2, 8), Peer(PROTOTYPE, 130, 150), flows=64),
    Case(
        "1 CUBIC, 802.11n at 144M",
        "wifi-ath9k",
        ("test.upload_streams=1", "test.delay=0.2"),
        "6.1",
        *(2, 22),
        (Peer(NS3, 350, 350), Peer(PROTOTYPE, 100, 120)),
    ),
    *(Case(f"L100M, {kernel}", "L100M", ("test.delay=0.2",), kernel, 2, 22) for kernel in ("5.10", "6.1", "6.12")),
]

START = Case("start", "L100M", ("test.name=ping",), "6.1", 1, 1)
"""Boot and set-up of three nodes with HTB, and a second of pings."""

START_PEERS = (Peer(PROTOTYPE, 1300, 1700),)
