# SPDX-License-Identifier: Apache-2.0
"""Our drivers under lockdep, KASAN and the checks of timers and lists: the kernel logs no warning."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hourglass import plan as plans
from hourglass import runner, scenario
from hourglass.builders.kernel import builder, registry
from hourglass.contract.plan import BatchStep, IwStep, Plan, PlanEvent

from .conftest import Simulate

pytestmark = [pytest.mark.guest, pytest.mark.kernels]

VERSION = "6.1"
"""The version that is built with them."""

UNSAMPLED = "measure.tcp=0"
"""The probe reads sockets in a softirq. This is safe: time advances only while all processes sleep, so none has locked
a socket. But `tcp_get_info()` takes the lock of processes, and lockdep cannot know this."""

SLOW = {"wifi-ax": ("testbed.wifi.0.width=20", "testbed.wifi.0.streams=1")}
"""Shorter tests, since this kernel takes ten times as long."""


@pytest.fixture
def suspicious(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Simulate]:
    kernel = builder.build(VERSION, variant="debug")
    monkeypatch.setattr(registry, "ensure", lambda *_, **__: kernel)
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
def test_removing_an_interface_drops_its_frames(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Delete a station's interface in the middle of an upload while a monitor uses its radio. No frame in a queue or in
    the air may refer to it afterwards. KASAN would report a use after free when the next PPDU begins."""
    build_plan = plans.build

    def changed(*arguments: Any) -> Plan:
        plan = build_plan(*arguments)
        steps = [_iw("dev wlan0 interface add mon0 type monitor"), _up("mon0"), _iw("dev wlan0 del")]
        removal = PlanEvent(at_ns=1_500_000_000, node="client", name="gone", steps=steps[2:])
        return plan.model_copy(update={"setup": [*plan.setup, *steps[:2]], "events": [removal]})

    monkeypatch.setattr(plans, "build", changed)
    changes = ("test.length=2", "test.delay=1", UNSAMPLED)
    run = runner.run(scenario.load("wifi-ath9k", changes, kernel=VERSION), tmp_path / "run")
    assert run.info.warnings == []
    counters = run.radio_counters.filter((pl.col("node") == "client") & (pl.col("t_ns") == pl.col("t_ns").max()))
    counts = dict(counters.select("name", "value").rows())
    assert counts["tx_queued"] == 0
    assert counts["tx_mpdus"] == counts["tx_acked"] + counts["tx_failed"] > 1000


def _iw(line: str) -> IwStep:
    return IwStep(do="iw", node="client", args=line.split(), says=None, timeout_ns=10**9, origin=None)


def _up(device: str) -> BatchStep:
    return BatchStep(do="ip", node="client", lines=[f"link set dev {device} up"], origin=None)
