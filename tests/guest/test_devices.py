# SPDX-License-Identifier: Apache-2.0
"""Settings of one device: arriving packets are queued on an ifb and followed there; qdisc, ring, offloads and MTU apply
to the device alone."""

import polars as pl
import pytest

from hourglass.results.recording import Recording

from .conftest import KERNELS, Simulate, check_accounts, line

pytestmark = pytest.mark.guest

OFFLOADS = ("tcp-segmentation", "generic-segmentation", "generic-receive")
SQM = 'stack.router.device.wan={qdisc="cake bandwidth 19mbit", ingress="cake bandwidth 95mbit"}'


def drops_at(run: Recording, device: str) -> int:
    """Return the packets that the probe saw dropped at a device."""
    condition = (pl.col("device") == device) & (pl.col("place") == "qdisc")
    return int(run.drops.filter(condition)["packets"].sum())


@pytest.mark.parametrize("kernel", KERNELS)
def test_time_on_an_ifb_is_the_qdisc_s_of_its_node(simulate: Simulate, kernel: str) -> None:
    """netem delays packets that arrive at the router from the client, and those that arrive at the client, exactly."""
    settings = [("router1.device.left", "7ms"), ("client.device.right", "3ms")]
    run = simulate(
        line("100mbit", "1ms"), *(f"stack.{device}.ingress=netem delay {ms}" for device, ms in settings), kernel=kernel
    )
    check_accounts(run, packets=20)
    rows = run.packets.filter(pl.col("packet") > 0)
    assert set(rows.group_by("stream", "way", "packet").len()["len"]) == {3}, "each node is one visit"
    waited = {
        (way, node): set(visits["qdisc_ns"])
        for (way, node), visits in rows.partition_by("way", "node", as_dict=True).items()
    }
    assert waited == {
        ("up", "client"): {0}, ("up", "router1"): {7_000_000}, ("up", "server"): {0},
        ("down", "server"): {0}, ("down", "router1"): {0}, ("down", "client"): {3_000_000},
    }  # fmt: skip


@pytest.mark.parametrize("settings", [(), ("testbed.ip=6", "stack.client.device.eth0.ingress=fq_codel")])
def test_packets_through_an_ingress_shaper_are_accounted_for(simulate: Simulate, settings: tuple[str, ...]) -> None:
    """The run has duplicate acknowledgments, drops on the ifb and flows that end. The rate is the ifb's."""
    wan = "stack.home.device.wan"
    shaped = (f"{wan}.qdisc=cake bandwidth 19mbit", f"{wan}.ingress=cake bandwidth 80mbit")
    run = simulate("asymmetric", "test.length=4", "test.delay=1", *shaped, "measure.packets=all", *settings)
    check_accounts(run, packets=20_000)
    assert run.summary.drops["home"]["ifb4wan"].qdisc == drops_at(run, "ifb4wan") > 0
    assert run.summary.drops["home"]["wan"].qdisc == drops_at(run, "wan") > 0
    header, payload = (14 + 40 + 20 + 12, 1428) if settings else (14 + 20 + 20 + 12, 1448)
    assert run.summary.totals.download_mbps == pytest.approx(80 * payload / (payload + header), rel=0.07)


def test_sqm_at_home_keeps_a_call_s_delay_low(simulate: Simulate) -> None:
    """A shorter version of the tutorial's claim: without SQM one direction takes ten times as long."""
    short = ("test.length=6", "measure.packets=all")
    bloated, mended = simulate("home", *short), simulate("home", *short, SQM)
    check_accounts(mended, packets=20_000)
    (up, _), (up_sqm, down_sqm) = bloated.summary.datagrams, mended.summary.datagrams
    assert up.sent == up_sqm.sent == down_sqm.sent == 6 * 25 * 6, "6 s, 25 pictures a second, six packets each"
    assert up.owd_ms.p50 > 100
    assert max(up_sqm.owd_ms.p99, down_sqm.owd_ms.p99) < 30
    assert mended.summary.totals.download_mbps > 75


def test_a_device_s_ring_offloads_and_mtu_apply_to_it_alone(simulate: Simulate) -> None:
    settings = '{mtu=1400, tso=false, gso=false, gro=false, tx_ring=64, qdisc="fq_codel"}'
    run = simulate(line("100mbit"), "test.name=tcp_upload", "test.length=1", f"stack.client.device.right={settings}")
    facts = dict(run.facts.filter(pl.col("node") == "client").select("key", "value").iter_rows())
    offloads = [f"offload.right.{name}-offload" for name in OFFLOADS]
    assert [facts[name] for name in offloads] == ["off"] * 3
    assert run.tcp.filter(pl.col("sender"))["snd_mss"].max() == 1400 - 20 - 32, "IP, TCP with timestamps"
    kinds = run.qdisc.group_by("node", "device").agg(pl.col("kind").first()).iter_rows()
    assert {(node, device): kind for node, device, kind in kinds} == {
        ("client", "right"): "fq_codel", ("router1", "left"): "pfifo_fast", ("router1", "right"): "pfifo_fast",
        ("server", "left"): "pfifo_fast",
    }  # fmt: skip
