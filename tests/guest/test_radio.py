# SPDX-License-Identifier: Apache-2.0
"""Behaviour of the chips apart from the air: delivery of received frames, reports to mac80211, and retry limits.

The expected values follow from the code of Linux (ath9k, mt76, mac80211) or from 802.11. Brackets have the value of a
simpler model, with which the test fails.
"""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from hourglass import plan as plans
from hourglass.contract.plan import PingStream, Plan, WriteStep
from hourglass.results.recording import Recording

from . import air
from .conftest import Simulate

pytestmark = pytest.mark.guest

FULL = pl.col("t_ns").is_between(2_000_000_000, 4_800_000_000)
PREAMBLE_NS, SYMBOL_NS, BITS = 40_000, 3_600, 520
"""The preset's rate: MCS 15 at 20 MHz with the short guard interval."""

HELD_MS = {"ac": 14.2, "ax": 15.4}
"""AQL's limit for one station: 12 ms of air time, as mac80211 estimates it for complete aggregates."""

Changed = Callable[..., Recording]


@pytest.fixture
def changed(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> Changed:
    """Return `changed(change, source, "key=value", …)`: a run with a changed plan."""
    build = plans.build

    def make(
        change: Callable[[Plan], Plan], source: str | dict[str, Any], *overrides: str, **options: Any
    ) -> Recording:
        monkeypatch.setattr(plans, "build", lambda *settings: change(build(*settings)))
        return simulate(source, *overrides, fresh=True, **options)

    return make


def upload(simulate: Simulate, *overrides: str) -> Recording:
    return simulate("wifi-ath9k", "test.length=3", "test.delay=1", "measure.packets=all", *overrides, kernel="6.1")


def test_the_frames_of_an_aggregate_arrive_one_after_the_other(simulate: Simulate) -> None:
    """A frame's time on the air ends with its own last bit, not with its PPDU [all at the end: 2.8 ms each]."""
    run = upload(simulate, "testbed.wifi.0.collisions=false")
    data = run.packets.filter((pl.col("node") == "client") & (pl.col("stream").cast(pl.String) == "upload::1"))
    times = set(data.filter(pl.col("air_ns") > 0)["air_ns"])
    bits = [8 * (air.SUBFRAME_BYTES * number + air.SUBFRAME_BYTES - 2) + 16 for number in range(31)]
    ends = {PREAMBLE_NS + -(-size // BITS) * SYMBOL_NS for size in bits}
    assert len(ends & times) == len(ends)
    assert data["air_ns"].mean() < 1_700_000


def test_the_first_of_an_aggregate_do_not_wait_for_the_last(simulate: Simulate) -> None:
    """ath9k's interrupt comes 2 ms after the first frame. So 24 of 32 frames reach mac80211 while the others are in the
    air, and the last 8 wait 0.5 ms more. The mean from the first bit on is 2.4 ms [3.2: all wait for the end and 0.5
    ms]."""
    run = upload(simulate)
    layers = run.summary.layers_ms
    assert layers["client"]["air"].mean + layers["ap"]["rx"].mean == pytest.approx(2.43, rel=0.03)
    counts = run.radio_counters.filter((pl.col("node") == "ap") & (pl.col("t_ns") == pl.col("t_ns").max()))
    values = dict(counts.select("name", "value").rows())
    assert values["rx_interrupts"] > 1.3 * values["rx_ppdus"]


def queued_ms(simulate: Simulate, standard: str, mcs: int, guard: str, bps: float) -> float:
    """Return the time that the driver's bytes from mac80211 take at the PHY rate, in a saturated upload."""
    changes = (f"testbed.wifi.0.standard={standard}", f"testbed.wifi.0.mcs={mcs}", f"testbed.wifi.0.guard={guard}")
    settings = ("testbed.wifi.0.others.count=0", "stack.tsq=off", "test.length=4", "test.delay=1")
    run = simulate("wifi-ax", *changes, *settings, kernel="6.1")
    queue = run.queues.filter((pl.col("node") == "client") & (pl.col("device") == "wlan0") & FULL)
    queued = queue["ring_bytes"].median()
    assert isinstance(queued, float)
    return queued * 8 / bps * 1e3


@pytest.mark.slow
def test_aql_charges_802_11ax_its_airtime(simulate: Simulate) -> None:
    """mac80211 gets HE rates as such, so it permits the same air time as with VHT [7.7 ms: 1201 Mbit/s reported as
    780]."""
    assert queued_ms(simulate, "ac", 9, "400ns", 866.7e6) == pytest.approx(HELD_MS["ac"], rel=0.05)
    assert queued_ms(simulate, "ax", 11, "800ns", 1201e6) == pytest.approx(HELD_MS["ax"], rel=0.05)


def test_minstrel_s_rates_to_fall_back_to_begin_with_rts(simulate: Simulate) -> None:
    """This applies to the rates after the first (rc80211_minstrel_ht.c, minstrel_ht_set_rate) [none]."""
    changes = ("testbed.wifi.0.mcs=minstrel", "testbed.wifi.0.others.count=5", "test.length=3", "test.delay=1")
    run = simulate("wifi-ath9k", *changes, kernel="6.1")
    for node in ("client", "other3"):
        counts = air.grown(run, node, since_s=1)
        assert 0.005 < counts["tx_rts"] / counts["tx_attempts"] < 0.3
        assert counts["tx_attempts"] - counts["tx_ppdus"] < counts["tx_rts"], "an RTS that collides has no PPDU"


def test_a_frame_without_a_response_is_sent_forty_times(changed: Changed) -> None:
    """ath9k counts the tries of a frame's earlier PPDUs, each of ten. Since 0, 10 and 20 are less than 30, the fourth
    PPDU is the last [the third]. After each PPDU a BAR is sent, also ten times."""

    def lost(plan: Plan) -> Plan:
        pings = [stream for stream in plan.streams if isinstance(stream, PingStream)][:1]
        radio = next(radio.phy for radio in plan.radios if radio.node == "client")
        deaf = WriteStep(do="write", node=None, path="/proc/hourglass/radio", value=f"set {radio} per_ppm=1000000",
                         origin=None)  # fmt: skip
        return plan.model_copy(update={"streams": pings, "setup": [*plan.setup, deaf]})

    changes = ("test.name=ping", "test.length=4", "measure.packets=0")
    run = changed(lost, "wifi-ath9k", *changes, kernel="6.1")
    counts = air.grown(run, "client", since_s=0)
    pings = counts["tx_dropped"] - counts["tx_bars"]
    assert pings > 10
    assert (counts["tx_attempts"] - 10 * counts["tx_bars"]) / pings == pytest.approx(40, rel=0.06)


@pytest.mark.kernels
def test_a_receive_buffer_is_charged_as_ath9k_s_is(simulate: Simulate) -> None:
    """A window of 64 KiB serves a path of 100 ms. Its share of payload follows from the charge of a frame, 2,688 bytes
    [4,448: 3.1 Mbit/s]. Linux 6.1 and older do not scale the window in this way."""
    changes = ("test.name=tcp_ndown", "test.download_streams=1", "stack.sysctl.net.ipv4.tcp_rmem=4096 65536 65536")
    path = ("testbed.netem.0.delay=50ms", "test.length=6", "test.delay=1")
    run = simulate("wifi-ath9k", *changes, *path, kernel="6.12")
    assert run.summary.totals.download_mbps > 3.4


@pytest.mark.parametrize(("band", "share_percent"), [("2.4GHz", 1.5), ("5GHz", 0.23)])
def test_beacons_have_the_lowest_basic_rate(simulate: Simulate, band: str, share_percent: float) -> None:
    """At 2.4 GHz this is 1 Mbit/s after a preamble of 192 us. So beacons of 165 bytes take 1.5 % of the air [at
    6 Mbit/s: 0.23 %]."""
    changes = ("test.name=ping", "test.length=5", f"testbed.wifi.0.band={band}", "measure.packets=0")
    run = simulate("wifi-ath9k", *changes, kernel="6.1")
    counts = air.grown(run, "ap")
    data_ns = sum(counts.get(f"ac.{name}.tx_ns", 0) for name in ("vo", "vi", "be", "bk"))
    each_us = (counts["tx_ns"] - data_ns) / counts["tx_beacons"] / 1e3
    octets = (each_us - 192) / 8 if band == "2.4GHz" else ((each_us - 20) / 4 * 24 - 22) / 8
    assert 140 < octets < 200
    assert each_us / 102_400 * 100 == pytest.approx(share_percent, rel=0.1)
