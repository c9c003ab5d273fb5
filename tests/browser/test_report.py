# SPDX-License-Identifier: Apache-2.0
"""The report in headless Chromium without a network: draws, toggles, zooms, sorts, and complains of nothing.

`HOURGLASS_SCREENSHOTS=DIR` keeps the pictures for people to look at.
"""

import os
from pathlib import Path

import pytest
from results.synthetic import MS, Flow, Probe, Recipe, make

import hourglass
from browser.conftest import Browser
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


SIZES = [("laptop", 1280, 900), ("phone", 390, 844)]


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
    wait_for(browser, lambda: browser.js("return document.querySelectorAll('#run-2 .plot svg').length") == 1)
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
