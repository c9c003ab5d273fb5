# SPDX-License-Identifier: Apache-2.0
"""`[check]`: read, checked and stored with the scenario, without an effect on a run."""

import json

import pytest
from studies.grids import grid_of

from hourglass.errors import InputError
from hourglass.scenario import load
from hourglass.studies import cells

BASE = {"testbed": {"preset": "L100M"}}


def test_names_may_be_quoted_or_not():
    quoted = load(BASE | {"check": {"ping.icmp.p99": "< 20ms", "totals.upload_mbps": ">=  90 mbit"}})
    tables = load(BASE | {"check": {"ping": {"icmp": {"p99": "< 20ms"}}, "totals": {"upload_mbps": ">= 90 mbit"}}})
    assert quoted == tables
    assert quoted.check == {"ping.icmp.p99": "< 20ms", "totals.upload_mbps": ">= 90 mbit"}
    assert load(quoted) == load(json.loads(quoted.to_json())) == quoted


def test_set_changes_a_bound_in_any_form():
    for table in ({"ping.icmp.p99": "< 20ms"}, {"ping": {"icmp": {"p99": "< 20ms"}}}):
        for change in ("check.ping.icmp.p99=< 5ms", 'check."ping.icmp.p99"=< 5ms', ("check.ping.icmp.p99", "< 5ms")):
            assert load(BASE | {"check": table}, [change]).check == {"ping.icmp.p99": "< 5ms"}


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"ping.icmp.p98": "< 20ms"}, "check.ping.icmp.p98 = '< 20ms': unknown figure. Did you mean \"p99\"?"),
        ({"ping": {"p99": "< 20"}}, "check.ping.p99 = '< 20': a unit is missing"),
        ({"ping.p99": 20}, "check.ping.p99 = 20: a bound like"),
        ([], "check = []: must be a table of figures and their bounds"),
    ],
)
def test_a_mistake_is_reported_when_the_scenario_is_read(check, message):
    with pytest.raises(InputError) as caught:
        load(BASE | {"check": check})
    assert message in str(caught.value)


def test_bounds_do_not_change_a_run():
    plain, bounded = load(BASE), load(BASE | {"check": {"ping.p99": "< 20ms"}})
    assert bounded.unchecked() == plain
    assert bounded.unchecked().to_json() == plain.to_json()
    assert b'"check":' not in plain.to_json()


def test_a_sweep_repeats_no_run_for_another_bound():
    keys = []
    for check in ({}, {"ping.p99": "< 20ms"}, {"ping.p99": "< 30ms"}):
        grid = grid_of({"scenario": BASE | {"check": check}, "axes": {"stack.tsq": ["off", "default"]}})
        listed = cells.cells(grid, cells.scenarios(grid), "virtual", lambda *_: "engine")
        keys.append([cell.key for cell in listed])
    assert keys[0] == keys[1] == keys[2]
