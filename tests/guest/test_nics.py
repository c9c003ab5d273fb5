# SPDX-License-Identifier: Apache-2.0
"""NICs and their profiles in complete runs: times of interrupts, frames in the NIC, the cost of buffers for a socket,
checksums on the cable. All use closed forms; "before" means the NIC without profiles (commit 049c0d7)."""

import subprocess
from typing import Any

import polars as pl
import pytest

from hourglass.results.recording import Recording
from hourglass.scenario import nics
from tests import tools

from .conftest import KERNELS, Simulate, counters, line

pytestmark = pytest.mark.guest

NS = 10**9
FULL = 1514
FULL_NS = (FULL + 24) * 8 * 10
"""A full frame on a cable of 100 Mbit/s."""
PING = 14 + 20 + 8 + 56
HEADERS = 14 + 20 + 20 + 12
MSS = 1448
SEGMENTS = 45
"""Segments of the longest skb: 65,536 bytes."""


def uploads(streams: int = 4, seconds: float = 6, **test: Any) -> dict[str, Any]:
    return {"name": "tcp_nup", "upload_streams": streams, "length": seconds, "delay": 1, **test}


def ping_ms(run: Recording) -> float:
    return float(run.summary.ping_ms["icmp"].p50)


def per_second(run: Recording, counter: str, node: str, device: str) -> float:
    return counters(run, node, device)[counter] / (run.end_ns / NS)


# --- interrupts


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("nic", "waits_us"), [("tg3", 20), ("igb", 0), ("ixgbe", 0), ("r8169", 0)])
def test_an_idle_nic_waits_as_its_chip_does(simulate: Simulate, kernel: str, nic: str, waits_us: int) -> None:
    """tg3 waits for more frames after the first; a chip with intervals, or without moderation, interrupts at once."""
    delay_ns = 400_000
    run = simulate(line("1gbit", f"{delay_ns}ns", nic=nic), kernel=kernel)
    rtts = run.ping_rows.filter(pl.col("stream") == "icmp")["rtt_ns"].to_list()[1:]
    assert len(rtts) > 5
    assert set(rtts) == {4 * ((PING + 24) * 8 + delay_ns + waits_us * 1000)}


@pytest.mark.slow
def test_a_shared_vector_reports_transmissions_with_every_frame(simulate: Simulate) -> None:
    """With two vectors, completions have a separate moderation, at most 1000 times a second. With one, each
    acknowledgment completes, if an skb is one segment. Before, every NIC had two."""
    single = ("stack.gso=1us", "stack.sysctl.net.ipv4.tcp_min_tso_segs=1")
    late = {"tx_usecs": 1000, "tx_frames": 0}
    runs = {
        vectors: simulate({**line("1gbit", "200us", nodes=2, vectors=vectors, **late), "test": uploads()}, *single)
        for vectors in (1, 2)
    }
    rates = {vectors: per_second(run, "tx_interrupts", "client", "right") for vectors, run in runs.items()}
    receive_rate = per_second(runs[1], "rx_interrupts", "client", "right")
    assert 600 < rates[2] <= 1000
    assert rates[1] == pytest.approx(receive_rate, rel=0.05)
    assert rates[1] > 10_000


def test_igb_interrupts_once_an_interval_of_its_mean_frame(simulate: Simulate) -> None:
    """Full frames at 1 Gbit/s: (1514 + 24) / 2 quarters of a us, 192 us."""
    run = simulate({**line("1gbit", "200us", nodes=2, nic="igb"), "test": uploads(delay=0)})
    assert run.summary.totals.upload_mbps == pytest.approx(1000 * MSS / (MSS + HEADERS + 24), rel=0.01)
    assert per_second(run, "rx_interrupts", "server", "left") == pytest.approx(NS / 192_000, rel=0.05)


@pytest.mark.slow
def test_ixgbe_waits_for_some_fifty_frames(simulate: Simulate) -> None:
    """At 10 Gbit/s tg3's five frames cause an interrupt every 6 us, unlike any driver for 10 Gbit/s. The interval of
    ixgbe grows until an interrupt handles 48 packets. It is the default, and tg3 causes a warning."""
    busy = {"test": uploads(seconds=2, delay=0)}
    chosen = {"tg3": {"nic": "tg3"}, "ixgbe": {}}
    ten = {nic: simulate({**line("10gbit", "100us", nodes=2, **keys), **busy}) for nic, keys in chosen.items()}
    frames_per_interrupt = {}
    for nic, run in ten.items():
        server = counters(run, "server", "left")
        frames_per_interrupt[nic] = server["rx_frames"] / server["rx_interrupts"]
        assert run.summary.totals.upload_mbps > 9000
    assert frames_per_interrupt["tg3"] == pytest.approx(5, rel=0.05)
    assert 35 < frames_per_interrupt["ixgbe"] < 96
    rtts_ms = {nic: run.summary.tcp_rtt_ms.p50 for nic, run in ten.items()}
    assert rtts_ms["ixgbe"] > 1.1 * rtts_ms["tg3"]
    warned = {nic: "nic-below-rate" in [warning.id for warning in run.summary.warnings] for nic, run in ten.items()}
    assert warned == {"tg3": True, "ixgbe": False}


@pytest.mark.parametrize("kernel", KERNELS)
def test_r8169_has_the_offloads_of_its_kernel(simulate: Simulate, kernel: str) -> None:
    """Without TSO the ring has single frames instead of skbs of up to 64 KB, so BQL's limit is two of them. From 6.2
    on, a poll follows after 20 us without an interrupt, and GRO keeps its packets until the next jiffy."""
    keys = nics.defaults("r8169", nics.STANDARD_MTU, {}, kernel)
    source = {**line("100mbit", "1ms", nodes=2, nic="r8169"), "test": uploads(seconds=4)}
    run = simulate(source, kernel=kernel)
    limit = run.queues.filter((pl.col("node") == "client") & (pl.col("t_ns") > 3 * NS))["bql_limit"].median()
    assert limit > 30_000 if keys["tso"] else limit == 2 * FULL
    assert keys["tso"] == (kernel == "7.3")
    software = simulate({**line("1gbit", "1ms", nodes=2, nic="r8169"), "test": uploads(seconds=1)}, kernel=kernel)
    server = counters(software, "server", "left")
    segments_per_ack = server["rx_frames"] / server["tx_frames"]
    assert segments_per_ack == pytest.approx(29, rel=0.1) if keys["gro_usecs"] else segments_per_ack < 2
    assert (keys["gro_usecs"] == 20) == (kernel in ("6.12", "7.3"))


def test_an_interval_that_is_written_is_not_adapted(simulate: Simulate) -> None:
    run = simulate({**line("1gbit", "200us", nodes=2, nic="igb", rx_usecs=400), "test": uploads(delay=0)})
    assert per_second(run, "rx_interrupts", "server", "left") == pytest.approx(NS / 400_000, rel=0.05)


# --- the NIC's memory


@pytest.mark.parametrize(("rate", "bps"), [("100mbit", 10**8), ("10mbit", 10**7)])
def test_frames_in_the_nic_are_below_bql(simulate: Simulate, rate: str, bps: int) -> None:
    """24 KB are 15 full frames: 1.85 ms more for a ping after uploads at 100 Mbit/s, 18.5 ms at 10. An skb is one
    segment, otherwise BQL's limit hides the difference."""
    single = ("stack.qdisc=fq_codel", "stack.gso=1us", "stack.sysctl.net.ipv4.tcp_min_tso_segs=1")
    pings = {
        fifo: ping_ms(simulate({**line(rate, "1ms", nodes=2, tx_fifo=fifo), "test": uploads(seconds=20)}, *single))
        for fifo in (0, 24_000)
    }
    more_ms = 24_000 // FULL * (FULL + 24) * 8e3 / bps
    assert pings[24_000] - pings[0] == pytest.approx(more_ms, rel=0.15)


# --- the transmit ring


@pytest.mark.parametrize(("nic", "headers"), [("tg3", 1), ("igb", SEGMENTS), ("ixgbe", SEGMENTS)])
def test_bql_counts_the_headers_of_the_driver(simulate: Simulate, nic: str, headers: int) -> None:
    """A limit of 1 byte lets one skb into the ring. Before, all three counted its length."""
    saturated = {**line("1gbit", "200us", nodes=2, nic=nic), "test": uploads(1, seconds=1)}
    run = simulate(saturated, "stack.client.device.right.bql_max=1B", "measure.devices=10ms")
    inflight = run.queues.filter((pl.col("node") == "client") & (pl.col("ring_skbs") == 1))["bql_inflight"]
    assert inflight.value_counts().filter(pl.col("count") > 50)["bql_inflight"].to_list() == [
        SEGMENTS * MSS + headers * HEADERS
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("nic", "descriptors"), [("tg3", 1), ("igb", 2)])
def test_a_full_ring_holds_chains_of_the_drivers_length(simulate: Simulate, nic: str, descriptors: int) -> None:
    """The queue stops when a chain of the longest skb (17 fragments and a header) no longer fits. A datagram takes a
    descriptor, and on igb another one for its context. Before, both rings held 19."""
    ring, longest = 36, 17 + descriptors
    slow = {"moderation": "delay", "tx_usecs": 1000, "tx_frames": 0, "rx_usecs": 1000, "rx_frames": 0, "vectors": 2}
    cables = line("1gbit", "200us", nodes=2, nic=nic, tx_ring=ring, tx_wake=18, **slow)
    test = {"name": "udp_flood", "length": 1, "delay": 1, "udp_bandwidth": "900mbit"}
    run = simulate({**cables, "test": test}, "measure.devices=10ms", "stack.qdisc=pfifo_fast")
    rows = run.queues.filter(pl.col("node") == "client")
    assert rows["ring_skbs"].max() == (ring - longest) // descriptors + 1


# --- receive buffers


def window(simulate: Simulate, memory: int, **link: Any) -> float:
    """Return the goodput in Mbit/s, over a path of 100 ms, of a flow with a receive buffer of `memory` bytes, on
    6.12."""
    small = (f"stack.sysctl.net.ipv4.tcp_rmem=4096 {memory} {memory}",)
    cables = line("1gbit", "50ms", nodes=2, **link)
    run = simulate({**cables, "test": {"name": "tcp_upload", "length": 10, "delay": 1}}, *small, kernel="6.12")
    return float(run.summary.totals.upload_mbps)


@pytest.mark.kernels
def test_a_larger_buffer_leaves_a_smaller_window(simulate: Simulate) -> None:
    """6.12 scales the window by the charge of segments: payload over truesize. Before, no key had an effect."""
    measured = {size: window(simulate, 65_536, rx_buffer=size) for size in (1984, 4096)}
    expected = (4096 + 256) / (1984 + 256)
    assert measured[1984] / measured[4096] == pytest.approx(expected, rel=0.15)


@pytest.mark.kernels
def test_jumbo_frames_cost_tg3_sixteen_kilobytes(simulate: Simulate) -> None:
    """The kernel charges 16,640 bytes for 8948 on tg3, and 12,544 on igb: three halves of two pages. Before, both were
    10.2 kB."""
    measured = {nic: window(simulate, 1 << 20, mtu=9000, nic=nic) for nic in ("tg3", "igb")}
    assert measured["igb"] / measured["tg3"] == pytest.approx((16384 + 256) / (3 * 4096 + 256), rel=0.15)


# --- what is on the cable


def bad_checksums(file: str) -> tuple[int, int]:
    """Return the numbers of frames with a wrong IP, TCP or UDP checksum, and with a right one of TCP."""
    tshark = tools.need("tshark")
    layers = ("ip", "tcp", "udp")
    checks = [argument for layer in layers for argument in ("-o", f"{layer}.check_checksum:TRUE")]
    fields = [argument for layer in layers for argument in ("-e", f"{layer}.checksum.status")]
    command = [tshark, "-n", "-r", file, *checks, "-T", "fields", *fields]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    frames = [line.split("\t") for line in lines]
    return sum("0" in frame for frame in frames), sum(frame[1] == "1" for frame in frames)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [(), ("testbed.ip=6",), ("testbed.link.0.checksum=false",)])
def test_captures_have_the_checksums_of_the_cable(simulate: Simulate, settings: tuple[str, ...]) -> None:
    """Before, the checksums of all TCP packets sent at the captured device were wrong, also in the receiver's
    capture."""
    files = 'capture.pcap=["client:eth0", "router:eth0", "router:eth1", "server:eth0"]'
    run = simulate("R100M", "test.length=0.4", "test.delay=0.2", "capture.snaplen=0", files, *settings)
    for device in ("client-eth0", "router-eth0", "router-eth1", "server-eth0"):
        bad, good = bad_checksums(str(run.path / f"{device}.pcapng"))
        assert bad == 0, device
        assert good > 1000, device


def test_a_capture_changes_no_record(simulate: Simulate) -> None:
    short = ("test.length=1", "test.delay=1")
    with_capture = simulate("L100M", *short, 'capture.pcap=["client:eth0"]', "capture.snaplen=0")
    assert counters(with_capture, "client") == counters(simulate("L100M", *short), "client")


# --- down in the middle


def test_a_nic_that_goes_down_sends_no_more(simulate: Simulate) -> None:
    """At 1 Mbit/s a full frame takes 12.3 ms and dozens wait. Only frames that have left the NIC arrive; before, all
    frames of the ring did. Every frame is accounted for."""
    down_s = 3.0
    source = {
        **line("1mbit", "1ms", nodes=2),
        "test": uploads(2, 4, delay=0),
        "capture": {"pcap": ["server:left"]},
        "event": [{"at": down_s, "node": "client", "link": "down", "device": "right"}],
    }
    run = simulate(source)
    tshark = tools.need("tshark")
    command = [tshark, "-r", str(run.path / "server-left.pcapng"), "-Y", "tcp.dstport >= 5000", "-T", "fields", "-e"]
    output = subprocess.run([*command, "frame.time_epoch"], capture_output=True, text=True, check=True).stdout
    times = [float(text) for text in output.split()]
    assert len([time for time in times if time < down_s]) > 50
    assert max(times) <= down_s + 0.001
    sent, received = counters(run, "client", "right"), counters(run, "server", "left")
    arrived = received["rx_in_flight"] + received["rx_frames"] + received["rx_corrupted"] + received["rx_missed"]
    assert sent["tx_frames"] == sent["tx_lost"] + arrived
    assert received["rx_missed"] > 5


def test_every_profile_is_complete() -> None:
    for name, profile in nics.PROFILES.items():
        assert tuple(profile.values) == nics.KEYS, name
        assert all(source for _, source in profile.values.values()), name


def test_drops_of_a_ring_before_the_test_do_not_count(simulate: Simulate) -> None:
    """Set-up pings until all nodes answer; of simultaneous frames a ring of one accepts the first. (`simulate` compares
    the driver's counters with the probe.)"""
    run = simulate(
        {
            "name": "small-ring",
            "testbed": {
                "node": [{"name": "client"}, {"name": "router", "role": "router"}, {"name": "server"}],
                "link": [
                    {"ends": ["client:eth0", "router:eth0"], "rx_ring": 1},
                    {"ends": ["router:eth1", "server:eth0"], "jitter": "166667585ns", "rx_usecs": 256, "tx_frames": 34},
                ],
            },
            "test": {"name": "tcp_upload", "length": 1, "delay": 0},
        }
    )
    assert not run.drops.filter(pl.col("t_ns") < 0).is_empty()
