# SPDX-License-Identifier: Apache-2.0
"""Claims that are judged by records can hold and can fail: each holds with the samples that its paper describes, and
fails with different ones."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from hourglass.results.series import Series
from papers import paper_a, rules, samples, study
from papers.model import DROPS, RETRANSMITS, TCP, UP, Evidence

from .test_claims import evidence

Row = dict[str, Any]


def sender_rows(**columns: Any) -> pl.DataFrame:
    """Return ten samples of a sender in congestion avoidance: 10 segments in 10 ms, TSQ by its rate, and `columns`."""
    rate = 1448 * 80_000 * 120 * 10 // (8 * 10_000)
    row: Row = {
        "stream": 0, "rtt": 10_000, "snd_mss": 1448, "snd_cwnd": 10, "snd_ssthresh": 10, "unacked": 10,
        "pacing_rate": rate, "min_rtt": 5_000, "sk_wmem_alloc": 2_728, "tsq_limit": 5_456, "tsq_truesize": 2_728,
        "tsq_rate": 3_000_000, "tsq_shift": 10, "tsq_term": "floor", "hold_pacing_ns": 0,
    }  # fmt: skip
    return pl.DataFrame([row | columns] * 10)


def run(**columns: Any) -> Any:
    """Return a run whose senders have these samples."""
    facts = pl.DataFrame({"key": [rules.CAP_KEY], "value": [columns.pop("cap", "1048576")]})
    table = sender_rows(**columns)
    tcp = table.with_columns(t_ns=0, sender=True, bytes_acked=0)
    return SimpleNamespace(senders=table, facts=facts, tcp=tcp)


@pytest.fixture(autouse=True)
def _senders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "senders", lambda run: run.senders)
    monkeypatch.setattr(samples, "below_tcp", lambda run: "")


def evidence_of_runs(monkeypatch: pytest.MonkeyPatch, runs: Any, **figures: float) -> Evidence:
    """Return evidence with these runs and a table with equal figures in each row. `runs`: a run, or a function of
    `where` that returns runs."""
    rows = [
        {"cc": cc, "tsq": tsq, "ca": ca, "qdisc": qdisc, "scenario": "wifi-ath9k", "run": "", **figures}
        for cc in ("cubic", "bbr")
        for tsq in ("off", "default")
        for ca in (120, 200)
        for qdisc in ("pfifo_fast", "fq")
    ]
    runs_of = runs if callable(runs) else (lambda **where: [runs])
    monkeypatch.setattr(Evidence, "runs", lambda self, **where: runs_of(**where))
    return evidence(rows, "cc", "tsq", "ca", "qdisc", "scenario")


def verdict_word(name: str, data: Evidence) -> str:
    figure, claim = next((f, c) for f in study.FIGURES.values() for c in f.claims if c.id == name)
    verdict = study.judge(figure, claim, data)
    assert verdict.word != "skipped", verdict.reason
    return verdict.word


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("A-alg2", {}, {"tsq_limit": 5_457}),
        ("A-alg2", {"tsq_rate": 10_240_000, "tsq_limit": 10_000}, {"tsq_rate": 10_240_000}),
        ("A-alg2", {"cap": "5000", "tsq_limit": 5_000}, {"cap": "5000"}),
        ("D-1", {"rtt": 5_000, "pacing_rate": 1448 * 80_000 * 240 * 10 // 80_000}, {}),
        ("D-2", {"tsq_limit": 2_896}, {}),
        ("D-3", {"cap": "131072"}, {}),
        ("D-4", {}, {"tsq_shift": 7}),
        ("D-5", {"hold_pacing_ns": 5}, {}),
        ("D-10", {"tsq_limit": 3_000}, {"tsq_limit": 22_832}),
    ],
)
def test_the_samples_of_a_run_decide_a_claim(monkeypatch: pytest.MonkeyPatch, name: str, good: Row, bad: Row) -> None:
    figures = {TCP: 7.0}
    assert verdict_word(name, evidence_of_runs(monkeypatch, run(**good), **figures)) == "ok"
    assert verdict_word(name, evidence_of_runs(monkeypatch, run(**bad), **figures)) == "missed"


def test_the_pacing_rate_is_that_of_the_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    def runs_of_ratio(ca: int = 120, **where: Any) -> list[Any]:
        return [run(pacing_rate=1448 * 80_000 * ca * 10 // 80_000)]

    assert verdict_word("A-alg1", evidence_of_runs(monkeypatch, runs_of_ratio)) == "ok"
    assert verdict_word("A-alg1", evidence_of_runs(monkeypatch, run())) == "missed"  # 120 % although 200 % is set


def test_bbr_drains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "growth", lambda run, column: 0)
    monkeypatch.setattr(samples, "drain_times_s", lambda run: [10.0, 20.2])
    assert verdict_word("A-bbr", evidence_of_runs(monkeypatch, run())) == "ok"
    monkeypatch.setattr(samples, "drain_times_s", lambda run: [10.0, 15.0])
    assert verdict_word("A-bbr", evidence_of_runs(monkeypatch, run())) == "missed"


@pytest.mark.parametrize(("bbr", "cubic", "word"), [(1, 2, "ok"), (2, 2, "missed"), (1, 1, "missed")])
def test_the_ratio_moves_cubic_alone(monkeypatch: pytest.MonkeyPatch, bbr: int, cubic: int, word: str) -> None:
    def runs(cc: str, ca: int = 120, **where: Any) -> list[Any]:
        factor = 1 if ca == 120 else {"bbr": bbr, "cubic": cubic}[cc]
        return [run(pacing_rate=1000 * factor, tsq_limit=5000 * factor)]

    data = evidence_of_runs(monkeypatch, runs)
    assert verdict_word("A-sole", data) == word
    assert verdict_word("A-limit", data) == ("ok" if cubic == 2 else "missed")


@pytest.mark.parametrize(
    ("bbr_growth", "cubic_growth", "with_fq", "word"),
    [(9, 0, 2.6, "ok"), (0, 0, 2.6, "missed"), (9, 1, 2.6, "missed"), (9, 0, 1.3, "missed")],
)
def test_bbr_needs_no_fq(
    monkeypatch: pytest.MonkeyPatch, bbr_growth: int, cubic_growth: int, with_fq: float, word: str
) -> None:
    rows = [
        {"cc": cc, "ca": 120, "qdisc": qdisc, "run": "", TCP: with_fq if qdisc == "fq" else 2.7}
        for cc in ("cubic", "bbr")
        for qdisc in ("pfifo_fast", "fq")
    ]
    monkeypatch.setattr(Evidence, "runs", lambda self, cc, **where: [cc])
    monkeypatch.setattr(samples, "growth", lambda cc, column: cubic_growth if cc == "cubic" else bbr_growth)
    monkeypatch.setattr(samples, "sending_ns", lambda run: 80)
    assert verdict_word("D-8", evidence(rows, "cc", "ca", "qdisc")) == word


def test_claims_of_wi_fi_by_records(monkeypatch: pytest.MonkeyPatch) -> None:
    def radio(subframes_max: int, limit: int) -> Any:
        queues = pl.DataFrame({"device": ["wlan0"], "bql_limit": [limit]})
        wifi = {"client": {"wlan0": SimpleNamespace(subframes=SimpleNamespace(max=subframes_max))}}
        return SimpleNamespace(queues=queues, summary=SimpleNamespace(wifi=wifi))

    short = evidence_of_runs(monkeypatch, radio(31, 1))
    assert (verdict_word("D-6", short), verdict_word("D-7", short)) == ("ok", "ok")
    long = evidence_of_runs(monkeypatch, radio(32, 0))
    assert (verdict_word("D-6", long), verdict_word("D-7", long)) == ("missed", "missed")


@pytest.mark.parametrize(("low", "drops", "word"), [(100, 3, "ok"), (190, 3, "missed"), (100, 0, "missed")])
@pytest.mark.parametrize("name", ["A-6 saw-tooth NoTSQ", "A-6 saw-tooth TSQ", "A-7 saw-tooth NoTSQ"])
def test_a_saw_tooth_swings_and_drops(
    monkeypatch: pytest.MonkeyPatch, name: str, low: int, drops: int, word: str
) -> None:
    values = np.tile([low, 200.0], 30)
    series = Series(np.arange(60.0), values)
    monkeypatch.setattr(paper_a, "tcp_rtt_ms", lambda run, flow: series)
    monkeypatch.setattr(paper_a, "loaded_window", lambda run: SimpleNamespace(start_ns=0, end_ns=10**12))
    data = evidence_of_runs(monkeypatch, SimpleNamespace(flows=[0]), **{DROPS: drops, RETRANSMITS: 1})
    assert verdict_word(name, data) == word


@pytest.mark.parametrize(("bbr", "gap", "word"), [(8.0, 10.2, "ok"), (90.0, 10.2, "missed"), (8.0, 5.0, "missed")])
@pytest.mark.parametrize("name", ["A-6 drains NoTSQ", "A-7 drains NoTSQ"])
def test_bbr_is_low_and_drains(monkeypatch: pytest.MonkeyPatch, name: str, bbr: float, gap: float, word: str) -> None:
    monkeypatch.setattr(samples, "drain_times_s", lambda run: [10.0, 10.0 + gap])
    rows = [
        {"cc": cc, "tsq": tsq, "run": "", TCP: bbr if cc == "bbr" else 180.0}
        for cc in ("cubic", "bbr")
        for tsq in ("off", "default")
    ]
    monkeypatch.setattr(Evidence, "runs", lambda self, **where: [None])
    assert verdict_word(name, evidence(rows, "cc", "tsq")) == word


def wired(cubic: tuple[float, float], bbr: tuple[float, float], rate: float = 95.0) -> Evidence:
    rows = [
        {"cc": cc, "tsq": tsq, "run": "", TCP: ms, UP: rate if cc == "bbr" else 95.6}
        for cc, times in (("cubic", cubic), ("bbr", bbr))
        for tsq, ms in zip(("off", "default"), times, strict=True)
    ]
    return evidence(rows, "cc", "tsq")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("A-7 minimal queue", wired((180, 5), (9, 3)), wired((180, 8), (9, 3))),
    ],
)
def test_medians_decide_the_claim_of_fig_7(
    monkeypatch: pytest.MonkeyPatch, name: str, good: Evidence, bad: Evidence
) -> None:
    monkeypatch.setattr(Evidence, "runs", lambda self, **where: [None])
    assert (verdict_word(name, good), verdict_word(name, bad)) == ("ok", "missed")


@pytest.mark.parametrize(("p50_ms", "word"), [(200.0, "ok"), (400.0, "missed")])
def test_candles_have_to_overlap(monkeypatch: pytest.MonkeyPatch, p50_ms: float, word: str) -> None:
    a6 = wired((180, 181), (9, 9))
    data = Evidence(a6.result, {"A-6": a6})
    monkeypatch.setattr(Evidence, "runs", lambda self, **where: ["A-7" if self.compared else "A-6"])
    monkeypatch.setattr(
        paper_a,
        "samples_of",
        lambda runs, quantity: np.linspace(150, 210, 9) + (p50_ms - 180 if runs[0] == "A-7" else 0),
    )
    assert verdict_word("A-7 as remote", data) == word
