"""The site of these pages: ``make docs``. Every link and anchor is checked; nothing is fetched."""

import re
from typing import Any

project = "emu2 and pycompiler"
copyright = "the authors of emu2"
_CODE = re.compile(r"(?<![`:])`([^`]+)`(?!`)(\w*)")


def _code(app: Any, what: str, name: str, documented: Any, options: Any, lines: list[str]) -> None:
    """Docstrings write code as Markdown does; the site wants two signs."""
    for at, line in enumerate(lines):
        lines[at] = _CODE.sub(lambda m: f"``{m[1]}``" + (f"\\ {m[2]}" if m[2] else ""), line)


def setup(app: Any) -> None:
    """Connect what this file does to the site."""
    app.connect("autodoc-process-docstring", _code)


extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = [
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"),
    *("docs/**", "editors/**/README.md"),
]
myst_heading_anchors = 4
# Docstrings name types of other libraries and private ones: those have no page.
nitpick_ignore_regex = [("py:.*", ".*")]
autodoc_member_order = "groupwise"
html_theme = "alabaster"
html_theme_options = {"page_width": "1200px", "sidebar_width": "240px"}
html_show_sourcelink = False
