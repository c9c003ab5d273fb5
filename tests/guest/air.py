# SPDX-License-Identifier: Apache-2.0
"""Saturated cells, and their figures by the arithmetic of the standard, independent of kernel and driver.

Sources: IEEE 802.11-2020, 10.23.2 (EDCA), 17.3, 19.4.3 (HT durations), 21.4.3 (VHT); 802.11ax-2021, 27.4.3 (HE);
G. Bianchi, IEEE JSAC 18(3), 2000.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import ip_interface
from typing import Any

import numpy as np
import polars as pl

from hourglass.contract.plan import AddressStep, Path, PingStream, Plan, WriteStep
from hourglass.results.recording import Recording

SIFS_US, SLOT_US, AIFS_US = 16.0, 9.0, 43.0
CW_MIN, STAGES = 15, 6
ACK_BYTES, BLOCK_ACK_BYTES, LONG_BLOCK_ACK_BYTES = 14, 32, 56
"""The block ack of 64 frames, and of 256 (802.11ax)."""
MPDU_BYTES, SUBFRAME_BYTES = 1538, 1544
"""IP packets of 1,500 bytes: + LLC/SNAP 8, QoS header 26, FCS 4; + delimiter 4, padding 2."""
PACKET_BYTES, TCP_BYTES = 1500, 1448

Change = Callable[[Plan], Plan]


def flood(
    *pairs: tuple[str, str],
    payload_bytes: int = 1472,
    interval_us: int = 80,
    background: tuple[str, ...] = (),
    spread: bool = False,
) -> Change:
    """Return a plan with pings that no node answers, from each pair's first node to its second, one per `interval_us`:
    more than the air carries. Those of the nodes `background` have DSCP CS1, access category BK. `spread`: each ping is
    at a random moment of its interval. A pair may occur several times, since a socket has room for a few dozen
    pings."""

    def change(plan: Plan) -> Plan:
        pings = [
            PingStream(
                kind="ping", protocol="icmp", ecn="not_ect",
                id=i, name=f"{client} to {server}, {i}", client=client, server=server,
                address=_address(plan, server), port=i, dscp=8 * (client in background), payload_bytes=payload_bytes,
                start_ns=0, stop_ns=plan.end_ns, interval_ns=interval_us * 1000, jitter_ns=interval_us * 1000 * spread,
                jitter_seed=i,
            )
            for i, (client, server) in enumerate(pairs)
        ]  # fmt: skip
        paths = [Path(client=client, server=server, there=[], back=[]) for client, server in dict.fromkeys(pairs)]
        deaf = [
            WriteStep(do="write", node=node, path="/proc/sys/net/ipv4/icmp_echo_ignore_all", value="1", origin=None)
            for node in plan.nodes
        ]
        return plan.model_copy(update={"streams": pings, "paths": paths, "setup": [*plan.setup, *deaf]})

    return change


def _address(plan: Plan, node: str) -> str:
    """Return the address of the node's radio in the plan."""
    steps = (step for step in plan.setup if isinstance(step, AddressStep))
    return next(str(ip_interface(step.address).ip) for step in steps if (step.node, step.device) == (node, "wlan0"))


def cell(stations: int, length_s: float = 2, **wifi: Any) -> dict[str, Any]:
    """Return a scenario with stations next to an access point that is the server: only the air is between them."""
    names = [f"s{i}" for i in range(1, stations + 1)]
    settings = {"width": 40, "rx_usecs": 0, "rx_usecs_first": 0, **wifi}
    return {
        "name": "cell",
        "kernel": "6.1",
        "testbed": {
            "node": [*({"name": name} for name in names), {"name": "ap"}],
            "wifi": [{"ap": "ap:wlan0", "station": [{"at": f"{name}:wlan0"} for name in names], **settings}],
        },
        "test": {"name": "ping", "client": "s1", "server": "ap", "length": length_s},
        "measure": {"tcp": 0, "packets": 0},
    }


def multicast() -> dict[str, Any]:
    """Return a cell with a download, whose access point sends more multicast than the air carries: packets of 1,428
    bytes, which nobody answers."""
    ping = "ping -q -i 0.01 -s 1400 -S 200000 -I wlan0 239.1.1.1"
    command = ["sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do {ping} & done; wait"]
    app = {"name": "camera", "node": "ap", "user": "root", "command": command, "expect": "any"}
    test = {"name": "tcp_download", "client": "s1", "server": "ap", "length": 2, "delay": 1}
    return {**cell(1), "test": test, "measure": {}, "app": [app]}


def multicast_us(packet_bytes: int) -> int:
    """Return the duration of a group-addressed frame at 6 Mbit/s: + LLC/SNAP 8, header 24, FCS 4."""
    return 20 + 4 * math.ceil((16 + 6 + 8 * (packet_bytes + 36)) / 24)


def grown(run: Recording, node: str, since_s: float = 0.6) -> dict[str, int]:
    """Return the growth of a radio's counters from a time to the end; `span_ns` is the length of this span."""
    rows = run.radio_counters.filter((pl.col("node") == node) & (pl.col("t_ns") >= since_s * 1e9))
    first, last = (rows.filter(pl.col("t_ns") == t_ns) for t_ns in (rows["t_ns"].min(), rows["t_ns"].max()))
    before = dict(zip(first["name"], first["value"], strict=True))
    counts = {name: value - before.get(name, 0) for name, value in zip(last["name"], last["value"], strict=True)}
    return {**counts, "span_ns": int(last["t_ns"][0]) - int(first["t_ns"][0])}


CARRIERS = {"n": {20: 52, 40: 108}, "ac": {20: 52, 40: 108, 80: 234}, "ax": {20: 234, 40: 468, 80: 980}}
MODULATIONS = ("1/2", "1", "3/2", "2", "3", "4", "9/2", "5", "6", "20/3", "15/2", "25/3")
"""Data bits of a subcarrier and symbol, MCS 0 to 11: BPSK 1/2 to 1024-QAM 5/6."""


@dataclass(frozen=True)
class Phy:
    """A rate, with the parameters of the standard's formulas."""

    bits: int
    symbol_us: float
    preamble_us: float
    tail_bits: int
    grid_us: float
    delimited: bool
    """Even a single frame has a delimiter."""
    control_bits: int
    """Data bits of a symbol of the answer: 6, 12 or 24 Mbit/s."""
    most_bytes: int
    """Of an aggregate."""

    def ppdu_us(self, mpdus: int) -> float:
        """Return the duration of a PPDU of full frames."""
        octets = MPDU_BYTES + 4 * self.delimited if mpdus == 1 else SUBFRAME_BYTES * mpdus - 2
        symbols = math.ceil((8 * octets + 16 + self.tail_bits) / self.bits)
        return self.preamble_us + self.grid_us * math.ceil(round(symbols * self.symbol_us / self.grid_us, 6))

    def answer_us(self, mpdus: int, subframes_max: int = 64) -> float:
        """Return the duration of its ACK or block ack."""
        octets = ACK_BYTES if mpdus == 1 else BLOCK_ACK_BYTES if subframes_max <= 64 else LONG_BLOCK_ACK_BYTES
        return 20 + 4 * math.ceil((22 + 8 * octets) / self.control_bits)

    def cycle_us(self, mpdus: int, slots: float, subframes_max: int = 64) -> float:
        """Return the duration of one exchange and the pause before it."""
        return AIFS_US + slots * SLOT_US + self.ppdu_us(mpdus) + SIFS_US + self.answer_us(mpdus, subframes_max)

    def mpdus(self, subframes_max: int, longest_us: float = 5484) -> int:
        """Return the number of full frames that fit into a PPDU."""
        fits = (
            n
            for n in range(2, subframes_max + 1)
            if self.ppdu_us(n) <= longest_us and SUBFRAME_BYTES * n - 2 <= self.most_bytes
        )
        return max(fits, default=1)


def phy(standard: str, width: int, streams: int, mcs: int, guard_ns: int) -> Phy:
    """Return a rate of HT mixed, VHT or HE SU. HT has an encoder per 300 Mbit/s, VHT per 600 Mbit/s; HE has LDPC."""
    bits = int(CARRIERS[standard][width] * Fraction(MODULATIONS[mcs]) * streams)
    training = (0, 1, 2, 4, 4)[streams]
    control = (24, 48, 48, 96)[min(mcs, 3)]
    if standard == "ax":
        field = 6.4 + guard_ns / 1000 if guard_ns < 3200 else 16.0
        symbol = 12.8 + guard_ns / 1000
        return Phy(bits, symbol, 36 + training * field, 0, symbol, True, control, 2**22 - 1)
    preamble, encoder_bits = (32, 1080) if standard == "n" else (36, 2160)
    tail = 6 * math.ceil(bits / encoder_bits)
    bytes_max = 2**20 - 1 if standard == "ac" else 2**16 - 1
    return Phy(bits, 3.2 + guard_ns / 1000, preamble + 4 * training, tail, 4, standard == "ac", control, bytes_max)


@functools.cache
def contend(
    stations: int, rounds: int = 2500, collide: bool = True, later: tuple[int, ...] = ()
) -> tuple[float, float, list[float]]:
    """Simulate saturated stations slot by slot. Return the share of transmissions that collide, the idle slots before
    each start, and each station's share of the others.

    All stations count down at every slot boundary after their AIFS (which ends `later` slots after the shortest), also
    at that of a start. A station draws again after it sent. 500 cells are simulated at a time.
    """
    random = np.random.default_rng(1)
    cells = np.arange(500)
    behind = np.array(later or [0] * stations)
    window = np.full((500, stations), CW_MIN)
    counter = random.integers(0, window + 1)
    sent = collided = idle = 0
    successes = np.zeros(stations)
    for turn in range(rounds):
        shortest = (counter + behind).min(axis=1, keepdims=True)
        starts = counter + behind == shortest
        if not collide:
            chosen = (random.random(starts.shape) * starts).argmax(axis=1)
            starts = np.zeros_like(starts)
            starts[cells, chosen] = True
        counter = np.maximum(counter - np.maximum(shortest - behind + 1, 0), 0)
        clash = starts & (starts.sum(axis=1, keepdims=True) > 1)
        limit = ((CW_MIN + 1) << STAGES) - 1
        window = np.where(clash, np.minimum(2 * window + 1, limit), np.where(starts, CW_MIN, window))
        counter = np.where(starts, random.integers(0, window + 1), counter)
        if turn >= rounds // 10:
            sent += int(starts.sum())
            collided += int(clash.sum())
            idle += int(shortest.sum())
            successes += (starts & ~clash).sum(axis=0)
    shares = [float(share) for share in successes / successes.sum()]
    return collided / sent, idle / (500 * (rounds - rounds // 10)), shares


def sparse(stations: int, interval_us: float, phy: Phy, data_us: float, seconds: float) -> float:
    """Return the share of transmissions that collide, if stations have a frame at a random moment of each
    `interval_us`.

    A station that finds the medium busy draws a backoff. One that finds it idle starts at the next slot boundary,
    counted from the end of the last exchange.
    """
    random = np.random.default_rng(1)
    count = int(seconds * 1e6 / interval_us)
    frames = [
        iter((np.arange(count) * interval_us + random.uniform(0, interval_us, count)).tolist()) for _ in range(stations)
    ]
    due = [next(times) for times in frames]
    counter, window = [0] * stations, [CW_MIN] * stations
    idle = busy = 0.0
    sent = collided = 0
    while min(due) < math.inf:
        grid = idle + AIFS_US
        starts = []
        for i in range(stations):
            if busy <= due[i] <= idle and counter[i] == 0:
                counter[i] = int(random.integers(0, window[i] + 1))
            late = max(0.0, math.ceil((due[i] - grid) / SLOT_US)) if due[i] < math.inf else math.inf
            starts.append(max(counter[i], late))
        first = min(starts)
        if first == math.inf:
            break
        senders = [i for i in range(stations) if starts[i] == first]
        busy = grid + first * SLOT_US
        clash = len(senders) > 1
        for i in range(stations):
            counter[i] = max(0, counter[i] - int(first) - 1)
        for i in senders:
            sent, collided = sent + 1, collided + clash
            window[i] = min(2 * window[i] + 1, 1023) if clash else CW_MIN
            counter[i] = int(random.integers(0, window[i] + 1))
            if not clash:
                due[i] = next(frames[i], math.inf)
        idle = busy + data_us + (45.0 if clash else SIFS_US + phy.answer_us(1))
    return collided / sent


def bianchi(stations: int) -> float:
    """Return the fixed point of p = 1 - (1 - tau(p))^(n - 1)."""

    def tau(p: float) -> float:
        doubled, width = (2 * p) ** STAGES, CW_MIN + 1
        return 2 * (1 - 2 * p) / ((1 - 2 * p) * (width + 1) + p * width * (1 - doubled))

    low, high = 0.0, 0.499
    for _ in range(60):
        p = (low + high) / 2
        low, high = (p, high) if 1 - (1 - tau(p)) ** (stations - 1) > p else (low, p)
    return low
