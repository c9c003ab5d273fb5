# SPDX-License-Identifier: Apache-2.0
"""Every frame is accounted for: between the NICs of a cable, between NIC and device, between device and qdisc."""

from collections.abc import Callable

import polars as pl
import pytest

from hourglass.results.recording import Recording

from .conftest import KERNELS, Simulate, counters, line

pytestmark = pytest.mark.guest

FAULTS = {
    "loss": "1%",
    "corrupt": "0.5%",
    "duplicate": "0.5%",
    "reorder": "1%",
    "reorder_delay": "2ms",
    "jitter": "1ms",
}
SHORT = ("test.length=3", "test.delay=1")
FLOODED = {"rx_usecs": 20_000, "rx_frames": 0, "rx_ring": 20}
"""A receive interrupt that is so late that the ring overflows."""

RUNS: dict[str, Callable[[Simulate, str], Recording]] = {
    "local": lambda simulate, kernel: simulate("L100M", *SHORT, "stack.tsq=off", kernel=kernel),
    "faulty": lambda simulate, kernel: simulate(
        {**line("50mbit", "2ms", **FAULTS), "test": {"name": "tcp_bidirectional"}}, *SHORT, kernel=kernel
    ),
    "gigabit": lambda simulate, kernel: simulate("LR1000M", "test.length=1", "test.delay=1", kernel=kernel),
    "flooded": lambda simulate, kernel: simulate(
        {**line("50mbit", "2ms", **FLOODED), "test": {"name": "tcp_upload"}}, *SHORT, kernel=kernel
    ),
}


def directions(run: Recording) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Return (node, device) of sender and receiver of every cable, in both directions."""
    assert run.scenario is not None
    ends = [[(end.node, end.device) for end in link.ends] for link in run.scenario.testbed.link]
    return [pair for a, b in ends for pair in ((a, b), (b, a))]


def unaccounted(run: Recording, sender: tuple[str, str], receiver: tuple[str, str]) -> int:
    """Return the number of frames that left one NIC and are neither lost, nor in flight, nor at the other."""
    tx, rx = counters(run, *sender), counters(run, *receiver)
    arrived = rx["rx_in_flight"] + rx["rx_frames"] + rx["rx_corrupted"] + rx["rx_missed"]
    accounted = arrived + tx["tx_lost"] + tx["tx_policed"] + tx["tx_shaper_full"]
    return tx["tx_frames"] + tx["tx_duplicated"] - accounted


def last(table: pl.DataFrame, node: str, device: str) -> dict[str, int]:
    return table.filter((pl.col("node") == node) & (pl.col("device") == device)).row(-1, named=True)


def grown(table: pl.DataFrame, node: str, device: str) -> dict[str, int]:
    """Return the growth of each counter of the kernel since test time 0, from which the drivers count."""
    rows = table.filter((pl.col("node") == node) & (pl.col("device") == device)).select(
        pl.col(pl.UInt64).cast(pl.Int64)
    )
    return rows.select(pl.all().last() - pl.all().first()).row(0, named=True)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", RUNS)
def test_every_frame_is_accounted_for(simulate: Simulate, name: str, kernel: str) -> None:
    """Pings end and flows are aborted before the end of a run, so the cables are at rest."""
    run = RUNS[name](simulate, kernel)
    pairs = directions(run)
    assert {pair: unaccounted(run, *pair) for pair in pairs} == dict.fromkeys(pairs, 0)
    totals = {counter: sum(counters(run, *end)[counter] for end, _ in pairs) for counter in counters(run, *pairs[0][0])}
    expected = {"faulty": {"tx_lost", "tx_duplicated", "tx_reordered", "rx_corrupted"}, "flooded": {"rx_missed"}}
    for counter in ("tx_lost", "tx_duplicated", "tx_reordered", "rx_corrupted", "rx_missed"):
        assert (totals[counter] > 0) == (counter in expected.get(name, set())), counter
    assert totals["tx_no_carrier"] == totals["tx_no_memory"] == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_frame_is_accounted_for_under_load(simulate: Simulate, kernel: str) -> None:
    run = simulate("LR1000M", "test.length=1", "test.delay=0", "testbed.link.0.delay=3ms", kernel=kernel)
    pairs = directions(run)
    assert {pair: unaccounted(run, *pair) for pair in pairs} == dict.fromkeys(pairs, 0)
    assert counters(run, *pairs[0][1])["rx_in_flight"] > 200, "3 ms are 244 frames"


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", RUNS)
def test_device_and_nic_count_alike(simulate: Simulate, name: str, kernel: str) -> None:
    run = RUNS[name](simulate, kernel)
    for end, _ in directions(run):
        device, nic = grown(run.devices, *end), counters(run, *end)
        for counter, counted in (("packets", "frames"), ("bytes", "bytes")):
            assert device[f"tx_{counter}"] == nic[f"tx_{counted}"]
            assert device[f"rx_{counter}"] == nic[f"rx_{counted}"]
        assert device["rx_errors"] == nic["rx_corrupted"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", RUNS)
def test_the_nic_sends_the_packets_that_leave_the_qdisc(simulate: Simulate, name: str, kernel: str) -> None:
    """Roots count segments with their headers, so frames and bytes agree exactly once queues are empty."""
    run = RUNS[name](simulate, kernel)
    roots = run.qdisc.filter(pl.col("parent") == "root")
    for end, _ in directions(run):
        sent, nic, root = grown(roots, *end), counters(run, *end), last(roots, *end)
        assert (root["qlen"], root["backlog"]) == (0, 0)
        assert sent["packets"] == nic["tx_frames"]
        assert sent["bytes"] == nic["tx_bytes"]


def test_a_qdisc_below_htb_sent_what_htb_sent(simulate: Simulate) -> None:
    """The parent's count includes drops in the child."""
    run = simulate("L100M", *SHORT, "stack.qdisc=codel", "stack.tsq=off")
    client = run.qdisc.filter(pl.col("node") == "client")
    root, leaf = (client.filter(pl.col("handle") == handle).row(-1, named=True) for handle in ("1:", "10:"))
    assert (root["kind"], leaf["kind"], leaf["parent"]) == ("htb", "codel", "1:1")
    assert {key: root[key] for key in ("packets", "bytes", "drops")} == {
        key: leaf[key] for key in ("packets", "bytes", "drops")
    }
    assert root["drops"] == run.summary.drops["client"]["eth0"].qdisc_skbs > 0


def test_bytes_received_are_bytes_sent(simulate: Simulate) -> None:
    """At the end of a lossless path, all bytes of the receiver are acknowledged, apart from acknowledgments in
    flight."""
    run = simulate("L100M", *SHORT)
    end = run.tcp.filter(pl.col("state") == 1).group_by("stream", "sender").agg(pl.all().sort_by("t_ns").last())
    for flow in run.flows:
        samples = end.filter(pl.col("stream") == flow.name)
        sender, receiver = (samples.filter(pl.col("sender") == is_sender) for is_sender in (True, False))
        received, acked = receiver["bytes_received"][0], sender["bytes_acked"][0]
        assert 0 <= received - (acked - 1) <= sender["unacked"][0] * sender["snd_mss"][0]
