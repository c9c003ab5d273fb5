# SPDX-License-Identifier: Apache-2.0
"""The air, compared with arithmetic: saturated radios in a guest, and the standard's formulas in `air.py`."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from hourglass import plan as plans
from hourglass.contract.plan import Plan, WriteStep
from hourglass.results.recording import Recording
from hourglass.results.series import loaded_window

from . import air
from .conftest import KERNELS, Simulate

pytestmark = pytest.mark.guest

HT40_MCS7 = air.phy("n", 40, 1, 7, 400)
"""150 Mbit/s with the short guard interval."""

BEACONS = 0.0025
"""The share of the air that beacons have at 5 GHz."""

Flood = Callable[..., Recording]


@pytest.fixture
def flood(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> Flood:
    """Return `flood(cell, change)`: a run of the cell with a changed plan."""
    build = plans.build

    def make(cell: dict[str, Any], change: air.Change) -> Recording:
        monkeypatch.setattr(plans, "build", lambda *arguments: change(build(*arguments)))
        run = simulate(cell, fresh=True)
        assert run.info.warnings == []
        return run

    return make


def goodput_mbps(counts: dict[str, int]) -> float:
    """Return TCP's goodput if all acknowledged MPDUs were segments."""
    return counts["tx_acked"] * air.TCP_BYTES * 8 / counts["span_ns"] * 1e3


@pytest.mark.slow
@pytest.mark.parametrize("mpdus", [1, 2, 4, 8, 16, 17, 32])
def test_one_saturated_radio_reaches_the_ceiling(flood: Flood, mpdus: int) -> None:
    """One cycle is AIFS, 7.5 slots, PPDU, SIFS and ACK. The margin is 2 %, of which beacons take 0.3. The medium is
    busy except in AIFS and slots. An answer takes a SIFS and the ACK."""
    cycle = HT40_MCS7.cycle_us(mpdus, slots=air.CW_MIN / 2)
    run = flood(air.cell(1, max_subframes=mpdus), air.flood(("s1", "ap"), interval_us=int(0.9 * cycle / mpdus)))
    counts = air.grown(run, "s1")
    assert goodput_mbps(counts) == pytest.approx(mpdus * air.TCP_BYTES * 8 / cycle, rel=0.02)
    idle, answer = air.AIFS_US + air.CW_MIN / 2 * air.SLOT_US, HT40_MCS7.answer_us(mpdus)
    assert counts["medium_busy_ns"] / counts["span_ns"] == pytest.approx(1 - idle / cycle, rel=0.02)
    assert counts["medium_answer_ns"] / counts["span_ns"] == pytest.approx((air.SIFS_US + answer) / cycle, rel=0.02)
    sent = counts["tx_ns"] + air.grown(run, "ap")["tx_ns"]
    assert sent + counts["medium_answer_ns"] == pytest.approx(counts["medium_busy_ns"], rel=0.001), "nothing collides"


RATES = [
    *(("n", 40, 1, mcs, 400, 64) for mcs in range(8)),
    *(("ac", 80, 1, mcs, 400, 64) for mcs in range(10)),
    *(("ax", 80, 1, mcs, 800, 256) for mcs in range(12)),
    ("n", 20, 2, 7, 400, 64), ("n", 40, 3, 7, 400, 64), ("ac", 80, 2, 9, 800, 64),
    ("ac", 20, 1, 8, 800, 64), ("ac", 20, 3, 9, 400, 64),
    ("ax", 20, 1, 0, 3200, 256), ("ax", 40, 2, 5, 3200, 256), ("ax", 80, 2, 11, 800, 256),
    ("ax", 80, 2, 11, 800, 64),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("standard", "width", "streams", "mcs", "guard_ns", "subframes_max"), RATES)
def test_the_ceiling_of_every_mcs(
    flood: Flood, standard: str, width: int, streams: int, mcs: int, guard_ns: int, subframes_max: int
) -> None:
    """Aggregates last at most 5,484 us and have at most the frames of a block ACK. The margin is 1 %, of which beacons
    take 0.25."""
    rate = air.phy(standard, width, streams, mcs, guard_ns)
    mpdus = rate.mpdus(subframes_max)
    cycle = rate.cycle_us(mpdus, slots=air.CW_MIN / 2, subframes_max=subframes_max)
    chip: dict[str, Any] = {"chip": "generic", "standard": standard, "width": width, "streams": streams}
    settings = {**chip, "mcs": mcs, "guard": f"{guard_ns}ns", "max_subframes": subframes_max}
    pause_us = max(1, int(0.9 * cycle / mpdus))
    sockets = [("s1", "ap")] * 4
    run = flood(air.cell(1, length_s=1, **settings), air.flood(*sockets, interval_us=4 * pause_us))
    counts = air.grown(run, "s1", since_s=0.2)
    ceiling = mpdus * air.TCP_BYTES * 8 / cycle
    assert goodput_mbps(counts) == pytest.approx(ceiling * (1 - BEACONS), rel=0.01)


@pytest.mark.parametrize("mpdus", [1, 8, 32])
def test_two_saturated_radios_share_the_ceiling(flood: Flood, mpdus: int) -> None:
    """Both directions send without collisions. The pause before a transmission is that of two contending stations."""
    _, slots, _ = air.contend(2, collide=False)
    cycle = HT40_MCS7.cycle_us(mpdus, slots=slots)
    both = air.flood(("s1", "ap"), ("ap", "s1"), interval_us=int(1.5 * cycle / mpdus))
    run = flood(air.cell(1, max_subframes=mpdus, collisions=False), both)
    up, down = (goodput_mbps(air.grown(run, node)) for node in ("s1", "ap"))
    ceiling = mpdus * air.TCP_BYTES * 8 / cycle
    assert up + down == pytest.approx(ceiling, rel=0.02)
    assert up == pytest.approx(down, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("stations", [2, 5, 10])
def test_saturated_stations_collide_as_the_standard_and_bianchi_say(flood: Flood, stations: int) -> None:
    """The margin is 5 %, from an exact count of the standard's slots and from Bianchi's fixed point. The latter treats
    stations as independent: with 2 stations it is itself 5.5 % below the exact value."""
    names = [f"s{i}" for i in range(1, stations + 1)]
    pairs = [(name, "ap") for name in names]
    cell = air.cell(stations, length_s=5, max_subframes=1)
    run = flood(cell, air.flood(*pairs, payload_bytes=56, interval_us=100 * stations))
    counts = [air.grown(run, name) for name in names]
    share = sum(station["tx_collisions"] for station in counts) / sum(station["tx_attempts"] for station in counts)
    exact, _, _ = air.contend(stations)
    assert share == pytest.approx(exact, rel=0.05)
    if stations > 2:
        assert share == pytest.approx(air.bianchi(stations), rel=0.05)


def test_background_traffic_yields_by_its_longer_aifs(flood: Flood) -> None:
    """AIFS is 7 slots instead of 3, and all else is equal. Its share of the exchanges is that of the counted slots."""
    cell = air.cell(2, length_s=5, max_subframes=1)
    pairs = (("s1", "ap"), ("s2", "ap"))
    run = flood(cell, air.flood(*pairs, payload_bytes=56, interval_us=150, background=("s2",)))
    best_effort, background = (air.grown(run, name)["tx_acked"] for name in ("s1", "s2"))
    _, _, shares = air.contend(2, later=(0, 4))
    assert shares[1] < 0.3
    assert background / (best_effort + background) == pytest.approx(shares[1], rel=0.05)


def test_stations_that_send_now_and_then_collide_within_a_slot(flood: Flood) -> None:
    """10 stations have a frame each 5 ms, at random moments. Those of the same slot collide, though the medium is idle
    nearly all the time [none: a start at any ns]."""
    names = [f"s{i}" for i in range(1, 11)]
    cell, interval_us = air.cell(10, length_s=12, max_subframes=1), 5000
    change = air.flood(*((name, "ap") for name in names), payload_bytes=56, interval_us=interval_us, spread=True)
    run = flood(cell, change)
    counts = [air.grown(run, name) for name in names]
    tries = sum(station["tx_attempts"] for station in counts)
    share = sum(station["tx_collisions"] for station in counts) / tries
    expected = air.sparse(10, interval_us, HT40_MCS7, 44, 60)
    assert expected > 9 * air.SLOT_US / interval_us
    assert share == pytest.approx(expected, rel=0.15)


def test_multicast_has_its_share_of_the_air(simulate: Simulate) -> None:
    """It is the frames' number times their duration. The margin is one frame, and unicast that is not yet complete."""
    run = simulate(air.multicast())
    assert air.multicast_us(1428) == 1976
    last, first = pl.col("value").sort_by("t_ns").last(), pl.col("value").sort_by("t_ns").first()
    radio, station = (
        dict(
            table.filter((pl.col("node") == "ap") & loaded_window(run).contains())
            .group_by("name")
            .agg(last - first)
            .iter_rows()
        )
        for table in (run.radio_counters, run.station_counters)
    )
    frames = radio["tx_mpdus"] - radio["tx_acked"] - radio["tx_failed"] - radio["tx_beacons"]
    multicast_ns, unicast_ns = frames * 1_976_000, station["tx_ns.be"] + station["rx_ns.be"]
    shares = run.summary.wifi["ap"]["wlan0"].air_share
    assert shares.keys() == {"s1", "group-addressed"}
    assert sum(shares.values()) == pytest.approx(1, abs=1e-5)
    assert shares["group-addressed"] == pytest.approx(multicast_ns / (multicast_ns + unicast_ns), rel=0.002)


def air_shares(run: Recording, since_s: float = 1) -> dict[str, float]:
    """Return each station's share of the time in which the access point sends."""
    rows = run.station_counters.filter((pl.col("node") == "ap") & pl.col("name").str.starts_with("tx_ns."))
    late = rows.filter(pl.col("t_ns") >= since_s * 1e9)
    grown = late.group_by("station", "name").agg(
        pl.col("value").sort_by("t_ns").last() - pl.col("value").sort_by("t_ns").first()
    )
    sums = dict(grown.group_by("station").agg(pl.col("value").sum()).iter_rows())
    return {station: value / sum(sums.values()) for station, value in sums.items()}


FAIR = {"ath9k": 0.01, "generic": 0.06}


@pytest.mark.parametrize(
    ("chip", "kernel"), [(chip, kernel) for chip in FAIR for kernel in KERNELS if (chip, kernel) != ("generic", "5.10")]
)
def test_fast_and_slow_stations_have_the_same_air_time(flood: Flood, chip: str, kernel: str) -> None:
    """mac80211 is fair by air time. The access point saturates stations of 150, 150 and 15 Mbit/s. [`generic` on 5.10:
    0.26, 0.26 and 0.48, as without fairness.]"""
    cell = crowded(chip, kernel, fairness=True)
    shares = air_shares(flood(cell, air.flood(*(("ap", name) for name in ("s1", "s2", "s3")), interval_us=200)))
    assert [*shares.values()] == pytest.approx([1 / 3] * 3, abs=FAIR[chip])


SLOW = air.phy("n", 40, 1, 0, 400)
LENGTHS = [rate.ppdu_us(rate.mpdus(32)) for rate in (HT40_MCS7, HT40_MCS7, SLOW)]


@pytest.mark.slow
@pytest.mark.parametrize("fairness", [False, True])
def test_without_aql_each_has_as_many_aggregates(flood: Flood, fairness: bool) -> None:
    """The firmware of `generic` serves stations in turn, and a slow station's aggregates take longer. Fairness in
    mac80211 changes nothing: without AQL, the firmware gets all frames before it runs short."""
    cell = crowded("generic", "6.1", fairness=fairness)
    floods = air.flood(*(("ap", name) for name in ("s1", "s2", "s3")), interval_us=100)
    shares = air_shares(flood(cell, lambda plan: without_aql(floods(plan))))
    assert shares["s3"] == pytest.approx(LENGTHS[2] / sum(LENGTHS), rel=0.02)


def test_with_aql_the_slow_station_lacks_frames(flood: Flood) -> None:
    """AQL permits a station 5 ms of air time below mac80211, frames on the air included (12 ms while all have less than
    24). The slow station's 5 ms are one aggregate. At its next turn it therefore has no frame, or less than a complete
    aggregate."""
    cell = crowded("generic", "6.1", fairness=False)
    shares = air_shares(flood(cell, air.flood(*(("ap", name) for name in ("s1", "s2", "s3")), interval_us=100)))
    lower, upper = (LENGTHS[2] / (LENGTHS[2] + fast * LENGTHS[0]) for fast in (4, 3))
    assert lower * 0.98 < shares["s3"] < upper


def without_aql(plan: Plan) -> Plan:
    """Return the plan for chips without airtime queue limits."""
    setup = [
        step.model_copy(update={"value": f"{step.value} aql=0"})
        if isinstance(step, WriteStep) and step.path == "/proc/hourglass/radio"
        else step
        for step in plan.setup
    ]
    return plan.model_copy(update={"setup": setup})


def crowded(chip: str, kernel: str, fairness: bool) -> dict[str, Any]:
    """Return a cell with three stations, of which the third is slow."""
    cell = air.cell(3, length_s=4, fairness=fairness, chip=chip, max_subframes=32)
    cell["testbed"]["wifi"][0]["station"][2]["mcs"] = 0
    return {**cell, "kernel": kernel}


def test_the_exact_count_and_bianchi_agree() -> None:
    """Compare two independent computations: the exact count and Bianchi's fixed point."""
    for stations, tolerance in ((2, 0.06), (5, 0.01), (10, 0.02)):
        assert air.contend(stations)[0] == pytest.approx(air.bianchi(stations), rel=tolerance)
