# SPDX-License-Identifier: Apache-2.0
"""The probe: it changes nothing, loses nothing, and reports the kernel's behaviour."""

import subprocess

import polars as pl
import pytest

from hourglass.contract.probe import LAYER_COLUMNS
from hourglass.plan.streams import FIRST_PORT
from tests import tools

from .conftest import KERNELS, Simulate, check_accounts, digests, line, round_trips

pytestmark = pytest.mark.guest

SHORT = ("test.length=4", "test.delay=1")
ALL = ("measure.packets=all", "measure.tcp=5ms", 'capture.pcap=["client:eth0", "router:eth1"]')
NO_MEASUREMENTS = ("measure.packets=0", "measure.tcp=0", "measure.devices=0")
CAP = "stack.sysctl.net.ipv4.tcp_limit_output_bytes=1048576"

HARD = {
    "loss": ("L100M", "testbed.link.0.loss=1%", "stack.qdisc=fq"),
    "reorder": ("L100M", "testbed.link.1.reorder=1%", "testbed.link.1.reorder_delay=1ms", "stack.cc=bbr"),
    "twice and wrong": ("R100M", "testbed.link.1.duplicate=1%", "testbed.link.0.corrupt=1%"),
    "netem's twins": ("R100M", "stack.client.qdisc=netem limit 10000 delay 1ms duplicate 5%"),
    "cake": ("L100M", "stack.qdisc=cake"),
    "full queue": ("R100M", "stack.tsq=off"),
    "six hops, IPv6": ("parking-lot",),
}


@pytest.mark.parametrize("cc", ["cubic", "bbr"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_watching_everything_changes_no_packet(simulate: Simulate, kernel: str, cc: str) -> None:
    watched = simulate("L100M", *SHORT, *ALL, f"stack.cc={cc}", kernel=kernel)
    unwatched = simulate("L100M", *SHORT, *NO_MEASUREMENTS, f"stack.cc={cc}", kernel=kernel)
    assert watched.packets.height > 50_000
    assert unwatched.packets.is_empty()
    assert digests(watched) == digests(unwatched)


@pytest.mark.parametrize("case", HARD)
def test_every_packet_is_accounted_for(simulate: Simulate, case: str) -> None:
    """In each case the layers of each packet add up, and each packet has an end."""
    name, *overrides = HARD[case]
    run = simulate(name, *SHORT, *overrides, "measure.packets=all")
    check_accounts(run, packets=20_000)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_duplicate_of_netem_is_a_second_packet(simulate: Simulate, kernel: str) -> None:
    """Each request leaves the client twice and is answered twice."""
    run = simulate(line("100mbit", "1ms"), "stack.client.qdisc=netem delay 3ms duplicate 100%", kernel=kernel)
    check_accounts(run, packets=30)
    sums = run.balance.group_by("way").agg(pl.col("sent", "duplicated", "delivered", "in_flight").sum())
    up, down = (sums.filter(pl.col("way") == direction).row(0, named=True) for direction in ("up", "down"))
    assert up["sent"] == up["duplicated"] > 15
    assert up["delivered"] + up["in_flight"] == 2 * up["sent"]
    assert down["sent"] == up["delivered"]
    assert down["duplicated"] == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_drops_of_cakes_ack_filter_are_recorded(simulate: Simulate, kernel: str) -> None:
    """The filter frees ACKs as if they had been sent. tc counts them, and so does `check_accounts`, skb by skb."""
    run = simulate("L100M", *SHORT, "stack.server.qdisc=cake bandwidth 1mbit ack-filter", kernel=kernel)
    check_accounts(run, packets=1000)
    filtered = run.drops.filter(pl.col("reason").cast(pl.String) == "ack_filter")["packets"].sum()
    last = run.table("qdisc_stat").filter(pl.col("name").cast(pl.String).str.ends_with("ack_drops"))
    assert filtered == last.sort("t_ns").group_by("node", "device", "name").last()["value"].sum() > 100


@pytest.mark.kernels
def test_of_equal_packets_in_two_queues_the_right_one_is_dropped(simulate: Simulate) -> None:
    """A client answers data for closed sockets with equal resets. Some wait in mac80211 while the channel changes,
    others in cake, which drops one. Those in mac80211 are sent."""
    stations = [{"at": "client:wlan0", "snr": 22}, *({"at": f"station{number}:wlan0"} for number in range(3))]
    names = ("server", "client", "station0", "station1", "station2")
    run = simulate({
        "name": "equal", "seed": 180, "kernel": "6.12",
        "testbed": {
            "node": [{"name": "ap", "role": "router"}, *({"name": name} for name in names)],
            "link": [{"ends": ["ap:eth0", "server:eth0"], "rate": "100mbit", "moderation": "delay", "rx_copy": 5}],
            "wifi": [{"ap": "ap:wlan0", "station": stations, "streams": 1, "rx_usecs": 1727}],
        },
        "stack": {"client": {"qdisc": "cake bandwidth 5mbit rtt 10ms ack-filter"}},
        "event": [
            {"at": 0.337, "node": "ap", "channel": 44},
            {"at": 0.188, "node": "station0", "iw": "dev wlan0 set power_save off"},
        ],
        "test": {"name": "rtt_fair_var", "length": 0.391, "delay": 0.297, "ping_interval": 0.28},
    })  # fmt: skip
    assert run.balance["unmatched"].sum() == 0
    assert not run.drops.filter((pl.col("place") == "qdisc") & (pl.col("reason") != "ack_filter")).is_empty()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_pings_layers_are_its_round_trip(simulate: Simulate, kernel: str) -> None:
    """Compare two independent clocks: the probe's and the sender's."""
    run = simulate("L100M", *SHORT, kernel=kernel)
    pings = round_trips(run)
    assert pings.height > 50
    assert pings.filter(pl.col("rtt_ns") != pl.col("sum")).is_empty()


def test_each_layer_of_an_idle_path_has_its_closed_form(simulate: Simulate) -> None:
    run = simulate(line("100mbit", "123us"))
    wire_ns = (14 + 20 + 8 + 56 + 24) * 80
    rows = run.packets.filter(pl.col("packet") > 0)
    assert rows.height > 30
    last = pl.col("visit") == 2
    assert set(rows.filter(~last)["wire_ns"]) == {wire_ns}
    assert set(rows.filter(~last)["propagation_ns"]) == {123_000}
    assert set(rows.filter(pl.col("visit") > 0)["rx_ns"]) == {20_000}
    idle_layers = [name for name in LAYER_COLUMNS if name not in ("wire_ns", "propagation_ns", "rx_ns")]
    assert rows.select(pl.max_horizontal(idle_layers).max()).item() == 0


RULES = {
    "kernel": ("stack.tsq=default",),
    "paced": ("stack.tsq=default", "stack.cc=bbr"),
    "4 ms": ("stack.tsq=4ms",),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_limit_of_small_queues_is_the_rules(simulate: Simulate, kernel: str, rule: str) -> None:
    """Compute algorithm 2 from the kernel's own fields at the check."""
    run = simulate("L100M", *SHORT, *RULES[rule], CAP, kernel=kernel)
    rows = run.tcp.filter(pl.col("sender") & pl.col("tsq_limit").is_not_null())
    assert rows.height > 1000
    for limit, truesize, term, rate, shift in rows.select(
        "tsq_limit", "tsq_truesize", "tsq_term", "tsq_rate", "tsq_shift"
    ).iter_rows():
        rate = min(rate, 2**40)
        terms = {"floor": 2 * truesize, "rate": rate // 250 if rule == "4 ms" else rate >> shift}
        expected = max(terms.values())
        if rule != "paced":
            terms["cap"] = 2**20
            expected = min(expected, terms["cap"])
        if rule == "4 ms":
            assert abs(limit - expected) <= 1
        else:
            assert limit == expected
            assert terms[term] == limit


@pytest.mark.kernels
def test_bbr_probes_the_rtt_every_ten_seconds(simulate: Simulate) -> None:
    """A-bbr: PROBE_RTT comes about every 10 s, and only then is the queue drained."""
    run = simulate("R100M", "test.length=25", "test.delay=1", "stack.cc=bbr", kernel="5.10")
    rows = run.tcp.filter(pl.col("sender")).sort("stream", "t_ns")
    begins = rows.with_columns(before=pl.col("bbr_phase").shift(1).over("stream")).filter(
        (pl.col("bbr_phase") == "PROBE_RTT") & (pl.col("before") != "PROBE_RTT")
    )
    assert begins["stream"].n_unique() == 4
    gaps_s = begins.with_columns(gap=pl.col("t_ns").diff().over("stream"))["gap"].drop_nulls() / 1e9
    assert gaps_s.len() >= 4
    assert gaps_s.is_between(9.5, 11.5).all()
    assert {"STARTUP", "DRAIN", "PROBE_BW", "PROBE_RTT"} <= set(rows["bbr_phase"])


@pytest.fixture(scope="module")
def tshark() -> str:
    return tools.need("tshark")


def fields(tshark: str, capture: str, filter_: str, *names: str) -> list[list[str]]:
    command = [
        tshark,
        "-r",
        capture,
        "-Y",
        filter_,
        "-T",
        "fields",
        *(argument for name in names for argument in ("-e", name)),
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "malformed" not in result.stderr.lower()
    return [text.split("\t") for text in result.stdout.splitlines()]


@pytest.mark.slow
def test_wiresharks_round_trips_are_ours(simulate: Simulate, tshark: str) -> None:
    """Compare ICMP round trips to the ns, from the first bit out of the client's NIC to the last bit of the reply into
    it."""
    run = simulate("R100M", *SHORT, "measure.packets=all", 'capture.pcap=["client:eth0"]', "capture.snaplen=0")
    capture = str(run.path / "client-eth0.pcapng")
    rows = run.packets.filter(pl.col("stream") == "icmp")
    out = rows.filter((pl.col("way") == "up") & (pl.col("visit") == 0)).select(
        "packet", before=pl.sum_horizontal("stack_ns", "qdisc_ns", "ring_ns")
    )
    back = rows.filter((pl.col("way") == "down") & (pl.col("node") == "client")).select("packet", after="rx_ns")
    probed = round_trips(run).filter(pl.col("stream") == "icmp").with_columns(packet=pl.col("seq"))
    probed = probed.join(out, on="packet").join(back, on="packet").sort("packet")
    expected = (probed["rtt_ns"] - probed["before"] - probed["after"]).to_list()
    replies = fields(tshark, capture, "icmp.resptime", "icmp.resptime")
    assert len(replies) > 20
    assert [float(ms) * 1e6 for (ms,) in replies] == pytest.approx(expected, abs=1000)
    acks = fields(
        tshark,
        capture,
        f"tcp.analysis.ack_rtt && tcp.dstport < {FIRST_PORT}",
        "frame.time_epoch",
        "tcp.analysis.ack_rtt",
    )
    loaded = [float(rtt) * 1e3 for time, rtt in acks if 1 <= float(time) <= 5]
    assert pl.Series(loaded).median() == pytest.approx(run.summary.tcp_rtt_ms.p50, rel=0.1)
    comments = fields(tshark, capture, "tcp.len > 0", "frame.comment")
    assert all("upload::" in text and "client" in text for (text,) in comments[100:200])


@pytest.mark.slow
def test_captures_are_in_order_and_have_only_our_protocols(simulate: Simulate, tshark: str) -> None:
    """The probe announces outgoing frames before their time, and incoming frames after it (here with late interrupts).
    If the capture is in order, Wireshark sees the retransmissions that TCP counts. These are retransmissions of dropped
    packets, and of packets that the peer already had."""
    reordercap = tools.need("reordercap")
    moderation = [f"testbed.link.{link}.{key}" for link in (0, 1) for key in ("rx_usecs=4000", "rx_frames=0")]
    files = 'capture.pcap=["client:eth0", "router:eth0", "router:eth1"]'
    traffic = ("stack.tsq=off", "stack.qdisc=fq_codel", "testbed.link.0.loss=0.1%")
    run = simulate("L100M", *SHORT, *traffic, *moderation, files)
    for file in ("client-eth0", "router-eth0", "router-eth1"):
        capture = str(run.path / f"{file}.pcapng")
        result = subprocess.run([reordercap, "-n", capture, "/dev/null"], capture_output=True, text=True, check=True)
        assert ", 0 out of order" in result.stdout
        protocols = {name for (name,) in fields(tshark, capture, "frame", "_ws.col.Protocol")}
        assert {"TCP", "UDP", "ICMP"} <= protocols <= {"TCP", "UDP", "ICMP", "ARP"}
    capture = str(run.path / "client-eth0.pcapng")
    ends = run.tcp.filter(pl.col("sender")).group_by("stream").agg(pl.col("total_retrans", "dsack_dups").last())
    sent_again, spurious = ends["total_retrans"].sum(), ends["dsack_dups"].sum()
    dropped = run.drops.filter((pl.col("way") == "up") & pl.col("place").is_in(["qdisc", "wire"]))["packets"].sum()
    assert sent_again == dropped + spurious > 50
    shown_count = len(
        fields(tshark, capture, "tcp.analysis.retransmission || tcp.analysis.out_of_order", "frame.number")
    )
    assert shown_count == pytest.approx(sent_again, rel=0.06)
    waited = len(fields(tshark, capture, 'frame.comment contains "recovery"', "frame.number"))
    assert 0.9 * dropped <= waited <= sent_again
