# SPDX-License-Identifier: Apache-2.0
"""The papers' claims on Wi-Fi, in the regimes in which the kernel's code confirms them, each with its mechanism."""

import polars as pl
import pytest

from hourglass.results.recording import Recording

from .conftest import Simulate

pytestmark = [pytest.mark.guest, pytest.mark.kernels]

SHORT = ("test.length=5", "test.delay=2")
OLD = ("stack.gso=1us", "stack.sysctl.net.ipv4.tcp_min_tso_segs=1")
"""One segment per skb, as before Linux 4.17 on devices without scatter-gather."""

PAPER = (*SHORT, "testbed.wifi.0.pacing_shift=10")
"""Autosizing of 1 ms. With mac80211's 8 ms, TSQ's minimum of two skbs is more than 8 ms of data."""

FULL = pl.col("t_ns").is_between(3_500_000_000, 6_900_000_000)
"""The time after slow start and before the end."""

NEVER = 2**31 - 1
"""ssthresh of a sender that has not left slow start."""

FIFO_MS = 246 * 1448 * 8 / 97e6 * 1e3
"""The queue of ath9k_htc's driver below the qdisc, at the goodput of this link: 29.4 ms."""


def upload(run: Recording) -> float:
    assert run.info.warnings == []
    return run.summary.totals.upload_mbps


def ping(run: Recording) -> float:
    return run.summary.ping_ms["icmp"].p50


def senders(run: Recording) -> pl.DataFrame:
    return run.tcp.filter(pl.col("sender") & FULL)


def htc(simulate: Simulate, *overrides: str) -> Recording:
    return simulate("wifi-ath9k-htc", *SHORT, *overrides, kernel="5.10")


def ath9k(simulate: Simulate, tsq: str, ratio: int = 120, rtt: str = "1ms") -> Recording:
    changes = (f"stack.tsq={tsq}", f"stack.pacing.ca={ratio}", f"testbed.netem.0.delay={rtt}")
    return simulate("wifi-ath9k", *PAPER, *changes, kernel="5.10")


def test_one_flow_over_usb_has_near_100_mbps(simulate: Simulate) -> None:
    """B: "almost 100 Mbps". 17 subframes at 150 Mbit/s give 103 to 110, less the share of the ACKs. ACKs are ready at
    the same time as the next data, so one transmission in ten collides."""
    run = htc(simulate)
    assert upload(run) == pytest.approx(97, rel=0.03)
    assert run.summary.wifi["client"]["wlan0"].subframes.p50 == 17


@pytest.mark.parametrize("qdisc", ["pfifo_fast", "codel", "fq_codel", "sfq", "pie"])
def test_the_driver_s_fifo_is_a_floor_below_every_qdisc(simulate: Simulate, qdisc: str) -> None:
    """B-6, B-8: without TSQ the ping is at least 25 ms with each qdisc. With pfifo_fast it is far longer."""
    run = htc(simulate, "stack.tsq=off", f"stack.client.qdisc={qdisc}")
    assert ping(run) > 0.9 * FIFO_MS
    assert (ping(run) < 2 * FIFO_MS) == (qdisc != "pfifo_fast")
    stops = run.radio_counters.filter((pl.col("node") == "client") & (pl.col("name") == "tx_fifo_stops"))["value"]
    assert stops.max() > 10


def test_tsq_keeps_the_fifo_empty(simulate: Simulate) -> None:
    """B-9, B-10: with a standard TSQ the ping is below the floor."""
    assert ping(htc(simulate, *OLD, "stack.tsq=1ms")) < 0.2 * FIFO_MS


@pytest.mark.parametrize(("size", "skbs"), [("64KiB", 25), ("128KiB", 49), ("512KiB", 193)])
def test_a_static_tsq_permits_the_charge_of_its_skbs(simulate: Simulate, size: str, skbs: int) -> None:
    """TSQ compares before it adds, so floor(limit / truesize) + 1 skbs pass. Each charges 2,728 bytes for 1,448 of
    payload."""
    sockets = senders(htc(simulate, *OLD, f"stack.tsq={size}"))
    truesize = sockets["tsq_truesize"].median()
    assert truesize == 2728
    assert sockets["sk_wmem_alloc"].median() == skbs * truesize
    assert sockets["tsq_limit"].median() // truesize + 1 == skbs


def test_a_static_tsq_trades_latency_for_goodput(simulate: Simulate) -> None:
    """B-9: 64 KB is too little and 128 KB is enough. Beyond that only latency grows, by 1 ms per (goodput / 8) bytes of
    payload."""
    runs = [htc(simulate, *OLD, f"stack.tsq={size}") for size in ("64KiB", "128KiB", "512KiB")]
    rates, pings = [upload(run) for run in runs], [ping(run) for run in runs]
    assert rates[0] < 0.96 * rates[1]
    assert rates[2] == pytest.approx(rates[1], rel=0.02)
    assert pings[2] - pings[1] == pytest.approx((193 - 49) * 1448 * 8 / rates[1] / 1e3, rel=0.15)


def test_throughput_and_latency_rise_with_tsq(simulate: Simulate) -> None:
    """A-8a."""
    runs = [ath9k(simulate, tsq) for tsq in ("1ms", "4ms", "8ms")]
    rates, pings = [upload(run) for run in runs], [ping(run) for run in runs]
    sizes = [run.summary.wifi["client"]["wlan0"].subframes.mean for run in runs]
    assert rates == sorted(rates)
    assert rates[-1] > 1.1 * rates[0]
    assert pings[-1] > 1.3 * pings[0]
    assert sizes[-1] > 2 * sizes[0]


def test_a_larger_ratio_buys_throughput_only_with_a_small_tsq(simulate: Simulate) -> None:
    """A-8a: at 1 ms both rise, at 8 ms only latency."""
    (low, high), (relaxed, increased) = (
        [ath9k(simulate, tsq, ratio) for ratio in (120, 140)] for tsq in ("1ms", "8ms")
    )
    assert upload(high) > 1.02 * upload(low)
    assert upload(increased) == pytest.approx(upload(relaxed), rel=0.03)
    assert ping(increased) > 1.05 * ping(relaxed)


def test_a_longer_base_rtt_acts_like_a_smaller_tsq(simulate: Simulate) -> None:
    """A-8b: the pacing rate divides by an RTT of which the radio's queue is a smaller part."""
    near, middle, far = (ath9k(simulate, "1ms", rtt=rtt) for rtt in ("1ms", "10ms", "100ms"))
    assert upload(near) > 1.05 * upload(middle)
    relaxed, distant = (ath9k(simulate, "8ms", rtt=rtt) for rtt in ("1ms", "100ms"))
    assert upload(distant) < 0.92 * upload(relaxed)
    # at 100 ms most flows stay in slow start with its 200 %, so the ratio of congestion avoidance has no effect
    assert (senders(far)["snd_ssthresh"] >= NEVER).mean() > 0.5
    assert upload(ath9k(simulate, "1ms", 140, "100ms")) == pytest.approx(upload(far), rel=0.03)


def test_with_the_kernel_s_own_skbs_the_size_of_tsq_says_nothing(simulate: Simulate) -> None:
    """mac80211's shift of 7 makes skbs of 8 ms, and TSQ always lets two pass. So 1 ms has the effect of 8 ms."""
    runs = [simulate("wifi-ath9k", *SHORT, f"stack.tsq={tsq}", kernel="5.10") for tsq in ("1ms", "8ms")]
    assert upload(runs[0]) == pytest.approx(upload(runs[1]), rel=0.02)
    terms = [senders(run)["tsq_term"] for run in runs]
    assert (terms[0] == "floor").mean() > 0.5


@pytest.mark.parametrize(
    ("test", "streams", "busy", "wait"), [("tcp_nup", 4, "client", 18.7), ("tcp_ndown", 24, "ap", 20.0)]
)
def test_a_ping_waits_for_the_hardware_and_not_for_the_flows(
    simulate: Simulate, test: str, streams: int, busy: str, wait: float
) -> None:
    """mac80211's FQ-CoDel lets a sparse flow pass. Only the two aggregates in ath9k's hardware, one of them on the air,
    are ahead of a ping. So the number of flows has almost no effect on its latency."""
    direction = "upload" if test == "tcp_nup" else "download"
    changes = (f"test.name={test}", f"test.{direction}_streams={streams}", "test.ping_interval=0.05")
    run = simulate("wifi-ath9k", *SHORT, *changes)
    aggregates = run.summary.wifi[busy]["wlan0"].categories["BE"].ppdus
    cycle_ms = 5e3 / aggregates
    pinged, data = run.summary.ping_layers_ms["icmp"][busy], run.summary.layers_ms[busy]
    assert cycle_ms == pytest.approx(3.2, rel=0.05)
    assert cycle_ms <= pinged["ring"].p50 <= 2 * cycle_ms
    assert pinged["txq"].p50 < cycle_ms / 2
    assert data["txq"].p50 > 3 * cycle_ms
    assert ping(run) == pytest.approx(wait, rel=0.1)
