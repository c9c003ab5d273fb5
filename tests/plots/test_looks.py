# SPDX-License-Identifier: Apache-2.0
"""Series side by side are told apart: any number of them, by whoever sees red, green or blue less, on paper and on the
report's dark page, and in one run's picture and report alike."""

from itertools import combinations

import numpy as np
import pytest
from results.synthetic import Flow, Probe, Recipe, make

import hourglass
from hourglass import looks
from hourglass.plots import style
from hourglass.results import streams

SEEN = {
    "all": np.eye(3),
    "protanopes": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopes": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopes": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""Linear RGB as they see it: Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color
Vision Deficiency" (2009), severity 1."""
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1, 1.08883])


def linear(colour):
    values = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    ratio = XYZ @ np.clip(rgb, 0, 1) / WHITE
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one, other):
    """WCAG 2.1."""
    light = sorted(float(np.dot([0.2126, 0.7152, 0.0722], linear(colour))) for colour in (one, other))
    return (light[1] + 0.05) / (light[0] + 0.05)


@pytest.mark.parametrize("who", SEEN)
@pytest.mark.parametrize("palette", [looks.LIGHT, looks.DARK], ids=["light", "dark"])
def test_colours_are_far_apart_for_everyone(palette, who):
    """Lightness, green-red and blue-yellow together (CIE76): 2.3 is just noticeable, and 16 is found in a thin line."""
    seen = [lab(np.asarray(SEEN[who]) @ linear(colour)) for colour in palette]
    assert min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2)) > 16


def test_colours_stand_out_from_their_page():
    assert min(contrast(colour, "#FFFFFF") for colour in looks.LIGHT) > 2.2
    assert min(contrast(colour, "#1A2029") for colour in looks.DARK) > 4.5
    assert looks.TOTAL not in looks.LIGHT
    assert looks.TOTAL_DARK not in looks.DARK


@pytest.mark.parametrize("many", [7, 60, 1000])
def test_no_two_of_many_series_are_alike(many):
    found = looks.looks(many)
    for sides in ("colour", "dark"):
        lines = {(getattr(one, sides), one.dash, one.marked and (one.shape, one.filled)) for one in found}
        dots = {(getattr(one, sides), one.shape, one.filled) for one in found}
        boxes = {(getattr(one, sides), one.hatch) for one in found}
        assert len(lines) == len(dots) == len(boxes) == many


def test_matplotlib_tells_them_apart_as_well():
    drawn = {tuple(sorted((key, str(value)) for key, value in style.line(one).items())) for one in looks.looks(60)}
    assert len(drawn) == 60
    assert set(style.MARKERS) == set(looks.SHAPES)
    assert len(set(style.MARKERS.values())) == len(looks.SHAPES)


def test_something_changes_before_a_colour_comes_again():
    found = looks.looks(14)
    assert [one.colour for one in found[:7]] == [one.colour for one in found[7:]]
    assert {one.dash for one in found[:7]} == {()}
    assert {one.dash for one in found[7:]} == {looks.DASHES[1]}


def test_what_stands_beside_others_is_like_none_of_them():
    used = looks.by_class(["BE", "EF", "BE", "EF"], ["upload", "upload", "download", "download"])
    more = looks.further(3, used)
    assert len({(one.colour, one.dash) for one in (*used, *more)}) == 7


RRUL = [(way, mark) for way in ("upload", "download") for mark in ("BE", "BK", "CS5", "EF")]


def recorded(place, flows, probes=("icmp",), **more):
    return hourglass.load(make(place, Recipe(flows=flows, probes=[Probe(name) for name in probes], **more)))


def test_a_class_has_a_colour_and_a_way_its_dashes(tmp_path):
    flows = [Flow(f"{way}::{mark}", upload=way == "upload") for way, mark in RRUL]
    run = recorded(tmp_path / "run", flows, ("icmp", "udp EF", "udp BK", "udp BE"), datagrams=172)
    found = {one.label: one.look for one in streams.flows(run)}
    assert list(found) == [flow.name for flow in flows]
    assert found["upload::EF"].colour == found["download::EF"].colour
    assert found["upload::EF"].dash != found["download::EF"].dash
    assert len({(one.colour, one.dash) for one in found.values()}) == 8
    pings = dict(zip((ping.name for ping in run.pings), streams.pings(run), strict=True))
    assert pings["udp EF"].colour == found["upload::EF"].colour
    assert len({one.colour for one in pings.values()}) == 4
    (voip,) = streams.others(run, run.datagrams)
    assert voip not in found.values()


def test_congestion_controls_are_named_where_they_differ_and_the_name_does_not_say(tmp_path):
    run = recorded(
        tmp_path / "a", [Flow("download::1"), Flow("download::2", cc="bbr"), Flow("upload::BBR BE", cc="bbr")]
    )
    assert [one.label for one in streams.flows(run)] == ["download::1 cubic", "download::2 bbr", "upload::BBR BE"]
    run = recorded(tmp_path / "b", [Flow("download::1"), Flow("download::2")])
    assert [one.label for one in streams.flows(run)] == ["download::1", "download::2"]


def test_too_many_flows_are_named_by_way_or_by_congestion_control(tmp_path):
    flows = [Flow(f"upload::{i}", upload=i < 18) for i in range(20)]
    run = recorded(tmp_path / "a", flows)
    assert [one.label for one in streams.flows(run) if one.label] == ["18 uploads", "2 downloads"]
    run = recorded(tmp_path / "b", [Flow(f"upload::{i}", cc="bbr" if i % 2 else "cubic") for i in range(20)])
    assert [one.label for one in streams.flows(run) if one.label] == ["10 cubic", "10 bbr"]
