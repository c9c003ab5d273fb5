# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium without a network. Without Chromium the tests are skipped (but see `tests/conftest.py`)."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import tools
from tests.clocks import until


class Browser:
    """A page in a window."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, width: int = 1280, height: int = 900, dark: bool = False, at: str = "") -> None:
        """Load a page from a file into a window of this size and wait for its charts."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        self.theme(dark)
        self.driver.get_log("performance")
        self.driver.get("about:blank")
        self.driver.get(f"{page.as_uri()}{at}")
        self.settle()

    def network(self, on: bool) -> None:
        """Switch the network on, which has this machine alone, or off."""
        conditions = {"offline": not on, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        if on:
            conditions |= {"downloadThroughput": -1, "uploadThroughput": -1}
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)

    @contextmanager
    def online(self) -> Iterator[None]:
        """Let the page reach servers of this machine during the block. Later tests do not see its messages."""
        self.network(True)
        yield
        self.driver.get("about:blank")
        self.network(False)
        self.complaints()

    def theme(self, dark: bool) -> None:
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def settle(self) -> None:
        """Wait until every visible chart is drawn."""
        is_settled = (
            "return [...document.querySelectorAll('.chart')].filter(c => c.offsetParent)"
            ".every(c => c.querySelector('svg.marks'))"
            " && [...document.querySelectorAll('details.run[open]')].every(d => d.querySelector('.plot'))"
        )
        until(lambda: self.js(is_settled))

    def js(self, code: str, *arguments: Any) -> Any:
        return self.driver.execute_script(code, *arguments)

    def complaints(self) -> list[str]:
        """Return the console's messages since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses requested since `open`."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def screenshot(self, path: Path) -> None:
        self.driver.save_screenshot(str(path))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium, chromedriver = tools.need("chromium"), tools.need("chromedriver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    profile = tmp_path_factory.mktemp("profile")
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                 "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--user-data-dir={profile}"):  # fmt: skip
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, Service(chromedriver))
    driver.execute_cdp_cmd("Network.enable", {})
    driver.set_script_timeout(120)
    page = Browser(driver)
    page.network(False)
    yield page
    driver.quit()


@pytest.fixture(scope="module")
def axe() -> str:
    """Return the source of axe-core."""
    package = pytest.importorskip("axe_core_python")
    return (Path(package.__file__).parent / "axe.min.js").read_text()


def violations(browser: Browser, axe: str) -> list[str]:
    """Return the violations that axe-core finds on the open page. Its version 4.4 takes footnotes for landmarks."""
    browser.js(axe)
    browser.driver.set_script_timeout(120)
    check = "axe.run({exclude: [['.footnote-list']]}, {preload: false}).then(arguments[0])"
    result = browser.driver.execute_async_script(check)
    return [f"{rule['id']}: {node['target']}" for rule in result["violations"] for node in rule["nodes"]]
