# SPDX-License-Identifier: Apache-2.0
"""Our drivers under lockdep, KASAN and the checks of timers and lists: a kernel that complains of nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hourglass import plan as plans
from hourglass import runner, scenario
from hourglass.contract.plan import BatchStep, Event, IwStep, Plan
from hourglass.engine.kernel import build, store

from .conftest import Simulate

pytestmark = pytest.mark.guest

VERSION = "6.1"
"""The version that is built with them."""

UNSAMPLED = "measure.tcp=0"
"""The probe asks sockets in a softirq. It may: time moves on only when all processes sleep, so nobody holds one. But
`tcp_get_info()` takes the lock of processes, and lockdep cannot know."""

SLOW = {"wifi-ax": ("testbed.wifi.0.width=20", "testbed.wifi.0.streams=1")}
"""Less of it, as this kernel takes ten times as long."""


@pytest.fixture
def suspicious(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Simulate]:
    kernel = build.build(VERSION, variant="debug")
    monkeypatch.setattr(store, "ensure", lambda *_, **__: kernel)
    return simulate


@pytest.mark.parametrize("name", ["wifi-ath9k", "wifi-ath9k-htc", "wifi-ax"])
def test_radios_break_no_rule(suspicious: Simulate, name: str) -> None:
    changes = ("test.length=2", "test.delay=1", UNSAMPLED, *SLOW.get(name, ()))
    run = suspicious(name, *changes, kernel=VERSION, fresh=True)
    sent = run.radio_counters.filter((pl.col("node") == "client") & (pl.col("name") == "tx_mpdus"))["value"].max()
    assert sent > 5000
    assert run.info.warnings == []
    assert "lock dependency validator" in (run.path / "console.log").read_text().lower()


@pytest.mark.usefixtures("suspicious")
def test_an_interface_that_goes_takes_its_frames_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A station's interface is deleted in the middle of an upload while a monitor keeps its radio at work: nothing that
    is queued, or in the air, points into it any more (it did: KASAN, use after free when the next PPDU began)."""
    build_plan = plans.build

    def changed(*given: Any) -> Plan:
        plan = build_plan(*given)
        steps = [_iw("dev wlan0 interface add mon0 type monitor"), _up("mon0"), _iw("dev wlan0 del")]
        gone = Event(at_ns=1_500_000_000, node="client", name="gone", steps=steps[2:])
        return plan.model_copy(update={"setup": [*plan.setup, *steps[:2]], "events": [gone]})

    monkeypatch.setattr(plans, "build", changed)
    changes = ("test.length=2", "test.delay=1", UNSAMPLED)
    run = runner.run(scenario.load("wifi-ath9k", changes, kernel=VERSION), tmp_path / "run")
    assert run.info.warnings == []
    counters = run.radio_counters.filter((pl.col("node") == "client") & (pl.col("t_ns") == pl.col("t_ns").max()))
    counts = dict(counters.select("name", "value").rows())
    assert counts["tx_queued"] == 0
    assert counts["tx_mpdus"] == counts["tx_acked"] + counts["tx_failed"] > 1000


def _iw(words: str) -> IwStep:
    return IwStep(do="iw", node="client", args=words.split(), says=None, timeout_ns=10**9, origin=None)


def _up(device: str) -> BatchStep:
    return BatchStep(do="ip", node="client", lines=[f"link set dev {device} up"], origin=None)
