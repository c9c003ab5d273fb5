# SPDX-License-Identifier: Apache-2.0
"""The air against arithmetic: saturated radios in a guest, and the standard's formulas in `air.py`."""

from collections.abc import Callable
from typing import Any

import pytest

from hourglass import plan as plans
from hourglass.results.recording import Recording

from . import air
from .conftest import Simulate

pytestmark = pytest.mark.guest

HT40_MCS7 = (540, 1)
"""Bits of a symbol and streams: 150 Mbit/s with the short guard interval."""

Flood = Callable[..., Recording]


@pytest.fixture
def flood(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> Flood:
    """`flood(cell, change)`: a run of the cell with its plan changed."""
    build = plans.build

    def make(cell: dict[str, Any], change: air.Change) -> Recording:
        monkeypatch.setattr(plans, "build", lambda *given: change(build(*given)))
        run = simulate(cell, fresh=True)
        assert run.info.warnings == []
        return run

    return make


def goodput_mbps(counts: dict[str, int]) -> float:
    """What TCP would have of the MPDUs that were acknowledged."""
    return counts["tx_acked"] * air.TCP_BYTES * 8 / counts["span_ns"] * 1e3


@pytest.mark.parametrize("mpdus", [1, 2, 4, 8, 16, 17, 32])
def test_one_saturated_radio_reaches_the_ceiling(flood: Flood, mpdus: int) -> None:
    """One cycle is AIFS, 7.5 slots, PPDU, SIFS and answer; 2 %, of which beacons are 0.3. The channel is busy but for
    AIFS and slots, with answers for a SIFS and an acknowledgment."""
    run = flood(air.cell(1, max_subframes=mpdus), air.flood(("s1", "ap")))
    cycle, counts = air.cycle_us(mpdus, *HT40_MCS7, slots=air.CW_MIN / 2), air.grown(run, "s1")
    assert goodput_mbps(counts) == pytest.approx(mpdus * air.TCP_BYTES * 8 / cycle, rel=0.02)
    idle, answer = air.AIFS_US + air.CW_MIN / 2 * air.SLOT_US, air.ACK_US if mpdus == 1 else air.BLOCK_ACK_US
    assert counts["medium_busy_ns"] / counts["span_ns"] == pytest.approx(1 - idle / cycle, rel=0.02)
    assert counts["medium_answer_ns"] / counts["span_ns"] == pytest.approx((air.SIFS_US + answer) / cycle, rel=0.02)
    sent = counts["tx_ns"] + air.grown(run, "ap")["tx_ns"]
    assert sent + counts["medium_answer_ns"] == pytest.approx(counts["medium_busy_ns"], rel=0.001), "nothing collides"


@pytest.mark.parametrize(("width", "streams", "bits"), [(20, 2, 520), (40, 3, 1620)])
def test_the_ceiling_of_other_rates(flood: Flood, width: int, streams: int, bits: int) -> None:
    """144.4 Mbit/s, which is the preset's, and 450 Mbit/s."""
    run = flood(air.cell(1, width=width, streams=streams), air.flood(("s1", "ap"), interval_us=30))
    ceiling = 32 * air.TCP_BYTES * 8 / air.cycle_us(32, bits, streams, slots=air.CW_MIN / 2)
    assert goodput_mbps(air.grown(run, "s1")) == pytest.approx(ceiling, rel=0.02)


@pytest.mark.parametrize("mpdus", [1, 8, 32])
def test_two_saturated_radios_share_the_ceiling(flood: Flood, mpdus: int) -> None:
    """Both ways at once, without collisions: the pause before a start is that of two that contend."""
    run = flood(air.cell(1, max_subframes=mpdus, collisions=False), air.flood(("s1", "ap"), ("ap", "s1")))
    up, down = (goodput_mbps(air.grown(run, node)) for node in ("s1", "ap"))
    _, slots, _ = air.contend(2, collide=False)
    ceiling = mpdus * air.TCP_BYTES * 8 / air.cycle_us(mpdus, *HT40_MCS7, slots=slots)
    assert up + down == pytest.approx(ceiling, rel=0.02)
    assert up == pytest.approx(down, rel=0.1)


@pytest.mark.parametrize("stations", [2, 5, 10])
def test_saturated_stations_collide_as_the_standard_and_bianchi_say(flood: Flood, stations: int) -> None:
    """Within 5 % of the standard's slots counted exactly, and of Bianchi's fixed point, which takes stations to be
    independent: with 2 it is itself 5.5 % below the exact value."""
    names = [f"s{i}" for i in range(1, stations + 1)]
    pairs = [(name, "ap") for name in names]
    cell = air.cell(stations, length_s=5, max_subframes=1)
    run = flood(cell, air.flood(*pairs, payload_bytes=56, interval_us=100 * stations))
    counts = [air.grown(run, name) for name in names]
    share = sum(each["tx_collisions"] for each in counts) / sum(each["tx_attempts"] for each in counts)
    exact, _, _ = air.contend(stations)
    assert share == pytest.approx(exact, rel=0.05)
    if stations > 2:
        assert share == pytest.approx(air.bianchi(stations), rel=0.05)


def test_background_traffic_yields_by_its_longer_aifs(flood: Flood) -> None:
    """AIFS of 7 slots beside 3, all else equal: its share of the exchanges, by the slots counted."""
    cell = air.cell(2, length_s=5, max_subframes=1)
    pairs = (("s1", "ap"), ("s2", "ap"))
    run = flood(cell, air.flood(*pairs, payload_bytes=56, interval_us=150, background=("s2",)))
    best_effort, background = (air.grown(run, name)["tx_acked"] for name in ("s1", "s2"))
    _, _, shares = air.contend(2, later=(0, 4))
    assert shares[1] < 0.3
    assert background / (best_effort + background) == pytest.approx(shares[1], rel=0.05)


def test_the_yardsticks_agree() -> None:
    """The exact count and Bianchi's fixed point, which know nothing of each other."""
    for stations, apart in ((2, 0.06), (5, 0.01), (10, 0.02)):
        assert air.contend(stations)[0] == pytest.approx(air.bianchi(stations), rel=apart)
