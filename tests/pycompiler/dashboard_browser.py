"""A browser for the tests of the dashboard."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is missing")

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
NO_BROWSER = "chromium or chromedriver is missing: make browser"


@contextmanager
def opened() -> Iterator[Browser]:
    """Start a browser without a window, and end it."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.add_argument("--window-size=1400,1000")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


class Browser:
    """A browser at a folder of pages."""

    def __init__(self, driver: Any):
        self.driver = driver

    def show(self, site: Path, page: str) -> None:
        """Show a page and wait until it is drawn."""
        address = f"file://{site}/index.html"
        if self.driver.current_url.split("#")[0] != address:
            self.driver.get(address + page)
        else:
            self.run("location.hash = arguments[0]", page)
        give_up = time.monotonic() + 20
        while self.run("return document.body.dataset.shown") != page:
            assert time.monotonic() < give_up, page
            time.sleep(0.02)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements("css selector", selector)
        return found

    @property
    def text(self) -> str:
        return str(self.run("return document.getElementById('page').textContent"))

    def colours(self) -> int:
        """Return how many colours the canvas shows."""
        return int(
            self.run(
                "const c = document.querySelector('canvas');"
                "const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                "return new Set(new Uint32Array(p.buffer)).size"
            )
        )

    def move(self, x: float, y: float, click: bool = False) -> None:
        """Point at a place of the canvas's drawing, and click there if asked."""
        canvas = self.find("canvas")
        px, py = self.run(
            "return arguments[0].scene.screen(arguments[1], arguments[2])", canvas, x, y
        )
        box = canvas.rect
        action = webdriver.ActionChains(self.driver).move_to_element_with_offset(
            canvas, int(px - box["width"] / 2), int(py - box["height"] / 2)
        )
        (action.click() if click else action).perform()

    def requests(self) -> set[str]:
        """Return the addresses that were asked for since the last call."""
        messages = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        return {
            m["params"]["request"]["url"]
            for m in messages
            if m["method"] == "Network.requestWillBeSent"
        }

    def problems(self) -> list[Any]:
        return [one for one in self.driver.get_log("browser") if one["level"] == "SEVERE"]
