# SPDX-License-Identifier: Apache-2.0
"""NICs with several queues: the chip's turns, the queue of a packet, and what happens to frames that wait."""

import itertools
from typing import Any

import polars as pl
import pytest

from hourglass.results.recording import Recording

from .accounts import check_balances
from .conftest import KERNELS, Simulate, counters, digests, line
from .test_exactness import HEADERS, OVERHEAD
from .test_packet_time import with_cpus

pytestmark = pytest.mark.guest

BPS = 100 * 10**6
BY_PRIORITY = "mqprio num_tc 2 map 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 hw 0"
"""Packets of DSCP EF (TC_PRIO_INTERACTIVE_BULK) have the second queue, all others the first."""
SIZES = {"small": 100, "large": 1400}


def flood(name: str, **keys: Any) -> dict[str, Any]:
    """Return a stream of packets that fills the line alone. The small ones are marked EF."""
    mark = {"marking": "EF"} if name == "small" else {}
    return {"name": name, "size": SIZES[name], "rate": "150mbit", "start": 0, "stop": 0.2, **mark, **keys}


def floods(test: dict[str, Any] | None = None, **link: Any) -> dict[str, Any]:
    return line(**{"rate": "100mbit", "nodes": 2, "nic": "igb", "queues": 2, **link}) | {
        "stack": {"client": {"qdisc": BY_PRIORITY}},
        "test": {
            "name": "ping",
            "length": 0.3,
            "delay": 0.1,
            "ping_interval": 1,
            "udp_interval": 1,
            "datagrams": [flood(name) for name in SIZES],
            **(test or {}),
        },
        "measure": {"packets": "all"},
    }


def departures(run: Recording) -> pl.DataFrame:
    """Return `stream` and `left_ns` of every packet that the client sent, in the order in which they left."""
    packets = run.packets.filter((pl.col("node") == "client") & (pl.col("visit") == 0))
    layers = [name for name in packets.columns if name.endswith("_ns") and name not in ("t_ns", "end_ns")]
    left = (pl.col("t_ns") + pl.sum_horizontal(layers)).alias("left_ns")
    return packets.select(pl.col("stream").cast(pl.String), left).sort("left_ns")


def steady(run: Recording) -> pl.DataFrame:
    """Return the departures in 160 ms of both floods, without their first and last 20 ms."""
    sent = departures(run)
    begin_ns = int(sent.filter(pl.col("stream") == "large")["left_ns"][0])
    return sent.filter(pl.col("left_ns").is_between(begin_ns + 20 * 10**6, begin_ns + 180 * 10**6, closed="left"))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("fifo", [0, 20480])
def test_busy_queues_send_one_frame_each_in_turn(simulate: Simulate, kernel: str, fifo: int) -> None:
    """Two queues have equal numbers of frames, whatever their sizes. The line has no gap."""
    sent = steady(simulate(floods(tx_fifo=fifo), kernel=kernel))
    names = sent["stream"].to_list()
    assert len(names) > 2000
    assert names[0::2] == [names[0]] * len(names[0::2])
    assert names[1::2] == [names[1]] * len(names[1::2])
    assert {names[0], names[1]} == set(SIZES)
    gaps = sent.with_columns(gap=pl.col("left_ns").diff()).drop_nulls()
    for name, size in SIZES.items():
        frame_ns = (HEADERS["udp"] + size + OVERHEAD) * 8 * 10**9 // BPS
        assert set(gaps.filter(pl.col("stream") == name)["gap"]) == {frame_ns}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("fifo", [0, 20480])
def test_one_busy_queue_of_several_is_like_a_single_one(simulate: Simulate, kernel: str, fifo: int) -> None:
    """The departures of frames are equal to the ns, though they are computed at another time. The rate is no divisor
    of a second."""
    test = {"datagrams": [flood("large")]}
    single, several = (
        simulate(floods(test, rate="97.3mbit", tx_fifo=fifo, queues=queues), "stack.client.qdisc=mq", kernel=kernel)
        for queues in (1, 2)
    )
    assert departures(single).height > 1000
    assert departures(several).equals(departures(single))


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_idle_nic_with_several_queues_delays_nothing(simulate: Simulate, kernel: str) -> None:
    run = simulate(line("1gbit", "400us", nic="igb", queues=4), kernel=kernel)
    for probe in run.pings:
        frame_ns = 8 * (HEADERS[probe.name] + probe.payload_bytes + OVERHEAD)
        assert set(run.ping_rows.filter(pl.col("stream") == probe.name)["rtt_ns"][1:]) == {4 * (frame_ns + 400_000)}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_cpu_takes_the_packets_of_all_queues(simulate: Simulate, kernel: str) -> None:
    """It hands an skb of each busy queue to the chip in turn. The next one waits in its qdisc."""
    run = simulate(with_cpus(floods(rate="1gbit"), client={"sent": "50us"}), kernel=kernel)
    names = steady(run)["stream"].to_list()
    assert len(names) in (3199, 3200, 3201)
    assert all(name != following for name, following in itertools.pairwise(names))
    ring_ns = run.packets.filter((pl.col("node") == "client") & pl.col("stream").cast(pl.String).is_in(list(SIZES)))[
        "ring_ns"
    ]
    assert set(ring_ns[50:-50]) == {50_000}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("queues", [1, 2])
@pytest.mark.parametrize("event", [{"device": "right", "link": "down"}, {"ethtool": "-G right tx 300"}])
def test_an_skb_on_the_cpu_of_a_nic_that_stops_is_a_drop(
    simulate: Simulate, kernel: str, queues: int, event: dict[str, str]
) -> None:
    path = with_cpus(floods(rate="1gbit", queues=queues), client={"sent": "100us"})
    path["stack"] = {"client": {"qdisc": BY_PRIORITY if queues == 2 else "pfifo"}}
    path["event"] = [{"at": 0.15, "node": "client", **event}]
    run = simulate(path, kernel=kernel)
    assert counters(run, "client", "right")["tx_no_carrier"] >= 1
    assert run.summary.drops["client"]["right"].nic >= 1


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_router_forwards_each_connection_by_the_queue_that_received_it(simulate: Simulate, kernel: str) -> None:
    """The kernel takes the transmit queue with the number of the receive queue (skb_tx_hash). Only ARP differs."""
    test = {"name": "tcp_nup", "upload_streams": 12, "length": 2, "delay": 1}
    run = simulate(line("1gbit", "100us", nic="ixgbe", queues=4) | {"test": test}, kernel=kernel)
    received, sent = (counters(run, "router1", device) for device in ("left", "right"))
    frames = [(received[f"rx_queue_{queue}_frames"], sent[f"tx_queue_{queue}_frames"]) for queue in range(4)]
    assert sum(1 for inward, _ in frames if inward > 10_000) > 1
    assert all(abs(inward - outward) <= 4 for inward, outward in frames), frames
    for device in (received, sent):
        for direction in ("tx", "rx"):
            by_queue = [device[f"{direction}_queue_{queue}_frames"] for queue in range(4)]
            assert sum(by_queue) == device[f"{direction}_frames"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("action", [{"cable": "pull"}, {"link": "down"}, {"power": "off"}])
def test_frames_that_wait_are_dropped_with_the_link(simulate: Simulate, kernel: str, action: dict[str, str]) -> None:
    """Each packet of the probe has a fate, and the line works after the break."""
    name, _ = next(iter(action.items()))
    again = {"cable": "plug", "link": "up", "power": "on"}[name]
    place = {"node": "client"} | ({} if name == "power" else {"device": "right"})
    path = floods({"length": 3, "datagrams": [flood(name, stop=2.8) for name in SIZES]}, link_up="0s")
    events = [{"at": 0.15, **place, **action}, {"at": 0.2, **place, name: again}]
    run = simulate(path | {"event": events}, kernel=kernel)
    check_balances(run)
    for name in SIZES:
        assert departures(run).filter(pl.col("stream") == name)["left_ns"].max() > 2.8 * 10**9
    assert counters(run, "client", "right")["tx_no_carrier"] > 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_queue_has_its_qdisc_and_its_limit(simulate: Simulate, kernel: str) -> None:
    path = floods({"datagrams": [flood("large")]}, queues=3)
    bql = "stack.client.device.right.bql_max=3000B"
    run = simulate(path | {"stack": {"client": {"qdisc": "mq fq limit 77"}}}, bql, kernel=kernel)
    facts = {
        key: value for node, key, value in run.facts.select("node", "key", "value").iter_rows() if node == "client"
    }
    assert {facts[f"bql.right.tx-{queue}"] for queue in range(3)} == {"3000"}
    rows = run.qdisc.filter((pl.col("node") == "client") & (pl.col("device") == "right"))
    kinds = sorted(set(rows.select(pl.col("kind", "handle", "parent").cast(pl.String)).iter_rows()))
    assert kinds == [("fq", "11:", "10:1"), ("fq", "12:", "10:2"), ("fq", "13:", "10:3"), ("mq", "10:", "root")]
    by_queue = run.tx_queues.filter((pl.col("node") == "client") & pl.col("t_ns").is_between(2 * 10**8, 25 * 10**7))
    device_queue = run.queues.filter((pl.col("node") == "client") & pl.col("t_ns").is_in(by_queue["t_ns"].implode()))
    for column in ("qdisc_packets", "qdisc_bytes", "ring_skbs", "ring_bytes", "bql_limit", "bql_inflight"):
        assert (
            by_queue.group_by("t_ns").agg(pl.col(column).sum()).sort("t_ns")[column].to_list()
            == device_queue[column].to_list()
        )
    assert device_queue["qdisc_packets"].max() == 77
    assert by_queue["bql_limit"].max() <= 3000


TAPRIO = (
    "taprio num_tc 2 map 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 base-time 0 sched-entry S 01 700000"
    " sched-entry S 02 300000 clockid CLOCK_TAI"
)


@pytest.mark.parametrize(
    ("qdisc", "kernel"), [*((qdisc, kernel) for qdisc in ("multiq", TAPRIO) for kernel in KERNELS), ("cake_mq", "7.3")]
)
def test_qdiscs_of_several_queues(simulate: Simulate, qdisc: str, kernel: str) -> None:
    run = simulate(line(nic="igb", queues=4), f"stack.qdisc={qdisc}", kernel=kernel)
    assert set(run.summary.ping_ms) == {"icmp", "udp"}
    assert qdisc.split(" ")[0] in run.qdisc["kind"].cast(pl.String).to_list()


@pytest.mark.kernels
def test_the_qdiscs_of_cake_mq_share_its_rate(simulate: Simulate) -> None:
    path = line("100mbit", nodes=2, nic="igb", queues=4)
    test = {"name": "tcp_nup", "upload_streams": 6, "length": 3, "delay": 1}
    run = simulate(path | {"test": test}, "stack.client.qdisc=cake_mq bandwidth 40mbit", kernel="7.3")
    assert run.summary.totals.upload_mbps == pytest.approx(40 * 1448 / 1514, rel=0.05)
    assert {warning.id for warning in run.summary.warnings} == {"few-samples"}


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_gates_of_taprio_open_by_its_schedule(simulate: Simulate, kernel: str) -> None:
    """In each ms, 700 us are for large frames and 300 us for small ones. A frame may follow in the ring. Without gates,
    both have 7.7 frames in a ms."""
    prompt = {"moderation": "delay", "tx_usecs": 0, "tx_frames": 1}
    path = floods(tx_fifo=0, **prompt) | {"stack": {"client": {"qdisc": TAPRIO}}}
    sent = steady(simulate(path, "stack.client.device.right.bql_max=1B", kernel=kernel))
    per_ms = {name: sent.filter(pl.col("stream") == name).height / 160 for name in SIZES}
    assert 20 < per_ms["small"] <= 300 / 13.28 + 2
    assert 5 < per_ms["large"] <= 700 / 117.28 + 1


def test_the_second_run_has_the_same_bytes(simulate: Simulate) -> None:
    test = {"name": "tcp_nup", "upload_streams": 6, "length": 2, "delay": 0.5}
    path = line("100mbit", nodes=2, nic="igb", queues=4) | {"test": test, "stack": {"qdisc": "mq fq_codel"}}
    first, second = (simulate(path | {"name": name}) for name in ("first", "second"))
    assert digests(first) == digests(second)
