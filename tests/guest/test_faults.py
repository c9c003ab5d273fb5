# SPDX-License-Identifier: Apache-2.0
"""Faults and traces of a cable, compared with the scenario: counts within five sigma, times to the ns."""

import math
from typing import Any

import polars as pl
import pytest

from hourglass.contract.kernels import DEFAULT
from hourglass.results.recording import Recording

from .conftest import KERNELS, Simulate, counters, digests, line

pytestmark = pytest.mark.guest

SIGMAS = 5
RX_NS = 20_000
"""Receive moderation of the NIC's defaults."""

NS = 10**9
MS = 10**6
CABLE = (("client", "right"), ("server", "left"))


def cable(rate: str = "50mbit", **link: Any) -> dict[str, Any]:
    """Return client and server on one cable."""
    return line(rate, nodes=2, **link)


def bursts(rate: str, mean: float) -> dict[str, Any]:
    return {"model": "gilbert-elliott", "rate": rate, "burst": mean}


def loaded(link: dict[str, Any], seconds: float = 3, **test: Any) -> dict[str, Any]:
    """Return a BBR upload, which continues at full rate if frames are lost."""
    return {**link, "test": {"name": "tcp_upload", "length": seconds, "delay": 0.5, "flow_cc": "bbr", **test}}


def ends(run: Recording) -> tuple[dict[str, int], dict[str, int]]:
    """Return the counters of client and server."""
    client, server = (counters(run, *end) for end in CABLE)
    return client, server


def is_likely(count: int, draws: int, p: float) -> bool:
    """Tell whether a count is within five sigma of the mean of independent draws."""
    return abs(count - draws * p) <= SIGMAS * math.sqrt(draws * p * (1 - p))


def frames_ns(size: int, rate_bps: int) -> int:
    return -(-(size + 24) * 8 * NS // rate_bps)


def icmp(run: Recording) -> pl.DataFrame:
    """Return the pings without the first, which may wait for the neighbour tables."""
    return run.ping_rows.filter(pl.col("stream") == "icmp")[1:]


def mbps(run: Recording, start_s: float, end_s: float) -> float:
    """Return the goodput of all flows within a span of test time."""
    window = run.tcp.filter(~pl.col("sender") & pl.col("t_ns").is_between(int(start_s * NS), int(end_s * NS)))
    grown = window.group_by("stream").agg(pl.col("bytes_received").last() - pl.col("bytes_received").first())
    return grown["bytes_received"].sum() * 8e-6 / (end_s - start_s)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("fault", "counted_at"), [("loss", "tx_lost"), ("duplicate", "tx_duplicated"), ("corrupt", "rx_corrupted")]
)
def test_a_fault_has_the_declared_rate_and_direction(
    simulate: Simulate, kernel: str, fault: str, counted_at: str
) -> None:
    run = simulate(loaded(cable(**{fault: ["1%", "0%"]})), kernel=kernel)
    client, server = ends(run)
    assert client["tx_frames"] > 5000
    end = server if counted_at.startswith("rx") else client
    assert is_likely(end[counted_at], client["tx_frames"], 0.01)
    all_counts = {
        key: client[key] + server[key] for key in ("tx_lost", "tx_duplicated", "tx_reordered", "rx_corrupted")
    }
    assert {key for key, count in all_counts.items() if count} == {counted_at}
    assert all_counts[counted_at] == end[counted_at]
    repeated = run.tcp.filter("sender")["total_retrans"].max()
    assert (repeated >= end[counted_at] * 0.9) if fault != "duplicate" else (repeated == 0)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_bursts_of_losses_have_their_rate_and_their_length(simulate: Simulate, kernel: str) -> None:
    """Compare with a Markov chain of N frames with the share P and bursts of mean B. The number of losses has the
    variance N P (1 - P) (2 B (1 - P) - 1). The mean of K bursts has the variance B (B - 1) / K. Pings also step the
    chain, but are one frame in thousands."""
    rate, mean = 0.02, 4
    length_s = 3 if kernel == DEFAULT else 1  # the chain is the driver's: KUnit counts it on every kernel
    bursty = cable("1gbit", loss=[bursts("2%", mean), "0%"])
    flood = {"name": "udp_flood", "length": length_s, "delay": 0.5, "udp_bandwidth": "80mbit", "udp_pktsize": 250}
    run = simulate({**bursty, "test": flood}, kernel=kernel)
    rows = run.datagram_rows.sort("seq")
    assert not rows["refused"].any()
    sent, lost = rows.height, rows["owd_ns"].null_count()
    assert sent == rows["seq"].n_unique() > 35_000 * length_s
    assert abs(lost - sent * rate) <= SIGMAS * math.sqrt(sent * rate * (1 - rate) * (2 * mean * (1 - rate) - 1))
    runs = rows.select(pl.col("owd_ns").is_null().rle()).unnest("owd_ns")
    lengths = runs.filter("value")["len"]
    assert abs(lengths.mean() - mean) <= SIGMAS * math.sqrt(mean * (mean - 1) / len(lengths))
    assert is_likely((lengths == 1).sum(), len(lengths), 1 / mean), "geometric"
    (up,) = run.balance.filter((pl.col("stream") == "udp upload") & (pl.col("way") == "up")).iter_rows(named=True)
    assert (up["sent"], up["delivered"], up["dropped"]) == (sent, sent - lost, lost)
    drops = run.drops.filter(pl.col("stream") == "udp upload")
    assert set(drops["reason"]) == {"loss"}
    assert drops["packets"].sum() == lost
    client, server = ends(run)
    assert client["tx_frames"] == client["tx_lost"] + server["rx_frames"]
    assert server["tx_lost"] == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_reordered_frame_is_late_by_the_delay(simulate: Simulate, kernel: str) -> None:
    late_ns = 3_000_000
    fault = cable("100mbit", reorder=["30%", "0%"], reorder_delay="3ms")
    idle = simulate({**fault, "test": {"name": "ping", "length": 40}}, kernel=kernel)
    size = 14 + 20 + 8 + 56
    base = 2 * (frames_ns(size, 10**8) + RX_NS)
    trips = icmp(idle)["rtt_ns"]
    assert set(trips) == {base, base + late_ns}
    assert is_likely((trips == base + late_ns).sum(), len(trips), 0.3)
    busy = simulate(loaded(cable(reorder=["1%", "0%"], reorder_delay="1ms")), kernel=kernel)
    client, _ = ends(busy)
    assert is_likely(client["tx_reordered"], client["tx_frames"], 0.01)
    assert busy.tcp.filter(~pl.col("sender"))["rcv_ooopack"].max() > 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_jitter_is_uniform_and_keeps_the_order(simulate: Simulate, kernel: str) -> None:
    jitter_ns = 2_000_000
    run = simulate({**cable("100mbit", jitter=["2ms", "0s"]), "test": {"name": "ping", "length": 60}}, kernel=kernel)
    size = 14 + 20 + 8 + 56
    late = icmp(run)["rtt_ns"] - 2 * (frames_ns(size, 10**8) + RX_NS)
    assert late.min() >= 0
    assert late.max() < jitter_ns
    assert abs(late.mean() - jitter_ns / 2) < SIGMAS * jitter_ns / math.sqrt(12 * len(late))
    busy = simulate(loaded(cable(jitter="2ms")), kernel=kernel)
    assert busy.tcp["rcv_ooopack"].max() == 0
    assert busy.tcp["total_retrans"].max() == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_rate_step_is_a_step_of_goodput(simulate: Simulate, kernel: str) -> None:
    """Before and after, a segment of 1448 bytes takes 1538 on the cable."""
    stepped = cable("40mbit", trace=[[3, "20mbit"], [5, "80mbit"]])
    run = simulate(loaded(stepped, 7, delay=0, flow_cc="cubic"), kernel=kernel)
    for start_s, end_s, rate in ((1, 3, 40), (3.2, 5, 20), (5.5, 7, 80)):
        assert mbps(run, start_s, end_s) == pytest.approx(rate * 1448 / 1538, rel=0.01)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_rate_step_is_exact_for_a_ping(simulate: Simulate, kernel: str) -> None:
    ping = {"name": "ping", "length": 4, "udp_interval": 100}
    run = simulate({**cable("100mbit", trace=[[2, "1mbit"]]), "test": ping}, kernel=kernel)
    size = 14 + 20 + 8 + 56
    trips = icmp(run)
    for span, rate in ((pl.col("t_ns") < 2 * NS - RX_NS * 10, 10**8), (pl.col("t_ns") >= 2 * NS, 10**6)):
        assert set(trips.filter(span)["rtt_ns"]) == {2 * (frames_ns(size, rate) + RX_NS)}


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_frame_passes_in_an_outage_and_then_traffic_continues(simulate: Simulate, kernel: str) -> None:
    run = simulate(loaded(cable(outage=[[2, 2.5]]), 5, delay=0, flow_cc="cubic"), kernel=kernel)
    margin = 0.02  # data in flight at its start
    assert mbps(run, 2 + margin, 2.5) == 0
    assert mbps(run, 1, 2) == pytest.approx(50 * 1448 / 1538, rel=0.01)
    assert mbps(run, 3.5, 5) == pytest.approx(50 * 1448 / 1538, rel=0.02)
    caught = icmp(run).filter(pl.col("t_ns").is_between(2 * NS, int(2.4 * NS)))
    answered = caught.filter(pl.col("rtt_ns").is_not_null())
    assert len(answered) > 0
    assert (answered["t_ns"] + answered["rtt_ns"] > int(2.5 * NS)).all()
    assert ends(run)[0]["tx_lost"] == 0, "what cannot leave waits in the ring"


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_opportunity_of_a_mahimahi_trace_lets_a_packet_pass(simulate: Simulate, kernel: str) -> None:
    """Opportunities at 1, 2, 3, 5 and 10 ms of each 10 ms: 500 packets a second, and none leaves at another time."""
    trace = {"forward": {"opportunity_ms": [1, 2, 3, 5, 10]}}
    run = simulate(loaded(cable("1gbit", trace=trace), 5, flow_cc="cubic"), kernel=kernel)
    assert mbps(run, 2, 5) == pytest.approx(500 * 1448 * 8e-6, rel=0.01)
    idle = simulate({**cable("1gbit", trace=trace), "test": {"name": "ping", "length": 10}}, kernel=kernel)
    back = frames_ns(98, NS) + 2 * RX_NS
    left = (icmp(idle)["t_ns"] + icmp(idle)["rtt_ns"] - back) % (10 * MS)
    assert set(left) <= {0, 1 * MS, 2 * MS, 3 * MS, 5 * MS}
    assert len(set(left)) >= 3


def test_a_time_written_twice_in_a_mahimahi_trace_is_two_packets(simulate: Simulate) -> None:
    """This makes a link faster than 12 Mbit/s."""
    trace = {"forward": {"opportunity_ms": [1, 1, 1]}}
    run = simulate(loaded(cable("1gbit", trace=trace), 3, flow_cc="cubic"))
    assert mbps(run, 2, 3) == pytest.approx(3000 * 1448 * 8e-6, rel=0.01)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_seed_decides_which_frames_are_lost(simulate: Simulate, kernel: str) -> None:
    lossy = loaded(cable(loss="1%", jitter="100us"), 1)
    first, repeated, other = (simulate(lossy, kernel=kernel, seed=seed, fresh=True) for seed in (1, 1, 2))
    assert first.summary.digest == repeated.summary.digest
    assert digests(first) == digests(repeated)
    assert not set(digests(first).values()) & set(digests(other).values())


@pytest.mark.parametrize("loss", ["20%", bursts("20%", 2)], ids=["alone", "bursts"])
def test_switching_one_fault_on_moves_no_other(simulate: Simulate, loss: Any) -> None:
    """Each kind of fault draws separately: pings lost with loss alone are also lost with jitter. The pings end before
    ARP repeats its request, 5 s after the set-up, since jitter decides about the order of its frame and a ping."""
    lost = []
    for faults in ({}, {"jitter": "1ms"}, {"duplicate": "20%"}):
        pings = {"name": "ping", "length": 4, "ping_interval": 0.04}
        run = simulate({**cable(loss=[loss, "0%"], **faults), "test": pings})
        lost.append(run.ping_rows.filter(pl.col("rtt_ns").is_null()).select("stream", "seq").rows())
    assert lost[0] == lost[1] == lost[2]
    assert len(lost[0]) > 10
