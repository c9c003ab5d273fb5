# SPDX-License-Identifier: Apache-2.0
"""The claims of the paper on TCP pacing and TCP Small Queues, on its kernel, and its two rules, field by field."""

from statistics import median

import polars as pl
import pytest

from hourglass.results.recording import Recording

from .conftest import Simulate

pytestmark = [pytest.mark.guest, pytest.mark.kernels]

KERNEL = "5.10"
SHORT = ("test.length=10", "test.delay=1")
TSQ_MS = (1, 2, 4, 8)
SEEDS = (1, 2, 3)

US_PER_S = 10**6
ESTABLISHED = 1
SKB = 1280
"""Bytes of truesize of an skb beyond its payload, which lies in page fragments: room for the headers, struct sk_buff,
struct skb_shared_info."""


def uploads(simulate: Simulate, name: str, *settings: str, seed: int = 1) -> Recording:
    return simulate(name, *SHORT, *settings, kernel=KERNEL, seed=seed)


def senders(run: Recording) -> pl.DataFrame:
    """Return samples of the senders with a measured round trip, with plain signed integers."""
    fields = ["rtt", "snd_mss", "snd_cwnd", "snd_ssthresh", "unacked", "pacing_rate", "sk_wmem_alloc"]
    established = pl.col("sender") & (pl.col("rtt") > 0) & (pl.col("state") == ESTABLISHED)
    return run.tcp.filter(established).sort("stream", "t_ns").with_columns(pl.col(fields).cast(pl.Int64))


def tcp_ms(run: Recording) -> float:
    return run.summary.tcp_rtt_ms.p50


def ping_ms(run: Recording) -> float:
    return run.summary.ping_ms["icmp"].p50


def goodput(run: Recording) -> float:
    return run.summary.totals.upload_mbps


@pytest.mark.parametrize(
    ("name", "ss", "ca"), [("L10M", 200, 120), ("L10M", 300, 140), ("L100M", 200, 120), ("LR1000M", 200, 120)]
)
def test_pacing_rate_is_algorithm_1(simulate: Simulate, name: str, ss: int, ca: int) -> None:
    """mss · max(cwnd, packets out) / srtt · ratio, in the kernel's integers.

    `rtt` is srtt without its last three bits, so the rate lies between two bounds. A few samples are outside, because
    they were taken after cwnd moved and before the next ACK set the rate."""
    run = uploads(simulate, name, f"stack.pacing.ss={ss}", f"stack.pacing.ca={ca}")
    slow_start = pl.col("snd_cwnd") < pl.col("snd_ssthresh") // 2
    packets = pl.max_horizontal("snd_cwnd", "unacked")
    ratio = pl.when(slow_start).then(ss).otherwise(ca)
    numerator = pl.col("snd_mss") * (US_PER_S // 100 * 8) * ratio * packets
    at_least, at_most = numerator // (8 * pl.col("rtt") + 7), numerator // (8 * pl.col("rtt"))
    table = senders(run).with_columns(ss=slow_start, ok=pl.col("pacing_rate").is_between(at_least, at_most))
    assert table["ok"].mean() > 0.99
    if name == "L10M":
        assert table["ss"].sum() > 1000
        assert table.filter("ss")["ok"].mean() > 0.99


@pytest.mark.parametrize("name", ["L10M", "L100M", "LR1000M"])
def test_the_data_below_a_socket_follow_algorithm_2(simulate: Simulate, name: str) -> None:
    """An skb is sent down while sk_wmem_alloc ≤ max(2 · truesize, rate >> 10). So it never exceeds this by more than an
    skb.

    truesize is that of an skb of autosizing's most segments. The rate is the highest of the last three samples (20 ms),
    because the data below were sent at an earlier rate. In slow start the rate may have been higher between two
    samples, so a few may be outside. `test_probe.py` checks every decision in the kernel."""
    rate_ms = (pl.col("pacing_rate") // 1024).rolling_max(3, min_samples=1).over("stream")
    segments = pl.max_horizontal(rate_ms // pl.col("snd_mss"), 2)
    skb = segments * pl.col("snd_mss") + SKB
    bound = pl.min_horizontal(pl.max_horizontal(2 * skb, rate_ms), 1 << 20) + skb

    def used(run: Recording) -> pl.Series:
        table = senders(run).with_columns(bound=bound)
        return table["sk_wmem_alloc"] / table["bound"]

    default, off = used(uploads(simulate, name)), used(uploads(simulate, name, "stack.tsq=off"))
    assert (default <= 1).mean() > 0.99
    assert default.max() < 1.2, "a segment more"
    binding = 0.9 if name == "LR1000M" else 0.5  # here the flows have unequal shares, so only some are bound
    assert default.quantile(binding) > 0.45, "the bound is one that binds"
    assert (off > 1).mean() > 0.9


@pytest.mark.parametrize("tsq", ["default", "off"])
@pytest.mark.parametrize("name", ["L100M", "R100M"])
def test_throughput_is_the_same_with_and_without_tsq(simulate: Simulate, name: str, tsq: str) -> None:
    """A-4: all four have about 96 Mbit/s: 1448 of 1514 bytes of HTB's 100."""
    assert goodput(uploads(simulate, name, f"stack.tsq={tsq}")) == pytest.approx(100 * 1448 / 1514, abs=0.3)


def test_tsq_shortens_the_queue_where_the_bottleneck_is_local_only(simulate: Simulate) -> None:
    """A-4, medians over three seeds: the phase of the saw-tooth at start and end changes R100M's median by 10 %."""

    def ping(name: str, tsq: str) -> float:
        return median(ping_ms(uploads(simulate, name, f"stack.tsq={tsq}", seed=seed)) for seed in SEEDS)

    assert ping("L100M", "off") > 10 * ping("L100M", "default")
    assert ping("R100M", "off") == pytest.approx(ping("R100M", "default"), rel=0.15)


def test_tcp_round_trips_with_and_without_tsq(simulate: Simulate) -> None:
    """A-5a, with the factors of these runs. L10M's queue takes 30 s to fill; then TSQ is near the paper's two orders of
    magnitude. On L100M, four flows at the floor of two skbs reach one and a half."""

    def gain(name: str, *settings: str) -> float:
        off = uploads(simulate, name, "stack.tsq=off", *settings)
        return tcp_ms(off) / tcp_ms(uploads(simulate, name, *settings))

    assert gain("L10M", "test.length=30") > 50
    assert gain("L100M") > 20
    assert gain("LR1000M") > 10
    assert gain("R10M") == pytest.approx(1, rel=0.15)
    assert gain("R100M") == pytest.approx(1, rel=0.15)


def test_a_larger_tsq_is_a_longer_queue_at_equal_goodput(simulate: Simulate) -> None:
    runs = [uploads(simulate, "L100M", f"stack.tsq={ms}ms") for ms in TSQ_MS]
    round_trips = [tcp_ms(run) for run in runs]
    assert round_trips == sorted(set(round_trips))
    assert round_trips[-1] < tcp_ms(uploads(simulate, "L100M", "stack.tsq=off")) / 10
    assert [goodput(run) for run in runs] == pytest.approx([goodput(runs[0])] * len(runs), rel=0.01)


def test_one_millisecond_is_nearly_the_kernel_s_rule(simulate: Simulate) -> None:
    """The kernel's rule divides by 1024, not by 1000."""
    plain, timed = uploads(simulate, "L100M"), uploads(simulate, "L100M", "stack.tsq=1ms")
    assert tcp_ms(timed) == pytest.approx(tcp_ms(plain), rel=0.05)
