"""What the dashboard's pictures and tables show, in a real browser."""

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path

import pytest
from dashboard_browser import CHROMIUM, DRIVER, NO_BROWSER, Browser
from dashboard_folders import BIG, HOSTILE, LARGE, ONE, OTHER

from pycompiler.dashboard.collect import read_compile
from pycompiler.dashboard.details import rows_of_nodes
from pycompiler.gap.switches import switches

pytest.importorskip("selenium.webdriver", reason="selenium is missing")
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=NO_BROWSER)

SWEEP, MEMORY, GAP, NUMBERS = range(4)  # places of the files
_DATA = "return dashboard.load(arguments[0])"
_VIEW = "return { ...document.querySelectorAll('canvas')[arguments[0]].scene.view }"
_WHEEL = (
    "arguments[0].dispatchEvent(new WheelEvent('wheel', "
    "{deltaY: -300, clientX: 400, clientY: 300, cancelable: true}))"
)


def shown(browser: Browser, column: int) -> list[str]:
    return [cell.text for cell in browser.all(f"tbody tr td:nth-child({column})")]


def sized(browser: Browser, wide: int) -> None:
    browser.driver.set_window_size(wide, 1000)


PAGES = (
    *(
        "",
        "/nodes",
        "/node/3",
        "/graph",
        "/graph/%20/1",
        "/memory/LM0",
        "/memory/L2BM",
        "/timeline",
    ),
    *("/switches", "/switches/0", "/roofline", "/passes", "/log"),
)


@pytest.mark.parametrize("wide", [1400, 800])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_fit_and_have_their_colours(
    browser: Browser, site: Path, wide: int, theme: str
) -> None:
    sized(browser, wide)
    try:
        places = [f"#/{ONE}{page}" for page in PAGES]
        places += ["#/", f"#/compare/{ONE}/{OTHER}", *(f"#/file/{k}" for k in range(4))]
        for place in places:
            browser.show(site, place)
            while browser.run("return document.getElementById('theme').dataset.theme") != theme:
                browser.find("#theme").click()
            over = browser.run("return document.documentElement.scrollWidth - innerWidth")
            assert over <= 0, place
            # A number is one line, as high as one.
            wrapped = browser.run(
                "return [...document.querySelectorAll('td.number, .card b')].filter((cell) =>"
                " [...cell.childNodes].some((part) => { const range = document.createRange();"
                " range.selectNodeContents(part); const boxes = [...range.getClientRects()];"
                " return part.nodeType === 3 && new Set(boxes.map((b) => b.top)).size > 1; }))"
                ".map((cell) => cell.textContent)"
            )
            assert wrapped == [], place
            ground = browser.run("return getComputedStyle(document.body).backgroundColor")
            light = sum(map(int, ground.strip("rgb()").split(","))) > 600
            assert light == (theme == "light"), place
            # The canvas follows: its most common colour is that of the page.
            if browser.all("canvas"):
                most = browser.run(
                    "const c = document.querySelector('canvas');"
                    "const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                    "let ink = 0; for (let k = 3; k < p.length; k += 4) ink += p[k] > 0;"
                    "return ink"
                )
                assert most > 50, place
    finally:
        browser.run("delete localStorage.theme")
        sized(browser, 1400)


def test_tables_filter_and_give_what_they_show_as_csv(
    browser: Browser, site: Path, folders: Path, tmp_path: Path
) -> None:
    browser.show(site, f"#/{ONE}/nodes")
    rows = json.loads((folders / "one" / "report.json").read_text())["nodes"]
    search = browser.find("#search")
    search.send_keys("download")
    wanted = [row["node"] for row in rows if "download" in f"{row['node']} {row['op']}".lower()]
    assert shown(browser, 2) == wanted
    assert f"{len(wanted)} of {len(rows)} nodes" in browser.text
    text = browser.run("return document.querySelector('.sheet').csv()")
    head, *lines = csv.reader(io.StringIO(text))
    assert [line[head.index("node")] for line in lines] == wanted
    cycles = {row["node"]: row["cycles"] for row in rows}
    assert [int(line[head.index("cycles")]) for line in lines] == [cycles[one] for one in wanted]
    assert "DRAM (long words)" in head
    allowed = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.driver.execute_cdp_cmd("Browser.setDownloadBehavior", allowed)
    browser.find("button.csv").click()
    give_up = time.monotonic() + 20
    while not list(tmp_path.glob("*.csv")):
        assert time.monotonic() < give_up
        time.sleep(0.05)
    (saved,) = tmp_path.glob("*.csv")
    assert saved.name == "one_nodes.csv"
    assert saved.read_bytes().decode() == text
    # Names that a spreadsheet would compute are texts.
    formula = "return dashboard.table([{ title: 'a', of: (row) => row }], ['=1+1', 'b']).csv()"
    assert browser.run(formula).split() == ["a", "'=1+1", "b"]
    # What has no number stands last, whichever way.
    ends = (
        "const made = dashboard.table([{ title: 'a', number: true, of: (row) => row }],"
        " [2, '-', 3], { sorted: { column: 0, down: arguments[0] } }); return made.csv()"
    )
    assert browser.run(ends, True).split() == ["a", "3", "2", "-"]
    assert browser.run(ends, False).split() == ["a", "2", "3", "-"]


def test_keys_search_and_move(browser: Browser, site: Path) -> None:
    browser.show(site, f"#/{ONE}/nodes")
    browser.find("body").send_keys("/")
    assert browser.run("return document.activeElement.id") == "search"
    head = browser.find("th[data-column=cycles]")
    head.send_keys(Keys.ENTER)
    assert head.get_attribute("aria-sort") == "descending"
    browser.show(site, f"#/{ONE}/timeline")
    canvas = browser.find("canvas")
    start = browser.run(_VIEW, 0)
    canvas.send_keys("+")
    near = browser.run(_VIEW, 0)
    assert near["kx"] == pytest.approx(1.5 * start["kx"])
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert browser.run(_VIEW, 0)["x"] > near["x"]
    canvas.send_keys("0")
    assert browser.run(_VIEW, 0) == start


def test_the_time_line_has_rows_and_leads_to_the_line(browser: Browser, site: Path) -> None:
    browser.show(site, f"#/{ONE}/timeline")
    found = browser.run(_DATA, f"{ONE}/timeline")
    rows = browser.run("return document.querySelector('canvas').tracks")
    for name in ("nodes", "ALU", "MAU", "L1BM", "L2BM", "DRAM, group 0", "MV ports, group 0"):
        assert name in rows
    for kind in found["kinds"]:
        assert f"{kind}:" in browser.text
    report = browser.run(_DATA, "index")[ONE]
    assert found["bound"] == report["bound"]["cycles"]
    track = rows.index("MAU")
    event = next(one for one in found["events"] if one[0] == track)
    browser.move(event[1] + event[2] / 2, 24 * track + 12)
    tip = browser.find("#tip").text
    assert tip.startswith("MAU")
    assert f"line {event[5]} of model.vsm" in tip
    browser.move(event[1] + event[2] / 2, 24 * track + 12, click=True)
    row = found["rows"][event[4]]
    assert browser.run("return location.hash") == f"#/{ONE}/node/{row}/{event[5]}"
    browser.show(site, f"#/{ONE}/node/{row}/{event[5]}")
    chosen = browser.find("#code tr.here")
    assert int(chosen.get_attribute("data-line")) == event[5]


def test_two_time_lines_have_one_scale(browser: Browser, site: Path) -> None:
    browser.show(site, f"#/compare/{ONE}/{OTHER}")
    first, second = browser.all("canvas")
    views = browser.run(_VIEW, 0), browser.run(_VIEW, 1)
    assert views[0]["kx"] == views[1]["kx"]
    browser.run(_WHEEL, second)
    moved = browser.run(_VIEW, 0), browser.run(_VIEW, 1)
    assert moved[0]["kx"] == moved[1]["kx"] > views[0]["kx"]
    assert moved[0]["x"] == moved[1]["x"]
    assert first.size["width"] == second.size["width"]


@pytest.mark.parametrize("memory", ["LM0", "LM1", "DRAM", "L2BM"])
def test_memory_shows_one_instant(browser: Browser, site: Path, memory: str) -> None:
    browser.show(site, f"#/{ONE}/memory/{memory}")
    lives = [life for life in browser.run(_DATA, f"{ONE}/memory")["lives"] if life[1] == memory]

    def live(at: int) -> list[list[object]]:
        return [life for life in lives if life[2] <= at < life[3]]

    times = sorted({life[2] for life in lives})
    most = max(sum(life[5] for life in live(at)) for at in times)
    assert f"{most:,} long words." in browser.text
    for at in (times[0], times[-1], times[len(times) // 2]):
        browser.run(
            "const f = document.getElementById('at'); f.value = arguments[0];"
            "f.dispatchEvent(new Event('change'))",
            at,
        )
        names = [cell.text for cell in browser.all("#instant tbody tr td:first-child")]
        assert sorted(names) == sorted(life[0] for life in live(at))


def test_switches_have_the_words_that_cross(browser: Browser, site: Path, folders: Path) -> None:
    found = read_compile(folders / "one", "one")
    assert found.graph is not None
    assert found.target is not None
    wanted = {one.last.name: one for one in switches(found.graph, found.target)}
    browser.show(site, f"#/{ONE}/switches")
    names = shown(browser, 1)
    assert sorted(names) == sorted(wanted)
    browser.show(site, f"#/{ONE}/switches/0")
    one = wanted[browser.run(_DATA, f"{ONE}/switches")[0]["values"][1]["name"]]
    units = [row.split()[:2] for row in (line.text for line in browser.all(".sheet tbody tr"))]
    assert units == [[unit, f"{own.elements:,}"] for unit, own in one.crossing.items()]
    assert f"{found.target.cycles * one.least:,} cycles at least" in browser.text
    before, after = browser.all(".side .layout")
    field = before.find_elements("css selector", "input")[0]
    browser.run("arguments[0].value = 1; arguments[0].dispatchEvent(new Event('input'))", field)
    said = [side.find_element("css selector", ".place").text for side in (before, after)]
    assert all(text.startswith("Element [1, 0") for text in said)


def test_modules_of_a_graph_are_folded(browser: Browser, site: Path) -> None:
    browser.show(site, f"#/{BIG}/graph/%20/1")
    folds = browser.run(_DATA, f"{BIG}/graph")["folds"]
    boxes = browser.run("return document.querySelector('canvas').boxes")
    assert len(boxes) == len(folds[0]["nodes"]) == LARGE // 50
    rows = browser.run(_DATA, f"{BIG}/nodes")
    assert sum(box["cycles"] for box in boxes) == sum(row["cycles"] for row in rows)
    assert {box["count"] for box in boxes} == {50}


def test_ten_thousand_nodes_are_there_at_once(browser: Browser, site: Path) -> None:
    """What is out of sight is not drawn; `benches/test_dashboard.py` times it."""
    browser.show(site, f"#/{BIG}/nodes")
    assert f"{LARGE:,} nodes" in browser.text
    assert 20 < len(browser.all("tbody tr")) < 1000
    browser.find("#search").send_keys("node4321")
    assert shown(browser, 2) == ["block86/node4321"]
    browser.find("#search").clear()
    browser.find("#search").send_keys("block86/")
    assert f"50 of {LARGE:,} nodes" in browser.text
    drawn = "return document.querySelectorAll('canvas')[arguments[0]].drawn"
    browser.show(site, f"#/{BIG}/graph")
    assert 0 < browser.run(drawn, 0) < 1000
    browser.find("#find").send_keys("node4321", Keys.ENTER)
    assert 0 < browser.run(drawn, 0) < 200
    browser.run("document.querySelector('canvas').scene.reset()")
    assert browser.run(drawn, 0) == LARGE
    events = len(browser.run(_DATA, f"{BIG}/timeline")["events"])
    assert events > 2 * LARGE
    browser.show(site, f"#/{BIG}/timeline")
    whole = browser.run(drawn, 0)
    assert 100 < whole < 20_000  # events within one pixel are one
    for _ in range(12):
        browser.run(_WHEEL, browser.find("canvas"))
    assert 0 < browser.run(drawn, 0) < whole / 4
    lives = [life for life in browser.run(_DATA, f"{BIG}/memory")["lives"] if life[1] == "LM0"]
    browser.show(site, f"#/{BIG}/memory/LM0")
    assert browser.run(drawn, 1) == len(lives) == LARGE // 2
    for _ in range(12):
        browser.run(_WHEEL, browser.all("canvas")[1])
    assert 0 < browser.run(drawn, 1) < len(lives) / 4


def test_files_of_other_commands_have_pages(browser: Browser, site: Path) -> None:
    browser.show(site, "#/")
    assert [link.text.split("_")[0] for link in browser.all("main li a")] == [
        *("sweep", "memory", "gap", "numbers"),
    ]
    browser.show(site, f"#/file/{SWEEP}")
    cycles = browser.all("svg.plot")[0]
    assert len(cycles.find_elements("css selector", "polyline")) == 2
    assert len(cycles.find_elements("css selector", "circle")) == 6
    assert "P0601" in browser.text
    ticks = [one.text for one in cycles.find_elements("css selector", "text")]
    assert {"0", "100", "200", "300", "400"} <= set(ticks)
    browser.show(site, f"#/file/{MEMORY}/1")
    assert browser.find(".button.now").text == "best packing"
    assert browser.run("return document.querySelector('canvas').drawn") == 2
    assert "1.333" in browser.text
    browser.show(site, f"#/file/{GAP}")
    assert [cell.text for cell in browser.all("tbody td")] == ["all", "90", "30", "40", "20"]
    browser.show(site, f"#/file/{NUMBERS}")
    assert "1 failed" in browser.text
    assert shown(browser, 11) == ["ok", "w is not finite"]


def test_estimates_are_those_of_the_planners(browser: Browser, site: Path, folders: Path) -> None:
    rows = rows_of_nodes(read_compile(folders / "one", "one"))
    browser.show(site, f"#/{ONE}/roofline")
    sheet = browser.all(".sheet")[-1]
    text = browser.run("return arguments[0].csv()", sheet)
    head, *lines = csv.reader(io.StringIO(text))
    shown = {line[0]: int(line[head.index("expected (cycles)")]) for line in lines}
    assert shown == {
        row["node"]: row["expected"] for row in rows if row["expected"] and row["cycles"]
    }


def test_texts_of_models_stay_texts_in_pictures(browser: Browser, site: Path) -> None:
    for page in ("/switches", "/switches/0", "/roofline", "/graph", "/memory/LM0", "/nodes"):
        browser.show(site, f"#/{HOSTILE}{page}")
        assert browser.all("main img, main script") == []
        assert browser.run("return window.evil") is None
    assert browser.problems() == []
