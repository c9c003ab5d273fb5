# SPDX-License-Identifier: Apache-2.0
"""Columns compared with a reference: the planned runs, rounds until all is decided, verdicts, refusals."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hourglass.cli.compare import tolerances
from hourglass.cli.exit_status import guarded
from hourglass.contract import kernels
from hourglass.engine import engines
from hourglass.errors import InputError
from hourglass.resources import SCENARIOS
from hourglass.results.intervals import MIN_VALUES
from hourglass.scenario import load
from hourglass.studies import cells, reader
from hourglass.studies.causes import two_states
from hourglass.studies.comparison import comparison
from hourglass.studies.lines import FigureCell, FigureLine
from hourglass.studies.study import StudyOptions, StudyRuns
from hourglass.studies.verdicts import CellVerdict, Matrix, VerdictWord, judge, of_interval

VETH = SCENARIOS / "agree" / "veth.toml"
TOLERANCES = {"totals.upload_mbps": "1%", "totals.download_mbps": "1%", "tcp_rtt.p50": "5%"}
Plan = Callable[..., StudyRuns]


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Return a function that plans a study without a kernel or a machine."""
    monkeypatch.setattr(engines, "identity", lambda name, kernel, *_, **__: f"{name} {kernel}")
    monkeypatch.setattr("platform.release", lambda: "6.18.1")
    return lambda study, **options: StudyRuns(study, tmp_path, StudyOptions(**options))


def hosts(folder: Path) -> Path:
    """Write a scenario of two remote machines and a cable between them."""
    path = folder / "hosts.toml"
    path.write_text(
        """
[test]
name = "tcp_upload"
[[testbed.node]]
name = "client"
host = "root@c"
real = { eth0 = "enp1s0" }
[[testbed.node]]
name = "server"
host = "root@s"
real = { eth0 = "enp1s0" }
[[testbed.link]]
ends = ["client:eth0", "server:eth0"]
""",
        "utf-8",
    )
    return path


def planned(runs: StudyRuns) -> dict[str, dict[str, list[int]]]:
    """Return the seeds of each column by part."""
    return {id: {column: list(seeds) for (_, column), seeds in part.runs.items()} for id, part in runs.parts.items()}


def undecided(runs: StudyRuns, *words: tuple[str, VerdictWord]) -> Matrix:
    """Return verdicts on the machine's figures of parts."""
    matrix = []
    for id, word in words:
        part = runs.parts[id].part
        line = FigureLine(part, part.figures[0], {}, "", {})
        matrix.append([CellVerdict(line, FigureCell("native", (1.0,), ("run",)), word)])
    return matrix


def test_the_built_in_cases_begin_with_three_seeds_of_the_guest_and_six_of_the_machine(plan: Plan) -> None:
    study = reader.read(VETH)
    assert {figure.name: figure.tolerance for figure in study.parts[0].figures} == TOLERANCES
    runs = plan(study)
    assert planned(runs) == {part.id: {"virtual": [1, 2, 3], "native": [1, 2, 3, 4, 5, 6]} for part in study.parts}
    assert len(runs.parts) == 12
    listed = [cell for part in runs.parts.values() for cell in part.planned]
    assert len({cell.key for cell in listed}) == len(listed)
    assert {cell.kernel for cell in listed} == {"6.12"}, "the nearest to the machine's"
    assert {(cell.engine, cell.like) for cell in listed} == {("virtual", "native"), ("native", "")}


def test_each_round_adds_a_seed_where_a_figure_is_undecided(plan: Plan) -> None:
    runs = plan(reader.read(VETH))
    first, second = list(runs.parts)[:2]
    for number in range(7, 16):
        assert runs.add_round(undecided(runs, (first, "undecided"), (second, "ok")))
        seeds = planned(runs)
        assert seeds[first] == {"virtual": [1, 2, 3], "native": list(range(1, number + 1))}
        assert seeds[second]["native"] == [1, 2, 3, 4, 5, 6]
    assert not runs.add_round(undecided(runs, (first, "undecided"))), "all seeds of the file are used"
    assert not runs.add_round(undecided(runs, (first, "missed"), (second, "skipped")))


def test_seeds_of_the_command_bound_the_rounds(plan: Plan) -> None:
    runs = plan(reader.read(VETH), seeds=tuple(range(11, 18)))
    (first, *_) = runs.parts
    assert planned(runs)[first] == {"virtual": [11, 12, 13], "native": [11, 12, 13, 14, 15, 16]}
    assert runs.add_round(undecided(runs, (first, "undecided")))
    assert not runs.add_round(undecided(runs, (first, "undecided")))


def test_guests_wait_for_the_kernel_of_remote_machines(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guests have the kernel nearest to that of the machines, which only the machines' first run names."""
    study = comparison([str(hosts(tmp_path))], "engine", ["virtual", "ssh"])
    runs = plan(study)
    assert planned(runs) == {"": {"ssh": [1, 2, 3, 4, 5, 6]}}
    (first, *_) = runs.parts[""].planned
    assert first.kernel == "6.12", "the nearest to that of this machine"
    assert not runs.plan_waiting(), "no run has named a kernel"
    monkeypatch.setattr(runs.store, "summary", lambda _: SimpleNamespace(kernel="6.1.0-13-amd64"))
    assert runs.plan_waiting()
    assert planned(runs) == {"": {"ssh": [1, 2, 3, 4, 5, 6], "virtual": [1, 2, 3]}}
    assert {(cell.kernel, cell.like) for cell in runs.parts[""].planned if cell.engine == "virtual"} == {("6.1", "")}
    assert not runs.plan_waiting()


@pytest.mark.parametrize(
    ("settings", "wire", "like"),
    [([], False, "native"), ([], True, ""), (['testbed.node.0.real={ eth0 = "enp3s0" }'], False, "")],
    ids=["veth pairs", "--wire", "NICs of the machine"],
)
def test_the_guest_has_veth_pairs_where_the_machine_has_them(settings: list[str], wire: bool, like: str) -> None:
    links = "" if wire else "native"
    assert cells.links_of(load("L100M", settings), "virtual", links) == like
    assert engines.capabilities("virtual", like).nic == ("veth" if like else "wire")


def test_a_plan_with_veth_pairs_is_another_run(plan: Plan) -> None:
    keys = [
        {cell.key for cell in plan(comparison(["L100M"], "engine", ["virtual", "native"], wire=wire)).parts[""].planned}
        for wire in (False, True)
    ]
    assert len(keys[0] & keys[1]) == 6, "those of the machine"


@pytest.mark.parametrize(
    ("release", "kernel"),
    [("6.18.44-fc-v657", "6.12"), ("6.1.0-13-amd64", "6.1"), ("5.15.0-100", "5.10"), ("4.19.0", "5.10")],
)
def test_the_nearest_kernel_is_of_the_same_major_version(release: str, kernel: str) -> None:
    assert kernels.nearest(release) == kernel


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((-0.9, 0.9), "ok"),
        ((-1.0, 1.0), "ok"),
        ((1.1, 3.0), "missed"),
        ((-3.0, -1.1), "missed"),
        ((0.9, 1.1), "undecided"),
        ((-2.0, 2.0), "undecided"),
        (None, "undecided"),
    ],
)
def test_a_verdict_follows_from_the_whole_interval(interval: tuple[float, float] | None, expected: str) -> None:
    assert of_interval(interval, 1.0) == expected


def judged(reference: Sequence[float], values: Sequence[float], tolerance: str = "5%") -> CellVerdict:
    study = comparison(["L100M"], "engine", ["virtual", "native"], tolerance={})
    part = study.parts[0]
    figure = part.figures[-1].model_copy(update={"tolerance": tolerance})
    cells_of_line = {
        name: FigureCell(name, tuple(listed), ("run",)) for name, listed in (("virtual", reference), ("native", values))
    }
    line = FigureLine(part, figure, {}, "", cells_of_line)
    ((first, second),) = judge([line], study.columns, "engine", "virtual", None)
    assert first.verdict == ""
    return second


def test_a_difference_is_in_percent_of_the_references_median() -> None:
    verdict = judged([50.0, 40.0, 60.0], [55.0, 51.0, 52.0, 53.0, 54.0, 50.0])
    assert (verdict.cell.value, verdict.gap, verdict.interval) == (52.5, 5.0, (0.0, 10.0))
    assert (verdict.verdict, verdict.counts) == ("undecided", False)


def test_too_few_runs_for_an_interval_are_undecided() -> None:
    assert judged([1.0], [1.0] * (MIN_VALUES - 1)).verdict == "undecided"
    assert judged([1.0], [1.0] * MIN_VALUES).verdict == "ok"
    missed = judged([1.0], [2.0] * MIN_VALUES)
    assert (missed.verdict, missed.counts, missed.limit) == ("missed", True, "within 5 % of virtual")


def test_a_figure_that_the_reference_lacks_is_skipped() -> None:
    verdict = judged([0.0, 0.0, 0.0], [0.0] * MIN_VALUES)
    assert (verdict.verdict, verdict.reason) == ("skipped", "virtual has 0")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([124.0, 228.0, 123.0, 229.0, 124.5, 227.5], "3 runs at 124, 3 at 228; the reference has 230"),
        ([100.0, 101.0, 102.0, 103.0, 104.0, 230.0], "5 runs at 102, 1 at 230"),
        ([100.0, 120.0, 140.0, 160.0, 200.0, 240.0], None),
        ([229.0, 230.0, 231.0, 231.0, 232.0, 240.0], None),
    ],
)
def test_runs_in_two_states_are_reported(values: list[float], message: str | None) -> None:
    """The gap has to exceed twice the tolerance, and four times the spread of either group."""
    states = two_states(values, "tcp_rtt.p50", 230.0, 5.0)
    assert (states is None) == (message is None)
    assert message is None or (states is not None and message in states)


def test_tolerances_are_percents() -> None:
    assert tolerances(["tcp_rtt.p50=10%", "ping.icmp.p50=2.5"]) == {"tcp_rtt.p50": 10.0, "ping.icmp.p50": 2.5}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--vary", "engine=virtual,native", "--tolerance", "tcp_rtt.p50"], "--tolerance = 'tcp_rtt.p50'"),
        (["--vary", "engine=virtual,native", "--tolerance", "tcp_rtt.p50=-1"], "--tolerance tcp_rtt.p50 = '-1'"),
        (["--vary", "engine=virtual,native", "--tolerance", "nothing=1"], "figure.3.name = 'nothing'"),
        (["--vary", "engine=virtual,native", "--seeds", "1-5"], "seeds = "),
        (["--vary", "kernel=6.1,6.12", "--kernel", "6.1"], "--kernel = '6.1': cannot be combined with --vary kernel"),
        (["--vary", "stack.cc=cubic,bbr", "--seeds", "1-4"], "seeds = 4: must be at least 5"),
        (["--vary", "engine=native,ssh"], "compare.values = ['native', 'ssh']"),
        (["--vary", "engine=native,virtual"], "compare.values = ['native', 'virtual']"),
        (["--vary", "engine=virtual,other"], "--engine = 'other'"),
        (["--vary", "engine=virtual"], "--vary = 'engine=virtual'"),
        (["--vary", "stack.cc=bbr,bbr"], "--vary = 'stack.cc=bbr,bbr'"),
        (["--vary", "engine=virtual,native", "--page", "."], "--page = '.'"),
        (["--vary", "engine=virtual,native", "--picture", "x.png"], "--picture = 'x.png': draws runs"),
        (["--set", "stack.cc=bbr"], "--set = ['stack.cc=bbr']: needs --vary"),
        ([], "run = 'L100M': no such directory"),
    ],
)
def test_an_invalid_comparison_is_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["compare", "L100M", *words]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": 5, "figure": [{"name": "*"}], "compare": {"axis": "kernel", "values": ["6.1", "6.12"]}}, "name = "),
        ({"figure": [{"name": "*", "tolerance": "5%"}]}, r"figure\.0\.tolerance = '5%': cannot be combined with"),
        ({"figure": [{"name": "*"}], "seeds": 4}, r"seeds = 4: must be at least 5"),
        ({"seeds": {"range": "1-5", "until": "decided"}}, "must have at least 6 seeds"),
        ({"seeds": {"range": "1-9", "until": "decided", "least": 3}}, r"seeds\.least = 3"),
    ],
)
def test_a_comparison_without_a_verdict_is_refused(changes: dict[str, Any], message: str) -> None:
    compare = {"axis": "kernel", "values": ["6.1", "6.12"], "reference": "6.1"}
    table = {"scenario": "L100M", "seeds": 5, "compare": compare, "figure": [{"name": "*"}]} | changes
    with pytest.raises(InputError, match=message):
        reader.parse(table, "custom", Path())
