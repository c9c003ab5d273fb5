# SPDX-License-Identifier: Apache-2.0
"""The report in headless Chromium without a network: draws, toggles, zooms, sorts, and complains of nothing.

`HOURGLASS_SCREENSHOTS=DIR` keeps the pictures for people to look at.
"""

import json
import os
from pathlib import Path

import pytest
from results.synthetic import MS, Flow, Probe, Recipe, make

import hourglass
from browser.conftest import Browser
from hourglass import scenario
from hourglass.engine.virtual import Virtual
from hourglass.plan import build
from hourglass.report import write

DARK_PAGE = "rgb(18, 22, 28)"
LIGHT_PAGE = "rgb(247, 248, 250)"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page of one run, and one of three."""
    recipes = [
        Recipe(
            flows=[Flow("upload::1"), Flow("upload::2", rtt_us=lambda t: 2000 + int(t * 400))],
            probes=[Probe("icmp", lambda seq: None if seq % 9 == 0 else (2 + seq % 5) * MS), Probe("udp")],
        ),
        Recipe(flows=[Flow("upload::1", bytes_at=lambda t: int(t * 9e5), rtt_us=lambda t: 90_000)]),
        Recipe(flows=[], probes=[Probe("icmp")], name="idle"),
    ]
    root = tmp_path_factory.mktemp("report")
    runs = [hourglass.load(make(root / f"run{i}", recipe)) for i, recipe in enumerate(recipes)]
    write(runs[:1], root / "one.html")
    write(runs, root / "three.html")
    return root


@pytest.fixture
def shots(tmp_path) -> Path:
    folder = Path(os.environ.get("HOURGLASS_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def paths(browser: Browser, chart: int) -> int:
    """How many lines a run's chart draws."""
    return browser.js(
        "return [...document.querySelectorAll('.plot')[arguments[0]].querySelectorAll('.mark-line path')]"
        ".filter(p => p.getAttribute('d')).length",
        chart,
    )


SIZES = [("laptop", 1280, 900), ("tablet", 768, 1024), ("phone", 360, 780)]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("device", "width", "height"), SIZES, ids=[name for name, *_ in SIZES])
@pytest.mark.parametrize("page", ["one", "three"])
def test_it_draws_on_every_screen_without_complaints_or_requests(
    browser, pages, shots, page, device, width, height, dark
):
    browser.open(pages / f"{page}.html", width, height, dark)
    browser.screenshot(shots / f"{page}-{device}-{'dark' if dark else 'light'}.png")
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:", "about:"))] == []
    assert browser.js("return getComputedStyle(document.body).backgroundColor") == (DARK_PAGE if dark else LIGHT_PAGE)
    assert browser.js("return document.documentElement.scrollWidth") <= width
    empty = "return [...document.querySelectorAll('.chart')].filter(c => c.offsetParent && !c.querySelector('path[d]'))"
    assert browser.js(f"{empty}.length") == 0
    charts = "[...document.querySelectorAll('.chart')].filter(c => c.scrollWidth > c.clientWidth)"
    assert browser.js(f"return {charts}.length") == 0
    assert browser.js("return document.querySelectorAll('.chart svg.marks').length") >= 2


def test_series_are_toggled_by_their_keys(browser, pages):
    browser.open(pages / "one.html")
    assert paths(browser, 0) == 3  # two flows and their total
    press = "document.querySelectorAll('.plot')[0].querySelectorAll('.keys button')[1].click()"
    browser.js(press)
    wait_for(browser, lambda: paths(browser, 0) == 2)
    pressed = "return document.querySelectorAll('.plot')[0].querySelectorAll('.keys button')[1].ariaPressed"
    assert browser.js(pressed) == "false"
    browser.js(press)
    wait_for(browser, lambda: paths(browser, 0) == 3)
    assert browser.complaints() == []


def wait_for(browser: Browser, condition) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser.driver, 20).until(lambda _: condition())


def axis(browser: Browser, chart: int) -> list[str]:
    return browser.js(
        "return [...document.querySelectorAll('.plot')[arguments[0]]"
        ".querySelectorAll('.role-axis text')].map(a => a.textContent).sort()",
        chart,
    )


def test_zooming_one_chart_zooms_all_of_the_run(browser, pages):
    browser.open(pages / "one.html")
    before = [axis(browser, chart) for chart in range(3)]
    browser.js("document.querySelector('[data-zoom=in]').click()")
    wait_for(browser, lambda: all(axis(browser, chart) != before[chart] for chart in range(3)))
    browser.js("document.querySelector('[data-zoom=all]').click()")
    wait_for(browser, lambda: [axis(browser, chart) for chart in range(3)] == before)
    assert browser.complaints() == []


def test_hovering_a_point_shows_its_values(browser, pages):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    browser.open(pages / "one.html")
    chart = browser.driver.find_element(By.CSS_SELECTOR, ".plot .chart svg")
    ActionChains(browser.driver).move_to_element(chart).move_by_offset(10, 5).perform()
    wait_for(browser, lambda: browser.js("return !!document.querySelector('#vg-tooltip-element.visible')"))
    shown = browser.js("return document.querySelector('#vg-tooltip-element').innerText")
    assert "upload::" in shown or "total" in shown
    assert "Mbit/s" in shown


def test_runs_are_drawn_when_opened_and_their_links_open_them(browser, pages):
    browser.open(pages / "three.html")
    assert browser.js("return document.querySelectorAll('.plot').length") == 0
    browser.js("document.querySelector('#run-1 summary').click()")
    browser.settle()
    assert browser.js("return document.querySelectorAll('#run-1 .plot').length") == 3
    browser.open(pages / "three.html", at="#run-2")
    wait_for(browser, lambda: browser.js("return document.querySelectorAll('#run-2 svg.marks').length") == 1)
    assert browser.complaints() == []


def names(browser: Browser) -> list[str]:
    shown = (
        "[...document.querySelectorAll('#runs-table tbody tr')].filter(r => !r.hidden).map(r => r.cells[0].innerText)"
    )
    return [name.split()[0] for name in browser.js(f"return {shown}")]


def test_the_table_is_sorted_and_filtered(browser, pages):
    browser.open(pages / "three.html")
    first = names(browser)
    column = browser.js(
        "return [...document.querySelectorAll('#runs-table thead th')]"
        ".findIndex(th => th.innerText.startsWith('TCP RTT p50'))"
    )
    click = f"document.querySelectorAll('#runs-table thead button')[{column}].click()"
    browser.js(click)
    assert names(browser) == first  # 2 ms, 90 ms, nothing
    browser.js(click)
    assert names(browser) == [first[1], first[0], first[2]]  # nothing stays last
    browser.js(
        "const f = document.querySelector('.filter input'); f.value = 'idle'; f.dispatchEvent(new Event('input'))"
    )
    assert names(browser) == [first[2]]


def test_a_change_of_theme_redraws(browser, pages):
    browser.open(pages / "one.html")
    line = "return document.querySelector('.plot .mark-line path').getAttribute('stroke')"
    light = browser.js(line)
    browser.theme(dark=True)
    wait_for(browser, lambda: browser.js("return !!document.querySelector('.plot .mark-line path')"))
    wait_for(browser, lambda: browser.js(line) != light)
    browser.settle()
    assert browser.js("return document.querySelectorAll('.plot').length") == 3
    assert browser.complaints() == []


@pytest.fixture(scope="module")
def testbeds(tmp_path_factory):
    """A page of a run per built-in testbed: each with the plan's paths and the scenario of one that was made."""
    root = tmp_path_factory.mktemp("testbeds")
    runs = []
    for name, _ in scenario.builtin():
        wanted = scenario.load(name)
        place = make(root / name, Recipe(name=name))
        planned = json.loads((place / "plan.json").read_text())
        made = json.loads(build(wanted, Virtual.capabilities).to_json())
        way = {end: made["paths"][0][end] for end in ("client", "server")}
        for one in planned["streams"]:
            one |= way | ({"sender": way[one["sender"]]} if "sender" in one else {})
        for room in planned["rooms"]:
            room["node"] = way["client"]
        planned |= {"paths": made["paths"], "nodes": made["nodes"]}
        (place / "plan.json").write_text(json.dumps(planned))
        (place / "scenario.json").write_bytes(wanted.to_json())
        runs.append(hourglass.load(place))
    write(runs, root / "testbeds.html")
    return root / "testbeds.html"


TEXTS = """
const boxes = [...arguments[0].querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2;
const whole = arguments[0].getBoundingClientRect();
const bad = boxes.filter(([, b]) => b.left < whole.left - 1 || b.right > whole.right + 1 || b.top < whole.top - 1
                                    || b.bottom > whole.bottom + 1).map(([t]) => `${t} is clipped`);
boxes.forEach(([t, a], i) => boxes.slice(i + 1).forEach(([u, b]) => meet(a, b) && bad.push(`${t} on ${u}`)));
return bad;
"""
"""Texts of a drawing that stand upon each other or beyond its edge."""
HIDDEN = """
return [...document.querySelectorAll('.scroll')].filter(s => s.clientWidth && s.scrollWidth > s.clientWidth + 1)
  .filter(s => !s.classList.contains('faded') || s.previousElementSibling.className !== 'more-right'
               || !s.previousElementSibling.offsetParent).map(s => s.ariaLabel);
"""
"""What has more than can be seen, and does not say so."""
NEEDLESS = """
return [...document.querySelectorAll('.scroll')].filter(s => s.clientWidth && s.scrollWidth <= s.clientWidth + 1)
  .filter(s => s.classList.contains('faded') || s.previousElementSibling.offsetParent
               && s.previousElementSibling.className === 'more-right').map(s => s.ariaLabel);
"""


@pytest.mark.parametrize(("device", "width", "height"), SIZES, ids=[name for name, *_ in SIZES])
def test_nothing_overprints_and_nothing_is_cut_off_without_a_hint(browser, testbeds, shots, device, width, height):
    browser.open(testbeds, width, height)
    browser.js("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    browser.settle()
    wait_for(browser, lambda: browser.js(HIDDEN) == [] == browser.js(NEEDLESS))
    assert browser.js("return document.documentElement.scrollWidth") <= width
    drawings = browser.js("return [...document.querySelectorAll('svg.topology')].filter(one => one.clientWidth)")
    trees = browser.js("return [...document.querySelectorAll('ul.tree')].filter(one => one.clientWidth).length")
    many = len(scenario.builtin())
    assert (len(drawings), trees) == ((0, many) if device == "phone" else (many, 0))
    for drawing in drawings:
        assert browser.js(TEXTS, drawing) == []
    wide = browser.js("return [...document.querySelectorAll('ul.tree *')].filter(e => e.scrollWidth > e.clientWidth + 1"
                      " && getComputedStyle(e).display !== 'inline').length")  # fmt: skip
    assert wide == 0
    assert browser.complaints() == []
    browser.js("document.querySelector('#run-2 .facts').scrollIntoView({block: 'end'})")
    browser.screenshot(shots / f"testbeds-{device}.png")


def test_the_hint_goes_when_the_end_is_reached(browser, testbeds):
    browser.open(testbeds, 360, 780)
    faded = "return document.querySelector('#runs-table').parentElement.classList.contains('faded')"
    wait_for(browser, lambda: browser.js(faded))
    browser.js("const s = document.querySelector('#runs-table').parentElement; s.scrollLeft = s.scrollWidth")
    wait_for(browser, lambda: not browser.js(faded))
    first = "return document.querySelector('#runs-table tbody th').getBoundingClientRect().left"
    assert browser.js(first) >= 0, "the run's name stays where it is seen"


def test_equal_pings_are_all_seen(browser, pages):
    """The first is drawn wide, below the last."""
    browser.open(pages / "one.html")
    widths = browser.js(
        "return [...document.querySelectorAll('.plot')[2].querySelectorAll('.mark-line path')]"
        ".map(path => Number(path.getAttribute('stroke-width')))"
    )
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 2 * widths[-1]
