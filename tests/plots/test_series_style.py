# SPDX-License-Identifier: Apache-2.0
"""All series of a chart look different: any number of them, also with a colour vision deficiency, on paper and on the
report's dark page. A run's picture and report use the same styles."""

from itertools import combinations

import numpy as np
import pytest
from results.synthetic import Flow, Probe, Recipe, make

import hourglass
from hourglass import series_style
from hourglass.plots import style
from hourglass.results import stream_styles

VISION = {
    "all": np.eye(3),
    "protanopes": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopes": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopes": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""Matrices of linear RGB: Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color
Vision Deficiency" (2009), severity 1."""
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1, 1.08883])


def linear(colour):
    values = np.array([int(colour[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    ratio = XYZ @ np.clip(rgb, 0, 1) / WHITE
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(colour, second):
    """Return the contrast by WCAG 2.1."""
    light = sorted(float(np.dot([0.2126, 0.7152, 0.0722], linear(colour))) for colour in (colour, second))
    return (light[1] + 0.05) / (light[0] + 0.05)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("palette", [series_style.LIGHT, series_style.DARK], ids=["light", "dark"])
def test_colours_are_far_apart_for_everyone(palette, vision):
    """By CIE76 (lightness, green-red, blue-yellow), 2.3 is just noticeable, and 16 is visible in a thin line."""
    colours = [lab(np.asarray(VISION[vision]) @ linear(colour)) for colour in palette]
    assert min(float(np.linalg.norm(a - b)) for a, b in combinations(colours, 2)) > 16


def test_colours_contrast_with_their_page():
    assert min(contrast(colour, "#FFFFFF") for colour in series_style.LIGHT) > 2.2
    assert min(contrast(colour, "#1A2029") for colour in series_style.DARK) > 4.5
    assert series_style.TOTAL not in series_style.LIGHT
    assert series_style.TOTAL_DARK not in series_style.DARK


@pytest.mark.parametrize("count", [7, 60, 1000])
def test_no_two_of_many_series_are_alike(count):
    styles = series_style.styles(count)
    for sides in ("colour", "dark"):
        lines = {
            (getattr(series, sides), series.dash, series.marked and (series.shape, series.filled)) for series in styles
        }
        dots = {(getattr(series, sides), series.shape, series.filled) for series in styles}
        boxes = {(getattr(series, sides), series.hatch) for series in styles}
        assert len(lines) == len(dots) == len(boxes) == count


def test_matplotlib_also_draws_different_series():
    drawn = {
        tuple(sorted((key, str(value)) for key, value in style.line(series).items()))
        for series in series_style.styles(60)
    }
    assert len(drawn) == 60
    assert set(style.MARKERS) == set(series_style.SHAPES)
    assert len(set(style.MARKERS.values())) == len(series_style.SHAPES)


def test_repeated_colours_have_other_dashes():
    styles = series_style.styles(14)
    assert [series.colour for series in styles[:7]] == [series.colour for series in styles[7:]]
    assert {series.dash for series in styles[:7]} == {()}
    assert {series.dash for series in styles[7:]} == {series_style.DASHES[1]}


def test_an_additional_series_differs_from_all_others():
    used = series_style.styles_by_class(["BE", "EF", "BE", "EF"], ["upload", "upload", "download", "download"])
    additional = series_style.more_styles(3, used)
    assert len({(series.colour, series.dash) for series in (*used, *additional)}) == 7


RRUL = [(direction, mark) for direction in ("upload", "download") for mark in ("BE", "BK", "CS5", "EF")]


def load_run(path, flows, probes=("icmp",), **options):
    return hourglass.load(make(path, Recipe(flows=flows, probes=[Probe(name) for name in probes], **options)))


def test_a_class_has_a_colour_and_a_direction_its_dashes(tmp_path):
    flows = [Flow(f"{direction}::{mark}", upload=direction == "upload") for direction, mark in RRUL]
    run = load_run(tmp_path / "run", flows, ("icmp", "udp EF", "udp BK", "udp BE"), datagrams=172)
    looks = {flow.label: flow.look for flow in stream_styles.flow_styles(run)}
    assert list(looks) == [flow.name for flow in flows]
    assert looks["upload::EF"].colour == looks["download::EF"].colour
    assert looks["upload::EF"].dash != looks["download::EF"].dash
    assert len({(look.colour, look.dash) for look in looks.values()}) == 8
    pings = dict(zip((ping.name for ping in run.pings), stream_styles.ping_styles(run), strict=True))
    assert pings["udp EF"].colour == looks["upload::EF"].colour
    assert len({look.colour for look in pings.values()}) == 4
    (voip,) = stream_styles.other_styles(run, run.datagrams)
    assert voip not in looks.values()


def test_congestion_controls_are_named_if_they_differ_and_the_flow_s_name_lacks_them(tmp_path):
    run = load_run(
        tmp_path / "a", [Flow("download::1"), Flow("download::2", cc="bbr"), Flow("upload::BBR BE", cc="bbr")]
    )
    assert [flow.label for flow in stream_styles.flow_styles(run)] == [
        "download::1 cubic",
        "download::2 bbr",
        "upload::BBR BE",
    ]
    run = load_run(tmp_path / "b", [Flow("download::1"), Flow("download::2")])
    assert [flow.label for flow in stream_styles.flow_styles(run)] == ["download::1", "download::2"]


def test_too_many_flows_are_named_by_direction_or_congestion_control(tmp_path):
    flows = [Flow(f"upload::{i}", upload=i < 18) for i in range(20)]
    run = load_run(tmp_path / "a", flows)
    assert [flow.label for flow in stream_styles.flow_styles(run) if flow.label] == ["18 uploads", "2 downloads"]
    run = load_run(tmp_path / "b", [Flow(f"upload::{i}", cc="bbr" if i % 2 else "cubic") for i in range(20)])
    assert [flow.label for flow in stream_styles.flow_styles(run) if flow.label] == ["10 cubic", "10 bbr"]
