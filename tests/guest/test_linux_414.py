# SPDX-License-Identifier: Apache-2.0
"""The papers' BBR, CUBIC and PIE of Linux 4.14: files that compile together, and do what their heads say."""

from pathlib import Path

import polars as pl
import pytest

from hourglass.results.recording import Recording

from .conftest import Simulate

pytestmark = [pytest.mark.guest, pytest.mark.kernels]

FILES = Path(__file__).parents[2] / "papers/studies/linux-4.14"
MBPS, BASE_MS = 20, 20
PAYLOAD = MBPS * 1448 / 1538


@pytest.fixture(scope="module")
def run(simulate: Simulate) -> Recording:
    """Return a run in which BBR fills one direction of a line, above a FIFO, and CUBIC the other, above PIE."""
    names = ["client", "router", "server"]
    source = {
        "name": "linux-4.14",
        "testbed": {
            "node": [{"name": name, "role": "router" if name == "router" else "host"} for name in names],
            "link": [
                {"ends": ["client:eth0", "router:eth0"], "rate": "1gbit", "delay": "5ms"},
                {"ends": ["router:eth1", "server:eth0"], "rate": f"{MBPS}mbit", "delay": "5ms"},
            ],
        },
        "stack": {
            "tsq": "off",
            "client": {"cc": {"file": str(FILES / "bbr414.c")}},
            "server": {"cc": {"file": str(FILES / "cubic414.c")}, "qdisc": {"file": str(FILES / "pie414.c")}},
        },
        "test": {"name": "rrul_be_nflows", "upload_streams": 1, "download_streams": 1, "length": 14, "delay": 1},
    }
    return simulate(source, kernel="5.10")


def samples(run: Recording, upload: bool) -> pl.DataFrame:
    """Return the samples of a sender from 3 s of its flow on."""
    (flow,) = (flow for flow in run.flows if flow.upload == upload)
    late = pl.col("t_ns") > flow.start_ns + 3 * 10**9
    return run.tcp.filter(pl.col("sender") & (pl.col("stream") == flow.name) & late)


def test_bbr_fills_the_line_with_a_short_queue_and_drains_it(run: Recording) -> None:
    """Its ACKs wait in PIE's queue of 20 ms. Its own queue has at most a BDP, 20 ms."""
    table = samples(run, upload=True)
    assert 0.9 * PAYLOAD < run.summary.totals.upload_mbps <= PAYLOAD
    assert BASE_MS <= table["rtt"].median() / 1000 < BASE_MS + 40
    assert (table["snd_cwnd"] == 4).any()  # PROBE_RTT, after 10 s


def test_pie_holds_cubic_at_its_target(run: Recording) -> None:
    """The target is 20 ms of queue. A FIFO of 1,000 packets would take 600 ms."""
    rtt_ms = samples(run, upload=False)["rtt"].median() / 1000
    assert 0.8 * PAYLOAD < run.summary.totals.download_mbps <= PAYLOAD
    assert BASE_MS + 10 < rtt_ms < BASE_MS + 40
    assert run.summary.drops["server"]["eth0"].qdisc > 0


def test_bbr_with_later_values_is_like_the_kernels_own(simulate: Simulate) -> None:
    """Margin and quantum are those of 4.20 and 4.16. The other files are for the kernel, which has all three."""
    files = {name: {"file": str(FILES / f"{name}414.c")} for name in ("cubic", "pie")}
    own_file = {"file": str(FILES / "bbr414.c"), "parameters": {"margin": 1, "quantum": 1}}
    runs = [
        simulate(
            {
                "testbed": {"preset": "L100M"},
                "stack": {"client": {"cc": cc}, "server": {"cc": files["cubic"], "qdisc": files["pie"]}},
                "test": {"name": "tcp_nup", "upload_streams": 4, "length": 30},
            },
            kernel="5.10",
        )
        for cc in (own_file, "bbr")
    ]
    rates, times = zip(*((run.summary.totals.upload_mbps, run.summary.tcp_rtt_ms.p50) for run in runs), strict=True)
    assert rates[0] == pytest.approx(rates[1], rel=0.01)
    assert times[0] == pytest.approx(times[1], rel=0.05)
