# SPDX-License-Identifier: Apache-2.0
"""Saturated cells, and what the standard's own arithmetic says of them: no kernel, no driver, other words.

Sources: IEEE 802.11-2020, 10.23.2 (EDCA), 19.4.3 (HT durations); G. Bianchi, IEEE JSAC 18(3), 2000.
"""

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from hourglass.contract.plan import BatchStep, Path, Ping, Plan, WriteStep
from hourglass.results.recording import Recording

SIFS_US, SLOT_US, AIFS_US = 16.0, 9.0, 43.0
CW_MIN, STAGES = 15, 6
ACK_US, BLOCK_ACK_US = 28.0, 32.0
"""Of 24 Mbit/s: 20 + 4 ceil((22 + 8 · 14 or 32) / 96)."""
MPDU_BYTES, SUBFRAME_BYTES = 1538, 1544
"""IP packets of 1,500 bytes: + LLC/SNAP 8, QoS header 26, FCS 4; + delimiter 4, padding 2."""
PACKET_BYTES, TCP_BYTES = 1500, 1448

Change = Callable[[Plan], Plan]


def flood(
    *pairs: tuple[str, str], payload_bytes: int = 1472, interval_us: int = 80, background: tuple[str, ...] = ()
) -> Change:
    """A plan with nothing but pings that nobody answers, from each pair's first node to its second, one each
    `interval_us`: more than the air carries. Those of the nodes `background` have DSCP CS1, access category BK."""

    def change(plan: Plan) -> Plan:
        pings = [
            Ping(
                kind="ping", protocol="icmp", id=i, name=f"{client} to {server}", client=client, server=server,
                address=_address(plan, server), port=i, dscp=8 * (client in background), payload_bytes=payload_bytes,
                start_ns=0, stop_ns=plan.end_ns, interval_ns=interval_us * 1000, jitter_ns=0, jitter_seed=0,
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
    """What the plan gives to the node's radio."""
    lines = [line for step in plan.setup if isinstance(step, BatchStep) and step.node == node for line in step.lines]
    found = (re.match(r"addr(?:ess)? add ([0-9.]+)/\d+ .*dev wlan0", line) for line in lines)
    return next(match[1] for match in found if match)


def cell(stations: int, length_s: float = 2, **wifi: Any) -> dict[str, Any]:
    """Stations next to an access point that is the server: nothing but the air between them."""
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


def grown(run: Recording, node: str, since_s: float = 0.6) -> dict[str, int]:
    """By how much a radio's counters grew from a time to the end; `span_ns` is how long that was."""
    rows = run.radio_counters.filter((pl.col("node") == node) & (pl.col("t_ns") >= since_s * 1e9))
    first, last = (rows.filter(pl.col("t_ns") == at) for at in (rows["t_ns"].min(), rows["t_ns"].max()))
    before = dict(zip(first["name"], first["value"], strict=True))
    counts = {name: value - before.get(name, 0) for name, value in zip(last["name"], last["value"], strict=True)}
    return {**counts, "span_ns": int(last["t_ns"][0]) - int(first["t_ns"][0])}


def ppdu_us(mpdus: int, bits: int, streams: int) -> float:
    """An HT-mixed PPDU of full frames with the short guard interval; `bits` of one symbol."""
    octets = MPDU_BYTES if mpdus == 1 else SUBFRAME_BYTES * (mpdus - 1) + SUBFRAME_BYTES - 2
    encoders = 1 if bits <= 1080 else 2
    symbols = math.ceil((8 * octets + 16 + 6 * encoders) / bits)
    return 32 + 4 * [0, 1, 2, 4, 4][streams] + 4 * math.ceil(3.6 * symbols / 4)


def cycle_us(mpdus: int, bits: int, streams: int, slots: float) -> float:
    """One exchange and the pause before it."""
    answer = ACK_US if mpdus == 1 else BLOCK_ACK_US
    return AIFS_US + slots * SLOT_US + ppdu_us(mpdus, bits, streams) + SIFS_US + answer


@functools.cache
def contend(
    stations: int, rounds: int = 2500, collide: bool = True, later: tuple[int, ...] = ()
) -> tuple[float, float, list[float]]:
    """Saturated stations, slot by slot: (share of transmissions that collide, idle slots before each start, each
    station's share of those that do not).

    All count down at every slot boundary after their AIFS (which ends `later` slots after the shortest), that of a
    start too; who sent draws anew. 500 cells at a time.
    """
    random = np.random.default_rng(1)
    cells = np.arange(500)
    behind = np.array(later or [0] * stations)
    window = np.full((500, stations), CW_MIN)
    counter = random.integers(0, window + 1)
    sent = collided = idle = 0
    went_well = np.zeros(stations)
    for turn in range(rounds):
        least = (counter + behind).min(axis=1, keepdims=True)
        starts = counter + behind == least
        if not collide:
            chosen = (random.random(starts.shape) * starts).argmax(axis=1)
            starts = np.zeros_like(starts)
            starts[cells, chosen] = True
        counter = np.maximum(counter - np.maximum(least - behind + 1, 0), 0)
        clash = starts & (starts.sum(axis=1, keepdims=True) > 1)
        limit = ((CW_MIN + 1) << STAGES) - 1
        window = np.where(clash, np.minimum(2 * window + 1, limit), np.where(starts, CW_MIN, window))
        counter = np.where(starts, random.integers(0, window + 1), counter)
        if turn >= rounds // 10:
            sent += int(starts.sum())
            collided += int(clash.sum())
            idle += int(least.sum())
            went_well += (starts & ~clash).sum(axis=0)
    shares = [float(share) for share in went_well / went_well.sum()]
    return collided / sent, idle / (500 * (rounds - rounds // 10)), shares


def bianchi(stations: int) -> float:
    """The fixed point: p = 1 - (1 - tau(p))^(n - 1)."""

    def tau(p: float) -> float:
        doubled, width = (2 * p) ** STAGES, CW_MIN + 1
        return 2 * (1 - 2 * p) / ((1 - 2 * p) * (width + 1) + p * width * (1 - doubled))

    low, high = 0.0, 0.499
    for _ in range(60):
        p = (low + high) / 2
        low, high = (p, high) if 1 - (1 - tau(p)) ** (stations - 1) > p else (low, p)
    return low
