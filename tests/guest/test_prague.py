# SPDX-License-Identifier: Apache-2.0
"""The template `prague.c`, compared with its algorithm: the window after marks and losses, and two round trips."""

import random
from typing import Any

import polars as pl
import pytest

from hourglass.cli.kernel_new import TEMPLATES
from hourglass.results.recording import Recording

from .conftest import KERNELS, Simulate, line

pytestmark = pytest.mark.guest

KERNEL = list(KERNELS)[-1]
VIRTUAL_S = 0.025
"""The template's default: shorter round trips are treated as this one."""
STACK: dict[str, Any] = {"cc": {"file": str(TEMPLATES / "prague.c")}, "sysctl": {"net.ipv4.tcp_min_tso_segs": 1}}
"""A qdisc then sees single segments. It would mark all segments of a GSO skb or none."""


def upload(qdisc: str, delay: str, length: int = 60) -> dict[str, Any]:
    return line("1gbit", delay, nodes=2) | {
        "stack": STACK | {"client": {"qdisc": qdisc}},
        "test": {"name": "tcp_upload", "length": length, "delay": 1},
    }


def sent(run: Recording, after_s: float = 0) -> pl.DataFrame:
    return run.tcp.filter(pl.col("sender") & (pl.col("t_ns") >= after_s * 10**9)).sort("t_ns")


def mean(rows: pl.DataFrame, column: str) -> float:
    return float(rows.select(pl.col(column).mean()).item())


def mean_window(p: float, rtt_s: float) -> float:
    """Return the mean window of the algorithm in the template's head, if each segment is marked with probability p."""
    chance, virtual_s = random.Random(1), max(VIRTUAL_S, rtt_s)
    window, alpha, time_s, area = 10.0, p, 0.0, 0.0
    round_s = reduced_s = 0.0
    acked = marked = 0
    while time_s < 2000:
        time_s += rtt_s / window
        area += int(window) * rtt_s / window
        hit = chance.random() < p
        acked, marked = acked + 1, marked + hit
        if time_s - round_s >= virtual_s:
            alpha += (marked / acked - alpha) / 16
            round_s, acked, marked = time_s, 0, 0
        if not hit:
            window += (rtt_s / virtual_s) ** 2 / int(window)
        elif time_s - reduced_s >= virtual_s:
            window, reduced_s = max(2, window * (1 - alpha / 2)), time_s
    return area / time_s


@pytest.mark.kernels
@pytest.mark.parametrize(("delay_ms", "percent"), [(20, 2), (5, 5)])
def test_the_window_for_random_marks(simulate: Simulate, delay_ms: int, percent: int) -> None:
    """Forty seconds have 700 to 1,100 reductions. Different seeds give windows up to 3 % apart."""
    run = simulate(upload(f"netem limit 10000 loss random {percent}% ecn", f"{delay_ms}ms"), kernel=KERNEL)
    rows = sent(run, after_s=20)
    expected = mean_window(percent / 100, mean(rows, "rtt") / 1e6)
    assert mean(rows, "snd_cwnd") == pytest.approx(expected, rel=0.06)
    assert not run.summary.flows[0].retransmits
    arrived = run.summary.ecn["upload::1"]
    assert (arrived.ect0, arrived.ect1 > 0) == (0, True)


@pytest.mark.kernels
def test_a_loss_halves_the_window_and_so_does_the_timer(simulate: Simulate) -> None:
    """Losses are random. Then nothing passes for two seconds, so the retransmission timer finds the loss."""
    outage = [
        {"at": at, "node": "client", "tc": f"qdisc change dev right root netem limit 10000 loss {share}"}
        for at, share in ((20, "100%"), (22, "0%"))
    ]
    qdisc = "netem limit 10000 loss random 0.2%"
    run = simulate(upload(qdisc, "20ms", length=30) | {"event": outage}, kernel=KERNEL)
    names = ("snd_cwnd", "snd_ssthresh", "total_rto")
    before = [pl.col(name).shift(1).alias(f"{name}_before") for name in names]
    rows = sent(run).with_columns(before).drop_nulls("snd_cwnd_before")
    reduced = rows.filter(pl.col("snd_ssthresh") != pl.col("snd_ssthresh_before"))
    assert len(reduced) > 15
    distance_from_half = pl.col("snd_ssthresh").cast(int) - pl.col("snd_cwnd_before").cast(int) // 2
    after_slow_start = reduced[1:].select(distance_from_half.abs())
    assert after_slow_start.max().item() <= 1, "samples are 10 ms apart"
    timer = reduced.filter(pl.col("total_rto") > pl.col("total_rto_before"))
    assert len(timer) == 1
    assert 20 < timer["t_ns"][0] / 1e9 < 22
    assert sent(run, after_s=30)["delivered"][0] > timer["delivered"][0] + 1000


@pytest.mark.kernels
def test_two_round_trips_count_as_one(simulate: Simulate) -> None:
    """Round trips of 10 and 20 ms are both treated as 25 ms. So the longer path gets no less from a DualPI2 that marks
    both. It gets more. A step marks in trains. The shorter path has the larger share of them (21 %, the longer one
    19 %), and answers them sooner. With `rtt_virtual` 1 the shorter path gets more. The comparison begins at 10 s,
    after the effects of slow start."""
    nodes = ["near", "far", "router", "server"]
    ends = [("near:up", "router:near", "1gbit", "5ms"), ("far:up", "router:far", "1gbit", "10ms")]
    ends.append(("router:out", "server:down", "20mbit", "0ms"))
    testbed = {
        "node": [{"name": name, "role": "router" if name == "router" else "host"} for name in nodes],
        "link": [{"ends": [a, b], "rate": rate, "delay": delay} for a, b, rate, delay in ends],
    }
    competing = [{"client": "far", "server": "server"}]

    def near_to_far(**parameters: int) -> float:
        stack = STACK | {"cc": STACK["cc"] | {"parameters": parameters}, "router": {"qdisc": "dualpi2"}}
        test = {"name": "tcp_upload", "client": "near", "length": 60, "delay": 1, "competing": competing}
        run = simulate({"name": "two", "testbed": testbed, "stack": stack, "test": test}, kernel=KERNEL)
        assert run.summary.totals.upload_mbps > 17
        rows = sent(run, after_s=10).group_by("stream", maintain_order=True)
        assert mean(sent(run, after_s=10), "rtt") < 25_000
        near, far = rows.agg(pl.col("delivered").last() - pl.col("delivered").first())["delivered"].to_list()
        return float(near / far)

    assert 0.6 < near_to_far() < 1.05
    assert near_to_far(rtt_virtual=1) > 1.2
