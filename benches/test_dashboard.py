"""How soon the dashboard's pages are there with 5,000 nodes. `make bench` prints it.

Each page is opened anew from disk. It fails above the target, on a host that does nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dashboard_browser import CHROMIUM, DRIVER, NO_BROWSER, Browser, opened
from dashboard_folders import write_large

from pycompiler.dashboard.collect import find
from pycompiler.dashboard.site import write_site

FIRST_VIEW = 3.0  # seconds
NODES = 5000
PAGES = ("", "/nodes", "/node/4321", "/graph", "/memory", "/timeline", "/roofline", "/passes")

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=NO_BROWSER)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("large")
    write_large(root / "in", NODES, whole=True)
    write_site(root / "out", find([root / "in"]))
    return root / "out"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened() as found:
        yield found


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_five_thousand_nodes(
    benchmark: Any, browser: Browser, site: Path, page: str
) -> None:
    def first_view() -> float:
        browser.driver.get("about:blank")
        start = time.monotonic()
        browser.show(site, f"#/0{page}")
        return time.monotonic() - start

    seconds = min(benchmark.pedantic(first_view, rounds=1), first_view(), first_view())
    print(f"\n{page or '/'}: {seconds:.2f} s")
    assert seconds <= FIRST_VIEW
