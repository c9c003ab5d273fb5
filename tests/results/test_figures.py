# SPDX-License-Identifier: Apache-2.0
"""Every number of a summary has one name and one unit, and whoever tells it uses them."""

import json

import pytest

import hourglass
from hourglass.campaign.table import UNITS, metrics
from hourglass.contract import names
from hourglass.contract.figures import Figure, figures
from hourglass.results.compare import compare
from hourglass.results.tidy import figures as table
from results import synthetic_probe, synthetic_wifi
from results.synthetic import make


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    recipes = (synthetic_probe.recipe(), synthetic_wifi.recipe())
    return [hourglass.load(make(root / str(place), recipe)) for place, recipe in enumerate(recipes)]


def numbers(value):
    """The numbers and nulls of a JSON value, but those that say what was run."""
    if isinstance(value, dict):
        return [one for key, inner in value.items() if key not in ("schema", "seed", "virtual_s", "wall_s")
                for one in numbers(inner)]  # fmt: skip
    if isinstance(value, list):
        return [one for inner in value for one in numbers(inner)]
    return [] if isinstance(value, str) else [value]


def test_every_number_of_a_summary_has_a_name_of_its_own(runs):
    for run in runs:
        found = list(figures(run.summary))
        assert [figure.value for figure in found] == numbers(json.loads(run.summary.to_json()))
        assert len({figure.name for figure in found}) == len(found)


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


def test_every_figure_that_may_be_has_a_unit_and_no_key_decides_it(runs):
    """Also where nodes, streams and layers are called as something that is counted: the layer txq is a time."""
    assert {one.unit for one in names.templates()} == set(UNITS)
    counted = ("txq", "share", "lost", "drops", "held", "n", "mos", "some_ms", "rate_mbps")
    for template in names.templates():
        for word in counted:
            path = tuple(word if keyed else part for part, keyed in zip(template.path, template.keys, strict=True))
            assert Figure(path, None).unit == template.unit, path
    figure = Figure(("layers_ms", "ap", "txq", "p50"), None)
    assert figure.unit == "ms"


def test_columns_of_a_sweep_end_in_their_unit(runs):
    """But those without: ratios, marks, and what says what was run."""
    bare = {"kernel", "digest", "flows", "fairness", "upload_fairness", "download_fairness"}
    units = tuple(f"_{unit}" for unit in UNITS.values() if unit)
    for run in runs:
        told = metrics(run.summary)
        assert [name for name in told if name not in bare and not name.endswith(units) and "_share" not in name] == []
        assert [name for name in told if "share" in name and name.endswith(units)] == []
        assert {"drops_qdisc_skbs", "drops_qdisc_packets", "retransmits_segments"} <= set(told)
    assert {"wifi_ap_wlan0_not_acked_ppdus", "wifi_ap_wlan0_subframes_mean_mpdus", "wifi_ap_wlan0_busy_percent"} <= set(
        metrics(runs[1].summary)
    )


def test_comparison_and_tables_tell_the_same_numbers(runs):
    for run in runs:
        known = {figure.name: figure for figure in figures(run.summary)}
        told = {row.name: row for row in compare([run]) if row.name}
        assert {"totals.upload_mbps", "tcp_rtt.p50", "ping.icmp.p99"} <= set(told) <= set(known)
        for name, row in told.items():
            assert row.unit == known[name].unit
            assert row.cells[0].value == pytest.approx(known[name].value, rel=1e-3, abs=5e-4), name
        assert table(run)["value"].to_list() == [figure.value for figure in known.values()]
        assert metrics(run.summary)["ping_icmp_p99_ms"] == known["ping.icmp.p99"].value


def test_shares_have_no_unit_and_drops_have_packets(runs):
    names = metrics(runs[0].summary)
    assert names["layers_client_qdisc_share"] > 0.9
    assert names["drops_by_reason_router_eth1_qdisc_QDISC_DROP_packets"] == 3
    assert not [name for name in names if name.endswith("share_ms")]
