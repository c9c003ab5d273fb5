# SPDX-License-Identifier: Apache-2.0
"""The probe on air: it changes nothing, follows every packet through mac80211, and its captures are what was sent."""

import re
import shutil
import subprocess
from collections import Counter
from typing import Any

import polars as pl
import pytest

from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, loaded_window

from .conftest import KERNELS, Simulate, both_ways, check_accounts, digests

pytestmark = pytest.mark.guest

SHORT = ("test.length=2", "test.delay=1")
ALL = (*SHORT, "measure.packets=all")
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


@pytest.mark.parametrize("name", PRESETS)
def test_watching_everything_changes_no_frame(simulate: Simulate, name: str) -> None:
    alone = simulate(name, *SHORT, *NOTHING, kernel="6.1")
    assert alone.packets.is_empty()
    watched = case(simulate, name)
    assert watched.packets.height > 10_000
    assert digests(watched) == digests(alone)


@pytest.mark.parametrize("name", CASES)
def test_every_packet_is_accounted_for(simulate: Simulate, name: str) -> None:
    """The layers of each packet add up to the ns; what was sent was delivered, dropped, or is on its way."""
    check_accounts(case(simulate, name), packets=2000)


@pytest.mark.parametrize("name", CASES)
def test_a_pings_layers_are_its_round_trip(simulate: Simulate, name: str) -> None:
    """Two clocks that know nothing of each other: the probe's, and the sender's own."""
    pings = both_ways(case(simulate, name))
    assert pings.height > 30
    assert pings.filter(pl.col("rtt_ns") != pl.col("sum")).is_empty()


def test_a_radio_s_sender_has_the_layers_of_the_air_and_a_cable_s_has_not(simulate: Simulate) -> None:
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
    for node in ("client", "ap"):  # the driver counts bare management frames too
        assert counted[node]["wlan0"].cable >= lost.filter(pl.col("node") == node)["packets"].sum() > 0


def test_mac80211_s_own_counters_agree(simulate: Simulate) -> None:
    """Drops of the probe are those that `iw` shows; at the end nothing waits in queue or driver."""
    run = case(simulate, "full queues")
    dropped = run.drops.filter((pl.col("node") == "client") & (pl.col("place") == "txq"))
    assert dropped["packets"].sum() == run.summary.drops["client"]["wlan0"].qdisc > 0
    wifi = run.summary.wifi["client"]["wlan0"]
    assert wifi.txq_drops > 0
    assert wifi.txq.max >= wifi.txq.mean > 1
    last = run.queues.filter(pl.col("device") == "wlan0").group_by("node").agg(pl.all().sort_by("t_ns").last())
    assert last["txq_packets"].sum() == last["ring_skbs"].sum() == 0, "flows are over"


def test_the_sockets_truesize_is_what_waits_below(simulate: Simulate) -> None:
    """TSQ 1 ms at the papers' shift: below a socket there are at most its limit and one skb more."""
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
    found = shutil.which("tshark")
    if found is None:
        pytest.skip("no tshark here: apt-get install -y tshark")
    return found


def fields(tshark: str, run: Recording, node: str, filter_: str, *names: str, most: int = 0) -> list[list[str]]:
    """Of the first `most` frames (0: all) those that pass the filter."""
    command = [tshark, "-r", str(run.path / f"{node}-wlan0.pcapng"), "-Y", filter_, "-T", "fields"]
    command += ["-c", str(most)] if most else []
    done = subprocess.run(
        [*command, *(word for name in names for word in ("-e", name))], capture_output=True, text=True, check=True
    )
    assert "malformed" not in done.stderr.lower()
    return [text.split("\t") for text in done.stdout.splitlines()]


RATES = {
    "wifi-ath9k": ("7", "144.444"),
    "wifi-ath9k-htc": ("7", "150"),
    "wifi-ax": ("11", "1201"),
}
"""Wireshark's number of the standard, and its own arithmetic of the rate from MCS, width, streams and interval."""


@pytest.mark.parametrize("name", PRESETS)
def test_wireshark_reads_the_rate_of_every_data_frame(simulate: Simulate, tshark: str, name: str) -> None:
    run = case(simulate, name)
    names = ("wlan_radio.phy", "wlan_radio.data_rate", "_ws.malformed", "frame.comment")
    for node in ("client", "ap"):
        rows = fields(tshark, run, node, "wlan.fc.type_subtype == 0x28 && ip", *names, most=3000)
        assert len(rows) > 2500
        assert {tuple(row[:3]) for row in rows} == {(*RATES[name], "")}
        assert all(re.search(r" packet \d+: (client|other1|server)", comment) for *_, comment in rows)


def test_captures_hold_every_ppdu_with_its_times(simulate: Simulate, tshark: str) -> None:
    """Sizes of the A-MPDUs are the driver's histogram; a frame's times at both ends are its duration apart."""
    run = simulate("wifi-ath9k", *ALL, *CAPTURE, "test.length=1", "testbed.wifi.0.collisions=false", kernel="6.1")
    rows = fields(
        tshark, run, "client", "radiotap.txflags", "radiotap.ampdu.reference", "frame.time_epoch", "wlan.fc.retry"
    )
    references = Counter(reference for reference, *_ in rows if reference)
    sizes = Counter(references.values()) + Counter({1: sum(not reference for reference, *_ in rows)})
    counted = run.radio_counters.filter((pl.col("node") == "client") & pl.col("name").str.starts_with("aggregates."))
    grown = counted.group_by("name").agg(
        # an aggregate size that was not there at the first sample began at 0
        pl.col("value").last() - pl.when(pl.col("t_ns").first() == 0).then(pl.col("value").first()).otherwise(0)
    )
    driver = {int(name.removeprefix("aggregates.")): value for name, value in grown.iter_rows() if value}
    assert dict(sizes) == driver
    assert not any(int(retry) for *_, retry in rows)
    key = ("icmp.type == 8 && wlan.fc.tods == 1", "icmp.seq", "frame.time_epoch", "radiotap.ampdu.reference")
    sent, heard = (fields(tshark, run, node, *key) for node in ("client", "ap"))
    alone = [(seq, float(t_s)) for seq, t_s, reference in sent if not reference]
    arrivals = {seq: float(t_s) for seq, t_s, _ in heard}
    assert len(alone) > 5
    propagation_ns = run.packets.filter(pl.col("node") == "client")["propagation_ns"].max()
    assert isinstance(propagation_ns, int)
    for seq, t_s in alone:
        assert round((arrivals[seq] - t_s) * 1e9) == AIRTIME_NS + propagation_ns


def test_frames_that_are_sent_again_say_so(simulate: Simulate, tshark: str) -> None:
    run = case(simulate, "errors")
    rows = fields(tshark, run, "client", "radiotap.data_retries", "radiotap.data_retries", "wlan.fc.retry")
    again = [bool(int(retry)) for _, retry in rows]
    assert again == [int(count) > 0 for count, _ in rows]
    assert 0.5 < sum(again) / len(again) < 0.7


@pytest.mark.parametrize("change", ["testbed.wifi.0.error=0%", "testbed.wifi.0.error=5%", "testbed.wifi.0.rts=500"])
def test_what_is_retried_is_what_has_the_retry_bit(simulate: Simulate, tshark: str, change: str) -> None:
    """Collisions, which the hardware repeats, and lost MPDUs, which software sends again: each frame of the capture
    that the radio sent, and each of them with the retry bit."""
    run = simulate("wifi-ath9k", *ALL, *CAPTURE, "test.name=rrul_be", change, kernel="6.1")
    window, found = loaded_window(run), run.summary.wifi
    for node in ("client", "ap"):
        sent = "radiotap.txflags && !(wlan.fc.type_subtype == 8)"
        rows = fields(tshark, run, node, sent, "frame.time_epoch", "wlan.fc.retry")
        start_s, end_s = window.start_ns / NS_PER_S, window.end_ns / NS_PER_S
        again = [int(retry) for t_s, retry in rows if start_s < float(t_s) <= end_s]
        one = found[node]["wlan0"]
        assert one.collisions > 0
        astride = 32 if "rts" in change else 0  # an aggregate counts with its RTS, and is captured behind it
        assert 0 <= one.mpdus - len(again) <= astride
        assert 0 <= one.retries - sum(again) <= astride
        assert one.retries > 0 or "rts" in change, "what collides is no MPDU where RTS goes before"


CLASSES = {"0": "0", "8": "1", "40": "5", "46": "5"}
"""The TID of each mark of `rrul` (BE, CS1, CS5, EF): the upper three bits (net/wireless/util.c,
cfg80211_classify8021d). Since Linux 6.12 there is RFC 8325: EF is voice, TID 6."""


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_marks_of_rrul_reach_the_access_categories(simulate: Simulate, tshark: str, kernel: str) -> None:
    """Both ways; and who has the better access waits less."""
    short = ("test.name=rrul", "test.length=5", "test.delay=1", "measure.packets=all")
    run = simulate("wifi-ath9k", *short, *CAPTURE, kernel=kernel)
    expected = CLASSES | ({"46": "6"} if kernel in ("6.12", "7.3") else {})
    for node, way in (("client", "tods"), ("ap", "fromds")):
        filter_ = f"wlan.fc.{way} == 1 && wlan.fc.type_subtype == 0x28 && (tcp || udp)"
        found = Counter(tuple(row) for row in fields(tshark, run, node, filter_, "ip.dsfield.dscp", "wlan.qos.tid"))
        assert set(found) == set(expected.items())
        assert min(found.values()) > 20
    waits = {name: run.summary.ping_ms[name].p50 for name in ("udp EF", "udp BE", "udp BK")}
    assert waits["udp EF"] < waits["udp BE"] / 3
    assert waits["udp BE"] < 1.1 * waits["udp BK"], "both wait for seconds"
