# SPDX-License-Identifier: Apache-2.0
"""`--over`: keys with lists, ranges and defaults."""

import pytest

from hourglass import scenario
from hourglass.errors import InputError
from hourglass.studies.over import DEFAULTS, OverChoice, OverRange, read_over


def test_values_are_those_of_set() -> None:
    (key,) = read_over(["stack.sysctl.net.ipv4.tcp_ecn=0,1"])
    assert key == OverChoice("stack.sysctl.net.ipv4.tcp_ecn", (0, 1))
    (key,) = read_over(['testbed.link.0.loss=0.1%,{ model = "gilbert-elliott", rate = "0.1%", burst = 5 }'])
    assert key.values_of(9) == ("0.1%", {"model": "gilbert-elliott", "rate": "0.1%", "burst": 5})


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("a.b=10ms..1s", ("10ms", "31600us", "100ms", "316ms", "1s")),
        ("a.b=1..100mbit", ("1mbit", "3160kbit", "10mbit", "31600kbit", "100mbit")),
        ("a.b=0%..5%", ("0%", "1.25%", "2.5%", "3.75%", "5%")),
        ("a.b=1..4", (1, 2, 3, 4)),
        ("a.b=0.5..8", (0.5, 1.0, 2.0, 4.0, 8.0)),
    ],
)
def test_a_range_has_both_ends(word: str, values: tuple[object, ...]) -> None:
    (key,) = read_over([word])
    assert isinstance(key, OverRange)
    assert key.values_of(5) == values
    assert (key.at(0), key.at(1)) == (values[0], values[-1])


def test_a_known_key_has_default_values() -> None:
    keys = read_over(["stack.qdisc,stack.tsq", "testbed.link.1.delay", "stack.router.device.eth1.qdisc"])
    assert [key.key for key in keys] == [
        "stack.qdisc", "stack.tsq", "testbed.link.1.delay", "stack.router.device.eth1.qdisc",
    ]  # fmt: skip
    assert keys[0].values_of(5) == keys[3].values_of(5) == ("pfifo_fast", "fq", "fq_codel", "cake")


@pytest.mark.parametrize("key", DEFAULTS)
def test_a_scenario_takes_all_defaults(key: str) -> None:
    placed = key.replace("testbed.link", "testbed.link.0").replace("testbed.shaper", "testbed.shaper.0")
    for value in read_over([placed])[0].values_of(5):
        scenario.load("R10M" if ".shaper" in key else "L100M", [(placed, value)])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "needs a key"),
        (["stack.tsqq"], "Did you mean"),
        (["stack.cc=cubic", "stack.cc=reno"], "occurs twice"),
        (["stack.cc=cubic,cubic"], "contains a value twice"),
        (["stack.cc=cubic,,reno"], "must be KEY=A,B"),
        (["stack.tsq,stack.cc=cubic,reno"], "with and without values"),
        (["stack.cc="], "must be KEY=A,B"),
        (["a.b=10ms..5ms"], "from a lower to a higher"),
        (["a.b=10ms..5mbit"], "units of one kind"),
    ],
)
def test_invalid_keys_and_values_are_refused(words: list[str], text: str) -> None:
    with pytest.raises(InputError, match=text):
        read_over(words)
