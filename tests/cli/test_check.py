# SPDX-License-Identifier: Apache-2.0
"""`hourglass check`: existing and new runs, verdicts, exit statuses, JSON and JUnit XML."""

import json
from xml.etree import ElementTree as xml

import pytest
from results.synthetic import Probe, Recipe, make

import hourglass
from hourglass.errors import GuestError
from hourglass.studies import junit


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def test_a_run_is_checked_against_the_bounds(call, tmp_path):
    make(tmp_path / "one")
    status, out, err = call("check", "one", "--bound", "ping.icmp.p99 < 20ms", "--bound", "totals.upload_mbps > 9mbit")
    assert (status, err) == (1, "")
    lines = [line.split() for line in out.splitlines()]
    assert ["ok", "ping.icmp.p99", "<", "20ms", "1", "ms"] in lines
    assert ["missed", "totals.upload_mbps", ">", "9mbit", "8", "Mbit/s"] in lines
    assert lines[-1] == ["1", "of", "2", "bounds", "missed"]
    assert call("check", "one", "--bound", "ping.icmp.p99 < 20ms")[::2] == (0, "")


def test_the_verdict_comes_before_unknown_figures(call, tmp_path):
    make(tmp_path / "one", Recipe(probes=[Probe("icmp", lambda seq: None)]))
    bounds = [
        "ping.icmp.p99 < 20ms",
        "ping.icmp.p99 > 1us",
        "drops.x.eth0.qdisc == 0",
        "totals.upload_mbps > 1mbit",
    ]
    _, out, _ = call("check", "one", *(word for bound in bounds for word in ("--bound", bound)))
    verdicts = [line.split()[0] for line in out.splitlines() if line.startswith(("ok", "missed", "verdict"))]
    assert verdicts == ["verdict", "missed", "missed", "missed", "ok"]
    assert "\nping.icmp.p99  reason: unknown: no samples" in out
    assert "\ndrops.x.eth0.qdisc  reason: this run lacks this figure" in out
    assert max(map(len, out.splitlines()[2:9])) <= 80


def test_a_scenario_runs_once_and_its_bounds_are_checked_first(call, engine):
    engine.recipe.checks = {"ping.icmp.p99": "< 20ms"}
    status, out, _ = call("check", "synthetic", "--bound", "ping.icmp.p50 < 1us", "--json")
    answer = json.loads(out)
    (run,) = answer["runs"]
    assert (status, answer["ok"], engine.runs) == (1, False, 1)
    assert [(check["figure"], check["ok"]) for check in run["checks"]] == [
        ("ping.icmp.p99", True),
        ("ping.icmp.p50", False),
    ]
    engine.recipe.checks = {"ping.icmp.p99": "< 1us"}
    status, out, _ = call("check", "synthetic", "--json")
    (second_run,) = json.loads(out)["runs"]
    assert (status, engine.runs, second_run["run"]) == (1, 1, run["run"])
    assert hourglass.load(run["run"]).summary.checks[0].bound == "< 1us"
    assert call("check", run["run"])[0] == 1


def test_another_seed_is_another_run(call, engine):
    for seed in (1, 2, 1):
        assert call("check", "synthetic", "--seed", seed, "--bound", "ping.p99 < 1s")[0] == 0
    assert engine.runs == 2


def test_run_exits_with_1_when_its_own_bound_is_missed(call, engine):
    engine.recipe.checks = {"ping.icmp.p99": "< 20ms", "ping.icmp.p50": "< 1us"}
    status, out, err = call("run", "synthetic", "--no-picture", "--out", "out")
    verdicts = {line.split()[1]: line.split()[0] for line in out.splitlines() if " ping.icmp." in line}
    assert (status, verdicts) == (1, {"ping.icmp.p99": "ok", "ping.icmp.p50": "missed"})
    assert "error" not in err
    del engine.recipe.checks["ping.icmp.p50"]
    assert call("run", "synthetic", "--no-picture", "--out", "out", "--json")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one"], "has no bound: no [check], no program, and no --bound"),
        (["one", "--bound", "ping.icmp.p98 < 3ms"], 'Did you mean "p99"?'),
        (["one", "--bound", "ping.icmp.p99 < 3ms", "--seed", "3"], "is a finished run"),
        (["one", "--bound", "ping.icmp.p99 < 3ms", "--set", "stack.cc=bbr"], "is a finished run"),
        (["two", "--bound", "ping.icmp.p99 < 3ms"], "no such file, and no built-in scenario of this name"),
    ],
)
def test_invalid_input_is_refused(call, tmp_path, arguments, message):
    make(tmp_path / "one")
    status, out, err = call("check", *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_failed_run_is_an_error_and_the_others_have_verdicts(call, engine, tmp_path):
    make(tmp_path / "one")

    def fail(directory):
        raise GuestError("the kernel panicked")

    engine.fail = fail
    status, out, err = call("check", "synthetic", "one", "--bound", "ping.p99 < 1s", "--junit", "deep/file.xml")
    assert status == 3
    assert "1 bound met; 1 run failed" in out
    assert "hourglass: error: synthetic: the kernel panicked" in err
    suites = xml.parse("deep/file.xml").getroot()
    assert (suites.get("tests"), suites.get("errors"), suites.get("failures")) == ("2", "1", "0")
    assert suites.find("testsuite/testcase/error").get("type") == "guest"


FORM = {  # Jenkins' junit-10.xsd: element → required attributes, further attributes, children
    "testsuites": ({}, {"name", "time", "tests", "failures", "errors", "disabled"}, {"testsuite"}),
    "testsuite": (
        {"name"},
        {"tests", "failures", "errors", "time", "skipped", "group", "timestamp", "hostname", "id", "package", "file"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": ({}, set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": (
        {"name", "classname"},
        {"time", "group", "status", "assertions"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": ({}, {"type", "message"}, set()),
    "error": ({}, {"type", "message"}, set()),
}


def check_form(element):
    required, further, children = FORM[element.tag]
    assert set(required) <= set(element.attrib) <= set(required) | further, element.tag
    assert {child.tag for child in element} <= children
    for child in element:
        check_form(child)


def test_junit_has_the_form_that_ci_reads(tmp_path):
    run = make(tmp_path / "one")
    other = make(tmp_path / "two", Recipe(probes=[Probe("icmp", lambda seq: None)]))
    verdicts = hourglass.check(run, other, bounds={"ping.icmp.p99": "< 20ms", "totals.upload_mbps": "> 9mbit"})
    root = xml.fromstring(junit.document(verdicts))
    check_form(root)
    assert [dict(suite.attrib)["failures"] for suite in root] == ["1", "2"]
    for suite in (root, *root):
        counts = [len(suite.findall(f".//{tag}")) for tag in ("testcase", "failure", "error")]
        assert counts == [int(suite.get(name)) for name in ("tests", "failures", "errors")]
    messages = [failure.get("message") for failure in root.iter("failure")]
    assert messages[0] == "totals.upload_mbps: 8 Mbit/s, not > 9mbit"
    assert messages[1] == "ping.icmp.p99: unknown: no samples, 51 lost"


def test_a_junit_file_that_cannot_be_written_is_one_line(call, tmp_path):
    make(tmp_path / "one")
    (tmp_path / "file").touch()
    status, _, err = call("check", "one", "--bound", "ping.p99 < 1s", "--junit", "file/a.xml")
    assert status == 2
    assert "--junit = 'file/a.xml': cannot be written" in err
