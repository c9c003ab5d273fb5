# SPDX-License-Identifier: Apache-2.0
"""The page as text: its numbers are the terminal's and the summary's, it is one file, and it escapes texts."""

import itertools
import json
import re
import shlex
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from cli.golden import drawn
from results import synthetic_probe, synthetic_wifi
from results.synthetic import MS, Flow, Probe, Recipe, make, write_summary

import hourglass
from hourglass import scenario, series_style
from hourglass.cli import tables
from hourglass.cli.exit_status import INTERRUPTED, guarded
from hourglass.contract.probe import LAYER_COLOURS, LAYERS
from hourglass.contract.summary import LayerFigures
from hourglass.report import page
from hourglass.report.command import command
from hourglass.report.data import OUTLINES, charts, overview, points_per_series, thinned
from hourglass.report.journeys import journeys
from hourglass.results import frames
from hourglass.results.compare import compare
from hourglass.results.goodput_latency import latency
from hourglass.results.sections import sections
from hourglass.results.sections.traffic_sections import PERCENTILES
from hourglass.results.series import Series
from hourglass.results.study_axes import reference_text, references, study_axes


class Page(HTMLParser):
    """The tables of a page as rows of (text, exact value), and all addresses on it."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.addresses, self.table, self.cell = {}, [], None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.addresses += [value for key, value in attributes if key in ("src", "href", "srcset", "action")]
        if tag == "table":
            self.table = self.tables.setdefault(values.get("id") or values["class"], [])
        elif tag == "tr" and self.table is not None:
            self.table.append([])
        elif tag in ("td", "th") and self.table is not None:
            self.cell = ["", values.get("data-value")]
            self.table[-1].append(self.cell)
        elif tag == "small":
            self.cell = None

    def handle_endtag(self, tag):
        if tag == "table":
            self.table = None
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, text):
        if self.cell is not None:
            self.cell[0] += text.strip()


RECIPE = Recipe(
    name="L100M",
    flows=[Flow("upload::1", rtt_us=lambda t: 1000 + round(t * 100), retrans_at=lambda t: int(t)),
           Flow("download::1", upload=False, bytes_at=lambda t: int(t * 5e5))],
    probes=[Probe("icmp"), Probe("udp", lambda seq: None if seq % 10 == 0 else seq * MS)],
)  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    slow = Recipe(flows=[Flow(rtt_us=lambda t: 30_000)], probes=[Probe("icmp", lambda seq: 31 * MS)])
    return [hourglass.load(make(root / str(i), recipe)) for i, recipe in enumerate((RECIPE, slow, RECIPE))]


def test_the_numbers_of_a_run_agree_in_terminal_summary_and_page(runs):
    summary = runs[0].summary
    page_tables = Page(page(runs[:1])).tables
    terminal = drawn(tables.figures(summary, "tcp_nup")).splitlines()

    def of_terminal(name):
        return next(line.split() for line in terminal if line.startswith(f"{name} "))

    for row, flow in zip(page_tables["flows"][1:], summary.flows, strict=False):
        assert [cell[0] for cell in row] == of_terminal(flow.id)
        exact = [flow.goodput_mbps, flow.retransmits, *(getattr(flow.tcp_rtt_ms, p) for p in PERCENTILES)]
        assert [float(cell[1]) for cell in row[2:]] == exact
    assert [cell[0] for cell in page_tables["flows"][3] if cell[0]] == of_terminal("all")
    for row in page_tables["pings"][1:]:
        name = row[0][0]
        assert [cell[0] for cell in row] == of_terminal(name)
        keys = ("p10", "p50", "p90", "p99", "max", "n", "lost")
        assert [float(cell[1]) for cell in row[1:]] == [getattr(summary.ping_ms[name], key) for key in keys]
    assert [cell[0] for cell in page_tables["drops"][1]] == ["client", "eth0", "14", "7", "3", "0", "0"]


def test_the_comparison_of_the_page_is_that_of_the_terminal(runs):
    rows = compare(runs)
    page_rows = Page(page(runs)).tables["runs-table"][1:]
    for number, cells in enumerate(page_rows):
        values = [row.cells[number].value for row in rows]
        assert [None if cell[1] is None else float(cell[1]) for cell in cells[-len(values) :]] == values
    html = page(runs)
    assert html.count('aria-label="significant"') == sum(c.significant for row in rows for c in row.cells) > 0


def test_a_native_run_is_described_as_such(runs, tmp_path):
    """A native run happened in real time, and its command repeats it on the same engine, with other bytes."""
    folder = make(tmp_path / "native", RECIPE)
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(info | {"engine": "native"}))
    native = hourglass.load(folder)
    text = page([runs[0], native])
    assert "1 run of the real Linux network stack in virtual time and 1 run" in text
    assert "of the real Linux network stack in real time." in text
    assert "Repeat this measurement" in text
    assert command(native).endswith(" --engine native")
    assert "14 s of test in" in drawn(tables.footer(native.summary, folder, None))


def test_the_page_is_one_file_without_requests(runs):
    text = page(runs)
    assert [address for address in Page(text).addresses if not address.startswith(("#", "data:"))] == []
    assert "default-src 'none'" in text
    assert "unsafe-eval" not in text


def test_the_same_runs_give_the_same_page(runs):
    assert page(runs) == page([hourglass.load(run.path) for run in runs])


def test_texts_of_runs_are_escaped(tmp_path):
    make(tmp_path / "a", Recipe(name="<script>alert(1)</script>", probes=[Probe("icmp </script><b>")]))
    text = page([hourglass.load(tmp_path / "a")])
    assert "<script>alert" not in text
    assert "icmp </script>" not in text


def test_layers_are_drawn_when_a_run_has_them(runs):
    run = hourglass.load(runs[0].path)
    assert "Time by layer" not in page([run])
    layers = {
        "client": {"qdisc": LayerFigures(n=9, p50=5.0, p99=9.0, mean=6.0, share=0.75)},
        "router": {"ring": LayerFigures(n=9, p50=2.0, p99=2.5, mean=2.0, share=0.25)},
    }
    run.summary = run.summary.model_copy(update={"layers_ms": layers})
    page_rows = Page(page([run])).tables["layers"][1:]
    assert [[cell[0] for cell in row] for row in page_rows] == [
        ["client", "qdisc", "6.00", "5.00", "9.00", "75.0%"],
        ["router", "ring", "2.00", "2.00", "2.50", "25.0%"],
    ]


@pytest.mark.parametrize(
    ("name", "settings", "options"),
    [
        ("L100M", ["stack.tsq=off", "test.length=7"], {"seed": 9}),
        ("mobile", ["testbed.link.0.rate=30mbit", "stack.sysctl.net.ipv4.tcp_ecn=1"], {"kernel": "5.10"}),
        ("asymmetric", ['stack.home.qdisc="cake bandwidth 19mbit"'], {}),
        ("L100M", ['test.flow_cc=["cubic","bbr"]', "testbed.link.1.delay=10ms"], {}),
        ("L100M", ["testbed.preset=R10M"], {}),
    ],
)
def test_the_command_repeats_the_same_scenario(tmp_path, monkeypatch, name, settings, options):
    make(tmp_path / "run")
    loaded = scenario.load(name, settings, **options)
    (tmp_path / "run/scenario.json").write_bytes(loaded.to_json())
    line = command(hourglass.load(tmp_path / "run"))
    assert line.startswith(f"hourglass run {name}")
    calls = []

    def record(resolved, *_, **__):
        calls.append(resolved)
        raise KeyboardInterrupt

    monkeypatch.setattr("hourglass.runner.run", record)
    assert guarded(shlex.split(line)[1:]) == INTERRUPTED
    assert [resolved.to_json() for resolved in calls] == [loaded.to_json()]


def test_a_custom_scenario_is_repeated_from_its_run(tmp_path):
    make(tmp_path / "run")
    assert command(hourglass.load(tmp_path / "run")) == f"hourglass run {tmp_path}/run/scenario.json"


def test_each_layer_has_a_different_colour():
    assert set(LAYER_COLOURS) == set(LAYERS)
    assert len(set(LAYER_COLOURS.values())) == len(LAYERS)


def test_bars_have_the_quantity_as_title(probed):
    text = page([probed])
    titles = re.findall(r'<figure class="anatomy card"><figcaption>([^<]+)', text)
    assert titles == ["TCP data", "ping icmp"]


def test_the_table_has_test_settings_and_warnings(runs, tmp_path):
    folder = make(tmp_path / "other", RECIPE)
    data = json.loads((folder / "scenario.json").read_text())
    data |= {"name": "other", "stack": {"tsq": "off"}}
    (folder / "scenario.json").write_text(json.dumps(data))
    page_rows = Page(page([runs[0], hourglass.load(folder)])).tables["runs-table"]
    assert [cell[0] for cell in page_rows[0][:6]] == ["run", "shown", "test", "settings", "kernel", "seed"]
    assert [row[2][0] for row in page_rows[1:]] == ["tcp_nup", "tcp_nup"]
    assert [row[3][0] for row in page_rows[1:]] == ["\u2013", "tsq=off"]
    assert all(re.search(r"\d+ warnings?$", row[0][0]) for row in page_rows[1:])


def test_no_two_series_of_a_chart_look_alike(tmp_path):
    """Draw the streams of RRUL with datagrams. Their sum has another look, and no stream is missing."""
    flows = [
        Flow(f"{direction}::{mark}", upload=direction == "upload")
        for direction in ("upload", "download")
        for mark in ("BE", "BK", "CS5", "EF")
    ]
    pings = [Probe(name) for name in ("icmp", "udp EF", "udp BK", "udp BE")]
    run = hourglass.load(make(tmp_path / "run", Recipe(flows=flows, probes=pings, datagrams=172)))
    series_of = {chart["title"]: chart["series"] for chart in charts(run, 500)["charts"]}
    assert [series["name"] for series in series_of["Goodput"]] == [
        "all TCP flows",
        *(flow.name for flow in flows),
        "voip",
    ]
    for series in series_of.values():
        for page_ in (0, 1):
            looks = [(line["look"]["c"][page_], tuple(line["look"]["dash"])) for line in series]
            assert len(set(looks)) == len(series)
    widths = [line["width"] for line in series_of["Ping"]]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 4


def test_groups_of_an_overview_look_different(runs):
    names = [f"run {i}" for i in range(60)]
    looks_ = [group["look"] for group in overview([runs[0]] * 60, names, names, [latency(runs[0])] * 60)["groups"]]
    assert len({(look["c"][0], look["dot"], look["filled"]) for look in looks_}) == 60
    assert set(OUTLINES) == set(series_style.SHAPES)


def test_thinning_keeps_every_stretch_s_extremes():
    values = np.random.default_rng(1).normal(size=100_000)
    values[77_777] = 99.0
    series = thinned(Series(np.arange(100_000.0), values), 1500)
    assert series.values.size <= 1500
    assert series.values.max() == 99.0
    assert series.values.min() == values.min()
    assert (np.diff(series.t_s) > 0).all()


def test_charts_separate_losses_and_one_way_delays(runs):
    drawn_ = charts(runs[0], 1500)
    ping = {series["name"]: series for series in drawn_["charts"][-1]["series"]}
    assert len(ping["udp"]["lost"]) == 7
    assert "lost" not in ping["icmp"]
    assert drawn_["window"] == [2, 12]


def test_radios_have_the_summary_s_figures(tmp_path):
    run = hourglass.load(make(tmp_path / "run", synthetic_wifi.recipe()))
    radios = [(node, device, radio) for node, devices in run.summary.wifi.items() for device, radio in devices.items()]
    head, *rows = Page(page([run])).tables["radios"]
    assert [name for name, _ in head][:4] == ["radio", "device", "PPDUs", "MPDUs"]
    assert len(rows) == len(radios) > 1
    for cells, (node, device, radio) in zip(rows, radios, strict=True):
        assert [cell[0] for cell in cells[:2]] == [node, device]
        exact = [float(value) for _, value in cells if value is not None]
        sizes = [getattr(radio.subframes, key) for key in ("mean", "p50", "max")]
        expected = [
            value for value in (radio.ppdus, *sizes, radio.busy_percent, radio.air_percent) if value is not None
        ]
        assert exact[: len(expected)] == expected


def test_the_page_has_every_section_and_the_terminal_all_without_details(probed):
    """Page and terminal draw the same list: figures, headings and texts are equal."""
    run = probed
    page_tables, text = Page(page([run])).tables, drawn(tables.figures(run.summary, "tcp_nup"))
    for section in sections(run.summary):
        if not section.about:
            continue
        section = section.without_empty_columns()
        head, *rows = page_tables[section.id]
        assert [name for name, _ in head] == [column.title for column in section.columns]
        assert len(rows) == len(section.rows)
        assert section.detail or all(column.title in text for column in section.columns[1:] if not column.wide)
    assert {"layers", "reasons", "qdiscs"} <= set(page_tables)
    assert [cell[0] for cell in page_tables["qdiscs"][1]] == ["client", "eth0", "fq_codel 11:", "drop_overlimit", "3"]
    assert "drop_overlimit" not in text


@pytest.fixture
def probed(tmp_path):
    """Return a run with layers, reasons of drops and counters of a qdisc."""
    counters = [{"t_ns": t, "node": "client", "device": "eth0", "handle": "11:", "kind": "fq_codel",
                 "name": "drop_overlimit", "value": value} for t, value in ((0, 1), (10**9, 3))]  # fmt: skip
    anatomy = synthetic_probe.Anatomy()
    recipe = synthetic_probe.recipe(lambda plain: [*anatomy(plain), {"table": "qdisc_stat", "rows": counters}])
    return hourglass.load(make(tmp_path / "probed", recipe))


@pytest.mark.slow
def test_two_hundred_runs_stay_small_and_use_their_summaries(tmp_path, monkeypatch):
    """The page has less than 5 MB with four flows and 30 s each, and no table stays in memory. `make bench` measures
    the time."""
    flows = [Flow(f"upload::{i + 1}", rtt_us=lambda t, i=i: 2000 + int(t * 977 * (i + 1)) % 4000) for i in range(4)]
    folder = make(tmp_path / "run", Recipe(flows=flows, length=30, delay=5))
    write_summary(folder)
    monkeypatch.setattr("hourglass.results.run_directory.summarize", None)
    recordings = [hourglass.load(folder) for _ in range(200)]
    assert points_per_series(recordings) < 1500
    assert len(page(recordings).encode()) < 5e6
    assert not any("tables" in vars(run) for run in recordings)


def test_the_command_line_writes_the_page(runs, tmp_path, capsys):
    out = tmp_path / "r.html"
    assert guarded(["report", *(str(run.path) for run in runs), "--page", str(out)]) == 0
    assert re.search(r"^report +\S+r.html$", capsys.readouterr().out, re.MULTILINE)
    assert out.read_text().startswith("<!DOCTYPE html>") or "<!DOCTYPE html>" in out.read_text()[:200]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "nowhere"], "run = 'nowhere': no such directory, and not a .flent.gz file"),
        (["report", "nowhere", "--page", "x.pdf"], "--page = 'x.pdf': the name must end in .html"),
        (["plot", "pie", "nowhere"], "KIND = 'pie': A picture is one of timeseries"),
        (["plot", "cdf"], "needs runs: hourglass plot cdf RUN..."),
    ],
)
def test_mistakes_are_one_clear_line(capsys, arguments, message):
    assert guarded(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_no_text_names_a_missing_package():
    """No text names hourglass or its extras: on the index, hourglass is another project's package."""
    root = Path(__file__).parents[2]
    texts = [*root.glob("*.md"), *root.glob("docs/*.md"), *(root / "src").rglob("*.py")]
    by_name = re.compile(r"""pip install (--?[\w-]+ )*['"]?hourglass(\[|-kernel|['"`]|==|$)""", re.MULTILINE)
    assert not [f"{path}: {match[0]}" for path in texts for match in by_name.finditer(path.read_text("utf-8"))]


def test_a_run_is_compared_with_the_first_choice_under_its_conditions():
    """Each rate and seed has its own reference: cubic."""
    cells = [(rate, cc, seed) for rate in ("100mbit", "10mbit") for cc in ("cubic", "bbr") for seed in (1, 2)]
    runs_of_grid = [
        SimpleNamespace(axes={"testbed.link.0.rate": f"rate={rate}", "stack.cc": f"cc={cc}", "seed": f"seed={seed}"})
        for rate, cc, seed in cells
    ]
    axes = study_axes(runs_of_grid)
    assert axes[0].values == ["10mbit", "100mbit"], "numbers are in order"
    assert [cells[index] for index in references(runs_of_grid, axes)] == [
        (rate, "cubic", seed) for rate, _, seed in cells
    ]
    assert reference_text(axes) == "cc=cubic at the same other settings"


@pytest.mark.parametrize("name", ["seed", "testbed.link.0.rate", "stack.cc"])
def test_runs_along_one_axis_are_compared_with_the_first(name):
    cells = [SimpleNamespace(axes={name: f"{name}={value}"}) for value in (1, 2, 3)]
    assert references(cells, study_axes(cells)) == [0, 0, 0]


def test_a_journey_has_all_layers_and_the_packets_before_it(tmp_path):
    """Times add up to the packet's, and the counts are those of a search over all rows."""
    recipe = synthetic_probe.recipe(synthetic_probe.Anatomy(every_ns=7 * MS))
    probed = hourglass.load(make(tmp_path / "run", recipe))
    result = journeys(probed)
    stays = []
    for row in frames.visits(probed.packets).filter(pl.col("node") == "client", pl.col("way") == "up").to_dicts():
        enter = row["start_ns"] + sum(row[f"{layer}_ns"] for layer in LAYERS[: LAYERS.index("qdisc")])
        stays.append((row["stream"], enter, enter + row["qdisc_ns"]))
    counted = 0
    for stream, down, _, start, _, _, parts in result["packets"]:
        assert parts[0][2] == start
        assert all(a[2] + a[3] == b[2] for a, b in itertools.pairwise(parts)), "no time is missing"
        for node, layer, enter, ns, *ahead in parts:
            if not down and result["nodes"][node] == "client" and result["layers"][layer] == "qdisc":
                earlier = Counter(name for name, a, b in stays if a <= enter < b < enter + ns)
                assert {result["streams"][index]: count for index, count in ahead[0]} == earlier, stream
                counted += sum(earlier.values())
    assert counted > 0
    assert result["one_in"] == 1
