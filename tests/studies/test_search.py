# SPDX-License-Identifier: Apache-2.0
"""The search with an objective that is a formula, and its parts: expressions, open places, shrinking."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hourglass import scenario
from hourglass.errors import InputError
from hourglass.results.capacity import capacity_mbps
from hourglass.results.recording import Recording
from hourglass.results.run_directory import open_run
from hourglass.results.series import NS_PER_S, Window
from hourglass.studies import search as searches
from hourglass.studies.evaluate import CRASHED, Evaluator, Trial
from hourglass.studies.expression import parse
from hourglass.studies.findings import MOST_FACTOR, Finding, shortfall
from hourglass.studies.shrink import shrunk
from hourglass.studies.space import parse as space
from tests.results import synthetic
from tests.results.synthetic import Flow, Recipe

MBPS = 125_000
"""Bytes per second of 1 Mbit/s."""
PAIR = {
    "name": "pair",
    "testbed": {
        "node": [{"name": "client"}, {"name": "server"}],
        "link": [{"ends": ["client:eth0", "server:eth0"], "rate": "10mbit"}],
    },
    "stack": {"cc": "bbr"},
    "test": {"name": "tcp_upload", "length": 2, "delay": 0.5},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Return a run of two flows with 6 and 2 Mbit/s."""
    flows = [Flow(name, bytes_at=lambda t, mbps=mbps: round(MBPS * mbps * t)) for name, mbps in (("a", 6), ("b", 2))]
    path = tmp_path_factory.mktemp("run") / "run"
    synthetic.make(path, Recipe(flows=flows))
    return open_run(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("goodput", 8), ("goodput[2:4] * 2 - 1", 15), ("-jain", -0.8), ("sum(flows.goodput_mbps) / 4", 2),
        ("min(flows.goodput_mbps) / max(flows.goodput_mbps, 1)", 1 / 3), ('"flows.a.goodput_mbps"', 6),
        ("goodput[3:99]", None), ("goodput / (1 - 1)", None),
    ],
)  # fmt: skip
def test_an_expression_has_the_value_of_a_run(run: Recording, text: str, value: float | None) -> None:
    assert parse(text).value(run) == (None if value is None else pytest.approx(value, rel=1e-3))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("goodput /", "like goodput / capacity"), ("goodputt", 'Did you mean "goodput"'), ("ping.icmp.p98", "ping"),
        ("__import__('os')", "must be figures"), ("goodput ** 9", "must be figures"), ("x if y else z", "must be"),
        ("dropped[1:2]", "has no window"), ("goodput[1]", "must be figures"), ("goodput[a:]", "must be seconds"),
        ("True", "must be a number"), ("(" * 999, "like goodput"), ("utilisation", "the name utilisation"),
    ],
)  # fmt: skip
def test_a_wrong_expression_is_one_line(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=r"^--worst = ") as error:
        parse(text, "--worst")
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_a_name_that_matches_several_figures_needs_a_function(run: Recording) -> None:
    with pytest.raises(InputError, match=r"matches 2 figures; .*min\(flows.goodput_mbps\)"):
        parse("flows.goodput_mbps").value(run)


def test_the_capacity_follows_traces_outages_and_events() -> None:
    """The slowest hop counts at each time: 10 Mbit/s, a trace of 4, 1 s of outage, an event to 2 Mbit/s."""
    link: dict[str, Any] = {"ends": ["client:eth0", "server:eth0"], "rate": "10mbit"}
    payload = 1448 / 1538
    for changes, event, window, mbps in (
        ({}, None, (0, 10), 10), ({"trace": [[5, "4mbit"]]}, None, (0, 10), 7),
        ({"outage": [[2, 3]]}, None, (0, 4), 7.5),
        ({}, {"at": 5, "node": "client", "device": "eth0", "set": {"rate": "2mbit"}}, (0, 10), 6),
        ({"shaper": {"forward": {"rate": "1mbit", "limit": "9KB"}}}, None, (0, 10), 1538 / 1514),
    ):  # fmt: skip
        data = {**PAIR, "testbed": {**PAIR["testbed"], "link": [link | changes]}, "event": [event] if event else []}
        run = _Planned(scenario.load(data, {"test.length": 20}))
        value = capacity_mbps(run, run.flows, Window(window[0] * NS_PER_S, window[1] * NS_PER_S))
        assert value == pytest.approx(mbps * payload, rel=1e-3)


class _Planned:
    """The part of a recording that follows from its scenario."""

    def __init__(self, loaded: scenario.Scenario) -> None:
        from hourglass import runner

        plan = runner.planned(loaded, "virtual")
        self.scenario, self.paths = loaded, plan.paths
        self.flows = [_Flow(stream.client, stream.server) for stream in plan.streams if stream.kind == "flow"]


class _Flow:
    upload = True

    def __init__(self, client: str, server: str) -> None:
        self.client, self.server = client, server


def point(searched: Any, share: float, later: float | None = None) -> dict[str, float]:
    """Return the point at a share of all ranges, with the last alternatives. `later`: the share of later pieces."""
    pieces = {} if later is None else {place.name: later for place in searched.places if "@1" in place.name}
    return {place.name: place.choices - 1 if place.choices else share for place in searched.places} | pieces


def test_open_places_become_keys() -> None:
    base = scenario.load(PAIR)
    searched = space(
        ["testbed.link.0.rate=100kbit..10mbit every 1s", 'testbed.link.0.loss=["0%..2%", "0%"] every 500ms',
         "stack.qdisc=fq,pfifo limit 10..1000", 'test.stream_delays=["0.0..1.0"]',
         "stack.sysctl.net.ipv4.tcp_ecn=0,1", 'test.markings=["CS0|CS1"]'],
        base,
    )  # fmt: skip
    assert dict(searched.changes(point(searched, 0.5))) == {
        "testbed.link.0.rate": "1mbit", "testbed.link.0.loss": ["1%", "0%"], "stack.qdisc": "pfifo limit 100",
        "test.stream_delays": [0.5], "stack.sysctl.net.ipv4.tcp_ecn": 1, "test.markings": ["CS1"],
    }  # fmt: skip
    changes = searched.changes(point(searched, 0.5, later=1))
    (event,) = dict(changes)["event"]
    assert event == {
        "at": 1.5, "node": "client", "device": "eth0", "set": {"rate": "10mbit", "loss": ["2%", "0%"]}
    }  # fmt: skip
    scenario.load(PAIR, changes)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("stack.tcp", "needs values"), ("stack.cc=bbr", "has one value only"),
        ("testbed.link.0.rate=1mbit..5ms", "units of one kind"),
        ("testbed.link.0.rate=5mbit..1mbit", "lower to a higher"),
        ("test.stream_delays=[0..5]", "in quotes"), ("stack.qdisc=fq,cake every 1s", "every is for"),
        ("testbed.link.0.rate=1mbit..2mbit every x", "needs a time"),
        ("testbed.link.0.rate=1mbit..2mbit every 1ms", "more than 200 pieces"),
        ("testbed.link.7.rate=1mbit..2mbit every 1s", "links 0 to 0"),
    ],
)  # fmt: skip
def test_a_wrong_condition_is_one_line(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=r"^--over = ") as error:
        space([text], scenario.load(PAIR))
    assert problem in str(error.value)


def test_shrinking_leaves_the_same_keys_for_any_number_of_attempts_at_once() -> None:
    data = {
        "name": "7.31", "event": [{"at": number / 7, "what": number} for number in range(16)], "rate": "37.3mbit",
        "table": {"a": 1, "b": [1, 2, 3]},
    }  # fmt: skip

    def holds(candidates: Sequence[dict[str, Any]]) -> list[bool]:
        return [
            any(event.get("what") == 11 for event in table.get("event", [])) and float(table["rate"][:-4]) > 30
            if "rate" in table
            else False
            for table in candidates
        ]

    results = [shrunk(data, holds, fixed=("name",), at_once=number) for number in (1, 3)]
    assert results == [{"name": "7.31", "event": [{"what": 11}], "rate": "40mbit"}] * 2


@pytest.mark.parametrize(
    ("value", "best", "times"),
    [(0.2, 0.8, 4), (0.8, 0.2, 1), (-400, -100, 4), (0, 1, MOST_FACTOR), (None, 1, 1), (CRASHED, -5, MOST_FACTOR)],
)
def test_a_shortfall_is_how_many_times_worse(value: float | None, best: float, times: float) -> None:
    assert shortfall(value, best) == pytest.approx(times)


Objective = Callable[[Trial], float | None]


def milliseconds(text: str) -> float:
    """Return a delay of a scenario."""
    return float(text[:-2]) / (1000 if text.endswith("us") else 1)


def stalls(trial: Trial) -> float:
    """BBR has little above 30 ms with a plain queue; above 90 ms nobody has much."""
    link = trial.table["testbed"]["link"][0]
    delay = milliseconds(link.get("delay", "0ms"))
    plain = str(trial.table.get("stack", {}).get("qdisc", "")).startswith("pfifo limit")
    if delay > 90:
        return 0.01
    return 0.1 if trial.control == "bbr" and delay > 30 and plain else 0.9 - delay / 1000


@pytest.fixture
def searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[Finding], int]]:
    """Return a function that searches with a formula instead of runs, and the number of evaluations."""

    def search(objective: Objective = stalls, **options: Any) -> tuple[list[Finding], int]:
        evaluated: list[Trial] = []

        def values(self: Evaluator, trials: Sequence[Trial]) -> list[float | None]:
            evaluated.extend(trials)
            return [objective(trial) for trial in trials]

        monkeypatch.setattr(Evaluator, "values", values)
        monkeypatch.setattr(Evaluator, "recording", lambda self, trial: None)
        monkeypatch.setattr(Evaluator, "cell", lambda self, trial: scenario.load(trial.table))
        monkeypatch.setattr(searches, "write", lambda *_: None)
        over = ["testbed.link.0.delay=1ms..150ms", "stack.qdisc=fq,cake,pfifo limit 10..999", "test.ping_interval=1,2"]
        arguments = {"tries": 48, "out": tmp_path} | options
        return list(searches.search(PAIR, "goodput / capacity", over, **arguments).findings), len(evaluated)

    return search


def test_a_finding_is_shrunk_and_judged(searched: Any) -> None:
    pytest.importorskip("optuna")
    findings, evaluated = searched()
    (finding,) = findings
    assert finding.stands
    assert (finding.judgements[0].value, finding.judgements[0].rival) == (0.1, "cubic")
    assert set(finding.table["test"]) == {"length", "delay"}  # the ping's interval does not matter
    assert str(finding.table["stack"]["qdisc"]).startswith("pfifo limit")
    assert 30 < milliseconds(finding.table["testbed"]["link"][0]["delay"]) <= 90
    assert finding.lines <= 20
    assert evaluated < 48 * 3 + 2 * 80


def test_equal_seeds_give_equal_findings_for_any_number_of_jobs(searched: Any) -> None:
    pytest.importorskip("optuna")
    tables = [[finding.table for finding in searched(jobs=jobs)[0]] for jobs in (1, 3)]
    assert tables[0] == tables[1] != []


def test_a_condition_in_which_nobody_does_well_is_no_finding(searched: Any) -> None:
    pytest.importorskip("optuna")
    assert searched(lambda trial: 0.01 if "cake" in str(trial.table) else 0.9)[0] == []


def test_a_finding_of_one_seed_does_not_stand(searched: Any) -> None:
    pytest.importorskip("optuna")
    findings, _ = searched(lambda trial: 0.1 if trial.control == "bbr" and trial.seed == 1 else 0.9, tries=8)
    assert [(finding.held, finding.stands) for finding in findings] == [(0, False)]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"rivals": "stack.cc=bbr"}, "needs another value than bbr"), ({"rivals": "stack.cc"}, "must be KEY=A,B"),
        ({"rivals": "stack.client.cc=cubic|bbr"}, "has no value in this scenario"), ({"factor": 1}, "above 1"),
        ({"overrides": {"test.flow_cc": ["bbr"]}}, "decides no flow"), ({"tries": 0}, "at least 1"),
    ],
)  # fmt: skip
def test_a_wrong_question_is_one_line(searched: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as error:
        searched(**options)
    assert problem in str(error.value)
