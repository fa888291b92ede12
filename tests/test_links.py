"""Links between pages are valid: relative paths and their anchors exist."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
PAGES = [ROOT / name for name in TOP] + sorted((ROOT / "docs").rglob("*.md"))
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")

#: Questions of readers, and the pages that at most two links from README or architecture.md reach.
WALKS = {
    "a latency": "isa_specs/mncore2/timing.toml",
    "the rounding of half results": "emu2/src/num/mau/half.rs",
    "where dump lines are made": "emu2/src/report/dump.rs",
    "where time slices are decided": "pycompiler/planners/time_slices/planner.py",
    "how to add ThresholdedRelu": "CONTRIBUTING.md#an-operator",
    "how to add an option": "CONTRIBUTING.md#an-option",
}


def prose(path: Path) -> str:
    return FENCE.sub("", path.read_text())


@lru_cache
def anchors(path: Path) -> frozenset[str]:
    """Return the anchors that GitHub and MyST give the headings of a page."""
    text = prose(path)
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        found.add(plain)
    return frozenset(found)


@lru_cache
def links(path: Path) -> tuple[str, ...]:
    """Return the links of a page, as paths from the root with their anchors."""
    found = []
    for target in LINK.findall(CODE.sub("", prose(path))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        shown = str(file.relative_to(ROOT)) if file.is_relative_to(ROOT) else str(file)
        found.append(f"{shown}#{anchor}" if anchor else shown)
    return tuple(found)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links(page: Path) -> None:
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = ROOT / name
        assert target.is_file(), f"{link} does not exist"
        assert not anchor or anchor in anchors(target), f"{link} has no such heading"


def test_every_page_is_linked() -> None:
    linked = {link.partition("#")[0] for page in PAGES for link in links(page)}
    pages = {str(page.relative_to(ROOT)) for page in PAGES}
    assert pages - linked == {"docs/index.md"}


@pytest.mark.parametrize("question", WALKS)
def test_walks_take_two_links(question: str) -> None:
    near = {"README.md", "docs/architecture.md"}
    for _ in range(2):
        pages = {link.partition("#")[0] for link in near} & {
            str(p.relative_to(ROOT)) for p in PAGES
        }
        near |= {link for page in pages for link in links(ROOT / page)}
    assert WALKS[question] in near


def test_readme_lists_each_page_once() -> None:
    text = (ROOT / "README.md").read_text()
    table = text[text.index("\n## Pages") :]
    targets = LINK.findall(table)
    labels = re.findall(r"^\| ([a-z ]+) \|", table, re.MULTILINE)
    assert len(set(targets)) == len(targets)
    assert len(set(labels)) == len(labels) > 1


def test_anchors_are_read() -> None:
    assert "where-to-find-things" in anchors(ROOT / "docs" / "architecture.md")
    assert "h-the-hosts-side-of-a-device" in anchors(ROOT / "docs" / "errors.md")
