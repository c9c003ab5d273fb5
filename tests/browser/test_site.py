# SPDX-License-Identifier: Apache-2.0
"""The documentation site in headless Chromium: builds without a network and warnings, is readable by everybody.

`HOURGLASS_SCREENSHOTS=DIR` stores pictures of its pages.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import Browser, violations
from hourglass import locks
from tests.clocks import until
from website import gallery

ROOT = Path(__file__).parents[2]
QUESTIONS = {
    "first-run": "Your first run",
    "latency": "Why is my latency high?",
    "reproduce-a-paper": "Reproduce a paper",
    "congestion-control": "Your first congestion control",
    "application-in-ci": "Test your application in CI",
    "namespace-tools": "Run any network tool in a box of virtual time",
    "real-machines": "From the guest to real machines",
}
"""The tutorials in the order of the front page's questions, and their titles."""

PAGES = [
    "index",
    *(f"tutorials/{name}" for name in QUESTIONS),
    "how-to/find-latency",
    "reference/index",
    "reference/scenario",
    "reference/commands",
    "reference/python",
    "reference/records",
    "reference/files",
    "explanation/comparison",
    "explanation/limits",
    "gallery/index",
    "notebooks/queues",
    "results/index",
    "search",
]
pytestmark = pytest.mark.slow
LOOKS = {
    "desktop, light": (1280, 900, False),
    "desktop, dark": (1280, 900, True),
    "phone, light": (360, 780, False),
    "phone, dark": (360, 780, True),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site with its gallery in a network namespace without a link, once for all workers. A warning fails
    the build."""
    base = tmp_path_factory.getbasetemp()
    out = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    with locks.exclusive(out.with_name("site.lock")):
        if not (out / "html/index.html").is_file():
            command = ["unshare", "--net", "--map-root-user", sys.executable, "-m", "website", "--out", str(out)]
            built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            assert built.returncode == 0, built.stderr
    return out / "html"


@pytest.mark.parametrize("look", LOOKS)
def test_pages_suit_every_screen_and_reader(browser: Browser, site: Path, axe: str, look: str, tmp_path: Path) -> None:
    width, height, dark = LOOKS[look]
    shots = Path(os.environ.get("HOURGLASS_SCREENSHOTS", tmp_path))
    problems: dict[str, Any] = {}
    for page in PAGES:
        browser.open(site / f"{page}.html", width, height, dark)
        browser.screenshot(shots / f"site-{page.replace('/', '-')}-{look.replace(', ', '-')}.png")
        foreign = [url for url in browser.requests() if not url.startswith(("file:", "data:", "about:"))]
        problems[page] = [*browser.complaints(), *foreign, *violations(browser, axe)]
        if browser.js("return document.documentElement.scrollWidth") > width:
            problems[page].append("the page is wider than the window")
    assert {page: problem for page, problem in problems.items() if problem} == {}


def test_the_front_page_leads_to_the_seven_tutorials(browser: Browser, site: Path) -> None:
    browser.open(site / "index.html")
    links = "[...document.querySelectorAll('article table a')]"
    assert browser.js(f"return {links}.map(a => a.getAttribute('href'))") == [f"tutorials/{n}.html" for n in QUESTIONS]
    for number, title in enumerate(QUESTIONS.values()):
        browser.open(site / "index.html")
        browser.js(f"{links}[{number}].click()")
        browser.settle()
        assert browser.js("return document.querySelector('h1').firstChild.textContent") == title


def test_the_keyboard_reaches_the_content_and_the_search(browser: Browser, site: Path) -> None:
    from selenium.webdriver import ActionChains, Keys

    browser.open(site / "index.html")
    focus = "return document.activeElement.getAttribute(arguments[0])"
    ActionChains(browser.driver).send_keys(Keys.TAB).perform()
    assert browser.js(focus, "href") == "#furo-main-content"
    names = []
    for _ in range(8):
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
        names.append(browser.js(focus, "name"))
        outline = "return getComputedStyle(document.activeElement).outlineStyle"
        assert browser.js(outline) != "none" or names[-1] == "q"
    assert "q" in names


def test_the_search_works_offline(browser: Browser, site: Path) -> None:
    browser.open(site / "search.html", at="?q=bufferbloat")
    links = "return [...document.querySelectorAll('#search-results li a')].map(a => a.textContent)"
    until(lambda: browser.js(links))
    assert any("Bufferbloat" in name for name in browser.js(links))
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:", "about:"))] == []


def test_the_reference_has_every_command_and_function(site: Path) -> None:
    import hourglass
    from hourglass.cli.commands import COMMANDS

    commands = (site / "reference/commands.html").read_text()
    names = [name for name, (group, _) in COMMANDS.items() if group]
    assert [name for name in names if f'id="hourglass-{name}"' not in commands] == []
    functions = set(re.findall(r'id="hourglass\.(\w+)"', (site / "reference/python.html").read_text()))
    assert set(hourglass.__all__) <= functions


def test_the_gallery_has_reports(browser: Browser, site: Path) -> None:
    entries = gallery.entries()
    assert len(entries) == 12
    browser.open(site / "gallery/index.html")
    links = "[...document.querySelectorAll('p.gallery a')]"
    assert browser.js(f"return {links}.map(a => a.getAttribute('href'))") == [f"{e.name}.html" for e in entries]
    browser.js("document.querySelectorAll('p.gallery img').forEach(image => image.loading = 'eager')")
    until(lambda: browser.js("return [...document.querySelectorAll('p.gallery img')].every(i => i.naturalWidth > 0)"))
    browser.complaints()
    for entry in entries:
        browser.open(site / f"gallery/{entry.name}.html")
        assert browser.complaints() == []
        assert browser.js("return document.querySelectorAll('.chart svg.marks').length") > 0, entry.name
