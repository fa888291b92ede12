"""The site of these pages: ``make docs``. Every link and anchor is checked; nothing is fetched."""

project = "emu2 and pycompiler"
copyright = "the authors of emu2"
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = [
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"),
    *("docs/**", "editors/**/README.md"),
]
myst_heading_anchors = 4
html_theme = "alabaster"
html_theme_options = {"page_width": "1200px", "sidebar_width": "240px"}
html_show_sourcelink = False
