# SPDX-License-Identifier: Apache-2.0
"""Every number of a summary has one name and one unit, which all tables use."""

import json

import pytest

import hourglass
from hourglass.contract import names
from hourglass.contract.figures import Figure, figures
from hourglass.results.compare import compare
from hourglass.results.tidy import figures as table
from hourglass.studies.table import UNITS, metrics
from results import synthetic_probe, synthetic_wifi
from results.synthetic import make


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    recipes = (synthetic_probe.recipe(), synthetic_wifi.recipe())
    return [hourglass.load(make(root / str(number), recipe)) for number, recipe in enumerate(recipes)]


def numbers(value):
    """Return the numbers and nulls of a JSON value, without those that describe the run."""
    if isinstance(value, dict):
        return [number for key, inner in value.items() if key not in ("schema", "seed", "virtual_s", "wall_s")
                for number in numbers(inner)]  # fmt: skip
    if isinstance(value, list):
        return [number for inner in value for number in numbers(inner)]
    return [] if isinstance(value, str) else [value]


def test_every_number_of_a_summary_has_a_unique_name(runs):
    for run in runs:
        all_figures = list(figures(run.summary))
        assert [figure.value for figure in all_figures] == numbers(json.loads(run.summary.to_json()))
        assert len({figure.name for figure in all_figures}) == len(all_figures)


def test_names_and_units(runs):
    probed, radios = ({figure.name: (figure.value, figure.unit) for figure in figures(run.summary)} for run in runs)
    assert probed["totals.upload_mbps"] == (8, "Mbit/s")
    assert probed["flows.upload::1.tcp_rtt.p50"] == (2, "ms")
    assert probed["flows.upload::1.retransmits"] == (0, "segments")
    assert probed["ping.icmp.p99"] == (1, "ms")
    assert probed["ping.icmp.lost"] == (0, "packets")
    assert probed["layers.client.qdisc.share"][1] == ""
    assert probed["drops_by_reason.router.eth1.qdisc.QDISC_DROP"] == (3, "packets")
    assert radios["wifi.ap.wlan0.air_percent"] == (20, "%")
    assert radios["wifi.ap.wlan0.subframes.mean"] == (3.25, "MPDUs")


def test_every_possible_figure_has_a_unit_that_no_key_decides(runs):
    """The unit is right even if nodes, streams and layers have the name of a count: the layer txq is a time."""
    assert {template.unit for template in names.templates()} == set(UNITS)
    names_of_counts = ("txq", "share", "lost", "drops", "held", "n", "mos", "some_ms", "rate_mbps")
    for template in names.templates():
        for word in names_of_counts:
            path = tuple(word if keyed else part for part, keyed in zip(template.path, template.keys, strict=True))
            assert Figure(path, None).unit == template.unit, path
    figure = Figure(("layers_ms", "ap", "txq", "p50"), None)
    assert figure.unit == "ms"


def test_columns_of_a_sweep_end_in_their_unit(runs):
    """Columns without a unit are exempt: ratios, marks, and columns that describe the run."""
    bare = {"kernel", "digest", "flows", "fairness", "upload_fairness", "download_fairness"}
    units = tuple(f"_{unit}" for unit in UNITS.values() if unit)
    for run in runs:
        columns = metrics(run.summary)
        assert [
            name for name in columns if name not in bare and not name.endswith(units) and "_share" not in name
        ] == []
        assert [name for name in columns if "share" in name and name.endswith(units)] == []
        assert {"drops_qdisc_skbs", "drops_qdisc_packets", "retransmits_segments"} <= set(columns)
    assert {"wifi_ap_wlan0_not_acked_ppdus", "wifi_ap_wlan0_subframes_mean_mpdus", "wifi_ap_wlan0_busy_percent"} <= set(
        metrics(runs[1].summary)
    )


def test_comparison_and_tables_have_the_same_numbers(runs):
    for run in runs:
        by_name = {figure.name: figure for figure in figures(run.summary)}
        compared = {row.name: row for row in compare([run]) if row.name}
        assert {"totals.upload_mbps", "tcp_rtt.p50", "ping.icmp.p99"} <= set(compared) <= set(by_name)
        for name, row in compared.items():
            assert row.unit == by_name[name].unit
            assert row.cells[0].value == pytest.approx(by_name[name].value, rel=1e-3, abs=5e-4), name
        assert table(run)["value"].to_list() == [figure.value for figure in by_name.values()]
        assert metrics(run.summary)["ping_icmp_p99_ms"] == by_name["ping.icmp.p99"].value


def test_shares_have_no_unit_and_drops_have_packets(runs):
    names = metrics(runs[0].summary)
    assert names["layers_client_qdisc_share"] > 0.9
    assert names["drops_by_reason_router_eth1_qdisc_QDISC_DROP_packets"] == 3
    assert not [name for name in names if name.endswith("share_ms")]
