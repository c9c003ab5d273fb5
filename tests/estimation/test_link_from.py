# SPDX-License-Identifier: Apache-2.0
"""Estimates of a link whose truth is known (truth.toml), from captures at both ends and from a Flent file."""

import json
import tomllib
from pathlib import Path

import pytest

import hourglass
from hourglass import scenario
from hourglass.cli.exit_status import guarded
from hourglass.estimation import LinkEstimate, estimate_link
from hourglass.estimation.link_estimate import LinkQuantity
from hourglass.estimation.link_scenario import scenario_text
from hourglass.results.recording import Recording

pytestmark = pytest.mark.guest

FRAME = 1200 + 28 + 38
CROSS_MBPS = 2.5 * FRAME / 1200
RING_KB = 12.5
"""The NIC's queue below the qdisc: 10 ms by BQL."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return hourglass.run(Path(__file__).with_name("truth.toml"), tmp_path_factory.mktemp("link") / "truth")


def holds(quantity: LinkQuantity, truth: float, within: float) -> bool:
    """Tell if an estimate is near to the truth, and its interval is about it."""
    assert quantity.value is not None
    assert quantity.interval is not None
    low, high = quantity.interval
    assert low <= quantity.value <= high
    return abs(quantity.value - truth) <= within * truth and low - within * truth <= truth <= high + within * truth


@pytest.mark.parametrize(("node", "place"), [("client", "at the sender"), ("server", "at the receiver")])
def test_a_capture_shows_the_link(run: Recording, node: str, place: str) -> None:
    link = estimate_link(run.path / f"{node}-eth0.pcapng")
    assert link.place == place
    assert holds(link.rate_mbps, 10, 0.005)
    assert holds(link.base_rtt_ms, 20, 0.08)
    assert holds(link.buffer_kb, 40 + RING_KB, 0.1)
    assert holds(link.cross_mbps, CROSS_MBPS, 0.05)
    sent = float(run.tcp.filter(run.tcp["sender"]).group_by("stream").max()["data_segs_out"].sum())
    assert holds(link.loss_percent, 100 * sum(flow.retransmits or 0 for flow in run.summary.flows) / sent, 0.1)
    assert 0.05 < (link.random_loss_percent.value or 0) < 0.3 * 1.5


def test_the_scenario_of_an_estimate_has_its_values(run: Recording) -> None:
    link = estimate_link(run.path / "server-eth0.pcapng")
    loaded = scenario.load(tomllib.loads(scenario_text(link)))
    assert loaded.testbed.shaper[0].rate == pytest.approx(10e6 * 1514 / 1538, rel=0.005)
    assert loaded.testbed.link[1].delay[0] == pytest.approx(10e6, rel=0.05)
    assert loaded.testbed.link[1].loss[1].rate == 0
    assert loaded.test.datagrams[0].size == 1200


def test_a_flent_file_shows_its_part(run: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["export", str(run.path), "--format", "flent", "--out", str(tmp_path)]) == 0
    (file,) = tmp_path.glob("*.flent.gz")
    capsys.readouterr()
    assert guarded(["link", "from", str(file), "--json", "--scenario", str(tmp_path / "mine.toml")]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["rate_mbps"]["value"] == pytest.approx(10 - CROSS_MBPS, rel=0.05)
    assert data["base_rtt_ms"]["value"] == pytest.approx(20, rel=0.05)
    assert data["buffer_kb"]["value"] == pytest.approx((40 + RING_KB) * (10 - CROSS_MBPS) / 10, rel=0.2)
    assert data["cross_mbps"]["value"] is None
    scenario.load(tmp_path / "mine.toml")


def test_a_shaper_is_no_cross_traffic(tmp_path: Path) -> None:
    """HTB lets bursts pass at the rate of its line."""
    settings = {"test.length": 3, "test.delay": 0.2, "capture.pcap": ["server:eth0"]}
    settings |= {"stack.router.device.eth1.qdisc": "bfifo limit 50000"}
    link = estimate_link(hourglass.run("R10M", tmp_path / "run", overrides=settings).path / "server-eth0.pcapng")
    assert holds(link.rate_mbps, 10 * 1538 / 1514, 0.02)
    assert not link.cross_mbps.value
    assert holds(link.buffer_kb, 50, 0.1)


def test_a_link_without_queue_is_a_lower_bound(run: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hourglass.estimation.link_estimate.QUEUE_S", 9.0)
    link: LinkEstimate = estimate_link(run.path / "client-eth0.pcapng")
    assert link.rate_mbps.remark == "at least: there was no queue"
    assert link.cross_mbps.value is None
