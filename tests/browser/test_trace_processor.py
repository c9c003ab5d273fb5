# SPDX-License-Identifier: Apache-2.0
"""Perfetto's own trace processor opens the trace of a run, and the query of the page gives Hourglass's layer table."""

import re
from pathlib import Path

import polars as pl
import pytest
from results.synthetic import Flow, Probe, make
from results.synthetic_probe import recipe

import hourglass
from browser.conftest import Browser
from browser.trace_processor import TraceProcessor, viewer
from hourglass.contract.probe import LAYERS
from hourglass.results.anatomy import window_sums
from hourglass.results.frames import belongs_to
from hourglass.results.series import loaded_window
from hourglass.results.stats import rounded

PAGE = Path(__file__).parents[2] / "docs/how-to/viewers.md"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    flows, probes = [Flow("upload::1"), Flow("upload::2")], [Probe("icmp")]
    return hourglass.load(make(tmp_path_factory.mktemp("runs") / "run", recipe(flows=flows, probes=probes)))


@pytest.fixture(scope="module")
def processor(browser: Browser, run, tmp_path_factory):
    pytest.importorskip("perfetto")
    from hourglass.exports import perfetto

    trace = perfetto.write(run, tmp_path_factory.mktemp("trace") / "run.pftrace")
    with viewer() as address, browser.online():
        yield TraceProcessor(browser, address, trace)


def test_no_part_of_the_trace_is_refused(processor):
    assert processor.query("SELECT name, value FROM stats WHERE value > 0 AND severity != 'info'") == []
    assert processor.query("SELECT COUNT(*) AS slices FROM slice WHERE dur < 0") == [{"slices": 0}]


def test_one_query_gives_the_layer_table(processor, run):
    (query,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    rows = {(row["traffic"], row["node"], row["layer"]): row for row in processor.query(query)}
    sums = window_sums(run, loaded_window(run)).filter(pl.col("data") & belongs_to(*run.flows))
    nodes = sums.group_by("node").agg(pl.exclude("stream", "way").sum()).rows_by_key("node", named=True, unique=True)
    tables = {"data": run.summary.layers_ms, **run.summary.ping_layers_ms}
    assert rows.keys() == {(traffic, n, layer) for traffic, ns in tables.items() for n in ns for layer in ns[n]}
    assert {layer for _, _, layer in rows} < set(LAYERS)
    for (traffic, node, layer), row in rows.items():
        figures = tables[traffic][node][layer]
        assert (row["n"], rounded(row["p50_ms"]), rounded(row["p99_ms"])) == (figures.n, figures.p50, figures.p99)
        assert rounded(row["percent"] / 100) == figures.share
        if traffic == "data":
            assert (row["n"], row["total_ns"]) == (nodes[node]["packets"], nodes[node][f"{layer}_ns"])


def test_arrows_are_the_packets_steps_from_layer_to_layer(processor, run):
    (row,) = processor.query("SELECT COUNT(*) AS arrows FROM flow")
    packets = run.packets.filter(pl.col("visit") == 0).height
    assert row["arrows"] == run.layers.height - packets
