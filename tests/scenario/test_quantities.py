# SPDX-License-Identifier: Apache-2.0
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hourglass.scenario.quantities import RATE, SHARE, SIZE, TIME, Bounds, QuantityKind, parse_seconds, seconds_ns, show
from hourglass.scenario.testbed import LINE_RATE, SHARES

ANY_TIME = Bounds(TIME, 0, 10**13)
ANY_SIZE = Bounds(SIZE, 0, 2**40)


@pytest.mark.parametrize(
    ("bounds", "text", "number"),
    [
        (LINE_RATE, "100mbit", 100_000_000),
        (LINE_RATE, "2.5gbit", 2_500_000_000),
        (LINE_RATE, 1500, 1500),
        (LINE_RATE, "1tbit", 10**12),
        (ANY_TIME, "10ms", 10_000_000),
        (ANY_TIME, "3us", 3000),
        (ANY_TIME, "1ns", 1),
        (ANY_TIME, "0.5s", 500_000_000),
        (ANY_TIME, 0, 0),
        (ANY_SIZE, "64KiB", 65536),
        (ANY_SIZE, "128KB", 128_000),
        (ANY_SIZE, "1500B", 1500),
        (SHARES, "0.1%", 1_000_000),
        (SHARES, "0.0000001%", 1),
        (SHARES, "100%", 10**9),
    ],
)
def test_quantities_are_exact(bounds: Bounds, text: object, number: int) -> None:
    assert bounds.parse(text) == number


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        (LINE_RATE, "100 mbit"), (LINE_RATE, "100Mbit"), (LINE_RATE, "0.5bit"), (LINE_RATE, "0bit"),
        (LINE_RATE, "2tbit"),
        (LINE_RATE, "1e3bit"), (LINE_RATE, "-1mbit"), (LINE_RATE, "mbit"), (LINE_RATE, True), (LINE_RATE, 1.0),
        (LINE_RATE, "\u0661mbit"), (LINE_RATE, "1mbit\n"), (LINE_RATE, float("nan")), (LINE_RATE, None),
        (ANY_TIME, "0.5ns"), (ANY_TIME, 10), (ANY_TIME, "10"), (ANY_TIME, "1m"), (ANY_TIME, "9" * 5000 + "s"),
        (ANY_SIZE, "64kib"), (ANY_SIZE, 64), (SHARES, "101%"), (SHARES, "0.00000001%"), (SHARES, 0.1),
    ],
)  # fmt: skip
def test_other_texts_are_refused_with_an_example(bounds: Bounds, text: object) -> None:
    with pytest.raises(ValueError, match=f"{bounds.quantity.name} like {bounds.quantity.example}"):
        bounds.parse(text)


@pytest.mark.parametrize("quantity", [RATE, TIME, SIZE, SHARE], ids=lambda quantity: quantity.name)
@given(number=st.integers(0, 10**12))
def test_a_printed_quantity_parses_to_the_same_value(number: int, quantity: QuantityKind) -> None:
    assert Bounds(quantity, 0, 10**12).parse(show(number, quantity)) == number


@given(st.integers(0, 10**14))
def test_seconds_keep_their_nanoseconds(ns: int) -> None:
    seconds = parse_seconds(ns / 10**9, Fraction(0), Fraction(10**6))
    assert seconds_ns(seconds) == ns


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, 1e300, "x", True, None, 10**400, 1e-10, [1]])
def test_invalid_seconds_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="a number of seconds, from 0 to 100"):
        parse_seconds(value, Fraction(0), Fraction(100))
