# SPDX-License-Identifier: Apache-2.0
"""The papers' form of a picture: a candle per setting, a panel per quantity, numbers as in the tables."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from plots.look import assert_drawn

from hourglass.series_style import BLUE, GREEN
from papers import candles
from papers.candles import Candles


def panel(groups: int, series: int, label: str = "ping (ms)") -> Candles:
    samples = [
        [np.linspace(10, 20, 11) * (1 + number + 2 * group) for group in range(groups)] for number in range(series)
    ]
    figures = [[[14.0, 15.0, 99.0]] * groups] * series
    return Candles(label, [f"g{n}" for n in range(groups)], [f"s{n}" for n in range(series)], samples, figures)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Axes]:
    """Return the list of drawn panels."""
    panels: list[Axes] = []
    draw_panel = candles._panel

    def recorded_panel(axes: Axes, *arguments: Any) -> list[float]:
        panels.append(axes)
        return draw_panel(axes, *arguments)

    monkeypatch.setattr(candles, "_panel", recorded_panel)
    return panels


def test_a_number_is_the_median_of_the_seeds_and_each_seed_a_dot(tmp_path: Path, drawn: list[Axes]) -> None:
    candles.candles("one", [panel(2, 1)], tmp_path / "one.png")
    assert_drawn(tmp_path / "one.png")
    (axes,) = drawn
    assert {text.get_text() for text in axes.texts} == {"15"}
    dots = [line for line in axes.get_lines() if line.get_marker() == "o"]
    assert [list(line.get_ydata()) for line in dots] == [[14.0, 15.0, 99.0]] * 2
    assert axes.get_ylim()[1] > 99


def test_columns_share_their_axis_and_many_candles_have_no_numbers(tmp_path: Path, drawn: list[Axes]) -> None:
    candles.candles("grid", [panel(9, 3, name) for name in ("a", "b", "c", "d")], tmp_path / "grid.png", columns=2)
    assert_drawn(tmp_path / "grid.png")
    assert len(drawn) == 4
    assert not any(axes.texts for axes in drawn)
    assert drawn[0].get_shared_y_axes().joined(drawn[0], drawn[1])
    assert not drawn[0].get_shared_y_axes().joined(drawn[0], drawn[2])


def test_an_axis_that_panels_share_has_room_for_all(tmp_path: Path, drawn: list[Axes]) -> None:
    small = Candles("ping (ms)", ["g0"], ["s0"], [[np.linspace(1, 2, 11)]], [[[1.5]]])
    candles.candles("pair", [panel(1, 1), small], tmp_path / "pair.png", columns=2)
    low, high = drawn[0].get_ylim()
    assert low < 1
    assert high > 99


def test_goodput_is_linear_and_series_have_the_colours_of_the_paper(tmp_path: Path, drawn: list[Axes]) -> None:
    wide = Candles("goodput", ["g0"], ["2p", "3p"], [[np.linspace(1, 2, 9)], [np.linspace(900, 999, 9)]], [[[1.5]]] * 2)
    candles.candles("log", [replace(wide, styles=(2, 0))], tmp_path / "log.png")
    candles.candles("linear", [replace(wide, linear=True)], tmp_path / "linear.png")
    assert [axes.get_yscale() for axes in drawn] == ["log", "linear"]
    legend = drawn[0].get_legend()
    assert legend is not None
    boxes = [handle.get_facecolor() for handle in legend.get_patches()]
    assert [to_hex(box).lower() for box in boxes] == [GREEN.lower(), BLUE.lower()]
