# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.explain_draw -n 30 --seed 1`: compare the named bottleneck of random scenarios with reruns.

For each scenario, every capacity is doubled in turn: each cable with its shapers, the air, each router's CPU, and each
limit of the sender that the scenario has. The share of lost frames is quartered, which doubles the rate of a loss-based
sender. The bottleneck that `hourglass explain` names must be the capacity that shortens the ping or raises the goodput
most. With several loads, it must shorten the ping most, if any capacity does. Figures are means over three seeds.
Exit status 1: another capacity gains more.

A run lasts 8 s of test time, so 30 scenarios take two minutes on two cores. They are no part of the suite. The runs
stay in runs/explain-draw, so the next call only judges them again.
"""

import argparse
import math
import random
import re
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import hourglass
from hourglass.results.explain import explanation_of
from hourglass.results.explain.bottleneck import Bottleneck
from hourglass.results.recording import Recording

Data = dict[str, Any]

FOLDER = Path("runs/explain-draw")

QDISCS = ("pfifo_fast", "pfifo limit 100", "fq_codel", "fq", "cake", "codel", "sfq", "pie")
CCS = ("cubic", "reno", "bbr", "cubic", "vegas")
RATES = (10, 16, 25, 40, 64, 100)
LIMITS = ("", "", "", "receive window", "send buffer", "pacing", "application", "loss")
"""Limits of the sender; a cable or the air is the bottleneck of the other half."""
SHAPERS = ("htb", "policer", "shaper", "tbf", "cake", "ingress")
SEEDS = (1, 2, 3)
AS_GOOD = 0.9
"""A capacity that gains nearly as much as the best is as good an answer."""
LEAST_GAIN = math.log(1.2)
"""Capacities that gain less than this are no bottleneck: a limit that no capacity stands for is right."""


def draw(seed: str) -> Data:
    """Return a random scenario. Its keys `limit` and `kind` are not the scenario's."""
    chance = random.Random(seed)
    rates = chance.sample(RATES, 3)
    make = chance.choice([_line, _shaped, _slow_router, _access, _shared, _cell, _stations])
    testbed = make(chance, rates)
    flows = chance.randint(1, 4)
    test: Data = {"length": 8, "delay": 0.5, "ping_interval": 0.05}
    if make is _access:
        test |= {"name": "tcp_bidirectional"}
        flows = 1
    elif chance.random() < 0.6:
        test |= {"name": "tcp_nup", "upload_streams": flows}
    else:
        test |= {"name": "tcp_ndown", "download_streams": flows}
    neighbours = [node["name"] for node in testbed["node"] if node["name"].startswith("other")]
    if neighbours:
        upload = chance.random() < 0.5
        test["competing"] = [
            {"client": name, "upload_streams": int(upload), "download_streams": int(not upload)} for name in neighbours
        ]
    stack: Data = {"cc": chance.choice(CCS), "qdisc": chance.choice(QDISCS)} | testbed.pop("stack", {})
    if chance.random() < 0.3:
        stack["tsq"] = "off"
    limit = chance.choice(LIMITS) if make in (_line, _cell) else ""
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
    data = {"name": "drawn", "testbed": testbed, "stack": stack, "test": test}
    if make in (_line, _shaped, _shared) and not limit and chance.random() < 0.25:
        _use_iperf3(data, flows)
    return data | {"limit": limit, "kind": make.__name__.strip("_")}


def _use_iperf3(data: Data, flows: int) -> None:
    """Let a program make the load."""
    test = data["test"]
    reverse = [] if test.pop("name") == "tcp_nup" else ["--reverse"]
    for key in ("upload_streams", "download_streams"):
        test.pop(key, None)
    test |= {"name": "ping", "length": 9, "delay": 0}
    client = ["iperf3", "--client", "server", "--time", "8", "--parallel", str(flows), *reverse]
    data["apps"] = {"packages": ["iperf3"]}
    data["app"] = [
        {"name": "server", "node": "server", "command": ["iperf3", "--server"], "ready": {"listen": "tcp:5201"}},
        {"name": "load", "node": "client", "after": ["server"], "command": client},
    ]


def _line(chance: random.Random, rates: list[int]) -> Data:
    """Return client, two routers and server, with an HTB shaper on one of the cables or none."""
    nodes = [{"name": "client"}, {"name": "r1", "role": "router"}, {"name": "r2", "role": "router"}, {"name": "server"}]
    ends = [("client:eth0", "r1:eth0"), ("r1:eth1", "r2:eth0"), ("r2:eth1", "server:eth0")]
    links: list[Data] = [{"ends": list(pair), "rate": f"{rate}mbit"} for pair, rate in zip(ends, rates, strict=True)]
    links[1]["delay"] = chance.choice(["500us", "2ms", "5ms", "10ms"])
    testbed: Data = {"node": nodes, "link": links}
    if chance.random() < 0.3:
        shaped = chance.randrange(3)
        _shape(testbed, shaped, rates[shaped], "htb")
    return testbed


def _shaped(chance: random.Random, rates: list[int]) -> Data:
    """Return a line, with a shaper of any kind on one of the cables."""
    testbed = _line(random.Random(chance.random()), rates)
    testbed.pop("shaper", None)
    shaped = chance.randrange(3)
    _shape(testbed, shaped, rates[shaped], chance.choice(SHAPERS))
    return testbed


def _shape(testbed: Data, number: int, rate_mbps: int, kind: str) -> None:
    """Limit a cable of 1 Gbit/s to 80 % of a rate, in both directions."""
    link = testbed["link"][number]
    rate = f"{rate_mbps * 800}kbit"
    link["rate"] = "1gbit"
    if kind == "htb":
        testbed["shaper"] = [{"at": at, "rate": rate} for at in link["ends"]]
    elif kind == "policer":
        link["policer"] = {"rate": rate, "burst": "64KiB"}
    elif kind == "shaper":
        link["shaper"] = {"rate": rate, "latency": "50ms"}
    else:
        key = "ingress" if kind == "ingress" else "qdisc"
        line = f"tbf rate {rate} burst 5kb latency 50ms" if kind == "tbf" else f"cake bandwidth {rate}"
        stack = testbed.setdefault("stack", {})
        for at in link["ends"]:
            node, device = at.split(":")
            stack.setdefault(node, {}).setdefault("device", {})[device] = {key: line}


def _slow_router(chance: random.Random, rates: list[int]) -> Data:
    """Return a line with a router whose CPU may be slower than the cables."""
    testbed = _line(random.Random(chance.random()), rates)
    key = chance.choice(["received", "sent"])
    testbed["node"][1]["cpu"] = {key: f"{chance.choice([100, 200, 400, 800, 1600])}us"}
    return testbed


def _access(chance: random.Random, rates: list[int]) -> Data:
    """Return a home's line with another rate in each direction."""
    nodes = [{"name": "client"}, {"name": "home", "role": "router"}, {"name": "isp", "role": "router"},
             {"name": "server"}]  # fmt: skip
    links: list[Data] = [
        {"ends": ["client:eth0", "home:lan"], "rate": "1gbit"},
        {"ends": ["home:wan", "isp:line"], "rate": [f"{rate}mbit" for rate in rates[:2]], "delay": "4ms"},
        {"ends": ["isp:core", "server:eth0"], "rate": f"{rates[2]}mbit", "delay": "6ms"},
    ]
    testbed: Data = {"node": nodes, "link": links}
    if chance.random() < 0.5:
        testbed["stack"] = {"isp": {"qdisc": "pfifo limit 500"}}
    return testbed


def _shared(chance: random.Random, rates: list[int]) -> Data:
    """Return a line that another host shares, by a cable to one of the routers."""
    testbed = _line(random.Random(chance.random()), rates)
    router = chance.choice(["r1", "r2"])
    testbed["node"].insert(1, {"name": "other"})
    testbed["link"].append({"ends": ["other:eth0", f"{router}:eth2"], "rate": f"{chance.choice(RATES)}mbit"})
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


def _stations(chance: random.Random, rates: list[int]) -> Data:
    """Return a cell with another station that sends or receives, too slow or not."""
    testbed = _cell(chance, rates)
    testbed["node"].insert(1, {"name": "other"})
    testbed["wifi"][0]["station"].append({"at": "other:wlan0", "mcs": chance.randint(0, 7)})
    return testbed


def doubled(data: Data) -> Iterator[tuple[str, Data]]:
    """Yield the name of each capacity with the scenario in which it is doubled."""
    testbed = data["testbed"]
    for number, link in enumerate(testbed["link"]):
        for direction in range(2) if isinstance(link["rate"], list) else (None,):
            other = deepcopy(data)
            _double_link(other, number, direction)
            yield _link_name(number, direction), other
    if "wifi" in testbed:
        other = deepcopy(data)
        other["testbed"]["wifi"][0]["streams"] = 2
        yield "testbed.wifi.0", other
    for number, node in enumerate(testbed["node"]):
        if "cpu" in node:
            other = deepcopy(data)
            other["testbed"]["node"][number]["cpu"] = {
                key: f"{int(time.removesuffix('us')) // 2}us" for key, time in node["cpu"].items()
            }
            yield f"cpu of {node['name']}", other
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


def _link_name(number: int, direction: int | None) -> str:
    return f"testbed.link.{number}" + ("" if direction is None else f".{direction}")


def _double_link(data: Data, number: int, direction: int | None) -> None:
    """Double the rate of a cable, and of whatever shapes it; in one direction only if its rates differ."""
    link = data["testbed"]["link"][number]
    if direction is not None:
        link["rate"][direction] = _twice(link["rate"][direction])
        return
    link["rate"] = _twice(link["rate"])
    for key in ("policer", "shaper"):
        if key in link:
            link[key]["rate"] = _twice(link[key]["rate"])
    for shaper in data["testbed"].get("shaper", []):
        if shaper["at"] in link["ends"]:
            shaper["rate"] = _twice(shaper["rate"])
    for at in link["ends"]:
        node, device = at.split(":")
        lines = data["stack"].get(node, {}).get("device", {}).get(device, {})
        for key, line in lines.items():
            lines[key] = re.sub(r"\d+kbit", lambda rate: _twice(rate[0]), line)


def _twice(rate: str) -> str:
    digits = rate.rstrip("kmgbit")
    return f"{2 * int(digits)}{rate[len(digits) :]}"


def figures(run: Recording) -> list[float]:
    """Return the median ping, and the goodput of each client and direction, then that of programs."""
    summary = run.summary
    goodput = {flow.id: flow.goodput_mbps for flow in summary.flows}
    loads = [
        sum(8e-6 * connection.bytes for connection in run.connections if connection.upload == upload)
        for upload in (True, False)
    ]
    flows = [
        sum(goodput[flow.name] for flow in run.flows if (flow.client, flow.upload) == (client, upload))
        for client in ("client", "other")
        for upload in (True, False)
    ]
    return [summary.ping_ms["icmp"].p50 or 0, *flows, *loads]


def _run(data: Data, folder: Path, seed: int) -> Recording:
    folder = folder / str(seed)
    if folder.exists():
        return hourglass.load(folder)
    settings = {key: value for key, value in data.items() if key not in ("limit", "kind")}
    return hourglass.run(settings | {"seed": seed}, folder)


def _means(data: Data, folder: Path) -> list[float]:
    """Return the geometric means of the figures over the seeds."""
    by_seed = [figures(_run(data, folder, seed)) for seed in SEEDS]
    return [math.prod(values) ** (1 / len(SEEDS)) for values in zip(*by_seed, strict=True)]


def _named(data: Data, bottleneck: Bottleneck) -> str:
    """Return the capacity that a bottleneck is."""
    if bottleneck.hop is None:
        return f"cpu of {bottleneck.node}" if bottleneck.kind == "cpu" else bottleneck.kind
    origin = bottleneck.hop.hop.origin
    if not origin.startswith("testbed.link."):
        return origin
    number = int(origin.rsplit(".", 1)[1])
    link = data["testbed"]["link"][number]
    if not isinstance(link["rate"], list):
        return origin
    return _link_name(number, link["ends"].index(f"{bottleneck.hop.hop.node}:{bottleneck.hop.hop.device}"))


def _gains(before: list[float], after: list[float]) -> list[float]:
    """Return the logarithms of the factors by which the ping is shorter and the goodputs are higher."""
    logs = [math.log(new / old) if old and new else 0.0 for old, new in zip(before, after, strict=True)]
    return [-logs[0], *logs[1:]]


def _judged_gains(gains: dict[str, list[float]], several: bool) -> list[dict[str, float]]:
    """Return the gains of each capacity by which the answer is judged: the largest. With several loads, the ping's,
    or those of either direction if no capacity shortens the ping."""
    if not several:
        gains = {name: [max(each)] for name, each in gains.items()}
    columns = [dict(zip(gains, column, strict=True)) for column in zip(*gains.values(), strict=True)]
    gaining = [column for column in columns if max(column.values()) >= LEAST_GAIN]
    return gaining[:1] if columns[0] in gaining else gaining


def judged(series: str, number: int) -> tuple[int, str, bool, str]:
    """Make the runs of a scenario. Return its number and kind, whether the named bottleneck gains most, and why."""
    data = draw(f"{series} {number}")
    folder = FOLDER / f"{series}-{number}"
    bottleneck = explanation_of(_run(data, folder / "base", SEEDS[0])).bottleneck
    answer = _named(data, bottleneck)
    before = _means(data, folder / "base")
    gains = {name: _gains(before, _means(other, folder / name)) for name, other in doubled(data)}
    several = "competing" in data["test"] or data["kind"] == "access"
    columns = _judged_gains(gains, several)
    is_right = not columns or any(
        column.get(answer, LEAST_GAIN) >= AS_GOOD * max(column.values()) for column in columns
    )
    ranked = sorted(gains.items(), key=lambda item: -max(item[1]))
    listed = ", ".join(f"{name} " + "/".join(f"{math.exp(gain):.2f}" for gain in each if gain) for name, each in ranked)
    load = "iperf3" if "app" in data else data["test"]["name"]
    about = f"{data['kind']}, {data['stack']['cc']}, {data['stack']['qdisc']}, limit {data['limit'] or 'none'}, {load}"
    goodputs = ", ".join(f"{value:.1f}" for value in before[1:] if value)
    text = f"{before[0]:.1f} ms, {goodputs} Mbit/s; named {answer} ({bottleneck.where}); {listed} [{about}]"
    return number, data["kind"], is_right, text


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.explain_draw")
    parser.add_argument("-n", type=int, default=30, help="number of scenarios")
    parser.add_argument("--seed", default="1", help="name of the series")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="scenarios at a time")
    parser.add_argument("--only", type=int, help="one scenario of the series")
    arguments = parser.parse_args()
    numbers = range(arguments.n) if arguments.only is None else [arguments.only]
    drawn, right = Counter[str](), Counter[str]()
    with get_context("spawn").Pool(arguments.jobs) as pool:
        for number, kind, is_right, text in pool.imap_unordered(partial(judged, arguments.seed), numbers):
            drawn[kind] += 1
            right[kind] += is_right
            print(f"{number:3} {'right' if is_right else 'WRONG'}  {text}", flush=True)
    print(", ".join(f"{kind} {right[kind]} of {count}" for kind, count in sorted(drawn.items())))
    print(f"{right.total()} of {len(numbers)} right")
    return int(right.total() < len(numbers))


if __name__ == "__main__":
    raise SystemExit(main())
