# SPDX-License-Identifier: Apache-2.0
"""NICs and their profiles in whole runs: when they interrupt, what stands in them, what their buffers cost a socket,
what of a frame is on the cable. Closed forms; each says what the NIC before the profiles gave (commit 049c0d7)."""

import shutil
import subprocess
from typing import Any

import polars as pl
import pytest

from hourglass.results.recording import Recording
from hourglass.scenario import nics

from .conftest import KERNELS, Simulate, counters, line

pytestmark = pytest.mark.guest

NS = 10**9
FULL = 1514
FULL_NS = (FULL + 24) * 8 * 10
"""A full frame on a cable of 100 Mbit/s."""
PING = 14 + 20 + 8 + 56
HEADERS = 14 + 20 + 20 + 12
MSS = 1448


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
    """tg3 waits for more after the first frame; a chip with intervals, or without moderation, interrupts at once."""
    delay_ns = 400_000
    run = simulate(line("1gbit", f"{delay_ns}ns", nic=nic), kernel=kernel)
    rtts = run.ping_rows.filter(pl.col("stream") == "icmp")["rtt_ns"].to_list()[1:]
    assert len(rtts) > 5
    assert set(rtts) == {4 * ((PING + 24) * 8 + delay_ns + waits_us * 1000)}


def test_a_shared_vector_tells_of_transmissions_whenever_a_frame_comes(simulate: Simulate) -> None:
    """With two vectors completion comes when its own moderation says so, at most 1000 times a second; with one, at
    every acknowledgment, where one skb is one segment. Before, every NIC had two."""
    single = ("stack.gso=1us", "stack.sysctl.net.ipv4.tcp_min_tso_segs=1")
    late = {"tx_usecs": 1000, "tx_frames": 0}
    runs = {
        vectors: simulate({**line("1gbit", "200us", nodes=2, vectors=vectors, **late), "test": uploads()}, *single)
        for vectors in (1, 2)
    }
    told = {vectors: per_second(run, "tx_interrupts", "client", "right") for vectors, run in runs.items()}
    came = per_second(runs[1], "rx_interrupts", "client", "right")
    assert 600 < told[2] <= 1000
    assert told[1] == pytest.approx(came, rel=0.05)
    assert told[1] > 10_000


def test_igb_interrupts_once_an_interval_of_its_mean_frame(simulate: Simulate) -> None:
    """Full frames at 1 Gbit/s: (1514 + 24) / 2 quarters of a us, 192 us."""
    run = simulate({**line("1gbit", "200us", nodes=2, nic="igb"), "test": uploads(delay=0)})
    assert run.summary.totals.upload_mbps == pytest.approx(1000 * MSS / (MSS + HEADERS + 24), rel=0.01)
    assert per_second(run, "rx_interrupts", "server", "left") == pytest.approx(NS / 192_000, rel=0.05)


def test_ixgbe_waits_until_some_fifty_frames_are_there(simulate: Simulate) -> None:
    """At 10 Gbit/s tg3's five frames are an interrupt each 6 us, which no driver for 10 Gbit/s does; ixgbe's interval
    grows until an interrupt finds 48 packets."""
    busy = {"test": uploads(seconds=2, delay=0)}
    ten = {nic: simulate({**line("10gbit", "100us", nodes=2, nic=nic), **busy}) for nic in ("tg3", "ixgbe")}
    found = {}
    for nic, run in ten.items():
        server = counters(run, "server", "left")
        found[nic] = server["rx_frames"] / server["rx_interrupts"]
        assert run.summary.totals.upload_mbps > 9000
    assert found["tg3"] == pytest.approx(5, rel=0.05)
    assert 35 < found["ixgbe"] < 96


def test_an_interval_that_is_written_is_not_adapted(simulate: Simulate) -> None:
    run = simulate({**line("1gbit", "200us", nodes=2, nic="igb", rx_usecs=400), "test": uploads(delay=0)})
    assert per_second(run, "rx_interrupts", "server", "left") == pytest.approx(NS / 400_000, rel=0.05)


# --- the NIC's memory


@pytest.mark.parametrize(("rate", "bps"), [("100mbit", 10**8), ("10mbit", 10**7)])
def test_what_is_in_the_nic_stands_below_bql(simulate: Simulate, rate: str, bps: int) -> None:
    """24 KB are 15 full frames: 1.85 ms more for a ping behind uploads at 100 Mbit/s, 18.5 ms at 10. One segment an
    skb, or BQL's own limit hides the difference."""
    single = ("stack.qdisc=fq_codel", "stack.gso=1us", "stack.sysctl.net.ipv4.tcp_min_tso_segs=1")
    pings = {
        fifo: ping_ms(simulate({**line(rate, "1ms", nodes=2, tx_fifo=fifo), "test": uploads(seconds=20)}, *single))
        for fifo in (0, 24_000)
    }
    more_ms = 24_000 // FULL * (FULL + 24) * 8e3 / bps
    assert pings[24_000] - pings[0] == pytest.approx(more_ms, rel=0.15)


# --- receive buffers


def window(simulate: Simulate, memory: int, **link: Any) -> float:
    """Goodput in Mbit/s over 100 ms of a flow whose receive buffer is so many bytes, on 6.12."""
    small = (f"stack.sysctl.net.ipv4.tcp_rmem=4096 {memory} {memory}",)
    cables = line("1gbit", "50ms", nodes=2, **link)
    run = simulate({**cables, "test": {"name": "tcp_upload", "length": 10, "delay": 1}}, *small, kernel="6.12")
    return float(run.summary.totals.upload_mbps)


def test_a_larger_buffer_leaves_a_smaller_window(simulate: Simulate) -> None:
    """6.12 scales the window by what segments are charged: payload over truesize. Before, no key did anything."""
    measured = {size: window(simulate, 65_536, rx_buffer=size) for size in (1984, 4096)}
    expected = (4096 + 256) / (1984 + 256)
    assert measured[1984] / measured[4096] == pytest.approx(expected, rel=0.15)


def test_jumbo_frames_cost_tg3_sixteen_kilobytes(simulate: Simulate) -> None:
    """8948 bytes are charged 16,640 on tg3, and on igb 12,544: three halves of two pages. Before, both 10.2 kB."""
    measured = {nic: window(simulate, 1 << 20, mtu=9000, nic=nic) for nic in ("tg3", "igb")}
    assert measured["igb"] / measured["tg3"] == pytest.approx((16384 + 256) / (3 * 4096 + 256), rel=0.15)


# --- what is on the cable


def bad_checksums(file: str) -> tuple[int, int]:
    """Frames whose IP, TCP or UDP checksum is wrong, and those with a right one of TCP."""
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("no tshark here: apt-get install -y tshark")
    layers = ("ip", "tcp", "udp")
    checks = [word for layer in layers for word in ("-o", f"{layer}.check_checksum:TRUE")]
    fields = [word for layer in layers for word in ("-e", f"{layer}.checksum.status")]
    command = [tshark, "-n", "-r", file, *checks, "-T", "fields", *fields]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    frames = [line.split("\t") for line in told]
    return sum("0" in frame for frame in frames), sum(frame[1] == "1" for frame in frames)


@pytest.mark.parametrize("settings", [(), ("testbed.ip=6",), ("testbed.link.0.checksum=false",)])
def test_captures_have_the_checksums_of_the_cable(simulate: Simulate, settings: tuple[str, ...]) -> None:
    """Before, all TCP that was sent at the place of the capture was wrong, and at the receiver too."""
    files = 'capture.pcap=["client:eth0", "router:eth0", "router:eth1", "server:eth0"]'
    run = simulate("R100M", "test.length=0.4", "test.delay=0.2", "capture.snaplen=0", files, *settings)
    for place in ("client-eth0", "router-eth0", "router-eth1", "server-eth0"):
        bad, good = bad_checksums(str(run.path / f"{place}.pcapng"))
        assert bad == 0, place
        assert good > 1000, place


def test_a_capture_moves_no_record(simulate: Simulate) -> None:
    short = ("test.length=1", "test.delay=1")
    with_capture = simulate("L100M", *short, 'capture.pcap=["client:eth0"]', "capture.snaplen=0")
    assert counters(with_capture, "client") == counters(simulate("L100M", *short), "client")


# --- down in the middle


def test_a_nic_that_goes_down_sends_no_more(simulate: Simulate) -> None:
    """At 1 Mbit/s a full frame takes 12.3 ms and dozens wait. What has left the cable's end arrives; before, all that
    was in the ring did. Nothing is unaccounted for."""
    down_s = 3.0
    source = {
        **line("1mbit", "1ms", nodes=2),
        "test": uploads(2, 4, delay=0),
        "capture": {"pcap": ["server:left"]},
        "event": [{"at": down_s, "node": "client", "link": "down", "device": "right"}],
    }
    run = simulate(source)
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("no tshark here: apt-get install -y tshark")
    command = [tshark, "-r", str(run.path / "server-left.pcapng"), "-Y", "tcp.dstport >= 5000", "-T", "fields", "-e"]
    told = subprocess.run([*command, "frame.time_epoch"], capture_output=True, text=True, check=True).stdout
    times = [float(word) for word in told.split()]
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


def test_what_a_ring_lost_before_the_test_is_not_of_the_test(simulate: Simulate) -> None:
    """Set-up pings until all answer; of frames that come at once a ring of one takes the first. (`simulate` holds the
    driver's counters against what the probe saw.)"""
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
