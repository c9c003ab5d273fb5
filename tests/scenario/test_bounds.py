# SPDX-License-Identifier: Apache-2.0
"""`[check]`: read and checked with the scenario, stored with it, and nothing of what decides a run."""

import json

import pytest

from hourglass.campaign import cells, file
from hourglass.errors import InputError
from hourglass.scenario import load

BASE = {"testbed": {"preset": "L100M"}}


def test_names_may_be_quoted_or_not():
    quoted = load(BASE | {"check": {"ping.icmp.p99": "< 20ms", "totals.upload_mbps": ">=  90 mbit"}})
    tables = load(BASE | {"check": {"ping": {"icmp": {"p99": "< 20ms"}}, "totals": {"upload_mbps": ">= 90 mbit"}}})
    assert quoted == tables
    assert quoted.check == {"ping.icmp.p99": "< 20ms", "totals.upload_mbps": ">= 90 mbit"}
    assert load(quoted) == load(json.loads(quoted.to_json())) == quoted


def test_set_changes_a_bound_however_it_is_written():
    for table in ({"ping.icmp.p99": "< 20ms"}, {"ping": {"icmp": {"p99": "< 20ms"}}}):
        for change in ("check.ping.icmp.p99=< 5ms", 'check."ping.icmp.p99"=< 5ms', ("check.ping.icmp.p99", "< 5ms")):
            assert load(BASE | {"check": table}, [change]).check == {"ping.icmp.p99": "< 5ms"}


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"ping.icmp.p98": "< 20ms"}, "check.ping.icmp.p98 = '< 20ms': no figure's name. Did you mean \"p99\"?"),
        ({"ping": {"p99": "< 20"}}, "check.ping.p99 = '< 20': a unit is missing"),
        ({"ping.p99": 20}, "check.ping.p99 = 20: a bound like"),
        ([], "check = []: a table of figures and their bounds"),
    ],
)
def test_what_is_wrong_is_said_when_the_scenario_is_read(check, words):
    with pytest.raises(InputError) as caught:
        load(BASE | {"check": check})
    assert words in str(caught.value)


def test_bounds_decide_nothing_of_a_run():
    plain, bounded = load(BASE), load(BASE | {"check": {"ping.p99": "< 20ms"}})
    assert bounded.unchecked() == plain
    assert bounded.unchecked().to_json() == plain.to_json()
    assert b'"check":' not in plain.to_json()


def test_a_sweep_makes_no_run_again_for_another_bound():
    keys = []
    for check in ({}, {"ping.p99": "< 20ms"}, {"ping.p99": "< 30ms"}):
        grid = file.read({"scenario": BASE | {"check": check}, "axes": {"stack.tsq": ["off", "default"]}})
        keys.append([one.key for one in cells.cells(grid, cells.scenarios(grid), lambda *_: "engine")])
    assert keys[0] == keys[1] == keys[2]
