# SPDX-License-Identifier: Apache-2.0
"""Every claim that is judged by a table can hold and can fail. It holds on the table that its paper describes, and it
fails on at least one changed table."""

from pathlib import Path
from typing import Any

import pytest

from papers import checks, paper_a, samples, study
from papers.contrasts import CONTRASTS
from papers.model import COLUMNS, PING, Evidence, PaperFigure, View
from papers.quotes import QUOTES

from .paper_tables import CHANGES, PAPER_TABLES, Table
from .test_claims import evidence

BY_RECORDS = {"A-6", "A-7", "A-rules", "A-wifi"}
"""Figures whose claims need more than a table (`test_by_records.py`)."""
JUDGED = [figure for figure in study.FIGURES.values() if figure.claims and figure.id not in BY_RECORDS]


@pytest.fixture(autouse=True)
def _no_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the functions that read runs, since a table has none."""
    monkeypatch.setattr(Evidence, "runs", lambda self, **where: self.rows(**where).to_dicts())
    monkeypatch.setattr(Evidence, "mean_pings_ms", lambda self, **where: self.rows(**where)[PING].to_list())
    for name in ("below_tcp", "window"):
        monkeypatch.setattr(samples, name, lambda run: "")
    monkeypatch.setattr(checks, "on_air", lambda e, where: "")


def figure_evidence(figure: PaperFigure, **changed: Table) -> Evidence:
    """Return the evidence of a figure, with that of the figures it is compared with."""
    tables = PAPER_TABLES | changed
    compared = {name: table_evidence(tables[name]) for name in figure.needs}
    return table_evidence(tables[figure.id], compared)


def table_evidence(table: Table, compared: dict[str, Evidence] | None = None) -> Evidence:
    keys = [key for key in table[0] if key not in (*COLUMNS, "run", "status")]
    return evidence(table, *keys, compared=compared)


def verdict_words(figure: PaperFigure, data: Evidence) -> dict[str, str]:
    return {claim.id: study.judge(figure, claim, data).word for claim in figure.claims}


@pytest.mark.parametrize("figure", JUDGED, ids=lambda figure: figure.id)
def test_claims_hold_on_the_tables_of_the_papers(figure: PaperFigure) -> None:
    words_by_claim = verdict_words(figure, figure_evidence(figure))
    counted = {claim.id for claim in figure.claims if not claim.excluded} | {"A-8.1", "B-6.4", "B-9.5", "D-9"}
    assert {id for id, word in words_by_claim.items() if word != "ok"} == set(words_by_claim) - counted


@pytest.mark.parametrize("figure", JUDGED, ids=lambda figure: figure.id)
def test_each_claim_can_fail(figure: PaperFigure) -> None:
    failed: set[str] = set()
    for change in CHANGES.values():
        words_by_claim = verdict_words(figure, figure_evidence(figure, **{figure.id: change(PAPER_TABLES[figure.id])}))
        failed |= {id for id, word in words_by_claim.items() if word == "missed"}
    assert failed == {claim.id for claim in figure.claims}


OF_PAPERS = [figure for figure in study.FIGURES.values() if figure.group in "ab"]


@pytest.mark.parametrize("figure", OF_PAPERS, ids=lambda figure: figure.id)
def test_each_counted_claim_has_a_contrast(figure: PaperFigure) -> None:
    for claim in figure.claims:
        assert (claim.id in CONTRASTS) != bool(claim.excluded), claim.id


@pytest.mark.parametrize("figure", [figure for figure in OF_PAPERS if figure in JUDGED], ids=lambda figure: figure.id)
def test_the_contrast_of_each_claim_misses_it(figure: PaperFigure) -> None:
    for claim in figure.claims:
        contrast = CONTRASTS.get(claim.id)
        if contrast is not None:
            assert study.judge(figure, claim, figure_evidence(figure).contrasted(contrast)).word == "missed", claim.id


RECORDED = Path(__file__).parents[2] / "docs/papers"


@pytest.mark.parametrize("group", ["b"])  # the page of paper A waits for its runs
def test_the_recorded_contrasts_miss_their_claims(group: str) -> None:
    """Read the verdicts of the recorded pages."""
    table = (RECORDED / f"paper-{group}.md").read_text().partition("## Contrasts")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    claims = {claim.id for figure in OF_PAPERS if figure.group == group for claim in figure.claims}
    assert {row[0].removeprefix("| ") for row in rows} == claims & CONTRASTS.keys()
    assert {row[-1].removesuffix(" |") for row in rows} == {"missed"}


def loss_based(drops: int = 0, **times: float) -> Evidence:
    table = [
        row
        | {"drops_qdisc_packets": drops}
        | ({"tcp_rtt_p50_ms": times[row["stack.cc"]]} if row["stack.cc"] in times else {})
        for row in PAPER_TABLES["A-7-loss-based"]
    ]
    bbr = [{"stack.cc": "bbr", "stack.tsq": "default", "run": "", "tcp_rtt_p50_ms": 2.0}]
    return evidence(bbr, "stack.cc", "stack.tsq", compared={"A-7-loss-based": table_evidence(table)})


def test_each_loss_based_variant_has_to_meet_the_claim() -> None:
    assert paper_a._any_loss_based(loss_based()).holds
    assert not paper_a._any_loss_based(loss_based(scalable=5.0)).holds
    assert not paper_a._any_loss_based(loss_based(drops=1)).holds


def test_each_claim_has_a_short_quote_of_its_paper() -> None:
    claims = {claim.id for figure in study.FIGURES.values() if figure.group in "ab" for claim in figure.claims}
    assert claims == set(QUOTES)
    assert all(section and words and len(words.split()) <= 20 for section, words in QUOTES.values())


@pytest.mark.parametrize(("seeds", "holds"), [((12.0, 13.0), True), ((9.9, 13.0), False), ((10.0, 10.0), False)])
def test_more_has_to_hold_in_every_seed(seeds: tuple[float, float], holds: bool) -> None:
    rows: list[dict[str, Any]] = [
        {"cc": cc, "seed": seed, "run": "", "upload_mbps": rate}
        for cc, rates in (("a", seeds), ("b", (9.0, 10.0)))
        for seed, rate in enumerate(rates)
    ]
    data = evidence(rows, "cc", "seed")
    assert checks.more("upload_mbps", "upload_mbps", {"cc": "a"}, {"cc": "b"})(data)[0] == holds


def test_a_view_selects_runs_or_replaces_a_value() -> None:
    rows = [
        {"test.name": name, "stack.qdisc": q, "stack.ap.qdisc": "x", "run": "", "upload_mbps": rate}
        for name, q, rate in (("rrul", "pfifo", 1.0), ("rrul_be", "pfifo", 2.0), ("rrul_be", "bfifo", 3.0))
    ]
    data = evidence(rows, "test.name", "stack.qdisc", "stack.ap.qdisc")
    assert data.combinations(["test.name", "stack.ap.qdisc"]) == [
        {"test.name": "rrul", "stack.ap.qdisc": "x"},
        {"test.name": "rrul_be", "stack.ap.qdisc": "x"},
    ]
    unmarked = data.viewed(View(only={"test.name": "rrul_be"}))
    assert unmarked.value("upload_mbps", qdisc="pfifo") == 2.0
    of_bytes = data.viewed(View(only={"test.name": "rrul_be"}, instead={("qdisc", "pfifo"): "bfifo"}))
    assert of_bytes.value("upload_mbps", qdisc="pfifo") == 3.0
    assert unmarked.values("name") == ["rrul_be"]
    pair = Evidence(data.result, {"other": evidence(rows[:1], "stack.qdisc")}).viewed(View(only={"name": "rrul_be"}))
    assert pair.other("other").value("upload_mbps", qdisc="pfifo") == 1.0  # it lacks the axis
