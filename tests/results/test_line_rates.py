# SPDX-License-Identifier: Apache-2.0
"""The line rate that pictures compare goodput with."""

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from hourglass.results.line_rates import rate_mbps

STREAM = SimpleNamespace(client="phone", server="server")


def hop(rate_mbps: int, medium: str = "cable", impairments: tuple[str, ...] = ()) -> Any:
    return SimpleNamespace(rate_bps=rate_mbps * 10**6, medium=medium, impairments=impairments)


@pytest.mark.parametrize(
    ("hops", "expected"),
    [
        ([hop(1000), hop(100)], 100),
        ([hop(54, "air"), hop(100), hop(1000)], 100),
        ([hop(20, impairments=("trace",)), hop(1000)], 1000),
        ([hop(54, "air")], None),
    ],
)
def test_the_slowest_cable_of_a_constant_rate_counts(hops: list[Any], expected: float | None) -> None:
    path = SimpleNamespace(client="phone", server="server", there=hops, back=[hop(1)])
    run: Any = SimpleNamespace(paths=[path], events=pl.DataFrame())
    assert rate_mbps(run, STREAM, upload=True) == expected
