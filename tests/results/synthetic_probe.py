# SPDX-License-Identifier: Apache-2.0
"""The probe's tables by formula: packets whose layers add up, their sums over time, queues, drops, sockets."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from hourglass.contract.probe import LAYERS

from .synthetic import MS, Flow, Probe, Recipe, S, tcp_rows

US = 1000
NODES = ("client", "router", "server")
Visit = tuple[str, dict[str, int]]
"""A node and the ns that a packet spent in its layers."""
Path = Callable[[int], list[Visit]]
"""The visits of packet N of a stream."""

WIRE = {"wire": 12_304, "propagation": 1_000}


def upload(tsq_ns: int = 0, qdisc_ns: int = 10 * MS, router_ns: int = 0) -> Path:
    """Return data through the router; every second packet waits twice as long in the client's qdisc."""
    return lambda number: [
        ("client", {"tsq": tsq_ns, "qdisc": qdisc_ns * (1 + number % 2), "ring": 5 * US, **WIRE}),
        ("router", {"rx": 20 * US, "qdisc": router_ns, **WIRE}),
        ("server", {"rx": 20 * US}),
    ]


def ping(qdisc_ns: int = 10 * MS) -> tuple[Path, Path]:
    """Return a request that meets the client's queue, and an answer that meets none."""
    request: Path = lambda number: [  # noqa: E731
        ("client", {"qdisc": qdisc_ns, "wire": 976}), ("router", {"rx": 20 * US, "wire": 976}),
        ("server", {"rx": 20 * US}),
    ]  # fmt: skip
    answer: Path = lambda number: [  # noqa: E731
        ("server", {"wire": 976}), ("router", {"rx": 20 * US, "wire": 976}), ("client", {"rx": 20 * US})
    ]  # fmt: skip
    return request, answer


@dataclass
class Anatomy:
    """The probe's records: a data packet of each flow every `every_ns`, a request and an answer of each probe."""

    data: Path = field(default_factory=upload)
    pings: tuple[Path, Path] = field(default_factory=ping)
    every_ns: int = 10 * MS
    keep: Callable[[int], bool] = lambda number: True
    """Selects the packets with rows, by number."""

    def __call__(self, recipe: Recipe) -> list[dict[str, Any]]:
        rows = list(self.packets(recipe))
        recorded = [row for row in rows if self.keep(row["packet"])]
        tables = {"packet": recorded, "layer": totals(recipe, rows), "queue": queues(recipe), "drop": DROPS,
                  "balance": [], "tcp": sockets(recipe)}  # fmt: skip
        return [{"table": name, "rows": rows} for name, rows in tables.items()]

    def packets(self, recipe: Recipe) -> Iterator[dict[str, Any]]:
        start, stop = round(recipe.delay * S), round((recipe.delay + recipe.length) * S)
        for flow in range(len(recipe.flows)):
            for number, t_ns in enumerate(range(start, stop, self.every_ns)):
                stream = {"stream": flow, "way": "up", "packet": number, "bytes": 1448, "data": True}
                yield from packet(t_ns, stream, self.data(number))
        for probe in range(len(recipe.flows), len(recipe.flows) + len(recipe.probes)):
            for number, t_ns in enumerate(range(0, round(recipe.end_s * S), 200 * MS)):
                stream = {"stream": probe, "way": "up", "packet": number, "bytes": 56, "data": True}
                request = list(packet(t_ns, stream, self.pings[0](number)))
                yield from request
                yield from packet(request[0]["end_ns"], stream | {"way": "down"}, self.pings[1](number))


def packet(t_ns: int, stream: dict[str, Any], visits: list[Visit]) -> Iterator[dict[str, Any]]:
    """Yield a row per visit; the layers add up to end_ns - t_ns."""
    end_ns = t_ns + sum(sum(layers.values()) for _, layers in visits)
    for visit, (node, layers) in enumerate(visits):
        columns = {f"{layer}_ns": layers.get(layer, 0) for layer in LAYERS}
        yield {"t_ns": t_ns, "end_ns": end_ns, **stream, "visit": visit, "node": node, **columns}


def totals(recipe: Recipe, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the cumulative sums of the packets that ended, every 200 ms."""
    sums: dict[tuple[Any, ...], dict[str, int]] = {}
    samples = []
    by_end = iter(sorted(rows, key=lambda row: row["end_ns"]))
    row = next(by_end, None)
    for t_ns in range(0, round(recipe.end_s * S) + 1, 200 * MS):
        while row is not None and row["end_ns"] <= t_ns:
            key = tuple(row[name] for name in ("stream", "way", "data", "node"))
            counts = sums.setdefault(key, dict.fromkeys(("packets", *(f"{layer}_ns" for layer in LAYERS)), 0))
            counts["packets"] += 1
            for layer in LAYERS:
                counts[f"{layer}_ns"] += row[f"{layer}_ns"]
            row = next(by_end, None)
        for (stream, way, data, node), counts in sums.items():
            samples.append({"t_ns": t_ns, "stream": stream, "way": way, "data": data, "node": node, **counts})
    return samples


DROPS = [
    {"t_ns": 3 * S, "stream": 0, "way": "up", "node": "router", "device": "eth1", "place": "qdisc",
     "reason": "QDISC_DROP", "packets": 2, "bytes": 2896},
    {"t_ns": 4 * S, "stream": 0, "way": "up", "node": "router", "device": "eth1", "place": "qdisc",
     "reason": "QDISC_DROP", "packets": 1, "bytes": 1448},
    {"t_ns": 5 * S, "stream": None, "way": None, "node": "server", "device": None, "place": "socket",
     "reason": "NO_SOCKET", "packets": 1, "bytes": 0},
]  # fmt: skip


def queues(recipe: Recipe) -> list[dict[str, Any]]:
    """Return sawteeth of 1 s at the client, and a short queue at the router."""
    samples = []
    for t_ns in range(0, round(recipe.end_s * S), 10 * MS):
        loaded = recipe.delay * S <= t_ns <= (recipe.delay + recipe.length) * S
        packets = (t_ns // (10 * MS)) % 100 if loaded else 0
        for node, device, backlog in (("client", "eth0", packets), ("router", "eth1", packets // 10)):
            samples.append(
                {
                    "t_ns": t_ns,
                    "node": node,
                    "device": device,
                    "qdisc_packets": backlog,
                    "qdisc_bytes": backlog * 1514,
                    "ring_skbs": min(backlog, 3),
                    "ring_bytes": min(backlog, 3) * 1514,
                    "bql_limit": 6056,
                    "bql_inflight": min(backlog, 3) * 1514,
                }
            )
    return samples


BBR = {"STARTUP": (739, 739), "DRAIN": (88, 739), "PROBE_BW": (320, 512), "PROBE_RTT": (256, 256)}


def sockets(recipe: Recipe) -> list[dict[str, Any]]:
    """Return the usual samples with the state of TCP Small Queues and BBR. Each phase of BBR lasts 1 s."""
    samples = []
    for row in tcp_rows(recipe):
        since_s = row["t_ns"] / S - recipe.delay
        pacing, cwnd = list(BBR.values())[int(since_s) % 4] if recipe.flows[row["stream"]].cc == "bbr" else (None, None)
        limit = 131_072 + 65_536 * (int(since_s * 2) % 3)
        samples.append(row | {
            "ca_state": 0, "snd_cwnd": 20 + int(since_s * 10) % 80, "snd_ssthresh": 0x7FFFFFFF if since_s < 1 else 60,
            "sk_wmem_alloc": int(limit * (0.4 + 0.6 * (since_s % 1))), "tsq_limit": limit,
            "tsq_term": ("floor", "rate", "cap")[int(since_s * 2) % 3], "bbr_pacing_gain": pacing,
            "bbr_cwnd_gain": cwnd,
        })  # fmt: skip
    return samples


def recipe(anatomy: Anatomy | None = None, **changes: Any) -> Recipe:
    """Return client - router - server with one flow and one probe, apart from `changes`."""
    base = Recipe(flows=[Flow()], probes=[Probe()], nodes=NODES, route=NODES, further=anatomy or Anatomy())
    return replace(base, **changes)
