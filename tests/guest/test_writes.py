# SPDX-License-Identifier: Apache-2.0
"""TCP senders whose applications write at a rate: each byte arrives when it is due, and TCP knows that it is
application-limited."""

import polars as pl
import pytest

from hourglass.results.recording import Recording

from .conftest import Simulate, line, records

pytestmark = pytest.mark.guest

RATE, EVERY_NS = 5_000_000, 20_000_000
WRITE = RATE // 8 * EVERY_NS // 10**9


def paced_writes(rate: str, **test: object) -> dict[str, object]:
    base = line(rate=rate, delay="2ms")
    base["test"] = {"name": "tcp_nup", "length": 4, "delay": 1, "stream_writes": ["5mbit"], **test}
    base["stack"] = {"cc": "bbr"}
    return base


def side(run: Recording, sender: bool) -> pl.DataFrame:
    return run.tcp.filter(pl.col("sender") == sender).sort("t_ns")


@pytest.mark.parametrize("backend", ["load", "socket"])
def test_written_bytes_arrive_exactly_on_a_faster_path(simulate: Simulate, backend: str) -> None:
    """12,500 B are written at the connection's instant and each 20 ms after it. They arrive within 8 ms: 4 ms of delay
    and the time of 9 frames."""
    run = simulate(paced_writes("100mbit") | {"flow": {"backend": backend}})
    begun_ns = run.flow_events.filter(pl.col("event") == "connected")["t_ns"][0]
    received = side(run, sender=False).select(pl.col("t_ns") - begun_ns, pl.col("bytes_received").cast(pl.Int64))
    settled = received.filter(pl.col("t_ns") % EVERY_NS > 8_000_000)
    assert settled.height > 100
    assert (settled["bytes_received"] == WRITE * (settled["t_ns"] // EVERY_NS + 1)).all()


def test_tcp_knows_and_bbr_does_not_take_it_for_the_paths_rate(simulate: Simulate) -> None:
    """tcp_bbr.c omits application-limited samples from its maximum, unless they are above it."""
    run = simulate(paced_writes("100mbit"))
    samples = side(run, sender=True).drop_nulls("bbr_bw").filter(pl.col("delivery_rate") > 0)
    assert samples["delivery_rate_app_limited"].unique().to_list() == [1]
    assert (samples["bbr_bw"].cast(pl.Int64).diff().drop_nulls() >= 0).all()
    assert run.summary.flows[0].goodput_mbps == pytest.approx(5, rel=0.01)


def test_a_path_that_is_slower_holds_the_application_back(simulate: Simulate) -> None:
    run, always = (simulate(paced_writes("2mbit", stream_writes=writes)) for writes in (["5mbit"], []))
    late = side(run, sender=True).filter(pl.col("t_ns") > 4 * 10**9)
    assert late["delivery_rate_app_limited"].unique().to_list() == [0]
    assert run.summary.flows[0].goodput_mbps == pytest.approx(always.summary.flows[0].goodput_mbps, rel=0.02)


def test_flows_in_turn_and_those_that_compete(simulate: Simulate) -> None:
    """The rates are 5 Mbit/s, unlimited, and 1 Mbit/s downwards. One write of a second of data, followed by pauses,
    gives the same rate."""
    rivals = [{"client": "client", "upload_streams": 0, "download_streams": 1, "writes": "1mbit"}]
    test = {"upload_streams": 2, "stream_writes": ["5mbit", 0], "competing": rivals, "write_interval": 0.5}
    base = paced_writes("50mbit", **test)
    run, second = (simulate(base, fresh=fresh) for fresh in (False, True))
    assert records(run).read_bytes() == records(second).read_bytes()
    slow, bulk, down = (flow.goodput_mbps for flow in run.summary.flows)
    assert (slow, down) == (pytest.approx(5, rel=0.1), pytest.approx(1, rel=0.1))
    assert bulk > 35
