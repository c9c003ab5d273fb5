# SPDX-License-Identifier: Apache-2.0
"""The drawing and the list of the testbed: their nodes, links and texts."""

import itertools
import re

import pytest

from hourglass import scenario
from hourglass.engine.virtual import Virtual
from hourglass.plan import build
from hourglass.plan.paths import neighbours
from hourglass.report.path_figures import PathFigures
from hourglass.report.testbed import facts
from hourglass.report.topology import topology
from hourglass.results.flat import flat


@pytest.mark.parametrize("name", [name for name, _ in scenario.builtin()])
def test_every_built_in_testbed_can_be_drawn(name):
    """Drawing and list have every node on a path, and a line per cable and station."""
    loaded = scenario.load(name)
    paths = build(loaded, Virtual.capabilities).paths
    hops = [hop for path in paths for hop in (*path.there, *path.back)]
    svg, tree = topology(paths, dict(flat(loaded.model_dump(mode="json")))).split("</svg>")
    for node in {hop.node for hop in hops}:
        assert f">{node}</text>" in svg
        assert f"<b>{node}</b>" in tree
    assert (
        svg.count("<polyline ")
        == tree.count('class="link"')
        == len({frozenset(((hop.node, hop.device), (hop.to_node, hop.to_device))) for hop in hops})
    )
    interfaces = {f"{hop.node}:{hop.device}" for hop in hops}
    for drawing in (svg, tree):
        assert drawing.count("HTB ") == len({str(shaper.at) for shaper in loaded.testbed.shaper} & interfaces)


def test_a_cell_is_drawn_and_listed_with_its_standard_width_band_and_rate():
    loaded = scenario.load("wifi-ath9k")
    settings = dict(flat(loaded.model_dump(mode="json")))
    paths = build(loaded, Virtual.capabilities).paths
    drawing = topology(paths, settings)
    assert drawing.count('<g class="air">') == 1
    columns = re.findall(r'<rect x="([\d.]+)"', drawing)
    assert len(set(columns)) == 3, "client, ap and server, each in a separate column"
    for label in ("802.11n, 5 GHz, 20 MHz", "2 streams, MCS 7: 144 Mbit/s", "delay 1 ms \u2192 \u2190 0 ms"):
        assert label in drawing
    assert list(facts(paths, settings)) == [
        ("client \u2013 ap (Wi-Fi)", "802.11n, 5 GHz, 20 MHz, 2 streams, MCS 7: 144 Mbit/s"),
        ("ap \u2013 server", "1 Gbit/s, delay 1 ms \u2192 \u2190 0 ms"),
    ]


def test_a_station_s_rate_is_the_link_s():
    loaded = scenario.load("wifi-ax", ["testbed.wifi.0.station.0.mcs=3"])
    settings = dict(flat(loaded.model_dump(mode="json")))
    assert "MCS 3: " in topology(build(loaded, Virtual.capabilities).paths, settings)
    loaded = scenario.load("wifi-ath9k", ["testbed.wifi.0.mcs=minstrel"])
    settings = dict(flat(loaded.model_dump(mode="json")))
    assert ", minstrel, up to " in topology(build(loaded, Virtual.capabilities).paths, settings)


def test_the_drawing_has_the_figures_of_the_path():
    loaded = scenario.load("L100M")
    paths = build(loaded, Virtual.capabilities).paths
    hop = paths[0].there[0]
    rates = {f"{hop.node}:{hop.device}": 95.6, f"{hop.to_node}:{hop.to_device}": 2.1}
    figures = PathFigures(rates, "TCP data", {"client": (99.9, [("tsq", 85.5), ("qdisc", 14.3)])})
    svg, tree = topology(paths, dict(flat(loaded.model_dump(mode="json"))), figures).split("</svg>")
    for drawing in (svg, tree):
        assert "carried 95.6 \u2192 \u2190 2.10 Mbit/s" in drawing
        assert "100 % of the delay" in drawing
        assert "qdisc 14 %" in drawing


def lan_paths(*settings):
    """Return all links of the scenario lan, and its settings."""
    loaded = scenario.load("lan", settings)
    paths = [*build(loaded, Virtual.capabilities).paths, *neighbours(loaded.testbed, loaded.stack)]
    return paths, dict(flat(loaded.model_dump(mode="json")))


def test_a_switch_has_its_own_shape_and_the_list_says_it():
    svg, tree = topology(*lan_paths()).split("</svg>")
    corners = {name: int(radius) for radius, name in re.findall(r'rx="(\d+)"[^>]*/><text [^>]*>(\w+)</text>', svg)}
    switches = dict.fromkeys(("core", "east", "west"), 0)
    assert corners == switches | dict.fromkeys(("client", "phone", "server"), 6) | {"router": 18}
    assert svg.count(">switch</text>") == svg.count('rx="0"') == 3
    assert tree.count("<small>switch</small>") == 3, "without the qdisc that all ports of switches have"
    assert "<b>client</b> <small>fq_codel</small>" in tree
    svg, tree = topology(*lan_paths("stack.core.qdisc=fq_codel")).split("</svg>")
    assert "<b>core</b> <small>switch; fq_codel</small>" in tree


def test_vlans_and_blocked_links_are_drawn_and_listed():
    paths, settings = lan_paths()
    drawing = topology(paths, settings)
    assert drawing.count('<g class="cable blocked">') == 1
    listed = dict(facts(paths, settings))
    assert listed["client \u2013 west"] == "1 Gbit/s, VLAN 10"
    assert listed["core \u2013 router"] == "1 Gbit/s, VLANs 10, 20"
    assert listed["east \u2013 west"] == "1 Gbit/s, blocked by STP"
    assert "VLAN 20 with tags" in topology(*lan_paths("testbed.link.1.vlan=[20]"))


def test_a_link_that_closes_a_circle_names_its_end_again():
    """The nodes behind that end are listed at its first place."""
    tree = topology(*lan_paths()).split("</svg>")[1]
    assert tree.count("<b>west</b>") == 2
    assert re.search(r"blocked by STP</span><b>west</b></li></ul></li></ul></li><li>.*<b>phone</b>", tree)


def test_links_of_different_nodes_do_not_overlap(tmp_path):
    """Two switches in a column: the hosts of one, the hosts of the other, and the link between the two."""
    (tmp_path / "two.toml").write_text("""
        [test]
        name = "ping"
        server = "d"
        [testbed]
        node = [
          { name = "client" }, { name = "root", role = "switch" }, { name = "a", role = "switch", stp = {} },
          { name = "b", role = "switch", stp = {} }, { name = "d" }, { name = "e" }, { name = "f" }, { name = "g" },
          { name = "h" },
        ]
        link = [
          { ends = ["client:eth0", "root:p1"] }, { ends = ["root:a", "a:up"] }, { ends = ["root:b", "b:up"] },
          { ends = ["a:d", "d:eth0"] }, { ends = ["a:e", "e:eth0"] }, { ends = ["b:f", "f:eth0"] },
          { ends = ["b:g", "g:eth0"] }, { ends = ["a:b", "b:a"] },
          { ends = ["a:h", "h:eth0"] },
        ]
        """)
    loaded = scenario.load(tmp_path / "two.toml", ["testbed.node.1.stp={}"])
    paths = [*build(loaded, Virtual.capabilities).paths, *neighbours(loaded.testbed, loaded.stack)]
    svg = topology(paths, dict(flat(loaded.model_dump(mode="json"))))
    lines = [
        [tuple(map(float, corner.split(","))) for corner in points.split(" ")]
        for points in re.findall(r'<polyline points="([^"]+)"', svg)
    ]
    for first, second in itertools.combinations(lines, 2):
        if not {first[0], first[-1]} & {second[0], second[-1]}:
            assert not any(overlap(*sides) for sides in itertools.product(sides_of(first), sides_of(second)))


def sides_of(line):
    """Return the sides of a line as (1 if upright, its place across, from, to)."""
    for (x1, y1), (x2, y2) in itertools.pairwise(line):
        upright = x1 == x2
        yield (upright, x1, *sorted((y1, y2))) if upright else (upright, y1, *sorted((x1, x2)))


def overlap(first, second):
    return first[:2] == second[:2] and max(first[2], second[2]) < min(first[3], second[3])
