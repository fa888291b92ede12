"""The dashboard in a real browser, opened from disk. `make browser` installs the browser."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dashboard_browser import CHROMIUM, DRIVER, NO_BROWSER, Browser
from dashboard_folders import EVIL, FAILED, HOSTILE, ONE, OTHER

from pycompiler.dashboard.collect import find, read_compile
from pycompiler.dashboard.details import value_facts
from pycompiler.dashboard.serve import make_server, netron_folder
from pycompiler.debug.moments import Moments
from pycompiler.debug.values import Values
from pycompiler.graph.graph import Location
from pycompiler.graph.layout import Level
from pycompiler.graph.verify import layout_ranges
from pycompiler.runtime.app_file import app_of

pytest.importorskip("selenium.webdriver", reason="selenium is missing")
from selenium.common.exceptions import WebDriverException

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=NO_BROWSER)

_FILL = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))"
_WHEEL = (
    "arguments[0].dispatchEvent(new WheelEvent('wheel', "
    "{deltaY: -200, clientX: 300, clientY: 300, cancelable: true}))"
)


def test_the_list_leads_to_compiles_and_comparisons(browser: Browser, site: Path) -> None:
    browser.show(site, "#/")
    rows = browser.all("tbody tr")
    assert [row.text.split()[0] for row in rows] == [
        "<b>evil",
        "bad.failed",
        "large",
        "one",
        "other",
    ]
    assert "failed P0303" in rows[FAILED].text
    assert not browser.find("#compare").is_enabled()
    for place in (ONE, OTHER):
        rows[place].find_element("css selector", "input").click()
    browser.find("#compare").click()
    time.sleep(0.2)
    assert browser.run("return location.hash") == f"#/compare/{ONE}/{OTHER}"
    assert '"mixed"' in browser.text
    assert "layout" in browser.text
    totals = browser.find("#totals").text
    assert "cycles" in totals


def test_a_failed_compile_shows_its_diagnostic(browser: Browser, site: Path) -> None:
    browser.show(site, f"#/{FAILED}")
    assert "P0303" in browser.find("#error").text
    assert "help: replace the operator" in browser.find("#error").text
    assert [link.text for link in browser.all("header a")] == ["Compiles", "Overview", "Log"]
    browser.show(site, f"#/{FAILED}/log")
    assert "P0303" in browser.text


def test_nodes_can_be_sorted_and_searched(browser: Browser, site: Path, folders: Path) -> None:
    nodes = json.loads((folders / "one" / "report.json").read_text())["nodes"]
    browser.show(site, f"#/{ONE}/nodes")
    browser.find("th[data-column=cycles]").click()

    def shown() -> list[str]:
        return [row.text for row in browser.all("tbody tr td:nth-child(2)")]

    cycles = {row["node"]: row["cycles"] for row in nodes}
    assert sorted(shown()) == sorted(cycles)
    assert [cycles[name] for name in shown()] == sorted(cycles.values(), reverse=True)
    browser.find("th[data-column=cycles]").click()
    assert [cycles[name] for name in shown()] == sorted(cycles.values())
    browser.find("#search").send_keys("matmul switch")
    wanted = {
        row["node"]
        for row in nodes
        if all(part in " ".join(map(str, row.values())).lower() for part in ("matmul", "switch"))
    }
    assert set(shown()) == wanted
    browser.all("tbody tr a")[0].click()
    time.sleep(0.2)
    assert "/node/" in browser.run("return location.hash")


def test_places_of_elements_are_those_of_the_compiler(
    browser: Browser, site: Path, folders: Path
) -> None:
    found = read_compile(folders / "one", "one")
    graph, target = found.graph, found.target
    assert graph is not None
    assert target is not None
    units = list(layout_ranges(target))
    draw = random.Random(3)
    cases, wanted = [], []
    for value in graph.values.values():
        if value.layout is None:
            continue
        for _ in range(4):
            element = [draw.randrange(size) for size in value.shape]
            at = value.layout.coordinates(*(np.array(index) for index in element))
            places = {level.value: int(place) for level, place in at.items()}
            cases.append([value_facts(value, target), element, places])
            wanted.append([places, element])
    browser.show(site, f"#/{ONE}")
    script = (
        "return arguments[0].map(([value, element, places]) => ["
        "dashboard.coordinates(value.layout, element), dashboard.elementAt(value, places)])"
    )
    assert len(cases) > 40
    assert browser.run(script, cases) == wanted
    # PEs that hold elements: all elements and all copies, one by one.
    for value in graph.values.values():
        if value.layout is None:
            continue
        grid = value.layout.coordinates(*np.indices(value.shape))
        flat = [np.broadcast_to(grid.get(level, 0), value.shape).ravel() for level in units]
        there = set(zip(*(one.tolist() for one in flat), strict=True))
        ranges = {**layout_ranges(target), Level.W: 1, Level.ADDR: 1, Level.TIME: 1}
        for copy in value.layout.copies(ranges):
            if copy.level in units:
                k = units.index(copy.level)
                there = {
                    (*at[:k], at[k] + digit * copy.stride, *at[k + 1 :])
                    for at in there
                    for digit in range(copy.size)
                }
        script = (
            "const [value, counts] = arguments; let sum = 0;"
            "const go = (at, k) => { if (k === counts.length) {"
            " sum += dashboard.elementAt(value, at) !== null; return; }"
            "for (let i = 0; i < counts[k][1]; i++) go({ ...at, [counts[k][0]]: i }, k + 1); };"
            "go({}, 0); return sum"
        )
        counts = [[level.value, count] for level, count in layout_ranges(target).items()]
        assert browser.run(script, value_facts(value, target), counts) == len(there), value.name


def test_the_page_of_a_node_shows_code_slots_and_layouts(
    browser: Browser, site: Path, folders: Path
) -> None:
    found = read_compile(folders / "one", "one")
    assert found.graph is not None
    assert found.target is not None
    place, row = next((k, r) for k, r in enumerate(found.rows) if r["op"] == "MatMul")
    browser.show(site, f"#/{ONE}/node/{place}")
    assert row["node"] in browser.find("h1").text
    code = browser.find("#code")
    assert "mau" in code.find_element("css selector", "thead").text
    lines = [
        cell.text.partition(" shared with ")[0].rstrip() for cell in browser.all("#code td.mono")
    ]
    assert set(lines) <= set((folders / "one" / "model.vsm").read_text().split("\n"))
    operands = browser.all("button.operand")
    assert len(operands) == 3
    kept = json.loads((folders / "one" / "simulation_result.json").read_text())
    simulated, outcomes = kept["nodes"], kept["outcomes"]
    letters = {"group": "n", "l2b": "c", "l1b": "b", "mab": "m", "pe": "p"}
    moments = Moments(found.graph, found.target, app_of(folders / "one"), folders / "one")
    places = Values(found.graph, found.target, letters, moments)
    for operand in operands:
        operand.click()
        value = found.graph.values[operand.text]
        inputs = browser.all(".layout input")
        for element in ([1, 3], [0, 2], [8, 9]):
            for field, index in zip(inputs, element, strict=True):
                browser.run(_FILL, field, index)
            shown = json.loads(browser.find(".place").get_attribute("data-place"))
            if value.location is not Location.DRAM:
                lane = f"f[{shown['word']}]" if found.target else ""
                wanted = places.place(value, tuple(element))
                memory = value.location.memory
                assert wanted == f"{memory}[{shown['addr']}].{lane} of {shown['unit']}"
            chosen = browser.all(".units rect[fill='#e8710a']")
            assert len(chosen) == shown["copies"]
    settings = browser.all("#simulated tbody tr")
    assert len(settings) == len(simulated[row["node"]])
    first = next(iter(simulated[row["node"]].values()))
    assert f"{outcomes[first]['cycles']:,}" in settings[0].text
    assert len([one for one in settings if one.get_attribute("class") == "chosen"]) <= 1
    browser.all(".units rect[data-unit]")[0].click()
    assert "What n0c0b0m0p0 holds" in browser.text


def test_pictures_are_drawn_and_lead_to_nodes(browser: Browser, site: Path) -> None:
    browser.show(site, f"#/{ONE}/graph")
    assert browser.colours() > 8
    box = browser.run("const b = document.querySelector('canvas').boxes; return b[b.length - 1]")
    browser.move(box["x"] + 80, box["y"] + 15)
    assert box["name"] in browser.find("#tip").text
    browser.move(box["x"] + 80, box["y"] + 15, click=True)
    time.sleep(0.3)
    assert box["name"] in browser.find("h1").text
    for memory in ("LM0", "LM1", "DRAM"):
        browser.show(site, f"#/{ONE}/memory/{memory}")
        assert browser.colours() > 3
        assert f"values in {memory}" in browser.text
    for page in ("timeline", "memory"):
        browser.show(site, f"#/{ONE}/{page}")
        before = browser.colours()
        canvas = browser.find("canvas")
        for times in range(3):
            browser.run(_WHEEL, canvas)
            assert browser.colours() > 3, times
        browser.run("arguments[0].scene.reset()", canvas)
        assert abs(browser.colours() - before) < 40
    browser.show(site, f"#/{ONE}/roofline")
    products, expected = browser.all("main svg.plot")
    assert len(products.find_elements("css selector", "circle")) == 2
    named = products.text
    rows = browser.run("return dashboard.load(arguments[0])", f"{ONE}/nodes")
    assert all(row["node"] in named for row in rows if row["mads"])
    known = [row for row in rows if row["expected"] and row["cycles"]]
    assert len(expected.find_elements("css selector", "circle")) == len(known) > 4


def test_passes_show_changes(browser: Browser, site: Path) -> None:
    browser.show(site, f"#/{ONE}/passes/dtype")
    for selector, text in ((".added mark", "dtype=Float"), (".removed mark", "dtype=Unknown")):
        assert text in [mark.text for mark in browser.all(selector)]


def test_hostile_names_stay_text(browser: Browser, site: Path) -> None:
    pages = ["", "/nodes", "/node/0", "/node/1", "/graph", "/memory/DRAM", "/timeline", "/roofline"]
    seen = ""
    for page in [*pages, "/passes", "/passes/layout", "/log"]:
        browser.show(site, f"#/{HOSTILE}{page}")
        assert browser.all("main img, main b.evil, main script") == []
        assert browser.run("return window.evil") is None
        seen += browser.text
    browser.show(site, "#/")
    assert browser.all("main table b") == []
    assert EVIL in seen


def test_nothing_is_fetched_and_nothing_fails(browser: Browser, site: Path) -> None:
    """Runs last: all pages above have been shown."""
    for page in ("", "/nodes", "/graph", "/memory", "/timeline", "/passes", "/log", "/node/2"):
        browser.show(site, f"#/{OTHER}{page}")
    asked = browser.requests()
    assert len(asked) > 20
    assert {url.split(":")[0] for url in asked} <= {"file", "about", "data"}
    assert browser.problems() == []


def test_netron_shows_the_model_and_asks_nobody_else(
    browser: Browser, site: Path, folders: Path
) -> None:
    netron = netron_folder()
    if netron is None:
        pytest.skip("netron is missing")
    compiles = [read_compile(path, path.name) for path in find([folders])]
    with make_server(site, compiles, 0, netron) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_address[1]}/"
            browser.requests()
            browser.driver.get(f"{address}#/{ONE}")
            link = _soon(lambda: browser.driver.find_element("partial link text", "in Netron"))
            browser.driver.get(link.get_attribute("href"))
            nodes = _soon(lambda: browser.all("g.node") or None)
            assert len(nodes) >= 4
            assert all(url.startswith((address, "blob:", "data:")) for url in browser.requests())
        finally:
            server.shutdown()
            thread.join()


def _soon(ask: Callable[[], Any]) -> Any:
    """Ask again until there is an answer, for 20 seconds."""
    give_up = time.monotonic() + 20
    while True:
        try:
            found = ask()
        except WebDriverException:
            found = None
        if found is not None:
            return found
        assert time.monotonic() < give_up
        time.sleep(0.05)
