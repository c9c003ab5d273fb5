# SPDX-License-Identifier: Apache-2.0
"""The counters of a cell by formula: an access point and two stations, sampled each 200 ms."""

from typing import Any

from hourglass.contract.plan import PlanRadio
from results.synthetic import MS, Recipe

RADIOS = [
    PlanRadio(phy=f"c0{name}", node=node, device="wlan0", address=f"02:00:00:00:01:0{number}")
    for number, (name, node) in enumerate((("ap", "ap"), ("s1", "client"), ("s2", "slow")), start=1)
]
STEP = 200 * MS


NODES = ("ap", "client", "slow", "server")


def recipe(name: str = "wifi") -> Recipe:
    """Return one flow and one ping in the cell."""
    return Recipe(name=name, nodes=NODES, route=("client", "ap", "server"), radios=RADIOS, further=further)


def category(
    ac: str, ppdus: int, failed: int, mpdus: int, air_ns: int, waits_ms: tuple[int, ...], retransmitted: int = 0
) -> dict[str, int]:
    """Return the counters of an access category. `waits_ms`: the waits of its MPDUs in TXQ, in the ring and for the
    medium before their first transmission."""
    first = mpdus - retransmitted
    waits = {f"{wait}_ns": first * ms * MS for wait, ms in zip(("txq", "ring", "contention"), waits_ms, strict=True)}
    counters = {"ppdus": ppdus, "failed": failed, "mpdus": mpdus, "waited": first, "tx_ns": air_ns, **waits}
    return {f"ac.{ac}.{name}": value for name, value in counters.items()}


def further(recipe: Recipe) -> list[dict[str, Any]]:
    """Return the tables of radios and stations. Per step the access point sends 2 beacons, 1 single frame and 3
    aggregates of 4, for a fifth of the time. One aggregate is repeated after a collision, which `tx_retries` of the
    driver does not count. The client sends 2 aggregates of 10, for half of the time. The access point's air is 3 : 1.
    The channel is busy for three quarters. The access point sends one frame of best effort, which waited 4 + 30 + 60
    ms. The others are video, and each waited 1 + 2 + 3 ms."""
    radio, station = [], []
    for tick in range(round(recipe.end_s * 5) + 1):
        ap = {"aggregates.1": 3, "aggregates.4": 3, "tx_beacons": 2, "tx_attempts": 6, "tx_mpdus": 11, "tx_retries": 0,
              "tx_dropped": 0, "tx_collisions": 1, "tx_unanswered": 0, "tx_ns": 40 * MS,
              "medium_busy_ns": 150 * MS, **category("be", 1, 0, 1, 4 * MS, (4, 30, 60)),
              **category("vi", 3, 1, 12, 34 * MS, (1, 2, 3), retransmitted=4)}  # fmt: skip
        client = {
            "aggregates.10": 2,
            "tx_beacons": 0,
            "tx_attempts": 2,
            "tx_mpdus": 20,
            "tx_retries": 0,
            "tx_collisions": 0,
            "tx_unanswered": 0,
            "tx_ns": 100 * MS,
            "medium_busy_ns": 150 * MS,
            **category("vi", 2, 0, 20, 100 * MS, (1, 2, 3)),
        }
        for node, counters in (("ap", ap), ("client", client)):
            labels = {"t_ns": tick * STEP, "node": node, "device": "wlan0"}
            radio += [labels | {"name": name, "value": value * tick} for name, value in counters.items()]
            radio.append(labels | {"name": "medium", "value": 7})
        labels = {"t_ns": tick * STEP, "node": "ap", "device": "wlan0"}
        for other, ns in (("client", 30 * MS), ("slow", 10 * MS)):
            station += [
                labels | {"station": other, "name": name, "value": ns * tick} for name in ("rx_ns.be", "tx_ns.be")
            ]
            station.append(labels | {"station": other, "name": "txq.drops", "value": tick})
    return [{"table": "radio", "rows": radio}, {"table": "station", "rows": station}]
