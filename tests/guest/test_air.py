# SPDX-License-Identifier: Apache-2.0
"""The probe on air: it changes nothing, follows every packet through mac80211, and captures the sent frames."""

import re
import subprocess
from collections import Counter
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from hourglass.results import frames
from hourglass.results.frames import LAYER_COLUMNS
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, loaded_window
from tests import tools

from . import air
from .conftest import KERNELS, Simulate, check_accounts, digests, round_trips

pytestmark = pytest.mark.guest

SHORT = ("test.length=2", "test.delay=1")
ALL = (*SHORT, "measure.packets=all")
IDLE = ("test.name=ping", "test.length=2", "test.delay=0", "measure.packets=all")
NOTHING = ("measure.packets=0", "measure.tcp=0", "measure.devices=0")
PRESETS = ("wifi-ath9k", "wifi-ath9k-htc", "wifi-ax")
ON_AIR = ["air_ns", "contention_ns", "retry_ns", "resequence_ns", "txq_ns"]
CAPTURE = ('capture.pcap=["client:wlan0", "ap:wlan0"]', "capture.snaplen=80")
AIRTIME_NS = 48_000
"""An echo request of 56 bytes at MCS 15 with the short guard interval: 40 us of preamble, 122 bytes in 2 symbols."""

WITHIN_A_CELL: dict[str, Any] = {
    "name": "cell",
    "kernel": "6.1",
    "testbed": {
        "node": [{"name": "client"}, {"name": "ap", "role": "router"}, {"name": "server"}],
        "wifi": [{"ap": "ap:wlan0", "station": [{"at": "client:wlan0"}, {"at": "server:wlan0"}], "width": 20}],
    },
    "test": {"name": "tcp_nup"},
}
CASES: dict[str, tuple[str | dict[str, Any], tuple[str, ...]]] = {
    **{name: (name, CAPTURE) for name in PRESETS},
    "full queues": ("wifi-ax", ("stack.tsq=off",)),
    "errors": ("wifi-ath9k-htc", ("testbed.wifi.0.error=60%", *CAPTURE)),
    "within a cell": (WITHIN_A_CELL, ("stack.tsq=off",)),
}


def case(simulate: Simulate, name: str) -> Recording:
    source, overrides = CASES[name]
    return simulate(source, *ALL, *overrides, kernel="6.1")


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_watching_everything_changes_no_frame(simulate: Simulate, name: str) -> None:
    unwatched = simulate(name, *SHORT, *NOTHING, kernel="6.1")
    assert unwatched.packets.is_empty()
    watched = case(simulate, name)
    assert watched.packets.height > 10_000
    assert digests(watched) == digests(unwatched)


@pytest.mark.parametrize("name", CASES)
def test_every_packet_is_accounted_for(simulate: Simulate, name: str) -> None:
    """The layers of each packet add up to the ns; each sent packet was delivered, dropped, or is in flight."""
    check_accounts(case(simulate, name), packets=2000)


@pytest.mark.parametrize("name", CASES)
def test_a_pings_layers_are_its_round_trip(simulate: Simulate, name: str) -> None:
    """Compare two independent clocks: the probe's and the sender's."""
    pings = round_trips(case(simulate, name))
    assert pings.height > 30
    assert pings.filter(pl.col("rtt_ns") != pl.col("sum")).is_empty()


def test_only_a_radio_s_sender_has_the_layers_of_the_air(simulate: Simulate) -> None:
    run = case(simulate, "wifi-ath9k")
    idle = (pl.col("stream") == "icmp") & (pl.col("end_ns") < 1_000_000_000) & (pl.col("packet") > 0)
    sent = run.packets.filter(idle & (pl.col("visit") == 0) & (pl.col("way") == "up"))
    assert set(sent["air_ns"]) == {AIRTIME_NS}
    assert set(sent["wire_ns"]) == {0}
    server = run.packets.filter(pl.col("node") == "server")
    assert server.select(pl.max_horizontal(ON_AIR).max()).item() == 0


def test_errors_show_as_retries_reordering_and_the_limit(simulate: Simulate) -> None:
    run = case(simulate, "errors")
    means = run.summary.layers_ms
    assert means["client"]["retry"].mean > 0.5
    assert means["ap"]["resequence"].mean > 0.5, "what came waits for what did not"
    lost = run.drops.filter(pl.col("place") == "air")
    assert set(lost["reason"]) == {"retry limit"}
    assert set(lost["node"]) == {"client", "ap"}
    counted = run.summary.drops
    for node in ("client", "ap"):  # the driver also counts bare management frames
        assert counted[node]["wlan0"].cable >= lost.filter(pl.col("node") == node)["packets"].sum() > 0


def test_mac80211_s_own_counters_agree(simulate: Simulate) -> None:
    """The probe's drops are those of `iw`; at the end no packet waits in queue or driver."""
    run = case(simulate, "full queues")
    dropped = run.drops.filter((pl.col("node") == "client") & (pl.col("place") == "txq"))
    assert dropped["packets"].sum() == run.summary.drops["client"]["wlan0"].qdisc > 0
    wifi = run.summary.wifi["client"]["wlan0"]
    assert wifi.txq_drops > 0
    assert wifi.txq.max >= wifi.txq.mean > 1
    last = run.queues.filter(pl.col("device") == "wlan0").group_by("node").agg(pl.all().sort_by("t_ns").last())
    assert last["txq_packets"].sum() == last["ring_skbs"].sum() == 0, "flows are over"


def test_multicast_that_mac80211_drops_is_a_drop_of_its_queue(simulate: Simulate) -> None:
    """The probe follows no multicast, and mac80211's counters of stations lack it."""
    run = simulate(air.multicast())
    (layers,) = run.summary.drops_by_reason["ap"].values()
    assert layers.keys() == {"txq"}
    assert layers["txq"].keys() == {"codel"}
    assert run.summary.drops["ap"]["wlan0"].qdisc == layers["txq"]["codel"] > 100


def test_the_sockets_truesize_is_the_data_below_it(simulate: Simulate) -> None:
    """With TSQ 1 ms at the papers' shift, a socket has at most its limit and one more skb below it."""
    run = simulate("wifi-ath9k", *SHORT, "testbed.wifi.0.pacing_shift=10", kernel="6.1")
    rows = run.tcp.filter(pl.col("sender") & (pl.col("tsq_limit") > 0) & (pl.col("t_ns") > 1_500_000_000))
    assert rows.height > 100
    over = rows.filter(pl.col("sk_wmem_alloc") > 2 * pl.col("tsq_limit") + 2 * 66_000)
    assert over.is_empty()
    queues = run.queues.filter((pl.col("node") == "client") & (pl.col("device") == "wlan0"))
    waiting = queues.select("t_ns", packets=pl.col("txq_packets") + pl.col("ring_skbs"))
    below = rows.group_by("t_ns").agg(pl.col("sk_wmem_alloc").sum()).join(waiting, on="t_ns")
    assert below.height > 20
    # an MPDU of 1,448 bytes has at least its bytes of truesize
    assert below.filter(pl.col("sk_wmem_alloc") < 1448 * (pl.col("packets") - 10)).is_empty()


@pytest.fixture(scope="module")
def tshark() -> str:
    return tools.need("tshark")


def fields(tshark: str, run: Recording, node: str, filter_: str, *names: str, most: int = 0) -> list[list[str]]:
    """Return fields of the frames that pass the filter, among the first `most` frames (0: all)."""
    command = [tshark, "-r", str(run.path / f"{node}-wlan0.pcapng"), "-Y", filter_, "-T", "fields"]
    command += ["-c", str(most)] if most else []
    result = subprocess.run(
        [*command, *(argument for name in names for argument in ("-e", name))],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "malformed" not in result.stderr.lower()
    return [text.split("\t") for text in result.stdout.splitlines()]


RATES = {
    "wifi-ath9k": ("7", "144.444"),
    "wifi-ath9k-htc": ("7", "150"),
    "wifi-ax": ("11", "1201"),
}
"""Wireshark's number of the standard, and its computation of the rate from MCS, width, streams and interval."""


@pytest.mark.parametrize("name", PRESETS)
def test_wireshark_reads_the_rate_of_every_data_frame(simulate: Simulate, tshark: str, name: str) -> None:
    run = case(simulate, name)
    names = ("wlan_radio.phy", "wlan_radio.data_rate", "_ws.malformed", "frame.comment")
    for node in ("client", "ap"):
        rows = fields(tshark, run, node, "wlan.fc.type_subtype == 0x28 && ip", *names, most=3000)
        assert len(rows) > 2500
        assert {tuple(row[:3]) for row in rows} == {(*RATES[name], "")}
        assert all(re.search(r" packet \d+: (client|other1|server)", comment) for *_, comment in rows)


def test_captures_have_every_ppdu_with_its_times(simulate: Simulate, tshark: str) -> None:
    """Sizes of the A-MPDUs equal the driver's histogram; a frame's times at both ends differ by its duration."""
    run = simulate("wifi-ath9k", *ALL, *CAPTURE, "test.length=1", "testbed.wifi.0.collisions=false", kernel="6.1")
    rows = fields(
        tshark, run, "client", "radiotap.txflags", "radiotap.ampdu.reference", "frame.time_epoch", "wlan.fc.retry"
    )
    references = Counter(reference for reference, *_ in rows if reference)
    sizes = Counter(references.values()) + Counter({1: sum(not reference for reference, *_ in rows)})
    counted = run.radio_counters.filter((pl.col("node") == "client") & pl.col("name").str.starts_with("aggregates."))
    grown = counted.group_by("name").agg(
        # an aggregate size that the first sample lacks began at 0
        pl.col("value").last() - pl.when(pl.col("t_ns").first() == 0).then(pl.col("value").first()).otherwise(0)
    )
    driver = {int(name.removeprefix("aggregates.")): value for name, value in grown.iter_rows() if value}
    assert dict(sizes) == driver
    assert not any(int(retry) for *_, retry in rows)
    key = ("icmp.type == 8 && wlan.fc.tods == 1", "icmp.seq", "frame.time_epoch", "radiotap.ampdu.reference")
    sent, received = (fields(tshark, run, node, *key) for node in ("client", "ap"))
    single = [(seq, float(t_s)) for seq, t_s, reference in sent if not reference]
    arrivals = {seq: float(t_s) for seq, t_s, _ in received}
    assert len(single) > 5
    propagation_ns = run.packets.filter(pl.col("node") == "client")["propagation_ns"].max()
    assert isinstance(propagation_ns, int)
    for seq, t_s in single:
        assert round((arrivals[seq] - t_s) * 1e9) == AIRTIME_NS + propagation_ns
    visits = frames.visits(run.packets).filter((pl.col("stream") == "icmp") & (pl.col("way") == "up"))
    before_air = pl.sum_horizontal(LAYER_COLUMNS[: LAYER_COLUMNS.index("air_ns")])
    layers = (visits.filter(node="client").select("packet", pl.col("start_ns") + before_air),
              visits.filter(node="ap").select("packet", "start_ns"))  # fmt: skip
    for captured, recorded in zip((sent, received), layers, strict=True):
        times = dict(recorded.iter_rows())
        assert len(captured) > 5
        assert [times[int(seq)] for seq, *_ in captured] == [int(Decimal(t_s) * 10**9) for _, t_s, _ in captured]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_frame_waits_at_its_receiver_for_interrupt_and_cpu(simulate: Simulate, kernel: str) -> None:
    """ath9k's interrupt comes 500 us after a frame."""
    run = simulate("wifi-ath9k", *IDLE, "testbed.node.1.cpu.received=30us", kernel=kernel)
    radio = pl.col("air_ns").shift() > 0
    for way, node, wait_ns in (("up", "ap", 530_000), ("down", "client", 500_000)):
        visits = run.packets.filter(way=way).filter(radio & (pl.col("node") == node))
        assert visits.height > 10
        assert set(visits["rx_ns"]) == {wait_ns}
        assert set(visits["resequence_ns"]) == {0}


def test_repeated_frames_have_the_retry_bit(simulate: Simulate, tshark: str) -> None:
    run = case(simulate, "errors")
    rows = fields(tshark, run, "client", "radiotap.data_retries", "radiotap.data_retries", "wlan.fc.retry")
    retry_bits = [bool(int(retry)) for _, retry in rows]
    assert retry_bits == [int(count) > 0 for count, _ in rows]
    assert 0.5 < sum(retry_bits) / len(retry_bits) < 0.7


@pytest.mark.slow
@pytest.mark.parametrize("change", ["testbed.wifi.0.error=0%", "testbed.wifi.0.error=5%", "testbed.wifi.0.rts=500"])
def test_retries_have_the_retry_bit(simulate: Simulate, tshark: str, change: str) -> None:
    """The hardware repeats collisions, and software repeats lost MPDUs. The counters equal the captured frames that the
    radio sent, and those with the retry bit."""
    run = simulate("wifi-ath9k", *ALL, *CAPTURE, "test.name=rrul_be", change, kernel="6.1")
    window, radios = loaded_window(run), run.summary.wifi
    for node in ("client", "ap"):
        sent = "radiotap.txflags && !(wlan.fc.type_subtype == 8)"
        rows = fields(tshark, run, node, sent, "frame.time_epoch", "wlan.fc.retry")
        start_s, end_s = window.start_ns / NS_PER_S, window.end_ns / NS_PER_S
        retry_bits = [int(retry) for t_s, retry in rows if start_s < float(t_s) <= end_s]
        figures = radios[node]["wlan0"]
        assert figures.collisions > 0
        astride = 32 if "rts" in change else 0  # an aggregate counts with its RTS, and is captured after it
        assert 0 <= figures.mpdus - len(retry_bits) <= astride
        assert 0 <= figures.retries - sum(retry_bits) <= astride
        assert figures.retries > 0 or "rts" in change, "with RTS no MPDU collides"


CLASSES = {"0": "0", "8": "1", "40": "5", "46": "5"}
"""The TID of each mark of `rrul` (BE, CS1, CS5, EF): the upper three bits (net/wireless/util.c,
cfg80211_classify8021d). Since Linux 6.12 there is RFC 8325: EF is voice, TID 6."""


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_marks_of_rrul_reach_the_access_categories(simulate: Simulate, tshark: str, kernel: str) -> None:
    """Check both directions. Better access categories wait less."""
    settings = ("test.name=rrul", "test.length=5", "test.delay=1", "measure.packets=all")
    run = simulate("wifi-ath9k", *settings, *CAPTURE, kernel=kernel)
    expected = CLASSES | ({"46": "6"} if kernel in ("6.12", "7.3") else {})
    for node, flag in (("client", "tods"), ("ap", "fromds")):
        filter_ = f"wlan.fc.{flag} == 1 && wlan.fc.type_subtype == 0x28 && (tcp || udp)"
        marks = Counter(tuple(row) for row in fields(tshark, run, node, filter_, "ip.dsfield.dscp", "wlan.qos.tid"))
        assert set(marks) == set(expected.items())
        assert min(marks.values()) > 20
    waits = {name: run.summary.ping_ms[name].p50 for name in ("udp EF", "udp BE", "udp BK")}
    assert waits["udp EF"] < waits["udp BE"] / 3
    assert waits["udp BE"] < 1.1 * waits["udp BK"], "both wait for seconds"
