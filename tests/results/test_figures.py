# SPDX-License-Identifier: Apache-2.0
"""Every number of a summary has one name and one unit, and whoever tells it uses them."""

import json

import pytest

import hourglass
from hourglass.campaign.table import metrics
from hourglass.contract.figures import figures
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
