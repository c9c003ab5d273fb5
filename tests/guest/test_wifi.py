# SPDX-License-Identifier: Apache-2.0
"""Wi-Fi in a guest: real hostapd and `iw`, the kernel's mac80211, the modelled air."""

from typing import Any

import polars as pl
import pytest

from hourglass.errors import InputError
from hourglass.results.recording import Recording
from hourglass.scenario.wifi import radio_bps

from .conftest import KERNELS, Simulate, digests, records

pytestmark = pytest.mark.guest

SHORT = ("test.length=3", "test.delay=1")
WITHOUT_TXQ = ("5.10", "6.1")
"""Kernels in which a driver can do without mac80211's queues."""


LEAST = {"wifi-ath9k": 0.6, "wifi-ath9k-htc": 0.6, "wifi-ax": 0.45}
"""Goodput as a share of the PHY rate. On 802.11ax two stations contend, and an aggregate of 100 MPDUs takes 1 ms."""


def upload(run: Recording) -> float:
    return run.summary.totals.upload_mbps


def shares(run: Recording) -> dict[str, float]:
    return run.summary.wifi["ap"]["wlan0"].air_share


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["wifi-ath9k", "wifi-ax"])
def test_stations_associate_and_carry_data(simulate: Simulate, name: str, kernel: str) -> None:
    run = simulate(name, *SHORT, kernel=kernel)
    check(run, name)


@pytest.mark.parametrize("kernel", WITHOUT_TXQ)
def test_a_radio_below_a_qdisc_carries_data(simulate: Simulate, kernel: str) -> None:
    run = simulate("wifi-ath9k-htc", *SHORT, kernel=kernel)
    check(run, "wifi-ath9k-htc")
    kinds = set(run.qdisc.filter((pl.col("node") == "client") & (pl.col("device") == "wlan0"))["kind"])
    assert kinds == {"mq", "pfifo_fast"}


def check(run: Recording, name: str) -> None:
    """Check that data flow in aggregates and below the PHY rate, that no ping is lost, and that the kernel logs no
    warning."""
    from hourglass.scenario import load

    rate = radio_bps(load(name).testbed.wifi[0]) / 1e6
    summary = run.summary
    total = sum(flow.goodput_mbps for flow in summary.flows)
    assert LEAST[name] * rate < total < 0.95 * rate
    assert summary.ping_ms["icmp"].lost == 0
    assert summary.wifi["client"]["wlan0"].subframes.p90 > 4
    busy = sum(radios["wlan0"].air_percent for radios in summary.wifi.values())
    assert 30 < busy <= 120
    assert run.info.warnings == []


@pytest.mark.parametrize("kernel", KERNELS)
def test_same_seed_same_bytes_and_another_seed_another_run(simulate: Simulate, kernel: str) -> None:
    first = simulate("wifi-ath9k", *SHORT, kernel=kernel)
    second = simulate("wifi-ath9k", *SHORT, kernel=kernel, fresh=True)
    other = simulate("wifi-ath9k", *SHORT, kernel=kernel, seed=2)
    assert records(first).read_bytes() == records(second).read_bytes()
    assert digests(first)["client:wlan0"] != digests(other)["client:wlan0"]


@pytest.mark.parametrize("name", ["wifi-ath9k-htc", "wifi-ax"])
def test_other_chips_are_deterministic(simulate: Simulate, name: str) -> None:
    first, second = (simulate(name, *SHORT, kernel="6.1", fresh=fresh) for fresh in (False, True))
    assert records(first).read_bytes() == records(second).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wifi-ath9k", "wifi-ath9k-htc", "wifi-ax"])
def test_measuring_changes_no_frame(simulate: Simulate, name: str) -> None:
    """Compare a run that follows each packet with one that measures nothing."""
    short = ("test.length=1.5", "test.delay=0.5")
    full = simulate(name, *short, "measure.packets=all", "measure.devices=10ms", kernel="6.1")
    reduced = simulate(name, *short, "measure.tcp=0", "measure.packets=0", "measure.devices=0", kernel="6.1")
    assert len(digests(reduced)) > 2
    assert digests(full) == digests(reduced)


@pytest.mark.kernels
def test_both_pacing_shifts_reach_the_sockets(simulate: Simulate) -> None:
    """mac80211's 7 is 8 ms of data. The papers' 10 is 1 ms, with smaller aggregates and shorter pings."""
    kernel, paper = (
        simulate("wifi-ath9k", *SHORT, f"testbed.wifi.0.pacing_shift={shift}", kernel="5.10")
        for shift in ("kernel", 10)
    )
    sizes = [run.summary.wifi["client"]["wlan0"].subframes.mean for run in (kernel, paper)]
    pings = [run.summary.ping_ms["icmp"].p50 for run in (kernel, paper)]
    assert sizes[1] < sizes[0]
    assert pings[1] < pings[0]
    shifts = [set(run.tcp.filter(pl.col("sender"))["tsq_shift"].drop_nulls()) for run in (kernel, paper)]
    assert 7 in shifts[0]
    assert shifts[1] == {10}


def crowd(**wifi: Any) -> dict[str, Any]:
    """Return a cell with two fast stations and a slow one, each with a download: the access point schedules them."""
    names = ("client", "fast", "slow")
    stations = [{"at": f"{name}:wlan0"} for name in names]
    stations[2]["mcs"] = 0  # type: ignore[assignment]
    return {
        "name": "crowd",
        "kernel": "6.1",
        "testbed": {
            "node": [*({"name": name} for name in names), {"name": "ap", "role": "router"}, {"name": "server"}],
            "wifi": [{"ap": "ap:wlan0", "station": stations, "width": 20, **wifi}],
            "link": [{"ends": ["ap:eth0", "server:eth0"]}],
        },
        "test": {
            "name": "tcp_ndown",
            "download_streams": 1,
            "length": 10,
            "delay": 1,
            "competing": [{"client": name, "upload_streams": 0, "download_streams": 1} for name in ("fast", "slow")],
        },
    }


def test_the_air_is_shared_fairly_by_the_scheduler(simulate: Simulate) -> None:
    """The rates are 65 or 72 and 7 Mbit/s. Each station gets a third of the air, and the slow one a tenth of a fast
    one's goodput."""
    run = simulate(crowd())
    assert all(share == pytest.approx(1 / 3, abs=0.04) for share in shares(run).values())
    goodput = {flow.id: flow.goodput_mbps for flow in run.summary.flows}
    assert goodput["download::1"] > 5 * goodput["slow-download::1"]


def test_each_station_s_traffic_is_recorded_under_its_node(simulate: Simulate) -> None:
    run = simulate("wifi-ath9k", *SHORT, "testbed.wifi.0.others.count=2", kernel="6.1")
    assert set(shares(run)) == {"client", "other1", "other2"}
    ids = [flow.id for flow in run.summary.flows]
    assert ids[-2:] == ["other1-upload::1", "other2-upload::1"]
    assert all(flow.goodput_mbps > 1 for flow in run.summary.flows)
    assert run.summary.wifi["other1"]["wlan0"].collisions > 0


def test_without_collisions_nothing_collides(simulate: Simulate) -> None:
    collided, not_at_all = (
        simulate("wifi-ath9k", *SHORT, f"testbed.wifi.0.collisions={switch}", kernel="6.1")
        for switch in ("true", "false")
    )
    counts = [sum(radios["wlan0"].collisions for radios in run.summary.wifi.values()) for run in (collided, not_at_all)]
    assert counts[0] > 0
    assert counts[1] == 0
    assert upload(not_at_all) > upload(collided)


def test_errors_are_retried(simulate: Simulate) -> None:
    run = simulate("wifi-ath9k", *SHORT, "testbed.wifi.0.error=5%", "testbed.wifi.0.collisions=false", kernel="6.1")
    client = run.summary.wifi["client"]["wlan0"]
    assert client.retries / client.mpdus == pytest.approx(0.05, rel=0.15)
    assert run.summary.ping_ms["icmp"].lost == 0


def test_an_access_point_on_a_channel_hostapd_refuses_is_blamed(simulate: Simulate, monkeypatch) -> None:
    """The message is one line with the key, the tool and its words."""
    from hourglass.plan import radios

    monkeypatch.setitem(radios.CHANNELS, "5GHz", (77,))
    with pytest.raises(InputError, match=r"testbed.wifi.0.ap = 'hostapd': refused in step daemon on node ap: ended"):
        simulate("wifi-ath9k", *SHORT, "test.length=4", kernel="6.1")


def test_a_station_that_finds_no_access_point_is_blamed(simulate: Simulate, monkeypatch) -> None:
    from hourglass.plan import radios

    monkeypatch.setattr(radios, "_mhz", lambda band, channel: 5200)
    with pytest.raises(InputError, match=r"testbed.wifi.0.station.0 = 'dev wlan0 connect .* not within 10 s"):
        simulate("wifi-ath9k", *SHORT, "test.length=5", kernel="6.1")


def test_waits_for_the_air_are_counted_by_access_category(simulate: Simulate) -> None:
    """With RRUL, packets marked CS5 and EF are video for mac80211, which starves best effort. The categories add up to
    the radio's counts, and the waits of the marked flow's packets are those that the probe records."""
    run = simulate("wifi-ath9k", *SHORT, "test.name=rrul", "stack.tsq=off", kernel="6.1")
    end = run.radio_counters.filter(pl.col("t_ns") == pl.col("t_ns").max())
    for node in ("client", "ap"):
        counts = dict(end.filter(pl.col("node") == node).select("name", "value").rows())

        def total(word: str, counts: dict[str, int] = counts) -> int:
            return sum(counts[f"ac.{name}.{word}"] for name in ("vo", "vi", "be", "bk"))

        assert total("ppdus") + counts["tx_beacons"] == counts["tx_attempts"]
        assert total("failed") <= counts["tx_collisions"] + counts["tx_unanswered"]
        assert total("waited") <= total("mpdus")
        assert 0 <= counts["tx_ns"] - total("tx_ns") <= counts["tx_beacons"] * 500_000
        assert counts["tx_ns"] < counts["medium_busy_ns"] <= run.end_ns
        figures = run.summary.wifi[node]["wlan0"]
        assert list(figures.categories) == ["VI", "BE", "BK"]
        waits = [warning.contention_ms for warning in figures.categories.values()]
        assert waits == sorted(waits)
        assert 90 < figures.busy_percent <= 100
    starved = [warning.text for warning in run.summary.warnings if warning.id == "best-effort-starved"]
    assert [text.split()[3] for text in starved] == ["client:wlan0", "ap:wlan0"]
    plain = simulate("wifi-ath9k", *SHORT, "stack.tsq=off", kernel="6.1")
    assert "best-effort-starved" not in {warning.id for warning in plain.summary.warnings}


DOWNLOAD = ("testbed.wifi.0.others.count=0", "test.name=tcp_ndown", "test.download_streams=1", *SHORT)


@pytest.mark.parametrize(
    ("cell", "station"),
    [("minstrel", ("mcs=0", "streams=1")), ("7", ("mcs=0", "streams=1"))],
    ids=["minstrel", "fixed"],
)
def test_an_access_point_sends_at_the_rate_of_the_station(
    simulate: Simulate, cell: str, station: tuple[str, ...]
) -> None:
    """7.2 Mbit/s: MCS 0, one stream, 20 MHz [14.4, or up to 144 under the cell's minstrel]."""
    changes = (f"testbed.wifi.0.station.0.{setting}" for setting in station)
    run = simulate("wifi-ath9k", *DOWNLOAD, f"testbed.wifi.0.mcs={cell}", *changes, kernel="6.1")
    assert 0.6 * 7.22 < run.summary.totals.download_mbps < 7.22


def test_a_station_may_be_faster_than_the_cell(simulate: Simulate) -> None:
    """The cell's rate is 14.4 Mbit/s, the station's 144.4."""
    changes = ("testbed.wifi.0.mcs=0", "testbed.wifi.0.station.0.mcs=7")
    run = simulate("wifi-ath9k", *DOWNLOAD, *changes, kernel="6.1")
    assert 0.5 * 144.4 < run.summary.totals.download_mbps < 144.4


def test_minstrel_serves_one_station_as_it_serves_all(simulate: Simulate) -> None:
    """At 12 dB no frame of MCS 15 arrives."""
    snr = "testbed.wifi.0.station.0.snr=12"
    single, all_stations = (
        simulate("wifi-ath9k", *DOWNLOAD, snr, f"{key}=minstrel", kernel="6.1")
        for key in ("testbed.wifi.0.station.0.mcs", "testbed.wifi.0.mcs")
    )
    assert single.summary.totals.download_mbps == all_stations.summary.totals.download_mbps > 20
