# SPDX-License-Identifier: Apache-2.0
"""Define the scenarios to run. Loaded seconds are the difference of two lengths, so boot, set-up, slow start and
reading cancel.

The same traffic in ns-3 and in namespaces of this machine's kernel runs next to Hourglass (`peers.py`), so ratios are
of one machine in one state.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hourglass import scenario
from hourglass.contract.kernels import DEFAULT, KERNELS
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
    """The program for the same traffic in ns-3, and its arguments before the length."""
    ns3_s: tuple[float, float] = (1, 2)
    """The lengths between which ns-3's loaded seconds are counted."""
    target_ms: float | None = None
    """The limit for a loaded second, ms."""

    def scenario(self, length_s: float) -> Scenario:
        return scenario.load(self.source, [*self.settings, f"test.length={length_s}"], kernel=self.kernel)


LINE_FILE = Path(__file__).with_name("line.toml")


def line(rate: str) -> dict[str, Any]:
    """Return `line.toml` with a bottleneck of this rate."""
    data = tomllib.loads(LINE_FILE.read_text())
    data["testbed"]["link"][0]["rate"] = rate
    return data


UNSAMPLED = ", nothing measured"
BARE = ("measure.tcp=0", "measure.devices=0", "measure.packets=0")
"""Nothing is measured: what a case's name says of it, and its settings."""

LINE, AIR = "ns3_line.py", "ns3_wifi.py"
BITS = {"10mbit": 10**7, "100mbit": 10**8, "1gbit": 10**9}


def title(flows: int, cc: str, rate: str, note: str = "") -> str:
    """Return the name of a case of `line`."""
    return f"{flows} {cc.upper()}, {rate.removesuffix('bit').upper()}{note}"


def options(settings: Iterable[str]) -> list[str]:
    """Return settings as options of the command line."""
    return [word for setting in settings for word in ("--set", setting)]


def loaded(
    cc: str, rate: str, seconds: tuple[float, float], target_ms: float | None = None, flows: int = 4, note: str = ""
) -> Case:
    """Return a case with flows over `line`. CUBIC at 100 Mbit/s and 1 Gbit/s also runs in ns-3."""
    settings = [f"stack.cc={cc}", f"test.upload_streams={flows}"]
    if note:
        settings += BARE
    with_ns3 = cc == "cubic" and flows == 4 and not note and rate != "10mbit"
    ns3 = (LINE, str(BITS[rate]), str(flows)) if with_ns3 else ()
    name = title(flows, cc, rate, note)
    return Case(name, line(rate), tuple(settings), DEFAULT, *seconds, ns3=ns3, target_ms=target_ms)


SAMPLED_CASE = title(4, "cubic", "100mbit")
PAIR = (SAMPLED_CASE, SAMPLED_CASE + UNSAMPLED)

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
    Case("wifi-ath9k", "wifi-ath9k", ("test.delay=0.2",), DEFAULT, 2, 12, ns3=(AIR, "4"), target_ms=100),
    Case("wifi-ath9k-htc", "wifi-ath9k-htc", ("test.delay=0.2",), DEFAULT, 2, 12, target_ms=100),
]

MEASURED_AND_BARE = [(case.name, (case.short_s, case.long_s)) for case in CASES if case.name in PAIR]

PING = ("test.name=ping", "test.length=1")
"""The shortest run: boot, set-up of three nodes with HTB, and a second of pings."""


def pings() -> Scenario:
    return scenario.load("L100M", list(PING), kernel=DEFAULT)


FLOWS = (4, 1000)
"""Of L100M, where CPU time per segment is counted."""

HOST_BEGIN_S, HOST_END_S = 3, 9
"""The seconds of test time that are counted on this machine's own kernel."""


def segments(flows: int, *more: str) -> Case:
    """Return L100M with a number of flows."""
    settings = ("test.delay=0.2", f"test.upload_streams={flows}", *more)
    return Case(f"{flows} flows of L100M", "L100M", settings, DEFAULT, 3, 13)


def on_host(flows: int, *more: str) -> Scenario:
    """Return the same for this machine's own kernel, with only the measurement of delivered segments."""
    settings = ("measure.tcp=500ms", "measure.devices=0", "measure.packets=0", *more)
    return segments(flows, *settings).scenario(HOST_END_S)


SEGMENTS_PER_S = 1e8 / 8 / 1538
"""On a line of 100 Mbit/s: frames of 1,514 bytes and 24 around them."""

FRAMES = tuple(f"testbed.link.{link}.{name}=false" for link in (0, 1) for name in ("tso", "gso", "gro"))
"""Every packet by itself, as on a cable: pairs of veth pass on whatever TCP hands down, up to 64 KB in one piece."""


def connected() -> Scenario:
    """Return 1,000 flows that start at once and end as soon as possible."""
    settings = ["test.delay=0", "test.length=0.2", "test.upload_streams=1000"]
    return scenario.load(line("100mbit"), settings, kernel=DEFAULT)


def crowd(flows: int) -> Scenario:
    """Return thousands of flows for a second: 1,000 of the test, and the others as competing flows."""
    data = line("100mbit")
    competing = {"client": "client", "server": "server", "upload_streams": 1000}
    data["test"]["competing"] = [competing] * (flows // 1000 - 1)
    return scenario.load(data, ["test.upload_streams=1000", "test.length=1"], kernel=DEFAULT)


def nodes(count: int) -> Scenario:
    """Return a number of nodes: two connected routers with the hosts, and a second of pings from end to end."""
    routers, hosts = ("left", "right"), [f"host{number}" for number in range(count - 2)]
    ports = [f"{routers[number % 2]}:port{number}" for number in range(count - 2)]
    data = {
        "name": "nodes",
        "testbed": {
            "node": [{"name": name, "role": "router"} for name in routers] + [{"name": name} for name in hosts],
            "link": [{"ends": [f"{host}:eth0", port]} for host, port in zip(hosts, ports, strict=True)]
            + [{"ends": ["left:up", "right:up"]}],
        },
        "test": {"name": "ping", "client": hosts[0], "server": hosts[-1], "length": 1},
    }
    return scenario.load(data, kernel=DEFAULT)


SWEPT = 24


def sweep(folder: Path) -> Path:
    """Write the file of a sweep of short runs."""
    file = folder / "sweep.toml"
    file.write_text(f'scenario = "L100M"\nrepetitions = {SWEPT}\n[set]\n"test.length" = 2\n"test.delay" = 0.2\n')
    return file
