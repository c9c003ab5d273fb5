# SPDX-License-Identifier: Apache-2.0
"""Our drivers under lockdep, KASAN and the checks of timers and lists: a kernel that complains of nothing."""

from collections.abc import Callable

import polars as pl
import pytest

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
