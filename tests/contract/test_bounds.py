# SPDX-License-Identifier: Apache-2.0
"""Bounds and names of figures: valid ones, and the errors of invalid ones."""

from itertools import pairwise

import pytest

from hourglass.contract import names
from hourglass.contract.bounds import parse, read
from hourglass.errors import InputError

BOUNDS = [  # bound, unit, values that meet it, values that miss it
    ("ping.icmp.p99 < 20ms", "ms", [0, 19.9999], [20, 20.0001, 1e9]),
    ("ping.icmp.p99<=20 ms", "ms", [20], [20.0001]),
    ("ping.p99 > 1.5us", "ms", [0.00151], [0.0015]),
    ("flows.upload::1.hystart_exit_s >= 100ms", "s", [0.1], [0.0999]),
    ("totals.upload_mbps >= 90mbit", "Mbit/s", [90, 1000], [89.9999]),
    ("totals.upload_mbps 0.9 Gbit/s..1Gbit", "Mbit/s", [900, 1000], [899.9, 1000.1]),
    ("ping.udp BE.p50 10..20 ms", "ms", [10, 20], [9.99, 20.01]),
    ("drops.router.eth0.qdisc == 0", "packets", [0], [1]),
    ("ping.p50 < 0", "ms", [-1], [0]),
    ("ping.lost <= 3 packets", "packets", [3], [4]),
    ("wifi.ap.wlan0.air_percent < 40%", "%", [39.9], [40]),
    ("layers.router.qdisc.share < 50%", "", [0.49], [0.5]),
    ("totals.fairness 0.95..1", "", [0.95, 1.0], [0.94]),
    ("transactions.rate_per_s > 1e3", "1/s", [1000.1], [1000]),
    ("tcp_rtt.p99 == 0.3ms", "ms", [0.3], [0.30000000000000004]),
]


@pytest.mark.parametrize(("text", "unit", "met", "missed"), BOUNDS)
def test_a_bound_holds_up_to_its_limit_and_no_further(text, unit, met, missed):
    bound = read(text)
    assert bound.unit == unit
    assert [bound.holds(value) for value in met] == [True] * len(met)
    assert [bound.holds(value) for value in missed] == [False] * len(missed)


@pytest.mark.parametrize("text", [text for text, *_ in BOUNDS])
def test_an_unknown_value_meets_no_bound(text):
    assert not any(read(text).holds(value) for value in (None, float("nan"), float("inf"), float("-inf")))


@pytest.mark.parametrize("text", [text for text, *_ in BOUNDS])
def test_a_bound_reads_as_it_is_written(text):
    bound = read(text)
    assert read(str(bound)) == bound == parse(bound.name, bound.text)


REFUSED = [
    ("ping.icmp.p98 < 20ms", 'Did you mean "p99"?'),
    ("pings.icmp.p99 < 20ms", 'Did you mean "ping"?'),
    ("upload_mbps > 1mbit", 'Did you mean "totals.upload_mbps"?'),
    ("totals.upload > 1mbit", 'Did you mean "upload_mbps"?'),
    ("ping < 20ms", "end in one of lost, n, min"),
    ("seed == 1", "unknown figure"),
    ("ping.p99 < 20", "a unit is missing: the figure is in ms. Units: ns, us, ms, s"),
    ("ping.p99 < 20mbit", "'mbit' does not fit: the figure is in ms"),
    ("ping.p99 < 20msec", 'Did you mean "ms"?'),
    ("totals.fairness > 90%", "the figure has no unit"),
    ("drops.qdisc < 3ms", "the figure is in packets. Units: packets, or none"),
    ("ping.p99 <", 'a bound like "< 20ms"'),
    ("ping.p99 < NaN ms", 'a bound like "< 20ms"'),
    ("ping.p99 20ms..10ms", "from the lower to the higher end"),
    ("ping.p99 20ms", "must be a figure and its bound"),
    ("< 20ms", "must be a figure and its bound"),
    ("", "must be a figure and its bound"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_a_refused_bound_has_a_reason_and_a_suggestion(text, message):
    with pytest.raises(InputError) as caught:
        read(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [20, None, True, ["< 3ms"], {"<": 3}])
def test_a_bound_is_text(text):
    with pytest.raises(InputError, match="a bound like"):
        parse("ping.p99", text)


def test_every_possible_figure_has_a_name_with_all_keys_and_with_none():
    for template in names.templates():
        spelled = [word for word, after in pairwise([*template.path, ""])]
        bare = [word for word, key in zip(template.path, template.keys, strict=True) if not key]
        for parts in (spelled, bare):
            named = [*(names.plain(word) for word in parts[:-1]), parts[-1]]
            assert names.covers(named, template.path, template.keys), named
