# SPDX-License-Identifier: Apache-2.0
"""What is run. Loaded seconds are the difference of two lengths, so boot, set-up, slow start and reading cancel.

The same in ns-3 and in namespaces of this machine's kernel is run beside ours (`peers.py`), so ratios are of one
machine in one state.
"""

from dataclasses import dataclass
from typing import Any

from hourglass import scenario
from hourglass.contract.kernels import KERNELS
from hourglass.scenario import Scenario


@dataclass(frozen=True)
class Case:
    """A scenario whose loaded seconds are counted from `short_s` to `long_s`."""

    name: str
    source: str | dict[str, Any]
    settings: tuple[str, ...]
    kernel: str
    short_s: float
    long_s: float
    ns3: tuple[str, ...] = ()
    """The program that runs the same in ns-3, and its arguments before the length."""
    ns3_s: tuple[float, float] = (1, 2)
    """The lengths between which ns-3's loaded seconds are counted."""
    target_ms: float | None = None
    """What a loaded second may cost at most, ms."""

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


LINE, AIR = "ns3_line.py", "ns3_wifi.py"
BITS = {"10mbit": 10**7, "100mbit": 10**8, "1gbit": 10**9}


def loaded(
    cc: str, rate: str, seconds: tuple[float, float], target_ms: float | None = None, flows: int = 4, note: str = ""
) -> Case:
    """Flows over `line`; CUBIC's at 100 Mbit/s and 1 Gbit/s beside ns-3."""
    settings = [f"stack.cc={cc}", f"test.upload_streams={flows}"]
    if note:
        settings += ["measure.tcp=0", "measure.devices=0", "measure.packets=0"]
    name = f"{flows} {cc.upper()}, {rate.removesuffix('bit').upper()}{note}"
    beside = cc == "cubic" and flows == 4 and not note and rate != "10mbit"
    ns3 = (LINE, str(BITS[rate]), str(flows)) if beside else ()
    return Case(name, line(rate), tuple(settings), "6.1", *seconds, ns3=ns3, target_ms=target_ms)


UNSAMPLED = ", nothing measured"
SAMPLED_CASE = "4 CUBIC, 100M"
WITHOUT_SAMPLES = SAMPLED_CASE + UNSAMPLED

CASES = [
    loaded("cubic", "10mbit", (2, 22)),
    loaded("bbr", "10mbit", (2, 22)),
    loaded("cubic", "100mbit", (2, 12), 30),
    loaded("cubic", "100mbit", (2, 12), note=UNSAMPLED),
    loaded("bbr", "100mbit", (2, 12), 30),
    loaded("cubic", "1gbit", (2, 5), 250),
    loaded("bbr", "1gbit", (2, 5), 250),
    loaded("cubic", "100mbit", (2, 8), flows=64),
    loaded("cubic", "100mbit", (4, 10), flows=1000),
    *(Case(f"L100M, {kernel}", "L100M", ("test.delay=0.2",), kernel, 2, 22) for kernel in KERNELS),
    Case("wifi-ath9k", "wifi-ath9k", ("test.delay=0.2",), "6.1", 2, 12, ns3=(AIR, "4"), target_ms=100),
    Case("wifi-ath9k-htc", "wifi-ath9k-htc", ("test.delay=0.2",), "6.1", 2, 12, target_ms=100),
]

START = Case("start", "L100M", ("test.name=ping",), "6.1", 1, 1)
"""Boot and set-up of three nodes with HTB, and a second of pings."""

WHOLE = Case("L100M", "L100M", (), "6.1", 30, 30)
"""The main job, with everything measured and the table and picture made."""

NATIVE = Case("native", "L100M", ("test.delay=0.2",), "6.1", 3, 13)
"""What is run once more in namespaces of this machine's own kernel."""

FRAMES = tuple(f"testbed.link.{link}.{name}=false" for link in (0, 1) for name in ("tso", "gso", "gro"))
"""Every packet by itself, as on a cable: pairs of veth pass on whatever TCP hands down, up to 64 KB in one piece."""
