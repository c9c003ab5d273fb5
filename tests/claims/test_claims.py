# SPDX-License-Identifier: Apache-2.0
"""Verdicts follow the data; figures that cannot be run have a reason; each sweep file can be read."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from results.synthetic import make

import hourglass
from hourglass.cli import earlier
from hourglass.cli.exit_status import guarded
from hourglass.errors import InputError
from hourglass.studies import cells
from hourglass.studies.grid import Grid
from hourglass.studies.reader import read
from hourglass.studies.table import metrics
from papers import checks, pages, samples, study
from papers.beyond import side_by_side
from papers.model import COLUMNS, Claim, Evidence, Finding, Layout, PaperFigure, Verdict

SWEEPS = sorted(path.stem for path in study.FOLDER.glob("*.toml"))


def grid_of(name: str) -> Grid:
    """Return the grid of a study of the papers."""
    checked = read(study.FOLDER / f"{name}.toml")
    return checked.column_grid(checked.parts[0], ("",)).grid


@pytest.mark.slow
@pytest.mark.parametrize("name", SWEEPS)
def test_every_sweep_file_reads_resolves_and_is_used(name: str) -> None:
    grid = grid_of(name)
    assert grid.name == name
    assert len(cells.scenarios(grid)) == len(grid.cells)
    used = {name for figure in study.FIGURES.values() for name in (figure.id, *figure.needs)}
    assert name in used


@pytest.mark.parametrize("figure", study.FIGURES.values(), ids=lambda figure: figure.id)
def test_an_unknown_selects_runs_of_its_figure_in_another_way(figure: PaperFigure) -> None:
    keys = grid_of(figure.id).keys
    for unknown in figure.unknowns:
        views = [
            view.only | {"whole": view.whole_test, "instead": view.instead} for view in (figure.view, unknown.view)
        ]
        axes = {word: key for key in keys for word in (key, key.rsplit(".", 1)[-1])}
        used = [{word: value for word, value in view.items() if word in (*axes, "whole", "instead")} for view in views]
        assert used[0] != used[1], unknown.label


def test_every_figure_of_the_papers_exists() -> None:
    required = {"A-4", "A-5a", "A-5b", "A-5c", "A-6", "A-7", "A-8a", "A-8b", *(f"B-{n}" for n in range(3, 15))}
    assert required <= set(study.FIGURES)
    claims = [claim for figure in study.FIGURES.values() for claim in figure.claims]
    ids = [claim.id for claim in claims]
    assert len(ids) == len(set(ids))
    assert {"A-alg1", "A-alg2", "A-bbr", *(f"D-{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 10))} <= set(ids)
    assert all(claim.sentence and claim.tolerance for claim in claims)


def test_a_contradiction_of_the_kernel_is_reported_and_not_counted(tmp_path: Path) -> None:
    ids = {claim.id for figure in study.FIGURES.values() for claim in figure.claims if claim.excluded}
    assert ids == {*(f"D-{n}" for n in (*range(1, 8), 9)), "A-8.1", "B-6.4", "B-8.5", "B-9.5"}
    figure = study.FIGURES["B-9"]
    judged_figure = study.JudgedFigure(figure, [Verdict("B-9", claim, "missed", "1", "") for claim in figure.claims])
    text = pages.markdown(pages.PAGES["b"], [judged_figure], "python -m papers B-9", tmp_path)
    assert "computed: 0 ok, 4 missed." in text
    above, below = text.split("## Contradicted sentences")
    assert "B-9.5" not in above
    assert "B-9.5" in below


def evidence(rows: list[dict[str, Any]], *keys: str, compared: dict[str, Evidence] | None = None) -> Evidence:
    table = pl.DataFrame([{"status": "done", **row} for row in rows])
    grid = SimpleNamespace(keys=keys, label=lambda key, value: str(value))
    return Evidence(SimpleNamespace(table=table, runs=Path("nowhere"), grid=grid), compared)  # type: ignore[arg-type]


def verdicts(figure: str, rows: list[dict[str, Any]], *keys: str) -> dict[str, str]:
    paper_figure = study.FIGURES[figure]
    data = evidence(rows, *keys)
    return {claim.id: study.judge(paper_figure, claim, data).word for claim in paper_figure.claims}


def a4(goodput: float, remote_off: float) -> list[dict[str, Any]]:
    ping = {("L100M", "off"): 275.0, ("L100M", "default"): 7.6, ("R100M", "off"): remote_off, ("R100M", "default"): 100}
    return [
        {"scenario": s, "stack.tsq": t, "upload_mbps": goodput, "ping_icmp_p50_ms": float(ms), "run": "none"}
        for (s, t), ms in ping.items()
    ]


def test_a_verdict_follows_the_data() -> None:
    good = verdicts("A-4", a4(95.6, 110.0), "scenario", "stack.tsq")
    bad = verdicts("A-4", a4(80.0, 200.0), "scenario", "stack.tsq")
    assert (good["A-4 remote"], bad["A-4 remote"]) == ("ok", "missed")


def test_missing_and_failed_runs_affect_only_claims_about_them() -> None:
    rows = a4(95.6, 110.0)
    assert verdicts("A-4", rows[:2], "scenario", "stack.tsq")["A-4 remote"] == "skipped"
    failed = verdicts("A-4", [*rows[:2], *(row | {"status": "failed"} for row in rows[2:])], "scenario", "stack.tsq")
    assert (failed["A-4 local"], failed["A-4 remote"]) == ("skipped", "failed")


def test_a_figure_without_its_testbed_has_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "X.toml").write_text('[scenario]\ntestbed = { preset = "carrier-pigeon" }\n[axes]\nseed = [1]\n')
    monkeypatch.setattr(study, "FOLDER", tmp_path)
    claim = Claim("X.1", "it flies", "none", lambda evidence: Finding(True, "1"))
    figure = PaperFigure("X", "Pigeons", "bars", (claim,))
    judged_figure = study.judge_figure(figure, study.PaperRuns(tmp_path / "out"))
    assert [verdict.word for verdict in judged_figure.verdicts] == ["skipped"]
    assert "carrier-pigeon" in judged_figure.reason
    assert judged_figure.evidence is None


def test_the_figures_that_claims_are_about_are_those_of_a_sweeps_table(tmp_path: Path) -> None:
    figures = metrics(hourglass.load(make(tmp_path / "run")).summary)
    assert all(isinstance(figures[name], int | float) for name in COLUMNS)


def test_an_unknown_figure_is_one_line() -> None:
    with pytest.raises(InputError, match='Did you mean "A-5a"'):
        study.selected(["A-5aa"])


def test_a_paper_or_a_page_selects_its_figures() -> None:
    assert {figure.id[:2] for figure in study.selected(["a"])} == {"A-"}
    assert [figure.id for figure in study.selected(["beyond"])] == ["beyond-ccs", "beyond-qdiscs"]
    assert [figure.id for figure in study.selected(["B-4", "A-4"])] == ["A-4", "B-4"]
    assert not any(figure.id.startswith("beyond") for figure in study.selected([], quick=True))
    assert study.selected([]) == list(study.FIGURES.values())


def test_pages_contain_every_verdict(tmp_path: Path) -> None:
    figure = study.FIGURES["B-4"]
    judged_figure = study.JudgedFigure(
        figure, [Verdict("B-4", claim, "missed", "1 | 2", "why") for claim in figure.claims]
    )
    text = pages.markdown(pages.PAGES["b"], [judged_figure], "python -m papers B-4", tmp_path)
    assert text.count("| missed |") == len(figure.claims)
    assert "1 \\| 2" in text
    assert text.count("](#b-4): ") == len(figure.claims)
    assert (
        f"Made by `python -m papers B-4`; every verdict on this page is computed: 0 ok, {len(figure.claims)} missed."
        in text
    )


def test_the_earlier_command_requires_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(earlier, "__file__", str(tmp_path / "lib/hourglass/cli/earlier.py"))
    assert guarded(["paper", "A-4", "--quick"]) == 2
    error = capsys.readouterr().err
    assert error == "hourglass: error: COMMAND = 'paper': is `python -m papers` now, in a checkout of Hourglass\n"


def test_near_is_a_fifth_of_rates_and_a_factor_of_two_of_times() -> None:
    data = evidence([{"stack.cc": "bbr", "upload_mbps": 61.0, "ping_icmp_p50_ms": 9.0}], "stack.cc")
    assert not checks.near("upload_mbps", 50, cc="bbr")(data)[0]
    assert checks.near("upload_mbps", 52, cc="bbr")(data)[0]
    assert checks.near("ping_icmp_p50_ms", 5, cc="bbr")(data)[0]
    assert not checks.near("ping_icmp_p50_ms", 4, cc="bbr")(data)[0]


def test_figures_without_claims_are_next_to_each_other() -> None:
    times = {("L100M", "5.10"): 7.0, ("L100M", "6.1"): 40.0, ("R100M", "5.10"): 100.0}
    rows = [
        {"scenario": s, "kernel": k, "tcp_rtt_p50_ms": ms, "upload_mbps": 95.6, "ping_icmp_p50_ms": ms}
        for (s, k), ms in times.items()
    ]
    data = evidence(rows, "scenario", "kernel")
    table = side_by_side(PaperFigure("X", "Kernels", "candles", layout=Layout(series=("kernel",))), data)
    assert table.head[:2] == ["", "5.10: Mbit/s"]
    assert [row[0] for row in table.rows] == ["L100M", "R100M"]
    assert table.rows[0][1:] == ["95.6", "7", "7", "95.6", "40", "40"]
    assert table.rows[1][4:] == ["-", "-", "-"]
    assert table.largest == ["L100M: 7 ms with 5.10, 40 ms with 6.1"]


def test_a_kernel_is_found_by_its_version() -> None:
    releases = {"6.1.192-hourglass": 45.0, "6.12.117-hourglass": 40.0}
    data = evidence([{"kernel": k, "tcp_rtt_p50_ms": ms} for k, ms in releases.items()], "kernel")
    assert data.value("tcp_rtt_p50_ms", kernel="6.1") == 45.0
    assert data.value("tcp_rtt_p50_ms", kernel="6.12.117-hourglass") == 40.0


def test_the_joint_table_has_each_claim_at_each_setting(tmp_path: Path) -> None:
    figure = study.FIGURES["B-6"]
    by_setting = {
        "": ("ok", "missed", "missed", "ok"),
        "median": ("missed", "missed", "ok", "ok"),
        "bfifo": ("ok", "ok", "ok", "ok"),
    }
    verdicts = {
        setting: [
            Verdict("B-6", claim, word, "1", "", setting) for claim, word in zip(figure.claims, words, strict=True)
        ]  # type: ignore[arg-type]
        for setting, words in by_setting.items()
    }
    judged = study.JudgedFigure(figure, verdicts[""], unknowns=(*verdicts["median"], *verdicts["bfifo"]))
    table = pages.joint([judged])
    assert table.head == ("claim", "testbed", "median", "bfifo")
    assert table.rows == [
        ("B-6.1", "ok", "missed", "ok"),
        ("B-6.2", "missed", "missed", "ok"),
        ("B-6.3", "missed", "ok", "ok"),
        ("B-6.4*", "ok", "ok", "ok"),
        ["ok", "1 of 3", "1 of 3 (testbed 1)", "3 of 3 (testbed 1)"],
    ]
    text = pages.markdown(pages.PAGES["b"], [judged], "python -m papers B-6", tmp_path)
    assert text.index("## All claims at all settings") > text.index("## B-6")
    assert pages.joint([study.JudgedFigure(figure, verdicts[""])]).rows == []


def test_all_claims_are_judged_for_each_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = a4(95.6, 110.0)
    other = a4(95.6, 400.0)
    table = [row | {"test.upload_streams": n} for n, part in ((1, rows), (4, other)) for row in part]
    data = evidence(table, "scenario", "stack.tsq", "test.upload_streams")
    monkeypatch.setattr(study.PaperRuns, "result", lambda self, name: data.result)
    monkeypatch.setattr(Evidence, "runs", lambda self, **where: [None])
    monkeypatch.setattr(samples, "below_tcp", lambda run: "")
    judged = study.judge_figure(study.FIGURES["A-4"], study.PaperRuns(tmp_path))
    remote = [verdict for verdict in (*judged.verdicts, *judged.unknowns) if verdict.claim.id == "A-4 remote"]
    assert [(verdict.setting, verdict.word) for verdict in remote] == [("", "ok"), ("four flows", "missed")]
    assert {verdict.claim.id for verdict in judged.unknowns} == {claim.id for claim in study.FIGURES["A-4"].claims}
