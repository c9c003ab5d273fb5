# SPDX-License-Identifier: Apache-2.0
"""rrul on a 100/20 Mbit/s line, queue by queue, in one comparison: the order that the bufferbloat literature expects.

* A plain FIFO of 1000 packets delays all traffic by hundreds of ms. The full upload starves the downloads of ACKs.
  Source: Gettys, Nichols, *Bufferbloat*, CACM 55(1), 2012.
* With flow queues, sparse pings do not wait behind TCP (RFC 8290). fq also does this. It does not shorten the
  queue of a TCP flow, but BBR does (one BDP and more).
* cake adds host isolation and tins. Its latency is fq_codel's or better. Source: Høiland-Jørgensen et al., *Piece of
  CAKE*, LANMAN 2018.
"""

from pathlib import Path

import pytest
from plots.look import assert_drawn

from hourglass.plots.picture_kinds import draw
from hourglass.results.compare import compare
from hourglass.results.labels import labels
from hourglass.results.recording import Recording

from .conftest import Simulate

pytestmark = pytest.mark.guest

QUEUES = {
    "pfifo_fast": ("stack.qdisc=pfifo_fast",),
    "fq_codel": ("stack.qdisc=fq_codel",),
    "cake": ("stack.qdisc=cake diffserv4",),
    "fq+bbr": ("stack.qdisc=fq", "stack.cc=bbr"),
}


@pytest.fixture(scope="module")
def line(simulate: Simulate) -> dict[str, Recording]:
    """Return the runs. The given queues replace the scenario's at the two ends of the line."""
    recordings = {}
    for name, settings in QUEUES.items():
        kind = settings[0].split("=")[1]
        ends = (f"stack.home.qdisc={kind}", f"stack.isp.qdisc={kind}")
        recordings[name] = simulate("asymmetric", "test.name=rrul", "test.length=12", "test.delay=2", *settings, *ends)
    return recordings


@pytest.mark.slow
def test_latency_is_in_the_expected_order(line: dict[str, Recording]) -> None:
    rows = {row.figure: dict(zip(line, row.cells, strict=True)) for row in compare(list(line.values()))}
    ping, tcp = (
        {name: cell.value for name, cell in rows[figure].items()} for figure in ("ping icmp p50", "TCP RTT p50")
    )
    base_ms = 20.0
    assert base_ms < ping["cake"] <= ping["fq_codel"] < base_ms + 8
    assert base_ms < ping["fq+bbr"] < base_ms + 8
    assert ping["pfifo_fast"] > 100
    assert max(tcp["fq_codel"], tcp["cake"]) < tcp["fq+bbr"] < tcp["pfifo_fast"]
    assert all(rows["ping icmp p50"][name].significant for name in line if name != "pfifo_fast")


def test_the_full_upload_starves_the_downloads(line: dict[str, Recording]) -> None:
    down = {name: run.summary.totals.download_mbps for name, run in line.items()}
    assert all(down[name] > 85 for name in line if name != "pfifo_fast")
    assert down["pfifo_fast"] < 0.75 * down["fq_codel"]


def test_a_telephone_of_the_bulk_class_waits_longer_than_one_of_the_best(line: dict[str, Recording]) -> None:
    """cake's tins give EF priority over CS1."""
    pings = line["cake"].summary.ping_ms
    assert pings["udp EF"].p50 < pings["udp BK"].p50


def test_the_comparison_is_one_picture(line: dict[str, Recording], tmp_path: Path) -> None:
    runs = list(line.values())
    assert len(set(labels(runs))) == len(runs)
    draw("scatter", runs, tmp_path / "rrul.png")
    assert_drawn(tmp_path / "rrul.png")
