# SPDX-License-Identifier: Apache-2.0
"""`tune` without guests: goals, conditions, and the race on figures that a formula gives."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hourglass import scenario
from hourglass.errors import InputError
from hourglass.studies.neighbourhood import Condition, conditions
from hourglass.studies.runs import SilentStudy
from hourglass.studies.store import Store
from hourglass.studies.tune_goals import read_figure, read_limit
from hourglass.studies.tuning import TunedSetting, TuneResult, _combined, _Race, tune

QDISCS = "stack.qdisc=pfifo_fast,fq,fq_codel,cake,codel,pie,sfq"
CCS = "stack.cc=cubic,bbr,reno"


class FormulaRace(_Race):
    """A race whose figures follow from the setting and the condition, without runs."""

    def run(self, settings: Sequence[TunedSetting], near: Sequence[Condition], seeds: Sequence[int]) -> None:
        for setting in settings:
            for number, condition in enumerate(near):
                self.keys |= {f"{setting.name}/{condition.name}/{seed}" for seed in seeds}
                delay, goodput = self.figures_of(setting, number)
                setting.values.setdefault("ping.icmp.p99", {})[condition.name] = [delay + seed / 10 for seed in seeds]
                setting.values.setdefault("goodput", {})[condition.name] = [goodput for _ in seeds]

    def figures_of(self, setting: TunedSetting, condition_number: int) -> tuple[float, float]:
        """Return delay and goodput: `codel` has the least delay but loses a tenth, `fq` is bad elsewhere."""
        qdisc = setting.changes.get("stack.qdisc", "pfifo_fast")
        delay = {
            "pfifo_fast": 300,
            "fq": 10 + 500 * condition_number,
            "fq_codel": 20,
            "cake": 12,
            "codel": 8,
            "pie": 40,
            "sfq": 90,
        }
        bbr = setting.changes.get("stack.cc") == "bbr"
        return delay[qdisc] * (0.5 if bbr else 1), (9.0 if qdisc == "codel" else 10.0) - (0.2 if bbr else 0)


def race(
    tmp_path: Path, *keep: str, over: Sequence[str] = (QDISCS, CCS), near: Sequence[str] = (), exhaustive: bool = False
) -> TuneResult:
    goal, base = read_figure("--minimise", "ping.icmp.p99", "less"), scenario.load("R10M")
    limits = tuple(map(read_limit, keep))
    formula = FormulaRace(base, goal, limits, conditions(base, near), Store(tmp_path, "records"), SilentStudy())
    return formula.result(formula.distinct(_combined(over)), (1, 2, 3), exhaustive)


def test_the_race_finds_the_choice_of_an_exhaustive_sweep_with_fewer_runs(tmp_path: Path) -> None:
    keep = "goodput >= 95% of best"
    raced, exhaustive = race(tmp_path, keep), race(tmp_path, keep, exhaustive=True)
    assert raced.chosen.changes == exhaustive.chosen.changes == {"stack.qdisc": "cake", "stack.cc": "bbr"}
    assert raced.runs < exhaustive.runs * 0.4


def test_the_choice_is_good_in_all_conditions_and_within_the_limits(tmp_path: Path) -> None:
    single = race(tmp_path, "goodput >= 95% of best", near=["none"])
    assert single.chosen.changes["stack.qdisc"] == "fq"
    assert race(tmp_path).chosen.changes["stack.qdisc"] == "codel"
    assert race(tmp_path, "goodput >= 99% of best").chosen.changes == {"stack.qdisc": "cake"}
    with pytest.raises(InputError, match="no setting meets this in all conditions; the best ping"):
        race(tmp_path, "ping.icmp.p99 < 1ms")


def test_the_margin_has_separate_seeds(tmp_path: Path) -> None:
    result = race(tmp_path, "goodput >= 99% of best")
    delay, goodput = result.margins
    assert (result.seeds, result.further_seeds) == ((1, 2, 3), (4, 5))
    assert (delay.default, delay.chosen, delay.interval) == (300.45, 12.45, (-288.0, -288.0))
    assert delay.is_certain
    assert not goodput.is_certain
    assert result.unmet == ()


def test_a_change_without_effect_is_no_change(tmp_path: Path) -> None:
    result = race(tmp_path, over=["stack.cc=cubic,reno", "stack.sysctl.net.ipv4.tcp_ecn=0,1"])
    assert [setting.name for setting in result.settings[:2]] == ["default", "stack.sysctl.net.ipv4.tcp_ecn=0"]
    assert len(result.settings) == 5
    assert result.chosen is result.default


def test_the_neighbours_are_other_rates_and_delays() -> None:
    listed = conditions(scenario.load("home"), [])
    assert [condition.name for condition in listed] == [
        "as it is", "rate 16mbit", "rate 25mbit", "delays times 0.5", "delays times 2",
    ]  # fmt: skip
    for condition in listed:
        scenario.load("home", list(condition.changes.items()))
    delays = conditions(scenario.load("R10M"), ["testbed.link.0.delay=5ms,40ms"])
    assert [condition.name for condition in delays] == [
        "as it is", "testbed.link.0.delay=5ms", "testbed.link.0.delay=40ms",
    ]  # fmt: skip
    assert not any("rate" in condition.name for condition in conditions(scenario.load("mobile"), []))
    assert len(conditions(scenario.load("R10M"), ["none"])) == 1


@pytest.mark.parametrize(
    ("limit", "value", "is_met"),
    [
        ("goodput >= 95% of best", 9.5, True),
        ("goodput >= 95% of best", 9.4, False),
        ("tcp_rtt.p50 <= 50% of default", 2.0, True),
        ("tcp_rtt.p50 <= 50% of default", 2.1, False),
        ("ping.icmp.p99 < 20ms", 19.0, True),
        ("ping.icmp.p99 < 20ms", 20.0, False),
    ],
)
def test_a_limit_is_absolute_or_relative(limit: str, value: float, is_met: bool) -> None:
    assert read_limit(limit).is_met(value, best=10.0, default=4.0) == is_met


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"minimise": "ping.icmp.p99", "maximise": "goodput"}, "needs a figure"),
        ({}, "needs a figure"),
        ({"minimise": "ping.icmp.p9"}, "unknown figure"),
        ({"minimise": "drain"}, "measure with parameters"),
        ({"minimise": "goodput", "keep": ["goodput"]}, "a limit like"),
        ({"minimise": "goodput", "keep": ["ping.icmp.p99 < 5mbit"]}, "does not fit"),
        ({"minimise": "goodput", "over": ["test.length=1..9", *[f"stack.sysctl.net.a{n}=1..9" for n in range(6)]]},
         "settings; at most 2000"),
    ],
)  # fmt: skip
def test_wrong_goals_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        tune("R10M", **{"over": ["stack.cc"], **arguments})
