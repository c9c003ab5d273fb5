# SPDX-License-Identifier: Apache-2.0
"""Layers in which packets wait in complete runs: they add up, and the queue is in the layer of the theory."""

import polars as pl
import pytest

from hourglass.contract.probe import LAYER_COLUMNS
from hourglass.results.recording import Recording

from .conftest import Simulate

pytestmark = pytest.mark.guest

SHORT = ("test.length=5", "test.delay=1")


def share(run: Recording, node: str, layer: str) -> float:
    """Return a layer's share of a ping's mean round trip."""
    return run.summary.ping_layers_ms["icmp"][node][layer].share


def data_ms(run: Recording, node: str, layer: str) -> float:
    figures = run.summary.layers_ms[node].get(layer)
    return figures.mean if figures else 0.0


def test_the_layers_of_every_packet_add_up_to_the_ns(simulate: Simulate) -> None:
    run = simulate("L100M", *SHORT, "stack.tsq=off", kernel="6.1")
    packets = run.packets.group_by("stream", "way", "packet").agg(
        pl.sum_horizontal(LAYER_COLUMNS).sum().alias("sum"), (pl.col("end_ns") - pl.col("t_ns")).first().alias("whole")
    )
    assert packets.height > 1000
    assert packets.filter(pl.col("sum") != pl.col("whole")).is_empty()


def test_without_small_queues_the_clients_qdisc_has_the_delay(simulate: Simulate) -> None:
    run = simulate("L100M", *SHORT, "stack.tsq=off", kernel="6.1")
    assert share(run, "client", "qdisc") > 0.9
    assert data_ms(run, "client", "tsq") == 0


def test_small_queues_move_the_delay_to_the_socket(simulate: Simulate) -> None:
    """Other traffic does not wait there: a ping waits only in the qdisc."""
    off = simulate("L100M", *SHORT, "stack.tsq=off", kernel="6.1")
    limited = simulate("L100M", *SHORT, "stack.tsq=1ms", kernel="6.1")
    assert data_ms(limited, "client", "tsq") > data_ms(limited, "client", "qdisc")
    assert data_ms(limited, "client", "qdisc") < data_ms(off, "client", "qdisc") / 3


def test_with_the_bottleneck_at_the_router_its_qdisc_has_the_delay(simulate: Simulate) -> None:
    run = simulate("R100M", *SHORT, kernel="6.1")
    assert share(run, "router", "qdisc") > 0.9
    assert data_ms(run, "router", "qdisc") > 20 * data_ms(run, "client", "qdisc")


def test_a_capture_is_stored_with_the_run(simulate: Simulate) -> None:
    run = simulate("L100M", *SHORT, 'capture.pcap=["client:eth0"]', kernel="6.1")
    assert (run.path / "client-eth0.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
