# SPDX-License-Identifier: Apache-2.0
"""Files of studies → assignments: cross product, zips, exclusions, ranges, seeds; and the messages of wrong files."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourglass.errors import InputError
from hourglass.studies.axes import expand, values
from studies.grids import grid_of

AXES = st.dictionaries(
    st.sampled_from(["a.b", "c", "d.e.f", "seed"]),
    st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True),
    min_size=1,
)


@given(AXES)
def test_the_cross_product_has_each_combination_once_the_first_axis_slowest(axes: dict[str, list[int]]) -> None:
    cells = expand(axes, [], [])
    assert len(cells) == math.prod(len(values) for values in axes.values())
    tuples = [tuple(cell.values()) for cell in cells]
    assert len(set(tuples)) == len(tuples)
    positions = [tuple(axes[key].index(cell[key]) for key in axes) for cell in cells]
    assert positions == sorted(positions)


@given(AXES, st.data())
def test_an_exclusion_removes_only_cells_that_match_all_of_it(axes: dict[str, Any], data: Any) -> None:
    keys = data.draw(st.lists(st.sampled_from(sorted(axes)), min_size=1, unique=True))
    rule = {key: data.draw(st.sampled_from(axes[key])) for key in keys}
    all_cells, remaining = expand(axes, [], []), expand(axes, [], [rule])
    assert remaining == [cell for cell in all_cells if any(cell[key] != rule[key] for key in rule)]
    assert len(all_cells) - len(remaining) == math.prod(len(axes[key]) for key in axes if key not in rule)


@given(AXES, st.lists(st.tuples(st.integers(), st.text()), min_size=1, max_size=5))
def test_zipped_keys_go_forward_together(axes: dict[str, Any], rows: list[tuple[int, str]]) -> None:
    numbers, words = map(list, zip(*rows, strict=True))
    cells = expand(axes, [{"x": numbers, "y": words}], [])
    assert len(cells) == len(expand(axes, [], [])) * len(rows)
    assert {(cell["x"], cell["y"]) for cell in cells} == set(rows)


@given(st.integers(-50, 50), st.integers(0, 60), st.integers(1, 9))
def test_a_range_is_python_s_with_the_end_included(first: int, span: int, step: int) -> None:
    assert values("k", {"from": first, "to": first + span, "step": step}) == [*range(first, first + span + 1, step)]


def test_ranges_are_exact_and_take_units() -> None:
    assert values("k", {"from": 0.1, "to": 0.5, "step": 0.1}) == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert values("k", {"from": 1, "to": 1000, "factor": 10, "unit": "ms"}) == ["1ms", "10ms", "100ms", "1000ms"]
    assert values("k", {"from": 0.5, "to": 2, "factor": 2, "unit": "ms"}) == ["0.5ms", "1ms", "2ms"]


def test_a_file_with_all_tables_is_a_grid() -> None:
    grid = grid_of(
        {
            "scenario": "L100M",
            "seeds": 2,
            "set": {"test": {"length": 5}},
            "axes": {"stack": {"tsq": ["off", "default"]}, "stack.cc": ["cubic", "bbr"]},
            "zip": [{"testbed.preset": ["L10M", "L100M"], "stack.qdisc": ["pfifo_fast", "pfifo_fast"]}],
            "exclude": [{"stack.tsq": "off", "stack.cc": ["bbr"]}],
            "labels": {"stack.tsq": {"off": "NoTSQ"}},
        },
    )
    assert grid.keys == ("stack.tsq", "stack.cc", "seed", "testbed.preset", "stack.qdisc")
    assert len(grid.cells) == (2 * 2 - 1) * 2 * 2
    assert grid.fixed == {"test.length": 5}
    assert grid.label("stack.tsq", "off") == "NoTSQ"
    assert grid.label("stack.tsq", "default") == "default"


GOOD = {"scenario": "L100M", "axes": {"stack.tsq": ["off", "default"]}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"axis": {}}, 'axis = {}: unknown key. Did you mean "axes"?'),
        ({"axes": {}}, "a study needs an axis"),
        ({"axes": {"seed": []}}, "axes.seed = []: has no value"),
        ({"axes": {"seed": 3}}, "axes.seed = 3: must be a list of values, or a range"),
        ({"axes": {"seed": [1, 1]}}, "contains a value twice"),
        ({"axes": {"seed": {"from": 3, "to": 1}}}, "axes.seed.to = 1: must be at least `from`"),
        ({"axes": {"seed": {"from": 1, "to": 2, "stop": 1}}}, "axes.seed.stop = 1: unknown key. Keys of a range"),
        ({"axes": {"seed": {"from": 1, "to": 9, "step": 0}}}, "axes.seed.step = 0: must be above 0"),
        (
            {"axes": {"seed": {"from": 0, "to": 9, "factor": 2}}},
            "axes.seed.factor = 2: must be above 1, and `from` above 0",
        ),
        ({"axes": {"seed": {"from": 1, "to": 10**9}}}, "has more than 10000 values"),
        ({"axes": {k: {"from": 1, "to": 1000} for k in "ab"}}, "axes = 1000000: a study has at most 100000 runs"),
        ({"axes": {"seed": [1]}, "seeds": 2}, "seeds = [1, 2]: seed is an axis already"),
        ({"seeds": 0}, "seeds.range = 0: must be a number of seeds from 1 to 1000"),
        ({"scenario": None}, "scenario = none: is missing"),
        ({"set": {"stack.tsq": "off"}}, "set.stack.tsq = 'off': is an axis too"),
        (
            {"zip": [{"a": [1, 2], "b": [1]}]},
            "zip.0 = {'a': [1, 2], 'b': [1]}: these lists have different lengths: 2 of a, 1 of b",
        ),
        ({"zip": [{"stack.tsq": [1]}]}, "zip.0.stack.tsq = [1]: is an axis already"),
        ({"exclude": [{"stack.cc": "bbr"}]}, "exclude.0.stack.cc = 'bbr': is not an axis. "),
        ({"exclude": [{"stack.tsq": "of"}]}, "exclude.0.stack.tsq = 'of': is not a value of this axis: off, default"),
        ({"exclude": [{"stack.tsq": ["off", "default"]}]}, "leaves nothing to run"),
        ({"labels": {"stack.cc": {}}}, "labels.stack.cc = {}: is not an axis"),
        (
            {"labels": {"stack.tsq": {"of": "Off"}}},
            "labels.stack.tsq = 'Off': 'of' is not a value of this axis. Did you mean \"off\"? Values: off, default",
        ),
        ({"name": "../x"}, "name = '../x': must be text that can name a folder"),
    ],
)
def test_a_wrong_file_is_one_line(change: dict[str, Any], message: str) -> None:
    data = {key: value for key, value in (GOOD | change).items() if value is not None}
    with pytest.raises(InputError) as caught:
        grid_of(data)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
