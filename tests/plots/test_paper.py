# SPDX-License-Identifier: Apache-2.0
"""The papers' form of a figure: a candle per setting, a panel per quantity, numbers as in the tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from hourglass.plots import paper
from hourglass.plots.paper import Candles

from .look import assert_drawn


def panel(groups: int, series: int, label: str = "ping (ms)") -> Candles:
    samples = [[np.linspace(10, 20, 11) * (1 + at + 2 * group) for group in range(groups)] for at in range(series)]
    figures = [[[14.0, 15.0, 99.0]] * groups] * series
    return Candles(label, [f"g{n}" for n in range(groups)], [f"s{n}" for n in range(series)], samples, figures)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Axes]:
    """The panels that were drawn."""
    found: list[Axes] = []
    whole = paper._panel

    def watched(axes: Axes, *rest: Any) -> list[float]:
        found.append(axes)
        return whole(axes, *rest)

    monkeypatch.setattr(paper, "_panel", watched)
    return found


def test_a_number_is_the_median_of_the_seeds_and_each_seed_a_dot(tmp_path: Path, drawn: list[Axes]) -> None:
    paper.candles("one", [panel(2, 1)], tmp_path / "one.png")
    assert_drawn(tmp_path / "one.png")
    (axes,) = drawn
    assert {text.get_text() for text in axes.texts} == {"15.0"}
    dots = [line for line in axes.get_lines() if line.get_marker() == "o"]
    assert [list(line.get_ydata()) for line in dots] == [[14.0, 15.0, 99.0]] * 2
    assert axes.get_ylim()[1] > 99


def test_columns_share_their_axis_and_many_candles_have_no_numbers(tmp_path: Path, drawn: list[Axes]) -> None:
    paper.candles("grid", [panel(9, 3, name) for name in ("a", "b", "c", "d")], tmp_path / "grid.png", columns=2)
    assert_drawn(tmp_path / "grid.png")
    assert len(drawn) == 4
    assert not any(axes.texts for axes in drawn)
    assert drawn[0].get_shared_y_axes().joined(drawn[0], drawn[1])
    assert not drawn[0].get_shared_y_axes().joined(drawn[0], drawn[2])


def test_an_axis_that_panels_share_has_room_for_all(tmp_path: Path, drawn: list[Axes]) -> None:
    small = Candles("ping (ms)", ["g0"], ["s0"], [[np.linspace(1, 2, 11)]], [[[1.5]]])
    paper.candles("pair", [panel(1, 1), small], tmp_path / "pair.png", columns=2)
    low, high = drawn[0].get_ylim()
    assert low < 1
    assert high > 99
