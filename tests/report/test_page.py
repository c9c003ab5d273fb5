# SPDX-License-Identifier: Apache-2.0
"""The page as text: its numbers are the terminal's and the summary's, it is one file, it escapes what it shows."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from cli.golden import drawn
from results import synthetic_probe, synthetic_wifi
from results.synthetic import MS, Flow, Probe, Recipe, make, summed_up

import hourglass
from hourglass import looks, scenario
from hourglass.cli import tables
from hourglass.cli.errors import guarded
from hourglass.contract.probe import LAYER_COLOURS, LAYERS
from hourglass.contract.summary import Layer
from hourglass.engine.virtual import Virtual
from hourglass.plan import build
from hourglass.report import page
from hourglass.report.command import command
from hourglass.report.data import OUTLINES, charts, overview, share_of_page, thinned
from hourglass.report.testbed import facts
from hourglass.report.topology import topology
from hourglass.results.compare import compare
from hourglass.results.flat import flat
from hourglass.results.sections import sections
from hourglass.results.sections.traffic import PERCENTILES
from hourglass.results.series import Series


class Page(HTMLParser):
    """Tables as rows of (text, exact value), and every address the page names."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.addresses, self.table, self.cell = {}, [], None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.addresses += [value for key, value in attributes if key in ("src", "href", "srcset", "action")]
        if tag == "table":
            self.table = self.tables.setdefault(found.get("id") or found["class"], [])
        elif tag == "tr" and self.table is not None:
            self.table.append([])
        elif tag in ("td", "th") and self.table is not None:
            self.cell = ["", found.get("data-value")]
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
    shown = Page(page(runs[:1])).tables
    terminal = drawn(tables.figures(summary, "tcp_nup")).splitlines()

    def of_terminal(name):
        return next(line.split() for line in terminal if line.startswith(f"{name} "))

    for row, flow in zip(shown["flows"][1:], summary.flows, strict=False):
        assert [cell[0] for cell in row] == of_terminal(flow.id)
        exact = [flow.goodput_mbps, flow.retransmits, *(getattr(flow.tcp_rtt_ms, p) for p in PERCENTILES)]
        assert [float(cell[1]) for cell in row[2:]] == exact
    assert [cell[0] for cell in shown["flows"][3] if cell[0]] == of_terminal("all")
    for row in shown["pings"][1:]:
        name = row[0][0]
        assert [cell[0] for cell in row] == of_terminal(name)
        keys = ("p10", "p50", "p90", "p99", "max", "n", "lost")
        assert [float(cell[1]) for cell in row[1:]] == [getattr(summary.ping_ms[name], key) for key in keys]
    assert [cell[0] for cell in shown["drops"][1]] == ["client", "eth0", "14", "7", "3", "0", "0"]


def test_the_comparison_of_the_page_is_that_of_the_terminal(runs):
    rows = compare(runs)
    shown = Page(page(runs)).tables["runs-table"][1:]
    for place, cells in enumerate(shown):
        values = [row.cells[place].value for row in rows]
        assert [None if cell[1] is None else float(cell[1]) for cell in cells[-len(values) :]] == values
    html = page(runs)
    assert html.count('aria-label="significant"') == sum(c.significant for row in rows for c in row.cells) > 0


def test_a_native_run_is_told_as_what_it_is(runs, tmp_path):
    """It was made in real time, and what repeats it does so on that engine, to other bytes."""
    place = make(tmp_path / "native", RECIPE)
    info = json.loads((place / "run.json").read_text())
    (place / "run.json").write_text(json.dumps(info | {"engine": "native"}))
    native = hourglass.load(place)
    text = page([runs[0], native])
    assert "1 run of the real Linux network stack in virtual time and 1 run" in text
    assert "of the real Linux network stack in real time." in text
    assert "Measure it again" in text
    assert command(native).endswith(" --engine native")
    assert "14 s of test in" in drawn(tables.footer(native.summary, place, None))


def test_the_page_is_one_file_that_asks_for_nothing(runs):
    text = page(runs)
    assert [address for address in Page(text).addresses if not address.startswith(("#", "data:"))] == []
    assert "default-src 'none'" in text
    assert text.count("vegaEmbed=") == 1


def test_the_same_runs_give_the_same_page(runs):
    assert page(runs) == page([hourglass.load(run.path) for run in runs])


def test_what_runs_say_is_escaped(tmp_path):
    make(tmp_path / "a", Recipe(name="<script>alert(1)</script>", probes=[Probe("icmp </script><b>")]))
    text = page([hourglass.load(tmp_path / "a")])
    assert "<script>alert" not in text
    assert "icmp </script>" not in text


def test_layers_are_drawn_when_a_run_has_them(runs):
    run = hourglass.load(runs[0].path)
    assert "Where the time goes" not in page([run])
    layers = {
        "client": {"qdisc": Layer(n=9, p50=5.0, p99=9.0, mean=6.0, share=0.75)},
        "router": {"ring": Layer(n=9, p50=2.0, p99=2.5, mean=2.0, share=0.25)},
    }
    run.summary = run.summary.model_copy(update={"layers_ms": layers})
    shown = Page(page([run])).tables["layers"][1:]
    assert [[cell[0] for cell in row] for row in shown] == [
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
def test_the_command_makes_the_very_scenario_again(tmp_path, monkeypatch, name, settings, options):
    make(tmp_path / "run")
    wanted = scenario.load(name, settings, **options)
    (tmp_path / "run/scenario.json").write_bytes(wanted.to_json())
    line = command(hourglass.load(tmp_path / "run"))
    assert line.startswith(f"hourglass run {name}")
    seen = []
    monkeypatch.setattr("hourglass.cli.run.run_scenario", lambda *given: seen.append(given))
    import shlex

    assert guarded(shlex.split(line)[1:]) == 0
    source, changes, seed, kernel, *_ = seen[0]
    assert scenario.load(source, changes, seed=seed, kernel=kernel).to_json() == wanted.to_json()


def test_a_scenario_of_ones_own_is_repeated_from_its_run(tmp_path):
    make(tmp_path / "run")
    assert command(hourglass.load(tmp_path / "run")) == f"hourglass run {tmp_path}/run/scenario.json"


@pytest.mark.parametrize("name", [name for name, _ in scenario.builtin()])
def test_every_built_in_testbed_can_be_drawn(name):
    """What streams pass: every node but those beside the paths, a line per cable and station, in drawing and list."""
    wanted = scenario.load(name)
    paths = build(wanted, Virtual.capabilities).paths
    hops = [hop for path in paths for hop in (*path.there, *path.back)]
    svg, tree = topology(paths, dict(flat(wanted.model_dump(mode="json")))).split("</svg>")
    for node in {hop.node for hop in hops}:
        assert f">{node}</text>" in svg
        assert f"<b>{node}</b>" in tree
    assert (
        svg.count("<polyline ")
        == tree.count('class="link"')
        == len({frozenset(((hop.node, hop.device), (hop.to_node, hop.to_device))) for hop in hops})
    )
    passed = {f"{hop.node}:{hop.device}" for hop in hops}
    for drawn_ in (svg, tree):
        assert drawn_.count("HTB ") == len({str(one.at) for one in wanted.testbed.shaper} & passed)


def test_a_cell_is_drawn_and_listed_with_its_standard_width_band_and_rate():
    wanted = scenario.load("wifi-ath9k")
    settings = dict(flat(wanted.model_dump(mode="json")))
    paths = build(wanted, Virtual.capabilities).paths
    drawn_ = topology(paths, settings)
    assert drawn_.count('<g class="air">') == 1
    columns = re.findall(r'<rect x="([\d.]+)"', drawn_)
    assert len(set(columns)) == 3, "client, ap and server, each in a column of its own"
    for words in ("802.11n, 5 GHz, 20 MHz", "2 streams, MCS 7: 144 Mbit/s", "delay 1 ms \u2192 \u2190 0 ms"):
        assert words in drawn_
    assert list(facts(paths, settings)) == [
        ("client \u2013 ap (Wi-Fi)", "802.11n, 5 GHz, 20 MHz, 2 streams, MCS 7: 144 Mbit/s"),
        ("ap \u2013 server", "1 Gbit/s, delay 1 ms \u2192 \u2190 0 ms"),
    ]


def test_a_station_s_own_rate_is_the_link_s():
    wanted = scenario.load("wifi-ax", ["testbed.wifi.0.station.0.mcs=3"])
    settings = dict(flat(wanted.model_dump(mode="json")))
    assert "MCS 3: " in topology(build(wanted, Virtual.capabilities).paths, settings)
    wanted = scenario.load("wifi-ath9k", ["testbed.wifi.0.mcs=minstrel"])
    settings = dict(flat(wanted.model_dump(mode="json")))
    assert ", minstrel, up to " in topology(build(wanted, Virtual.capabilities).paths, settings)


def test_each_layer_has_a_colour_of_its_own():
    assert set(LAYER_COLOURS) == set(LAYERS)
    assert len(set(LAYER_COLOURS.values())) == len(LAYERS)


def test_bars_are_titled_by_what_they_are_of(probed):
    text = page([probed])
    titles = re.findall(r'<figure class="anatomy card"><figcaption>([^<]+)', text)
    assert titles == ["TCP data", "ping icmp"]


def test_the_table_tells_test_and_settings_and_warnings_in_words(runs, tmp_path):
    place = make(tmp_path / "other", RECIPE)
    stored = json.loads((place / "scenario.json").read_text())
    stored |= {"name": "other", "stack": {"tsq": "off"}}
    (place / "scenario.json").write_text(json.dumps(stored))
    shown = Page(page([runs[0], hourglass.load(place)])).tables["runs-table"]
    assert [cell[0] for cell in shown[0][:5]] == ["run", "test", "settings", "kernel", "seed"]
    assert [row[1][0] for row in shown[1:]] == ["tcp_nup", "tcp_nup"]
    assert [row[2][0] for row in shown[1:]] == ["\u2013", "tsq=off"]
    assert all(re.search(r"\d+ warnings?$", row[0][0]) for row in shown[1:])


def test_no_two_series_of_a_chart_look_alike(tmp_path):
    """The streams of RRUL with a flood; the sum is like none of them, and nothing is left out."""
    flows = [Flow(f"{way}::{mark}", upload=way == "upload") for way in ("upload", "download") for mark in
             ("BE", "BK", "CS5", "EF")]  # fmt: skip
    pings = [Probe(name) for name in ("icmp", "udp EF", "udp BK", "udp BE")]
    run = hourglass.load(make(tmp_path / "run", Recipe(flows=flows, probes=pings, datagrams=172)))
    found = {chart["title"]: chart["series"] for chart in charts(run, 500)["charts"]}
    assert [series["name"] for series in found["Goodput"]] == ["all TCP flows", *(flow.name for flow in flows), "voip"]
    for series in found.values():
        for page_ in (0, 1):
            drawn_ = [(one["look"]["c"][page_], tuple(one["look"]["dash"])) for one in series]
            assert len(set(drawn_)) == len(series)
    widths = [one["width"] for one in found["Ping"]]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 4


def test_groups_of_an_overview_look_different(runs):
    names = [f"run {i}" for i in range(60)]
    looks_ = [group["look"] for group in overview([runs[0]] * 60, names, names)["groups"]]
    assert len({(look["c"][0], look["dot"], look["filled"]) for look in looks_}) == 60
    assert set(OUTLINES) == set(looks.SHAPES)


def test_thinning_keeps_every_stretch_s_extremes():
    values = np.random.default_rng(1).normal(size=100_000)
    values[77_777] = 99.0
    series = thinned(Series(np.arange(100_000.0), values), 1500)
    assert series.values.size <= 1500
    assert series.values.max() == 99.0
    assert series.values.min() == values.min()
    assert (np.diff(series.t_s) > 0).all()


def test_charts_hold_losses_and_one_way_delays_apart(runs):
    drawn_ = charts(runs[0], 1500)
    ping = {series["name"]: series for series in drawn_["charts"][-1]["series"]}
    assert len(ping["udp"]["lost"]) == 7
    assert "lost" not in ping["icmp"]
    assert drawn_["window"] == [2, 12]


def test_radios_have_the_summary_s_figures(tmp_path):
    run = hourglass.load(make(tmp_path / "run", synthetic_wifi.recipe()))
    radios = [(node, device, one) for node, devices in run.summary.wifi.items() for device, one in devices.items()]
    head, *rows = Page(page([run])).tables["radios"]
    assert [name for name, _ in head][:4] == ["radio", "device", "PPDUs", "MPDUs"]
    assert len(rows) == len(radios) > 1
    for cells, (node, device, one) in zip(rows, radios, strict=True):
        assert [cell[0] for cell in cells[:2]] == [node, device]
        exact = [float(value) for _, value in cells if value is not None]
        sizes = [getattr(one.subframes, key) for key in ("mean", "p50", "max")]
        told = [value for value in (one.ppdus, *sizes, one.busy_percent, one.air_percent) if value is not None]
        assert exact[: len(told)] == told


def test_the_page_has_every_section_and_the_terminal_what_is_no_detail(probed):
    """The same figures, headings and words: the one list is drawn twice."""
    run = probed
    shown_, text = Page(page([run])).tables, drawn(tables.figures(run.summary, "tcp_nup"))
    for section in sections(run.summary):
        if not section.about:
            continue
        section = section.known()
        head, *rows = shown_[section.id]
        assert [name for name, _ in head] == [column.title for column in section.columns]
        assert len(rows) == len(section.rows)
        assert section.detail or all(column.title in text for column in section.columns[1:] if not column.wide)
    assert {"layers", "reasons", "qdiscs"} <= set(shown_)
    assert [cell[0] for cell in shown_["qdiscs"][1]] == ["client", "eth0", "fq_codel 11:", "drop_overlimit", "3"]
    assert "drop_overlimit" not in text


@pytest.fixture
def probed(tmp_path):
    """A run with layers, reasons of drops and a qdisc's own counters."""
    counters = [{"t_ns": t, "node": "client", "device": "eth0", "handle": "11:", "kind": "fq_codel",
                 "name": "drop_overlimit", "value": value} for t, value in ((0, 1), (10**9, 3))]  # fmt: skip
    anatomy = synthetic_probe.Anatomy()
    recipe = synthetic_probe.recipe(lambda of: [*anatomy(of), {"table": "qdisc_stat", "rows": counters}])
    return hourglass.load(make(tmp_path / "probed", recipe))


def test_two_hundred_runs_stay_small_and_no_run_is_summed_up_anew(tmp_path, monkeypatch):
    """Under 15 MB, with four flows and 30 s each; only what is drawn is read. How long it takes says `make bench`."""
    flows = [Flow(f"upload::{i + 1}", rtt_us=lambda t, i=i: 2000 + int(t * 977 * (i + 1)) % 4000) for i in range(4)]
    place = make(tmp_path / "run", Recipe(flows=flows, length=30, delay=5))
    summed_up(place)
    monkeypatch.setattr("hourglass.results.opening.summarize", None)
    many = [hourglass.load(place) for _ in range(200)]
    assert share_of_page(many) < 1500
    assert len(page(many).encode()) < 15e6
    kept = [{name for name in run.tables if run.tables.kept(name)} for run in many]
    assert kept == [{"ping"}] * 200


def test_the_command_line_writes_the_page(runs, tmp_path, capsys):
    out = tmp_path / "r.html"
    assert guarded(["report", *(str(run.path) for run in runs), "--out", str(out)]) == 0
    assert re.search(r"^report +\S+r.html$", capsys.readouterr().out, re.MULTILINE)
    assert out.read_text().startswith("<!DOCTYPE html>") or "<!DOCTYPE html>" in out.read_text()[:200]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", "nowhere"], "run = 'nowhere': there is no such directory, and it is no .flent.gz file"),
        (["report", "nowhere", "--out", "x.pdf"], "out = 'x.pdf': the name must end in .html"),
        (["plot", "pie", "nowhere"], "KIND = 'pie': is one of timeseries"),
        (["plot", "cdf"], "which runs? hourglass plot cdf RUN..."),
    ],
)
def test_mistakes_are_one_clear_line(capsys, arguments, words):
    assert guarded(arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.splitlines()) == 1
