# SPDX-License-Identifier: Apache-2.0
"""One device's own settings: what arrives is queued on an ifb, and followed there; qdisc, ring, offloads and MTU are
those of the device alone."""

import polars as pl
import pytest

from hourglass.results.recording import Recording

from .conftest import KERNELS, Simulate, check_accounts, line

pytestmark = pytest.mark.guest

OFFLOADS = ("tcp-segmentation", "generic-segmentation", "generic-receive")
SQM = 'stack.router.device.wan={qdisc="cake bandwidth 19mbit", ingress="cake bandwidth 95mbit"}'


def drops_at(run: Recording, device: str) -> int:
    """Packets that the probe saw dropped there."""
    at = (pl.col("device") == device) & (pl.col("place") == "qdisc")
    return int(run.drops.filter(at)["packets"].sum())


@pytest.mark.parametrize("kernel", KERNELS)
def test_time_on_an_ifb_is_the_qdisc_s_of_its_node(simulate: Simulate, kernel: str) -> None:
    """netem holds for exactly so long what arrives at the router from the client, and what arrives at the client."""
    own = [("router1.device.left", "7ms"), ("client.device.right", "3ms")]
    run = simulate(line("100mbit", "1ms"), *(f"stack.{at}.ingress=netem delay {ms}" for at, ms in own), kernel=kernel)
    check_accounts(run, packets=20)
    rows = run.packets.filter(pl.col("packet") > 0)
    assert set(rows.group_by("stream", "way", "packet").len()["len"]) == {3}, "each node is one visit"
    waited = {
        (way, node): set(found["qdisc_ns"])
        for (way, node), found in rows.partition_by("way", "node", as_dict=True).items()
    }
    assert waited == {
        ("up", "client"): {0}, ("up", "router1"): {7_000_000}, ("up", "server"): {0},
        ("down", "server"): {0}, ("down", "router1"): {0}, ("down", "client"): {3_000_000},
    }  # fmt: skip


@pytest.mark.parametrize("settings", [(), ("testbed.ip=6", "stack.client.device.eth0.ingress=fq_codel")])
def test_packets_through_a_shaper_of_what_arrives_are_accounted_for(
    simulate: Simulate, settings: tuple[str, ...]
) -> None:
    """With duplicate acknowledgments, drops on the ifb and flows that end; and the rate is the ifb's."""
    wan = "stack.home.device.wan"
    shaped = (f"{wan}.qdisc=cake bandwidth 19mbit", f"{wan}.ingress=cake bandwidth 80mbit")
    run = simulate("asymmetric", "test.length=4", "test.delay=1", *shaped, "measure.packets=all", *settings)
    check_accounts(run, packets=20_000)
    assert run.summary.drops["home"]["ifb4wan"].qdisc == drops_at(run, "ifb4wan") > 0
    assert run.summary.drops["home"]["wan"].qdisc == drops_at(run, "wan") > 0
    header, payload = (14 + 40 + 20 + 12, 1428) if settings else (14 + 20 + 20 + 12, 1448)
    assert run.summary.totals.download_mbps == pytest.approx(80 * payload / (payload + header), rel=0.07)


def test_sqm_at_home_keeps_a_call_s_delay_low(simulate: Simulate) -> None:
    """The claim of the guide's tutorial, shorter: without it one way takes ten times as long."""
    short = ("test.length=6", "measure.packets=all")
    bloated, mended = simulate("home", *short), simulate("home", *short, SQM)
    check_accounts(mended, packets=20_000)
    (up, _), (up_sqm, down_sqm) = bloated.summary.datagrams, mended.summary.datagrams
    assert up.sent == up_sqm.sent == down_sqm.sent == 6 * 25 * 6, "6 s, 25 pictures a second, six packets each"
    assert up.owd_ms.p50 > 100
    assert max(up_sqm.owd_ms.p99, down_sqm.owd_ms.p99) < 30
    assert mended.summary.totals.download_mbps > 75


def test_a_device_s_ring_offloads_and_mtu_are_its_own(simulate: Simulate) -> None:
    own = '{mtu=1400, tso=false, gso=false, gro=false, tx_ring=64, qdisc="fq_codel"}'
    run = simulate(line("100mbit"), "test.name=tcp_upload", "test.length=1", f"stack.client.device.right={own}")
    told = dict(run.facts.filter(pl.col("node") == "client").select("key", "value").iter_rows())
    offloads = [f"offload.right.{name}-offload" for name in OFFLOADS]
    assert [told[name] for name in offloads] == ["off"] * 3
    assert run.tcp.filter(pl.col("sender"))["snd_mss"].max() == 1400 - 20 - 32, "IP, TCP with timestamps"
    kinds = run.qdisc.group_by("node", "device").agg(pl.col("kind").first()).iter_rows()
    assert {(node, device): kind for node, device, kind in kinds} == {
        ("client", "right"): "fq_codel", ("router1", "left"): "pfifo_fast", ("router1", "right"): "pfifo_fast",
        ("server", "left"): "pfifo_fast",
    }  # fmt: skip
