# SPDX-License-Identifier: Apache-2.0
"""Times and rates, compared with closed forms to the ns."""

import polars as pl
import pytest

from .conftest import KERNELS, Simulate, line

pytestmark = pytest.mark.guest

RX_USECS = 20
"""Receive moderation of the NIC's defaults."""

AFTER_THE_FIRST = 3
"""Transactions in which a new connection still acknowledges at once, in separate frames."""

HEADERS = {"icmp": 14 + 20 + 8, "udp": 14 + 20 + 8, "tcp": 14 + 20 + 20 + 12}
"""Header bytes: TCP with timestamps."""
OVERHEAD = 24


def rtts(run, probe: str) -> list[int]:
    """Return the round trips in ns of a probe of an idle path, without the first, which may wait for neighbour
    tables."""
    return run.ping_rows.filter(pl.col("stream") == probe)["rtt_ns"].to_list()[1:]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("rate", "bps"), [("1gbit", 10**9), ("100mbit", 10**8), ("10mbit", 10**7)])
def test_idle_round_trip_is_the_sum_of_its_parts(simulate: Simulate, kernel: str, rate: str, bps: int) -> None:
    delay_ns = 123_457
    run = simulate(line(rate, f"{delay_ns}ns"), kernel=kernel)
    payload = {ping.name: ping.payload_bytes for ping in run.pings}
    for probe in ("icmp", "udp"):
        frame_bits = (HEADERS[probe] + payload[probe] + OVERHEAD) * 8
        once = -(-frame_bits * 10**9 // bps) + delay_ns + RX_USECS * 1000
        measured = rtts(run, probe)
        assert len(measured) > 5
        assert set(measured) == {4 * once}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("rate", "bps", "request_bytes", "response_bytes"),
    [("1gbit", 10**9, 1, 1), ("100mbit", 10**8, 300, 1448), ("10mbit", 10**7, 1448, 1)],
)
def test_idle_transaction_is_the_sum_of_its_parts(
    simulate: Simulate, kernel: str, rate: str, bps: int, request_bytes: int, response_bytes: int
) -> None:
    """Only one frame in each direction passes two cables: each acknowledgment is in the next frame."""
    delay_ns = 5_000_000
    sizes = (f"test.rr_request={request_bytes}B", f"test.rr_response={response_bytes}B")
    run = simulate(line(rate, f"{delay_ns}ns"), "test.name=tcp_rr", *sizes, kernel=kernel)
    frame_times_ns = [
        -(-(HEADERS["tcp"] + size + OVERHEAD) * 8 * 10**9 // bps) for size in (request_bytes, response_bytes)
    ]
    total_ns = sum(2 * (frame_ns + delay_ns + RX_USECS * 1000) for frame_ns in frame_times_ns)
    rows = run.transaction_rows
    assert set(rows["done_ns"][AFTER_THE_FIRST:-1]) == {total_ns}
    assert rows["t_ns"].diff()[AFTER_THE_FIRST + 1 :].unique().to_list() == [total_ns], "without a pause between them"
    (figures,) = run.summary.transactions
    assert figures.done_ms.p50 == pytest.approx(total_ns / 1e6, rel=1e-5)
    assert figures.rate_per_s == figures.done_ms.n / 2 == pytest.approx(1e9 / total_ns, abs=1)
    assert (figures.begun, figures.unfinished) == (rows.height, 1)
    assert run.balance["unmatched"].sum() == 0


def test_one_way_delays_sum_to_the_round_trip(simulate: Simulate) -> None:
    run = simulate(line("100mbit", "1ms", rx_usecs=0, rx_frames=0))
    udp = run.ping_rows.filter(pl.col("owd_up_ns").is_not_null())
    assert len(udp) > 5
    assert (udp["owd_up_ns"] + udp["owd_down_ns"] == udp["rtt_ns"]).all()
    frame_ns = (HEADERS["udp"] + run.pings[1].payload_bytes + OVERHEAD) * 80
    assert set(udp["owd_up_ns"][1:]) == {2 * (frame_ns + 10**6)}


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("rate", "mbps"), [("10mbit", 10), ("100mbit", 100), ("1gbit", 1000)])
def test_saturated_goodput(simulate: Simulate, kernel: str, rate: str, mbps: int) -> None:
    test = {"name": "tcp_nup", "upload_streams": 4, "length": 10, "delay": 3 if mbps == 10 else 1}
    run = simulate({**line(rate, "100us"), "test": test}, kernel=kernel)
    window = run.tcp.filter((pl.col("t_ns") >= 4 * 10**9) & (pl.col("t_ns") <= 10 * 10**9) & ~pl.col("sender"))
    per_flow = window.group_by("stream").agg(
        (pl.col("bytes_received").last() - pl.col("bytes_received").first())
        / (pl.col("t_ns").last() - pl.col("t_ns").first())
    )
    goodput = per_flow["bytes_received"].sum() * 8e3
    assert goodput == pytest.approx(mbps * 1448 / 1538, rel=1e-3)


@pytest.mark.kernels
def test_shaped_goodput_and_full_queue(simulate: Simulate) -> None:
    run = simulate("L100M", kernel="5.10")
    assert run.summary.totals.upload_mbps == pytest.approx(100 * 1448 / 1514, abs=0.3)


@pytest.mark.kernels
def test_queue_of_a_thousand_full_frames(simulate: Simulate) -> None:
    """If every skb is one segment, a full pfifo_fast is 1000 frames at HTB's rate: 121.1 ms."""
    single = ("stack.gso=1us", "stack.sysctl.net.ipv4.tcp_min_tso_segs=1")
    run = simulate("L100M", "stack.tsq=off", *single, kernel="5.10")
    full_ms = 1000 * 1514 * 8 / 1e5
    assert run.summary.ping_ms["icmp"].max == pytest.approx(full_ms, rel=0.02)
    assert run.summary.drops["client"]["eth0"].qdisc > 0
