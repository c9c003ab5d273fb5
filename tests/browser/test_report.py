# SPDX-License-Identifier: Apache-2.0
"""The report in headless Chromium without a network: it draws, toggles, zooms and sorts without warnings.

`HOURGLASS_SCREENSHOTS=DIR` stores the pictures for people to look at.
"""

import json
import os
from pathlib import Path

import pytest
from results import synthetic_probe
from results.synthetic import MS, Flow, Probe, Recipe, make

import hourglass
from browser.conftest import Browser, violations
from hourglass import scenario
from hourglass.engine.virtual import Virtual
from hourglass.plan import build
from hourglass.report import write
from hourglass.results.recording import Recording
from hourglass.results.run_directory import open_run
from tests.clocks import until

DARK_PAGE = "rgb(18, 22, 28)"
LIGHT_PAGE = "rgb(247, 248, 250)"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return a folder with a page of one run and a page of three."""
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
    probed = hourglass.load(make(root / "probed", synthetic_probe.recipe(synthetic_probe.Anatomy(every_ns=7 * MS))))
    write([probed], root / "probed.html")
    write(grid(root, [run.path for run in runs[:2]]), root / "study.html")
    write(grid(root, [run.path for run in runs[:2]], seeds=3), root / "many.html")
    return root


def grid(root: Path, folders: list[Path], seeds: int = 2) -> list[Recording]:
    """Return a study of two rates, two congestion controls and some seeds."""
    return [
        open_run(folder, {"testbed.link.0.rate": f"rate={rate}", "stack.cc": f"cc={cc}", "seed": f"seed={seed}"}, "s")
        for rate in ("10mbit", "100mbit")
        for cc, folder in zip(("cubic", "bbr"), folders, strict=True)
        for seed in range(1, 1 + seeds)
    ]


@pytest.fixture
def shots(tmp_path) -> Path:
    folder = Path(os.environ.get("HOURGLASS_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def paths(browser: Browser, chart: int) -> int:
    """Return the number of lines in a run's chart."""
    return browser.js(
        "return [...document.querySelectorAll('.plot')[arguments[0]].querySelectorAll('.series')].length",
        chart,
    )


SIZES = [("laptop", 1280, 900), ("tablet", 768, 1024), ("phone", 360, 780)]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("device", "width", "height"), SIZES, ids=[name for name, *_ in SIZES])
@pytest.mark.parametrize("page", ["one", "three"])
def test_the_page_draws_on_every_screen_without_warnings_or_requests(
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
    until(lambda: paths(browser, 0) == 2)
    pressed = "return document.querySelectorAll('.plot')[0].querySelectorAll('.keys button')[1].ariaPressed"
    assert browser.js(pressed) == "false"
    browser.js(press)
    until(lambda: paths(browser, 0) == 3)
    assert browser.complaints() == []


def axis(browser: Browser, chart: int) -> list[str]:
    return browser.js(
        "return [...document.querySelectorAll('.plot')[arguments[0]]"
        ".querySelectorAll('.axis text')].map(a => a.textContent).sort()",
        chart,
    )


def test_zooming_one_chart_zooms_all_of_the_run(browser, pages):
    browser.open(pages / "one.html")
    before = [axis(browser, chart) for chart in range(3)]
    drag(browser, 300, 500)
    browser.js("document.querySelector('[data-window=zoom]').click()")
    until(lambda: all(axis(browser, chart) != before[chart] for chart in range(3)))
    browser.js("document.querySelector('[data-window=all]').click()")
    until(lambda: [axis(browser, chart) for chart in range(3)] == before)
    assert browser.complaints() == []


def drag(browser: Browser, start: int, end: int, chart: int = 0) -> None:
    """Drag from one place to another in a chart, in px from its left end; a click if they are equal."""
    browser.js(
        "const c = document.querySelectorAll('.chart[role=slider]')[arguments[0]], r = c.getBoundingClientRect();"
        "const send = (type, x) => c.dispatchEvent(new PointerEvent(type,"
        " {bubbles: true, clientX: r.left + x, clientY: r.top + 40, button: 0}));"
        "c.setPointerCapture = () => {};"
        "send('pointerdown', arguments[1]); send('pointermove', arguments[2]); send('pointerup', arguments[2]);",
        chart,
        start,
        end,
    )


def test_hovering_shows_the_values_of_all_series(browser, pages):
    browser.open(pages / "one.html")
    drag(browser, 400, 400)
    tooltip = browser.js("return document.querySelector('#tip').innerText")
    assert all(name in tooltip for name in ("all flows", "upload::1", "upload::2", "Mbit/s"))
    assert browser.js("return document.querySelectorAll('.cursor').length") == 3, "all charts have the same cursor"


def window_cells(browser: Browser) -> dict[str, list[str]]:
    rows = "[...document.querySelectorAll('#window-table tbody tr')].map(r => [...r.cells].map(c => c.innerText))"
    return {name: cells for name, _, *cells in browser.js(f"return {rows}")}


def test_a_window_applies_to_all_charts_and_tables(browser, pages):
    """The figures under load are those of the summary. Those of a window follow from the samples in it."""
    browser.open(pages / "three.html")
    assert window_cells(browser)["TCP RTT p50"][0] == "2"
    browser.js(
        "const [a, b] = document.querySelectorAll('.timebar input'); a.value = 10.02; b.value = 11.98;"
        "b.dispatchEvent(new Event('change'))"
    )
    cells = window_cells(browser)
    assert float(cells["TCP RTT p99"][0]) == pytest.approx(5.97, rel=0.02), "2 ms + 0.4 ms/s after 9.9 s"
    assert cells["TCP RTT p50"][1].split()[0] in ("89.8", "90", "89.1", "90.9"), "90 ms, to 1 %"
    assert browser.js("return document.querySelectorAll('.edge').length") == browser.js(
        "return document.querySelectorAll('.chart[role=slider]').length"
    )
    assert "10.0 to 12.0 s" in browser.js("return document.querySelector('#window-figures h3').innerText")
    assert browser.complaints() == []


def test_a_window_is_chosen_by_keys(browser, pages):
    from selenium.webdriver.common.keys import Keys

    browser.open(pages / "one.html")
    chart = browser.js("return document.querySelector('.chart[role=slider]')")
    chart.send_keys(Keys.HOME, Keys.ARROW_RIGHT, "[", Keys.SHIFT + Keys.ARROW_RIGHT + Keys.NULL, "]")
    start, end = browser.js("return [...document.querySelectorAll('.timebar input')].map(i => Number(i.value))")
    length = browser.js("return Number(document.querySelector('.chart').ariaValueMax)")
    assert (start, end) == (pytest.approx(0.01 * length), pytest.approx(0.11 * length))
    assert "upload::1" in chart.get_attribute("aria-valuetext")


def test_runs_are_drawn_when_opened_and_their_links_open_them(browser, pages):
    browser.open(pages / "three.html")
    assert browser.js("return document.querySelectorAll('.run .plot').length") == 0
    browser.js("document.querySelector('#run-1 summary').click()")
    browser.settle()
    assert browser.js("return document.querySelectorAll('#run-1 .plot').length") == 3
    browser.open(pages / "three.html", at="#run-2")
    until(lambda: browser.js("return document.querySelectorAll('#run-2 svg.marks').length") == 1)
    assert browser.complaints() == []


def test_runs_of_many_are_unpacked_when_opened_or_chosen(browser, pages, shots):
    """They are compressed; a run has its tables, its charts and its command once it is open."""
    browser.open(pages / "many.html")
    assert (pages / "many.html").stat().st_size < (pages / "study.html").stat().st_size
    assert browser.js("return document.querySelectorAll('.run table, #side-charts .plot').length") == 0
    browser.js("document.querySelector('#run-1 summary').click()")
    browser.settle()
    assert browser.js("return document.querySelectorAll('#run-1 .plot').length") == 3
    assert browser.js("return document.querySelectorAll('#run-1 table').length") > 2
    assert browser.js("return document.querySelector('#run-1 .command code').innerText").startswith("hourglass run")
    browser.js("for (const box of [...document.querySelectorAll('.choose input')].slice(0, 2)) box.click()")
    until(lambda: browser.js("return document.querySelectorAll('#side-charts .panel').length") == 6)
    browser.screenshot(shots / "many.png")
    assert browser.complaints() == []


def names(browser: Browser) -> list[str]:
    cells = (
        "[...document.querySelectorAll('#runs-table tbody tr')].filter(r => !r.hidden).map(r => r.cells[0].innerText)"
    )
    return [name.split()[0] for name in browser.js(f"return {cells}")]


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
    line = "return getComputedStyle(document.querySelector('.plot .series:last-of-type')).stroke"
    light = browser.js(line)
    browser.theme(dark=True)
    until(lambda: browser.js(line) != light)
    browser.settle()
    assert browser.js("return document.querySelectorAll('.plot').length") == 3
    assert browser.complaints() == []


@pytest.fixture(scope="module")
def testbeds(tmp_path_factory):
    """Return a page with a run per built-in testbed, each with its plan's paths and its scenario."""
    root = tmp_path_factory.mktemp("testbeds")
    runs = []
    for name, _ in scenario.builtin():
        loaded = scenario.load(name)
        folder = make(root / name, Recipe(name=name))
        planned = json.loads((folder / "plan.json").read_text())
        built = json.loads(build(loaded, Virtual.capabilities).to_json())
        ends = {end: built["paths"][0][end] for end in ("client", "server")}
        for stream in planned["streams"]:
            stream |= ends | ({"sender": ends[stream["sender"]]} if "sender" in stream else {})
        for container in planned["rooms"]:
            container["node"] = ends["client"]
        planned |= {"paths": built["paths"], "nodes": built["nodes"]}
        (folder / "plan.json").write_text(json.dumps(planned))
        (folder / "scenario.json").write_bytes(loaded.to_json())
        runs.append(hourglass.load(folder))
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
"""Texts of a drawing that overlap or cross its edge."""
HIDDEN = """
return [...document.querySelectorAll('.scroll')].filter(s => s.clientWidth && s.scrollWidth > s.clientWidth + 1)
  .filter(s => !s.classList.contains('faded') || s.previousElementSibling.className !== 'more-right'
               || !s.previousElementSibling.offsetParent).map(s => s.ariaLabel);
"""
"""Elements that hide some of their content without a hint."""
NEEDLESS = """
return [...document.querySelectorAll('.scroll')].filter(s => s.clientWidth && s.scrollWidth <= s.clientWidth + 1)
  .filter(s => s.classList.contains('faded') || s.previousElementSibling.offsetParent
               && s.previousElementSibling.className === 'more-right').map(s => s.ariaLabel);
"""


@pytest.mark.slow
@pytest.mark.parametrize(("device", "width", "height"), SIZES, ids=[name for name, *_ in SIZES])
def test_nothing_overprints_and_nothing_is_cut_off_without_a_hint(browser, testbeds, shots, device, width, height):
    browser.open(testbeds, width, height)
    for _ in ("runs", "what their bodies contain"):
        browser.js("document.querySelectorAll('details').forEach(details => { details.open = true; })")
        browser.settle()
    assert browser.js("return document.querySelectorAll('details:not([open])').length") == 0
    until(lambda: browser.js(HIDDEN) == [] == browser.js(NEEDLESS))
    assert browser.js("return document.documentElement.scrollWidth") <= width
    drawings = browser.js("return [...document.querySelectorAll('svg.topology')].filter(one => one.clientWidth)")
    trees = browser.js("return [...document.querySelectorAll('ul.tree')].filter(one => one.clientWidth).length")
    count = len(scenario.builtin())
    assert (len(drawings), trees) == ((0, count) if device == "phone" else (count, 0))
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
    until(lambda: browser.js(faded))
    browser.js("const s = document.querySelector('#runs-table').parentElement; s.scrollLeft = s.scrollWidth")
    until(lambda: not browser.js(faded))
    first = "return document.querySelector('#runs-table tbody th').getBoundingClientRect().left"
    assert browser.js(first) >= 0, "the run's name stays where it is seen"


def test_equal_pings_are_all_seen(browser, pages):
    """The first series is drawn wide, below the last."""
    browser.open(pages / "one.html")
    widths = browser.js(
        "return [...document.querySelectorAll('.plot')[2].querySelectorAll('.series')]"
        ".map(path => Number(path.getAttribute('stroke-width')))"
    )
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 2 * widths[-1]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dark"), [("study", False), ("many", False), ("probed", True)])
def test_pages_suit_screen_readers(browser, pages, axe, name, dark):
    """A run is open, and a packet's journey where there are some."""
    browser.open(pages / f"{name}.html", 1280, 900, dark)
    browser.js("document.querySelectorAll('details.run')[0].open = true")
    browser.settle()
    assert violations(browser, axe) == []
    if dark:
        drag(browser, 400, 400)
        assert browser.js("return document.querySelector('dialog').open")
        assert violations(browser, axe) == [], "journey"


def test_a_sample_opens_its_packet_s_journey(browser, pages, shots):
    """The layers of the timeline add up to the packet's time, and the queue says what was before it."""
    browser.open(pages / "probed.html", 390, 844)
    drag(browser, 200, 200, chart=1)
    browser.screenshot(shots / "journey-phone.png")
    parts = browser.js("return [...document.querySelectorAll('.parts li')].map(li => li.innerText)")
    assert any("client qdisc: " in part and "Before it: " in part and "followed packet" in part for part in parts)
    assert browser.js("return document.querySelectorAll('.timeline rect').length") >= 5
    title = "return document.querySelector('#journey-title').innerText"
    before = browser.js(title)
    browser.js("document.querySelectorAll('.journey-moves button')[1].click()")
    assert browser.js(title) != before
    assert browser.js("return document.documentElement.scrollWidth") <= 390
    assert browser.complaints() == []


def test_a_study_has_axes_in_its_legend_and_filters(browser, pages, shots):
    browser.open(pages / "study.html")
    browser.screenshot(shots / "study.png")
    legend = "return [...document.querySelectorAll('.study-legend p')].map(p => p.innerText.split(/\\s+/).join(' '))"
    assert browser.js(legend)[0] == "cc cubic bbr"
    assert "compared with cc=cubic at the same other settings" in browser.js(
        "return document.body.innerText.toLowerCase()"
    )
    assert browser.js("return document.querySelectorAll('.setting').length") == 4, "a line for each setting"
    visible_rows = (
        "return [...document.querySelectorAll('#runs-table tbody tr')].filter(row => row.offsetParent).length"
    )
    assert browser.js(visible_rows) == 8
    browser.js(
        "const s = document.querySelectorAll('[aria-label=\"Settings shown\"] select')[1];"
        "s.selectedIndex = 2; s.dispatchEvent(new Event('change'))"
    )
    assert browser.js(visible_rows) == 4, "only bbr"
    assert browser.js("return document.querySelectorAll('.setting').length") == 2
    assert browser.complaints() == []
