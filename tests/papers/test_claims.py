# SPDX-License-Identifier: Apache-2.0
"""Verdicts are computed: other data, other verdicts; what cannot be run says why; each sweep file can be read."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from results.synthetic import make

import hourglass
from hourglass.campaign import cells, file
from hourglass.campaign.table import metrics
from hourglass.errors import InputError
from hourglass.papers import checks, report, study
from hourglass.papers.beyond import side_by_side
from hourglass.papers.model import COLUMNS, Claim, Evidence, Figure, Finding, Layout, Verdict

SWEEPS = sorted(path.stem for path in study.FOLDER.glob("*.toml"))


@pytest.mark.parametrize("name", SWEEPS)
def test_every_sweep_file_reads_resolves_and_is_used(name: str) -> None:
    grid = file.read(study.FOLDER / f"{name}.toml")
    assert grid.name == name
    assert len(cells.scenarios(grid)) == len(grid.cells)
    used = {one for figure in study.FIGURES.values() for one in (figure.id, *figure.needs)}
    used |= {unknown.sweep for figure in study.FIGURES.values() for unknown in figure.unknowns}
    assert name in used


@pytest.mark.parametrize("figure", study.FIGURES.values(), ids=lambda one: one.id)
def test_an_unknown_names_axes_of_its_sweep_and_claims_of_its_figure(figure: Figure) -> None:
    for unknown in figure.unknowns:
        assert set(unknown.claims) <= {claim.id for claim in figure.claims}
        if unknown.sweep:
            grid = file.read(study.FOLDER / f"{unknown.sweep}.toml")
            assert set(unknown.axes) <= set(grid.keys)
        else:
            assert unknown.called


def test_every_figure_of_the_papers_is_there() -> None:
    wanted = {"A-4", "A-5a", "A-5b", "A-5c", "A-6", "A-7", "A-8a", "A-8b", *(f"B-{n}" for n in range(3, 15))}
    assert wanted <= set(study.FIGURES)
    every = [claim for figure in study.FIGURES.values() for claim in figure.claims]
    ids = [claim.id for claim in every]
    assert len(ids) == len(set(ids))
    assert {"A-alg1", "A-alg2", "A-bbr", *(f"D-{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 10))} <= set(ids)
    assert all(claim.says and claim.tolerance for claim in every)


def test_what_the_kernel_contradicts_is_told_and_not_counted(tmp_path: Path) -> None:
    ids = {claim.id for figure in study.FIGURES.values() for claim in figure.claims if claim.apart}
    assert ids == {*(f"D-{n}" for n in range(1, 8)), "A-8.1", "B-6.4", "B-9.5"}
    figure = study.FIGURES["B-9"]
    found = study.Studied(figure, [Verdict("B-9", one, "differs", "1", "") for one in figure.claims])
    text = report.markdown(report.PAGES["B"], [found], "hourglass paper B-9", tmp_path)
    assert "0 hold, 4 differ, 0 cannot be had" in text
    above, below = text.split("## Sentences that are contradicted")
    assert "B-9.5" not in above
    assert "B-9.5" in below


def evidence(rows: list[dict[str, Any]], *keys: str, others: dict[str, Evidence] | None = None) -> Evidence:
    table = pl.DataFrame([{"status": "done", **row} for row in rows])
    grid = SimpleNamespace(keys=keys, label=lambda key, value: str(value))
    return Evidence(SimpleNamespace(table=table, runs=Path("nowhere"), grid=grid), others)  # type: ignore[arg-type]


def verdicts(figure: str, rows: list[dict[str, Any]], *keys: str) -> dict[str, str]:
    found = study.FIGURES[figure]
    data = evidence(rows, *keys)
    return {claim.id: study.judge(found, claim, data).word for claim in found.claims}


def a4(goodput: float, remote_off: float) -> list[dict[str, Any]]:
    ping = {("L100M", "off"): 275.0, ("L100M", "default"): 7.6, ("R100M", "off"): remote_off, ("R100M", "default"): 100}
    return [
        {"scenario": s, "stack.tsq": t, "upload_mbps": goodput, "ping_icmp_p50_ms": float(ms), "run": "none"}
        for (s, t), ms in ping.items()
    ]


def test_a_verdict_follows_the_data() -> None:
    good = verdicts("A-4", a4(95.6, 110.0), "scenario", "stack.tsq")
    bad = verdicts("A-4", a4(80.0, 200.0), "scenario", "stack.tsq")
    assert (good["A-4 throughput"], good["A-4 remote"]) == ("holds", "holds")
    assert (bad["A-4 throughput"], bad["A-4 remote"]) == ("differs", "differs")


def test_runs_that_failed_take_their_claims_with_them() -> None:
    found = verdicts("A-4", a4(95.6, 110.0)[:2], "scenario", "stack.tsq")
    assert found["A-4 remote"] == "cannot be had"


def test_a_figure_without_its_testbed_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "X.toml").write_text('[scenario]\ntestbed = { preset = "carrier-pigeon" }\n[axes]\nseed = [1]\n')
    monkeypatch.setattr(study, "FOLDER", tmp_path)
    claim = Claim("X.1", "it flies", "none", lambda evidence: Finding(True, "1"))
    figure = Figure("X", "Pigeons", "bars", (claim,))
    found = study.study(figure, tmp_path, quick=True, jobs=1, kernel=None, progress=None)  # type: ignore[arg-type]
    assert [one.word for one in found.verdicts] == ["cannot be had"]
    assert "carrier-pigeon" in found.reason
    assert found.evidence is None


def test_the_figures_that_claims_are_about_are_those_of_a_sweeps_table(tmp_path: Path) -> None:
    found = metrics(hourglass.load(make(tmp_path / "run")).summary)
    assert all(isinstance(found[name], int | float) for name in COLUMNS)


def test_an_unknown_figure_is_one_line() -> None:
    with pytest.raises(InputError, match='Did you mean "A-5a"'):
        study.chosen(["A-5aa"])


def test_reports_hold_every_verdict(tmp_path: Path) -> None:
    figure = study.FIGURES["B-4"]
    found = study.Studied(figure, [Verdict("B-4", one, "differs", "1 | 2", "why") for one in figure.claims])
    text = report.markdown(report.PAGES["B"], [found], "hourglass paper B-4", tmp_path)
    assert text.count("| differs |") == len(figure.claims)
    assert "1 \\| 2" in text
    assert text.count("* [B-4](#b-4) says: ") == len(figure.claims)
    assert f"0 hold, {len(figure.claims)} differ, 0 cannot be had" in text
    assert report.whole([found], tmp_path).count("<td>differs") == len(figure.claims)


def test_near_is_a_fifth_of_rates_and_a_factor_of_two_of_times() -> None:
    data = evidence([{"stack.cc": "bbr", "upload_mbps": 61.0, "ping_icmp_p50_ms": 9.0}], "stack.cc")
    assert not checks.near("upload_mbps", 50, cc="bbr")(data)[0]
    assert checks.near("upload_mbps", 52, cc="bbr")(data)[0]
    assert checks.near("ping_icmp_p50_ms", 5, cc="bbr")(data)[0]
    assert not checks.near("ping_icmp_p50_ms", 4, cc="bbr")(data)[0]


def test_what_has_no_claims_stands_side_by_side() -> None:
    times = {("L100M", "5.10"): 7.0, ("L100M", "6.1"): 40.0, ("R100M", "5.10"): 100.0}
    rows = [
        {"scenario": s, "kernel": k, "tcp_rtt_p50_ms": ms, "upload_mbps": 95.6, "ping_icmp_p50_ms": ms}
        for (s, k), ms in times.items()
    ]
    data = evidence(rows, "scenario", "kernel")
    found = side_by_side(Figure("X", "Kernels", "candles", layout=Layout(series=("kernel",))), data)
    assert found.head[:2] == ["", "5.10: Mbit/s"]
    assert [row[0] for row in found.rows] == ["L100M", "R100M"]
    assert found.rows[0][1:] == ["95.6", "7", "7", "95.6", "40", "40"]
    assert found.rows[1][4:] == ["-", "-", "-"]
    assert found.largest == ["L100M: 7 ms with 5.10, 40 ms with 6.1"]


def test_a_kernel_is_found_by_its_version() -> None:
    releases = {"6.1.192-hourglass": 45.0, "6.12.117-hourglass": 40.0}
    data = evidence([{"kernel": k, "tcp_rtt_p50_ms": ms} for k, ms in releases.items()], "kernel")
    assert data.value("tcp_rtt_p50_ms", kernel="6.1") == 45.0
    assert data.value("tcp_rtt_p50_ms", kernel="6.12.117-hourglass") == 40.0


def test_what_would_have_to_be_true_has_the_settings_that_reproduce_and_what_they_cost(tmp_path: Path) -> None:
    figure = study.FIGURES["B-11"]
    rrul = next(one for one in figure.unknowns if one.sweep)
    default = {"B-11.1": "differs", "B-11.2": "holds", "B-11.3": "differs"}
    again = {
        "unmarked": {"B-11.1": "holds", "B-11.2": "differs", "B-11.3": "differs"},
        "unmarked, AP: 100 packets": {"B-11.1": "holds", "B-11.2": "holds", "B-11.3": "differs"},
        "one root": {"B-11.1": "holds", "B-11.2": "holds", "B-11.3": "differs"},
    }
    claims = {claim.id: claim for claim in figure.claims}

    def judged(words: dict[str, str], setting: str = "") -> list[Verdict]:
        return [Verdict("B-11", claims[id], word, f"{id} {setting}", "", setting) for id, word in words.items()]  # type: ignore[arg-type]

    weighed = study.Weighed(rrul, [one for setting, words in again.items() for one in judged(words, setting)])
    found = study.Studied(figure, judged(default), weighed=(weighed,))
    conditions = report.conditions([found])
    assert [(row[0], row[2], row[4]) for row in conditions.rows] == [
        ("B-11.1", "unmarked", "B-11.2"),
        ("B-11.1", "one root", "-"),
    ]
    assert conditions.none == [f"B-11.3 ({claims['B-11.3'].says})"]
    (varied,) = conditions.varied
    assert varied.startswith("B-11: ")
    assert "scenarios/papers/B-11-rrul.toml" in varied
    assert varied.endswith("Tried: unmarked; one root.")
    text = report.markdown(report.PAGES["B"], [found], "hourglass paper B-11", tmp_path)
    assert text.index("## What would have to be true") > text.index("## B-11")
    assert "What would have to be true" in report.whole([found], tmp_path)
    none = study.Studied(figure, judged(dict.fromkeys(default, "holds")), weighed=(weighed,))
    assert report.conditions([none]) == report.Conditions([], [], [])
