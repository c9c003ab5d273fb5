# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.explain_draw -n 30 --seed 1`: compare the named bottleneck of random scenarios with reruns.

For each scenario, every capacity is doubled in turn: each cable, the air, and each limit of the sender that the
scenario has. The share of lost frames is quartered, which doubles the rate of a loss-based sender. The bottleneck that
`hourglass explain` names must be the capacity that moves the ping or the goodput most. Exit status 1: it is not.

A run lasts 4 s of test time, so 30 scenarios take a few minutes on two cores. They are no part of the suite. The runs
stay in runs/explain-draw, so the next call only judges them again.
"""

import argparse
import math
import random
from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import hourglass
from hourglass.results.explain import explanation_of

Data = dict[str, Any]

FOLDER = Path("runs/explain-draw")

QDISCS = ("pfifo_fast", "pfifo limit 100", "fq_codel", "fq", "cake", "codel", "sfq", "pie")
CCS = ("cubic", "reno", "bbr", "cubic", "vegas")
RATES = (10, 16, 25, 40, 64, 100)
LIMITS = ("", "", "", "receive window", "send buffer", "pacing", "application", "loss")
"""Limits of the sender; a cable or the air is the bottleneck of the other half."""
AS_GOOD = 0.9
"""A capacity that moves the figures this nearly as much as the largest is as good an answer."""


def draw(seed: str) -> Data:
    """Return a random scenario."""
    chance = random.Random(seed)
    radio = chance.random() < 0.3
    rates = chance.sample(RATES, 3)
    testbed = _cell(chance, rates) if radio else _line(chance, rates)
    flows = chance.randint(1, 4)
    upload = chance.random() < 0.6
    test: Data = {"length": 4, "delay": 0.5, "ping_interval": 0.05}
    test |= {"name": "tcp_nup", "upload_streams": flows} if upload else {"name": "tcp_ndown", "download_streams": flows}
    stack: Data = {"cc": chance.choice(CCS), "qdisc": chance.choice(QDISCS)}
    if chance.random() < 0.3:
        stack["tsq"] = "off"
    limit = chance.choice(LIMITS)
    if limit in ("pacing", "application"):
        key = "stream_rates" if limit == "pacing" else "stream_writes"
        test[key] = [f"{max(1, min(rates) // (3 * flows))}mbit"]
    elif limit == "receive window":
        stack["sysctl"] = {"net.ipv4.tcp_rmem": "4096 16384 16384"}
    elif limit == "send buffer":
        stack["sysctl"] = {"net.ipv4.tcp_wmem": "4096 16384 65536"}
    elif limit == "loss":
        testbed["link"][-1]["loss"] = "3%"
        stack["cc"] = "reno"
    if limit:
        testbed["link"][-1]["delay"] = "20ms"
    return {"name": "drawn", "seed": 1, "testbed": testbed, "stack": stack, "test": test, "limit": limit}


def _line(chance: random.Random, rates: list[int]) -> Data:
    """Return client, two routers and server, with a shaper on one of the cables or none."""
    nodes = [{"name": "client"}, {"name": "r1", "role": "router"}, {"name": "r2", "role": "router"}, {"name": "server"}]
    ends = [("client:eth0", "r1:eth0"), ("r1:eth1", "r2:eth0"), ("r2:eth1", "server:eth0")]
    links: list[Data] = [{"ends": list(pair), "rate": f"{rate}mbit"} for pair, rate in zip(ends, rates, strict=True)]
    links[1]["delay"] = chance.choice(["500us", "2ms", "5ms", "10ms"])
    testbed: Data = {"node": nodes, "link": links}
    if chance.random() < 0.3:
        shaped = chance.randrange(3)
        rate = rates[shaped] * 0.8
        links[shaped]["rate"] = "1gbit"
        testbed["shaper"] = [{"at": at, "rate": f"{rate * 1000:.0f}kbit"} for at in ends[shaped]]
    return testbed


def _cell(chance: random.Random, rates: list[int]) -> Data:
    """Return a station, its access point and a server."""
    nodes = [{"name": "client"}, {"name": "ap", "role": "router"}, {"name": "server"}]
    rate = chance.choice([f"{rates[0]}mbit", "1gbit"])
    return {
        "node": nodes,
        "wifi": [{"ap": "ap:wlan0", "width": 20, "streams": 1, "mcs": chance.randint(2, 7),
                  "station": [{"at": "client:wlan0"}]}],
        "link": [{"ends": ["ap:eth0", "server:eth0"], "rate": rate, "delay": chance.choice(["1ms", "5ms"])}],
    }  # fmt: skip


def doubled(data: Data) -> Iterator[tuple[str, Data]]:
    """Yield the name of each capacity with the scenario in which it is doubled."""
    testbed = data["testbed"]
    for number, link in enumerate(testbed["link"]):
        other = deepcopy(data)
        other["testbed"]["link"][number]["rate"] = _twice(link["rate"])
        for shaper in other["testbed"].get("shaper", []):
            if shaper["at"] in link["ends"]:
                shaper["rate"] = _twice(shaper["rate"])
        yield f"testbed.link.{number}", other
    if "wifi" in testbed:
        other = deepcopy(data)
        other["testbed"]["wifi"][0]["streams"] = 2
        yield "testbed.wifi.0", other
    if limit := data["limit"]:
        other = deepcopy(data)
        test, stack = other["test"], other["stack"]
        if limit in ("pacing", "application"):
            key = "stream_rates" if limit == "pacing" else "stream_writes"
            test[key] = [_twice(test[key][0])]
        elif limit == "loss":
            other["testbed"]["link"][-1]["loss"] = "0.75%"
        else:
            name = "net.ipv4.tcp_rmem" if limit == "receive window" else "net.ipv4.tcp_wmem"
            low, middle, high = map(int, stack["sysctl"][name].split())
            stack["sysctl"][name] = f"{low} {2 * middle} {2 * high}"
        yield limit, other


def _twice(rate: str) -> str:
    digits = rate.rstrip("kmgbit")
    return f"{2 * int(digits)}{rate[len(digits) :]}"


def figures(run: hourglass.results.recording.Recording) -> tuple[float, float]:
    """Return the median ping and the goodput."""
    summary = run.summary
    return summary.ping_ms["icmp"].p50 or 0, summary.totals.upload_mbps + summary.totals.download_mbps


def _run(data: Data, folder: Path) -> hourglass.results.recording.Recording:
    if folder.exists():
        return hourglass.load(folder)
    return hourglass.run({key: value for key, value in data.items() if key != "limit"}, folder)


def judged(series: str, number: int) -> tuple[int, bool, str]:
    """Make the runs of a scenario. Return its number, whether the named bottleneck moves the figures most, and why."""
    data = draw(f"{series} {number}")
    folder = FOLDER / f"{series}-{number}"
    base = _run(data, folder / "base")
    explained = explanation_of(base)
    bottleneck = explained.bottleneck
    answer = bottleneck.hop.hop.origin if bottleneck.hop else bottleneck.kind
    before = figures(base)
    moves = {}
    for name, other in doubled(data):
        after = figures(_run(other, folder / name))
        moves[name] = max(
            abs(math.log(new / old)) if old and new else 0 for old, new in zip(before, after, strict=True)
        )
    best = max(moves.values())
    is_right = moves.get(answer, 0) >= AS_GOOD * best
    listed = ", ".join(
        f"{name} {math.exp(move):.2f}x" for name, move in sorted(moves.items(), key=lambda item: -item[1])
    )
    about = f"{data['stack']['cc']}, {data['stack']['qdisc']}, limit {data['limit'] or 'none'}, {data['test']['name']}"
    text = f"{before[0]:.1f} ms, {before[1]:.1f} Mbit/s; named {answer} ({bottleneck.where}); {listed} [{about}]"
    return number, is_right, text


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.explain_draw")
    parser.add_argument("-n", type=int, default=30, help="number of scenarios")
    parser.add_argument("--seed", default="1", help="name of the series")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="scenarios at a time")
    parser.add_argument("--only", type=int, help="one scenario of the series")
    arguments = parser.parse_args()
    numbers = range(arguments.n) if arguments.only is None else [arguments.only]
    rights = 0
    with get_context("spawn").Pool(arguments.jobs) as pool:
        for number, is_right, text in pool.imap_unordered(partial(judged, arguments.seed), numbers):
            rights += is_right
            print(f"{number:3} {'right' if is_right else 'WRONG'}  {text}", flush=True)
    print(f"{rights} of {len(numbers)} right")
    return int(rights < len(numbers))


if __name__ == "__main__":
    raise SystemExit(main())
