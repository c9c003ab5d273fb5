# SPDX-License-Identifier: Apache-2.0
"""Suites of cases: what is read, and what is refused."""

from pathlib import Path

import pytest

import hourglass.plan as plans
from hourglass.campaign import agree
from hourglass.cli.agree import tolerances
from hourglass.cli.errors import guarded
from hourglass.engine.native import Native
from hourglass.errors import InputError
from hourglass.resources import SCENARIOS
from hourglass.scenario import load

BUILT_IN = SCENARIOS / "agree" / "veth.toml"


def test_the_built_in_suite_has_twelve_cases_that_can_be_planned_natively() -> None:
    suite = agree.read(str(BUILT_IN), [])
    assert len(suite.cases) == 12
    for case in suite.cases:
        scenario = case.scenario(3, "6.12")
        assert (scenario.seed, scenario.kernel, scenario.test.length) == (3, "6.12", 30)
        assert plans.build(scenario, Native.capabilities).streams
    assert suite.tolerance == {"totals.upload_mbps": 1.0, "totals.download_mbps": 1.0, "tcp_rtt.p50": 5.0}


def test_a_scenario_is_a_suite_of_one_case() -> None:
    suite = agree.read("L100M", ["test.length=3"])
    assert [(case.name, case.source, case.settings) for case in suite.cases] == [("L100M", "L100M", ("test.length=3",))]


def test_settings_of_the_command_come_last(tmp_path: Path) -> None:
    path = tmp_path / "suite.toml"
    path.write_text(
        'set = ["test.length=3"]\n[[case]]\nname = "a"\nscenario = "L100M"\nset = ["test.length=4"]', "utf-8"
    )
    assert agree.read(str(path), ["test.length=5"]).cases[0].scenario(1, "6.1").test.length == 5


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("case = []", r"case = \[\]"),
        ("case = [1]", r"case\.0 = 1"),
        ('[[case]]\nname = "a"', r"case\.0\.scenario"),
        ('[[case]]\nname = "a"\nscenario = "L100M"\nseed = 1', r"case\.0\.seed"),
        ('[[case]]\nname = "a"\nscenario = "L100M"\nset = ["x"]', r"case\.0\.set"),
        ('[[case]]\nname = "a"\nscenario = "L100M"\n[tolerance]\nx = 0', r"tolerance\.x = 0"),
        ('other = 1\n[[case]]\nname = "a"\nscenario = "L100M"', "other = 1"),
        ('[[case]]\nname = "a"\nscenario = "L100M"\n' * 2, 'case.name = "?a"? *: is there twice|case.name'),
    ],
)
def test_what_a_suite_cannot_be_is_refused(tmp_path: Path, text: str, key: str) -> None:
    path = tmp_path / "suite.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=key):
        agree.read(str(path), [])


@pytest.mark.parametrize(
    ("release", "kernel"),
    [("6.18.44-fc-v657", "6.12"), ("6.1.0-13-amd64", "6.1"), ("5.15.0-100", "5.10"), ("4.19.0", "5.10")],
)
def test_the_labs_kernel_is_the_nearest(release: str, kernel: str) -> None:
    assert agree.nearest_kernel(release) == kernel


def test_tolerances_are_percents() -> None:
    assert tolerances(["tcp_rtt.p50=10%", "ping.icmp.p50=2.5"]) == {"tcp_rtt.p50": 10.0, "ping.icmp.p50": 2.5}


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["--within", "tcp_rtt.p50"], "--within = 'tcp_rtt.p50'"),
        (["--within", "tcp_rtt.p50=-1"], "--within = 'tcp_rtt.p50=-1'"),
        (["--least", "3"], "--least = '3'"),
        (["--least", "9", "--most", "8"], "--least = '9'"),
        (["--engine", "virtual"], "--engine = 'virtual'"),
        (["--page", "page.pdf"], "--page = 'page.pdf'"),
    ],
)
def test_what_cannot_be_asked_is_refused(words: list[str], key: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["agree", "L100M", *words]) == 2
    said = capsys.readouterr().err
    assert key in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("settings", "wire", "nic"),
    [
        ([], False, "veth"),
        ([], True, "wire"),
        (['testbed.node.0.real={ eth0 = "enp3s0" }'], False, "wire"),
    ],
)
def test_the_lab_has_veth_pairs_where_the_machine_has(
    settings: list[str], wire: bool, nic: str, tmp_path: Path
) -> None:
    way = agree.Way("native", "6.12", tmp_path, 6, 6, wire)
    assert agree.able(load("L100M", settings), way).nic == nic
