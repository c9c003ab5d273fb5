# SPDX-License-Identifier: Apache-2.0
"""Pictures: the same runs give the same bytes, units and convention are drawn, and unusual runs can be drawn."""

import importlib
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from flent.small import small
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread
from results import synthetic_probe, synthetic_wifi
from results.synthetic import MS, Flow, Probe, Recipe, make

import hourglass
from hourglass import series_style
from hourglass.contract.probe import LAYERS
from hourglass.errors import HourglassError, InputError
from hourglass.plots import KINDS, anatomy, candlestick, draw, layers, queues, timeseries
from hourglass.plots.anatomy import bars
from hourglass.plots.fairness import fairness
from hourglass.plots.layers import steps_ms
from hourglass.plots.pooled_samples import flows_by_direction, latencies_ms
from hourglass.plots.scatter import ellipse
from hourglass.plots.style import wants_log
from hourglass.results import traffic
from hourglass.results.frames import belongs_to
from hourglass.results.series import Series, loaded_window
from hourglass.results.traffic import goodput_steps

from .look import assert_drawn


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    recipes = [
        Recipe(flows=[Flow("upload::1"), Flow("upload::2", rtt_us=lambda t: 2000 + int(t * 100))]),
        Recipe(flows=[Flow("upload::1"), Flow("download::1", upload=False)], probes=[Probe("icmp"), Probe("udp")]),
        Recipe(flows=[], probes=[Probe("icmp", lambda seq: None if seq % 7 == 0 else 90 * MS)]),
        Recipe(flows=[Flow(f"upload::{i}") for i in range(9)], probes=[Probe("icmp", lambda seq: None)]),
    ]
    root = tmp_path_factory.mktemp("runs")
    return [hourglass.load(make(root / str(i), recipe)) for i, recipe in enumerate(recipes)]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_same_runs_give_the_same_bytes(runs, tmp_path, suffix):
    for name, plot in (("c", lambda p: candlestick(runs[:2], ["a", "b"], p)), ("t", lambda p: timeseries(runs[0], p))):
        pictures = [tmp_path / f"{name}{i}.{suffix}" for i in range(2)]
        for picture in pictures:
            plot(picture)
        first, second = (picture.read_bytes() for picture in pictures)
        assert first == second
        assert_drawn(pictures[0])


def test_every_kind_of_run_can_be_drawn(runs, tmp_path):
    for i, run in enumerate(runs):
        timeseries(run, tmp_path / f"{i}.png")
        candlestick([run], ["one"], tmp_path / f"c{i}.png")
    candlestick(runs, ["a", "b", "ping alone", "nine"], tmp_path / "all.png")
    pictures = list(tmp_path.glob("*.png"))
    assert len(pictures) == 2 * len(runs) + 1
    for picture in pictures:
        assert_drawn(picture)


def test_a_candlestick_states_its_convention_and_units(runs, tmp_path, monkeypatch):
    monkeypatch.setitem(hourglass.plots.style.RC, "svg.fonttype", "none")
    candlestick(runs[:2], ["tsq=default", "tsq=off"], tmp_path / "c.svg")
    text = (tmp_path / "c.svg").read_text()
    for label in ("box: p10\u2013p90, line: median", "(Mbit/s)", "(ms)", "tsq=default", "TCP RTT", "ping icmp"):
        assert label in text


def test_candles_are_drawn_at_the_percentiles(runs, tmp_path, monkeypatch):
    """The RTT of the first flow is 2 ms. That of the second rises from 2 to 3 ms. Over both, p10 = 2 and p90 = 2.8."""
    candles = []
    module = importlib.import_module("hourglass.plots.candlestick")
    monkeypatch.setattr(module, "_candle", lambda axes, x, figures, *options: candles.append(figures))
    candlestick(runs[:1], ["one"], tmp_path / "c.png")
    throughput, rtt, ping = candles
    assert list(throughput) == pytest.approx([16, 16, 16])
    assert list(rtt) == pytest.approx([2, 2, 2.8], abs=0.01)
    assert list(ping) == [1, 1, 1]


def test_latencies_are_those_under_load_and_lost_packets_have_none(runs):
    """Without flows all 14 s of pings count, 200 ms apart, except every seventh. Under load 10 s count, with both
    ends."""
    latencies = latencies_ms(runs[2])
    assert set(latencies["ping icmp"]) == {90}
    assert (latencies["TCP RTT"].size, latencies["ping icmp"].size) == (0, 60)
    assert latencies_ms(runs[1])["ping udp"].size == 51
    assert {direction: [flow.name for flow in flows] for direction, flows in flows_by_direction(runs[1]).items()} == {
        "upload": ["upload::1"],
        "download": ["download::1"],
    }


def test_an_unknown_suffix_is_the_users_mistake(runs, tmp_path):
    with pytest.raises(InputError, match=r"picture = .*\.png, \.svg or \.pdf"):
        timeseries(runs[0], tmp_path / "x.jpg")


def test_a_path_that_cannot_be_written_is_one_clear_line(runs, tmp_path):
    with pytest.raises(HourglassError, match="cannot be written: No such file"):
        timeseries(runs[0], tmp_path / "none" / "x.png")


@pytest.mark.parametrize(("values", "log"), [([1, 30], False), ([1, 31], True), ([0, 1000], False), ([], False)])
def test_log_axes_begin_above_a_span_of_thirty(values, log):
    assert wants_log(values) == log


PROBED = ("anatomy", "layers", "queues", "wifi")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in PROBED])
def test_every_kind_draws_the_same_bytes_and_names_its_units(runs, tmp_path, monkeypatch, kind):
    monkeypatch.setitem(hourglass.plots.style.RC, "svg.fonttype", "none")
    for name in ("a", "b"):
        draw(kind, runs[:1] if KINDS[kind].most_runs else [runs[0], runs[1], runs[3]], tmp_path / f"{name}.svg")
    text = (tmp_path / "a.svg").read_text()
    assert text == (tmp_path / "b.svg").read_text()
    assert_drawn(tmp_path / "a.svg")
    assert "(ms" in text or "Mbit/s" in text


def test_radios_are_drawn_and_a_run_without_any_is_refused(runs, tmp_path, monkeypatch):
    monkeypatch.setitem(hourglass.plots.style.RC, "svg.fonttype", "none")
    with pytest.raises(InputError, match="has no radios"):
        draw("wifi", runs[:1], tmp_path / "none.svg")
    run = hourglass.load(make(tmp_path / "run", synthetic_wifi.recipe()))
    draw("wifi", [run], tmp_path / "a.svg")
    labels = texts(lambda p: draw("wifi", [run], p), tmp_path / "said.svg")
    assert labels.count("not measured") == 2, "queues, of which this run has no samples"
    assert_drawn(tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert all(label in text for label in ("ap:wlan0", "client:wlan0", "MPDUs of a PPDU", "PPDUs (%)"))


@pytest.mark.parametrize("kind", [kind for kind, properties in KINDS.items() if properties.needs_flows])
def test_kinds_that_need_flows_refuse_runs_without(runs, tmp_path, kind):
    with pytest.raises(InputError, match=f"{kind} needs flows, and the test tcp_nup has none"):
        draw(kind, [runs[2]], tmp_path / "x.png")


def test_a_kind_of_one_run_refuses_two(runs, tmp_path):
    with pytest.raises(InputError, match="timeseries shows 1 run only"):
        draw("timeseries", runs[:2], tmp_path / "x.png")


def test_the_ellipse_is_one_sigma_of_the_samples():
    """Independent samples with deviations 3 and 1: the outline reaches mean + deviation along each axis."""
    x, y = np.array([-3.0, 3, -3, 3]) + 10, np.array([-1.0, -1, 1, 1]) + 5
    along, across = ellipse(x, y)
    unbiased = (4 / 3) ** 0.5
    assert along.max() == pytest.approx(10 + 3 * unbiased, rel=1e-3)
    assert across.max() == pytest.approx(5 + 1 * unbiased, rel=1e-3)


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    root = tmp_path_factory.mktemp("probed")
    recipes = [
        synthetic_probe.recipe(),
        synthetic_probe.recipe(
            synthetic_probe.Anatomy(synthetic_probe.upload(tsq_ns=14 * MS, qdisc_ns=1 * MS)),
            flows=[Flow(cc="bbr"), Flow("upload::2")],
        ),
    ]
    return [hourglass.load(make(root / str(i), recipe)) for i, recipe in enumerate(recipes)]


def test_pictures_of_layers_have_the_same_bytes_each_time(probed, tmp_path):
    draws = {
        "a": lambda p: anatomy(probed, ["off", "1ms"], p),
        "c": lambda p: candlestick(probed, ["off", "1ms"], p),
        "l": lambda p: layers(probed[0], p),
        "q": lambda p: queues(probed[1], p),
    }
    for name, plot in draws.items():
        first, second = (tmp_path / f"{name}{i}.png" for i in range(2))
        plot(first)
        plot(second)
        assert first.read_bytes() == second.read_bytes()
        assert_drawn(first)


def test_pictures_of_layers_name_layers_units_terms_and_phases(probed, tmp_path, monkeypatch):
    monkeypatch.setitem(hourglass.plots.style.RC, "svg.fonttype", "none")
    candlestick(probed, ["off", "1ms"], tmp_path / "c.svg")
    for label in ("client qdisc", "client tsq 14.0", "mean time of a packet (ms)", "ping icmp", "TCP data", "1ms"):
        assert label in (tmp_path / "c.svg").read_text()
    queues(probed[1], tmp_path / "q.svg")
    for label in ("limit: floor", "limit: cap", "PROBE_RTT", "client:eth0", "(KiB)", "cwnd (segments)"):
        assert label in (tmp_path / "q.svg").read_text()
    layers(probed[1], tmp_path / "l.svg")
    assert "client tsq" in (tmp_path / "l.svg").read_text()


def texts(draw, path):
    """Return the texts of a picture."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(hourglass.plots.style.RC, "svg.fonttype", "none")
        draw(path)
    root = ElementTree.parse(path).getroot()
    return ["".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")]


def test_queues_show_the_cwnd_of_every_flow_and_name_the_flow_of_the_limit(probed, tmp_path):
    labels = texts(lambda p: queues(probed[1], p), tmp_path / "q.svg")
    assert any("upload::1, the first of 2 flows" in label for label in labels)
    assert labels.count("upload::1 bbr") == labels.count("upload::2 cubic") == 1
    assert not any("nothing below TCP" in label for label in labels)


def test_queues_give_the_reason_if_nothing_waits_below_tcp(tmp_path):
    """If only the limit has samples, it is drawn with the reason."""
    anatomy = synthetic_probe.Anatomy()

    def idle(recipe):
        tables = anatomy(recipe)
        rows = next(table["rows"] for table in tables if table["table"] == "tcp")
        return [*(table for table in tables if table["table"] != "tcp"),
                {"table": "tcp", "rows": [row | {"sk_wmem_alloc": 0} for row in rows]}]  # fmt: skip

    run = hourglass.load(make(tmp_path / "run", synthetic_probe.recipe(idle)))
    labels = texts(lambda p: queues(run, p), tmp_path / "q.svg")
    assert any(label.startswith("100% of the samples have no data below TCP") for label in labels)
    assert {"limit: floor", "limit: rate", "limit: cap"} <= set(labels)


def test_a_timeseries_names_every_flow_and_shows_datagrams_among_them(tmp_path):
    flows = [
        Flow(f"{direction}::{mark}", upload=direction == "upload")
        for direction in ("upload", "download")
        for mark in ("BE", "EF")
    ]
    recipe = Recipe(flows=flows, probes=[Probe("icmp"), Probe("udp EF")], datagrams=172)
    run = hourglass.load(make(tmp_path / "run", recipe))
    labels = texts(lambda p: timeseries(run, p), tmp_path / "t.svg")
    for name in (*(flow.name for flow in flows), "all TCP flows", "icmp", "udp EF"):
        assert labels.count(name) == 1
    assert labels.count("voip") == 2, "among the goodputs, and its one-way delay"
    datagrams_only = hourglass.load(make(tmp_path / "alone", Recipe(flows=[], datagrams=172)))
    assert "goodput (Mbit/s)" in texts(lambda p: timeseries(datagrams_only, p), tmp_path / "a.svg")


def test_fairness_has_the_colours_of_congestion_controls_where_they_differ(tmp_path):
    """The legend has only entries of the data."""
    one_cc = hourglass.load(make(tmp_path / "a", Recipe(flows=[Flow("upload::1"), Flow("upload::2")])))
    labels = texts(lambda p: fairness([one_cc], ["a"], p), tmp_path / "a.svg")
    assert "upload" in labels
    assert not {"download", "all flows", "cubic"} & set(labels)
    mixed = hourglass.load(make(tmp_path / "b", Recipe(flows=[Flow("upload::1"), Flow("upload::2", cc="bbr")])))
    labels = texts(lambda p: fairness([mixed], ["b"], p), tmp_path / "b.svg")
    assert {"cubic", "bbr"} <= set(labels)
    assert not {"upload", "download"} & set(labels)
    picture = (tmp_path / "b.svg").read_text().lower()
    assert all(colour.lower() in picture for colour in (series_style.BLUE, series_style.VERMILION))


def test_samples_without_a_time_are_lost_or_unfinished():
    assert {name: kind.unanswered_label for name, kind in traffic.KINDS.items()} == {
        "datagrams": "lost", "fetches": "unfinished", "transactions": "unfinished"
    }  # fmt: skip


def test_goodput_of_datagrams_is_that_of_their_payload(tmp_path):
    """172 B every 20 ms, with some ms of delay, are 68.8 kbit/s in a step of ten packets."""
    run = hourglass.load(make(tmp_path / "run", Recipe(flows=[], datagrams=172)))
    series = goodput_steps(run, run.datagrams[0], loaded_window(run))
    arrived = run.rows(run.datagrams[0]).drop_nulls("owd_ns")
    assert series.values.max() <= 172 * 8 * 10 / 0.2 / 1e6 + 1e-9
    assert series.values.sum() * 0.2 * 1e6 / 8 == pytest.approx(arrived.height * 172, rel=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind, properties in KINDS.items() if not properties.most_runs])
def test_many_runs_are_wrapped_into_rows(tmp_path, kind):
    """Draw 27 runs, one with eight pings and one without any flow. No picture is wider than a page."""
    recipes = [
        Recipe(name="pings", probes=[Probe(f"udp {i}", lambda seq: seq * MS) for i in range(7)]),
        Recipe(name="idle", flows=[]),
    ]
    recordings = [hourglass.load(make(tmp_path / str(i), recipe)) for i, recipe in enumerate(recipes)]
    if kind == "anatomy":
        recordings = [hourglass.load(make(tmp_path / "probed", synthetic_probe.recipe()))]
    draw(kind, recordings + recordings[:1] * (27 - len(recordings)), tmp_path / "a.png")
    height, width, _ = imread(tmp_path / "a.png").shape
    assert width <= 16 * hourglass.plots.style.DPI
    assert height <= 40 * hourglass.plots.style.DPI
    assert_drawn(tmp_path / "a.png")


@pytest.mark.parametrize(("slot_in", "angle"), [(2.5, 0), (1.2, 30), (0.5, 90), (0.2, 90)])
def test_names_of_runs_are_below_the_axis_and_do_not_overlap(tmp_path, slot_in, angle):
    names = [f"cc=cubic, qdisc=cake bandwidth {i}mbit, seed={i}" for i in range(5)]
    with hourglass.plots.style.figure(5 * slot_in + 2, 5, tmp_path / "a.png") as figure:
        axes = figure.add_subplot()
        hourglass.plots.style.name_ticks(axes, range(5), names, slot_in)
        axes.set_xlim(-0.5, 4.5)
        figure.canvas.draw()
        labels = axes.get_xticklabels()
        boxes = [label.get_window_extent() for label in labels]
        assert {label.get_rotation() for label in labels} == {angle}
        assert max(box.y1 for box in boxes) < axes.get_window_extent().y0
        if angle != 30:  # slanted texts do not overlap, but their boxes do
            assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_bars_of_flows_on_different_paths_have_the_mean_time_of_a_packet(tmp_path):
    """Half of the packets wait 10 ms at one node, half 30 ms at another: the mean is 20 ms, three quarters at the
    other."""
    waits = [("client", 10 * MS), ("server", 30 * MS)]
    rows = [
        {"t_ns": t_ns, "stream": flow, "way": "up", "data": True, "node": node, "packets": t_ns // (10 * MS),
         **{f"{layer}_ns": t_ns // (10 * MS) * (wait if layer == "qdisc" else 0) for layer in LAYERS}}
        for t_ns in range(0, 14 * 10**9 + 1, 200 * MS) for flow, (node, wait) in enumerate(waits)
    ]  # fmt: skip
    recipe = Recipe(flows=[Flow("upload::1"), Flow("upload::2")], probes=[],
                    further=lambda _: [{"table": "layer", "rows": rows}])  # fmt: skip
    run = hourglass.load(make(tmp_path / "run", recipe))
    (bar,) = bars([run], ["one"])
    assert sum(bar.ms.values()) == pytest.approx(20)
    assert run.summary.layers_ms["client"]["qdisc"].mean == 10
    assert run.summary.layers_ms["server"]["qdisc"].share == pytest.approx(0.75)
    _, means = steps_ms(run, belongs_to(*run.flows))
    assert sum(values[5] for values in means.values()) == pytest.approx(20)


def test_the_means_of_steps_are_exact(probed):
    """A step of 200 ms has ten even packets of 10 ms and ten odd packets of 20 ms."""
    t_s, means = steps_ms(probed[0], belongs_to(*probed[0].flows))
    assert t_s.size == 50
    assert means["client", "qdisc"][5:-1] == pytest.approx(15)
    assert means["client", "ring"][5] == pytest.approx(0.005)


def test_bars_are_as_long_as_the_mean_packet(probed):
    bar = next(bar for bar in bars(probed, ["off", "1ms"]) if (bar.run, bar.kind) == ("1ms", "TCP data"))
    assert bar.ms["client", "tsq"] == 14
    assert sum(bar.ms.values()) == pytest.approx(14 + 1.5 + (5 + 40 + 2 * 13.304) / 1000, 1e-3)


def test_a_run_without_layers_is_refused_with_a_reason(runs, tmp_path):
    for plot in (lambda p: anatomy(runs[:1], ["a"], p), lambda p: layers(runs[0], p), lambda p: queues(runs[2], p)):
        with pytest.raises(InputError, match="RUN = "):
            plot(tmp_path / "x.png")


def test_every_file_is_a_box_and_a_cloud(tmp_path):
    files = [hourglass.load(small(tmp_path / f"{name}.flent.gz")) for name in ("home", "work")]
    for kind in ("box", "scatter"):
        drawn = texts(lambda p, kind=kind: draw(kind, files, p), tmp_path / f"{kind}.svg")
        assert {"home", "work"} <= set(drawn)
        assert not any("seed" in text for text in drawn)


def test_a_line_breaks_at_a_gap_and_a_sample_between_two_is_a_dot(tmp_path, monkeypatch):
    lines = []
    monkeypatch.setattr(Axes, "plot", lambda self, x, *args, **look: lines.append((list(x), look.get("marker"))))
    axes = Axes(Figure(), (0, 0, 1, 1))
    series = Series(np.array([0.0, 1, 8, 15, 16]), np.ones(5))
    timeseries_module = importlib.import_module("hourglass.plots.timeseries")
    timeseries_module._draw_line(axes, series, np.array([4.5, 11.5]), {"label": "udp"})
    assert lines == [([0, 1], None), ([8], "."), ([15, 16], None)]


def test_no_line_of_a_file_crosses_a_gap(tmp_path, monkeypatch):
    drawn = []
    plot = Axes.plot
    monkeypatch.setattr(Axes, "plot", lambda self, x, *args, **look: drawn.append(x) or plot(self, x, *args, **look))
    timeseries(hourglass.load(small(tmp_path / "home.flent.gz")), tmp_path / "t.png")
    assert_drawn(tmp_path / "t.png")
    assert max(np.diff(t_s).max() for t_s in drawn if len(t_s) > 1) < 1
