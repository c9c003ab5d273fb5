# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium without a network. Without Chromium the tests are skipped (but see `tests/conftest.py`)."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PACKAGES = {"chromium": "chromium", "chromedriver": "chromium-driver"}


class Browser:
    """A page in a window: what the tests do with it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, width: int = 1280, height: int = 900, dark: bool = False, at: str = "") -> None:
        """Loads a page from a file into a window of this size and waits for its charts."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        self.theme(dark)
        self.driver.get_log("performance")
        self.driver.get("about:blank")
        self.driver.get(f"{page.as_uri()}{at}")
        self.settle()

    def theme(self, dark: bool) -> None:
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def settle(self) -> None:
        """Waits until every visible chart is drawn."""
        from selenium.webdriver.support.ui import WebDriverWait

        done = (
            "return [...document.querySelectorAll('.chart')].filter(c => c.offsetParent)"
            ".every(c => c.querySelector('svg.marks'))"
            " && [...document.querySelectorAll('details.run[open]')].every(d => d.querySelector('.plot'))"
        )
        WebDriverWait(self.driver, 30).until(lambda driver: driver.execute_script(done))

    def js(self, code: str, *arguments: Any) -> Any:
        return self.driver.execute_script(code, *arguments)

    def complaints(self) -> list[str]:
        """What the console said since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """The addresses asked for since `open`."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def screenshot(self, path: Path) -> None:
        self.driver.save_screenshot(str(path))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    missing = [package for tool, package in PACKAGES.items() if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"the browser test needs: apt-get install -y {' '.join(missing)}")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    profile = tmp_path_factory.mktemp("profile")
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                 "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}"):  # fmt: skip
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
    )
    yield Browser(driver)
    driver.quit()
