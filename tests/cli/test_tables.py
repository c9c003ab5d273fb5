# SPDX-License-Identifier: Apache-2.0
"""The terminal's tables against golden text."""

from pathlib import Path

import pytest
from results import synthetic_probe, synthetic_wifi
from results.synthetic import MS, Flow, Probe, Recipe, make

import hourglass
from cli.golden import WIDTH, check, drawn
from hourglass.cli import tables
from hourglass.contract.summary import RunWarning
from hourglass.results.compare import compare
from hourglass.results.sections.section import Column, Section

LOADED = Recipe(
    name="L100M",
    flows=[
        Flow("upload::1", rtt_us=lambda t: 1000 + round(t * 100), retrans_at=lambda t: int(t)),
        Flow("upload::2", bytes_at=lambda t: int(t * 11_000_000), rtt_us=lambda t: 40_000, cc="bbr"),
        Flow("download::1", upload=False, bytes_at=lambda t: int(t * 500_000)),
    ],
    probes=[Probe("icmp"), Probe("udp", lambda seq: None if seq % 10 == 0 else seq * MS)],
)
SLOWER = Recipe(name="L100M", flows=[Flow(rtt_us=lambda t: 30_000)], probes=[Probe("icmp", lambda seq: 31 * MS)])
PING = Recipe(name="idle", flows=[], probes=[Probe("icmp"), Probe("udp", lambda seq: None)], qdisc_drops=0, nic_drops=0)


QUEUED = synthetic_probe.recipe(name="L100M")
SMALL_QUEUES = synthetic_probe.recipe(
    synthetic_probe.Anatomy(synthetic_probe.upload(14 * MS, 1 * MS), synthetic_probe.ping(1 * MS)), name="L100M"
)


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    root = tmp_path_factory.mktemp("probed")
    return [hourglass.load(make(root / str(i), recipe)) for i, recipe in enumerate((QUEUED, SMALL_QUEUES))]


def test_the_table_of_layers(probed):
    check("layers.txt", drawn(tables.figures(probed[0].summary, "tcp_nup")))


def test_the_comparison_of_layers(probed):
    check("compare_layers.txt", drawn(tables.comparison(compare(probed), ["runs/queued", "runs/small"], [0, 0])))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    return [hourglass.load(make(root / str(i), recipe)) for i, recipe in enumerate((LOADED, SLOWER, PING))]


def test_the_table_of_a_loaded_run(runs):
    check("loaded.txt", drawn(tables.figures(runs[0].summary, "tcp_nup")))


def test_the_table_of_a_run_without_load(runs):
    check("idle.txt", drawn(tables.figures(runs[2].summary, "ping")))


def test_the_footer_names_places_times_and_digest(runs):
    warnings = [
        RunWarning(id="console", text="the console has an odd line", remedy=""),
        RunWarning(
            id="few-samples",
            text="p99 of ping rests on little, so little that it is all but the maximum",
            remedy="make the test longer (test.length)",
        ),
    ]
    summary = runs[0].summary.model_copy(update={"digest": "0123456789abcdef" * 4, "warnings": warnings})
    folder = Path("runs") / "L100M-0123456789"
    check("footer.txt", drawn(tables.warnings(summary), tables.footer(summary, folder, folder / "run.png")))


def test_a_kernel_without_pgo_is_named_next_to_the_time(runs):
    tuned, plain = (tables.footer(runs[0].summary, Path("run"), None, state).plain for state in (True, False))
    assert plain.replace(tables.PLAIN, "") == tuned
    assert "hourglass kernel tune" in next(line for line in plain.splitlines() if line.startswith("time"))


def test_the_comparison_of_two_runs(runs):
    check("compare.txt", drawn(tables.comparison(compare(runs[:2]), ["runs/fast", "runs/slow"], [0, 0])))


def test_many_runs_are_compared_in_several_tables(runs):
    five = [runs[0], runs[1], runs[2], runs[1], runs[0]]
    check("compare_many.txt", drawn(tables.comparison(compare(five), [f"runs/{i}" for i in range(5)], [0] * 5)))


def test_each_reference_begins_a_table(runs):
    four = [runs[0], runs[1], runs[1], runs[0]]
    references = [0, 0, 2, 2]
    text = drawn(tables.comparison(compare(four, references), list("abcd"), references))
    heads = [line.split() for line in text.splitlines() if line.startswith("figure")]
    assert heads == [["figure", "unit", "A", "B", "change", "%"], ["figure", "unit", "C", "D", "change", "%"]]
    goodputs = [line.split()[3:] for line in text.splitlines() if line.startswith("upload goodput")]
    assert goodputs == [["96.0", "8.00", "-91.7", "*"], ["8.00", "96.0", "+1100.0", "*"]]
    assert "change from the first run;" in text


def test_no_line_is_wider_than_the_terminal(runs):
    changes = {"id": "upload with a very long name::1", "goodput_mbps": 12345.6}
    flows = [flow.model_copy(update=changes) for flow in runs[0].summary.flows]
    long = runs[0].summary.model_copy(update={"flows": flows})
    for text in (
        drawn(tables.figures(long, "tcp_nup")),
        drawn(tables.comparison(compare(runs), ["a", "b", "c"], [0] * 3)),
    ):
        assert max(len(line) for line in text.splitlines()) <= WIDTH
        assert text.isascii()


def test_a_text_that_is_too_long_is_below_its_table():
    columns = (
        Column("radio", "text"),
        *(Column(f"figure {n}") for n in range(6)),
        Column("shares", "text"),
    )
    rows = (("ap", *range(6), "client 60 other 40"), ("client", *range(6), ""))
    section = Section("radios", "Wi-Fi", "Wi-Fi", columns, rows)
    text = drawn(tables.drawn(section)).splitlines()
    assert text[0].endswith("figure 5")
    assert text[-1] == "ap  shares: client 60 other 40"
    assert drawn(tables.drawn(section), width=100).splitlines()[0].endswith("shares")


def test_the_table_of_radios(tmp_path):
    run = hourglass.load(make(tmp_path / "run", synthetic_wifi.recipe()))
    check("wifi.txt", drawn(tables.figures(run.summary, "tcp_nup")))
