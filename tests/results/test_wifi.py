# SPDX-License-Identifier: Apache-2.0
"""The radios' figures from synthetic counters, compared with closed forms."""

import numpy as np
import polars as pl
import pytest

import hourglass
from hourglass.results.compare import compare
from hourglass.results.lint import lint
from hourglass.results.recording import Recording
from hourglass.results.sections import sections
from hourglass.results.series import loaded_window
from hourglass.results.wifi import air_share, wifi
from results import synthetic_wifi
from results.synthetic import Recipe, make


@pytest.fixture
def run(tmp_path) -> Recording:
    return hourglass.load(make(tmp_path / "run", synthetic_wifi.recipe()))


def test_figures_are_the_growth_within_the_window(run: Recording) -> None:
    """10 s are 50 steps; beacons are no aggregates: 1, 4, 4, 4."""
    ap = run.summary.wifi["ap"]["wlan0"]
    assert ap.model_dump() == {
        "ppdus": 300,
        "mpdus": 650,
        "retries": 200,
        "dropped": 0,
        "not_acked": 50,
        "collisions": 50,
        "subframes": {"mean": 3.25, "p50": 4, "p90": 4, "max": 4},
        "air_percent": 20,
        "busy_percent": 75,
        "air_share": {"client": 0.75, "slow": 0.25},
        "categories": {
            "VI": {"ppdus": 150, "not_acked": 50, "mpdus": 600, "air_percent": 17} | waits(1, 2, 3),
            "BE": {"ppdus": 50, "not_acked": 0, "mpdus": 50, "air_percent": 2} | waits(4, 30, 60),
        },
        "txq": {"mean": None, "max": None},
        "held": {"mean": None, "max": None},
        "txq_drops": 100,
    }
    client = run.summary.wifi["client"]["wlan0"]
    # a drop per station and step; the whole run has 14 s, in which its drops count
    assert run.summary.drops["ap"]["wlan0"].model_dump() == {
        "qdisc": 2 * 70, "qdisc_skbs": 0, "nic": 0, "cable": 0, "stack": 0
    }  # fmt: skip
    assert (client.subframes.mean, client.air_percent, client.air_share) == (10, 50, {})


def waits(txq: float, ring: float, contention: float) -> dict[str, float]:
    total = txq + ring + contention
    return {"txq_ms": txq, "ring_ms": ring, "contention_ms": contention, "waiting_ms": total}


def test_air_time_to_no_station_is_group_addressed(run: Recording) -> None:
    """Per step the access point sends 58 ms, of them 40 ms to stations. If all its frames are acknowledged, the others
    are RTS."""
    window = loaded_window(run)
    longer = pl.when(pl.col("name") == "ac.be.tx_ns").then(6 * pl.col("value")).otherwise(pl.col("value"))
    run.radio_counters = run.radio_counters.with_columns(value=longer)
    shares = wifi(run, window)["ap"]["wlan0"].air_share
    assert shares == pytest.approx({"client": 60 / 98, "slow": 20 / 98, "group-addressed": 18 / 98}, rel=1e-5)
    frames = run.radio_counters.filter(pl.col("name") == "tx_mpdus")
    acked = frames.with_columns(name=pl.lit("tx_acked").cast(frames["name"].dtype))
    run.radio_counters = pl.concat([run.radio_counters, acked])
    assert wifi(run, window)["ap"]["wlan0"].air_share == {"client": 0.75, "slow": 0.25}


def test_several_categories_have_a_row_each(run: Recording) -> None:
    (section,) = (section_ for section_ in sections(run.summary) if section_.id == "categories")
    titles = [column.title for column in section.columns]
    rows = [dict(zip(titles, row, strict=True)) for row in section.rows]
    assert [(row["radio"], row["category"], row["waiting"]) for row in rows] == [
        ("ap", "video", 6), ("ap", "best effort", 94), ("client", "video", 6),
    ]  # fmt: skip
    assert not section.detail


def test_best_effort_that_marked_traffic_starves_is_named(run: Recording) -> None:
    (finding,) = (warning for warning in run.summary.warnings if warning.id == "best-effort-starved")
    assert finding.text == (
        "best effort of ap:wlan0 waits 94 ms to be sent, of them 60 ms for the medium; voice and video wait 3 ms for it"
        " and have 96% of the air time on its channel"
    )
    waiting = pl.col("name") == "ac.be.contention_ns"
    run.radio_counters = run.radio_counters.with_columns(
        value=pl.when(waiting).then(pl.col("value") // 6).otherwise(pl.col("value"))
    )
    assert "best-effort-starved" not in {warning.id for warning in lint(run)}


def test_a_radio_that_did_nothing_has_no_sizes(run: Recording) -> None:
    slow = run.summary.wifi["slow"]["wlan0"]
    assert slow.ppdus == 0
    assert slow.subframes.model_dump() == {"mean": None, "p50": None, "p90": None, "max": None}


def test_the_air_over_time(run: Recording) -> None:
    share = air_share(run, "client", loaded_window(run))
    assert share.values == pytest.approx(np.full(50, 0.5))
    assert share.t_s[0] == pytest.approx(2.2)


def test_the_comparison_has_a_row_for_each_figure(run: Recording) -> None:
    rows = {row.figure: row.cells[0].value for row in compare([run, run])}
    assert (rows["ap aggregate"], rows["ap air"], rows["ap not acknowledged"]) == (
        3.25,
        20,
        pytest.approx(100 / 6, 1e-5),
    )
    assert rows["ap retried"] == pytest.approx(400 / 13, 1e-5)
    assert "slow aggregate" not in rows


def test_a_run_without_radios_has_no_such_figures(tmp_path) -> None:
    run = hourglass.load(make(tmp_path / "plain", Recipe()))
    assert run.summary.wifi == {}
    assert not any(row.figure.endswith(" air") for row in compare([run]))
