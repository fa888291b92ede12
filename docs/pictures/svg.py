"""An SVG picture for light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

#: Colours of units, in the order in which a picture takes them.
FILLS = ("#8fb8de", "#f3b27a", "#a8cf8e", "#c9aee5", "#e6c94f", "#e89a9a", "#8fd0c8", "#c2b8a3")
_STYLE = """
svg { font-family: "DejaVu Sans", Verdana, sans-serif; font-size: 12px; }
.paper { fill: #ffffff; } .ink { fill: #1d2733; } .dim { fill: #5b6772; } .dark { fill: #1d2733; }
.box { fill: #f4f6f8; stroke: #7d8893; } .inner { fill: #dfe7ee; stroke: #7d8893; }
.line { stroke: #7d8893; fill: none; } .dash { stroke: #e8710a; fill: none; stroke-dasharray: 4 3; }
.chosen { fill: none; stroke: #e8710a; stroke-width: 2; } .bold { font-weight: bold; }
@media (prefers-color-scheme: dark) {
  .paper { fill: #14191f; } .ink { fill: #e4e9ee; } .dim { fill: #9aa5b1; }
  .box { fill: #1f2730; } .inner { fill: #33404c; }
}
"""


class Picture:
    """Collects shapes; ``text`` returns the file. Places are pixels from the top left corner."""

    def __init__(self, width: float, height: float, about: str):
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" role="img">',
            f"<title>{escape(about)}</title><style>{_STYLE}</style>",
            '<rect class="paper" width="100%" height="100%"/>',
        ]

    def box(
        self, x: float, y: float, wide: float, high: float, kind: str = "box", fill: str = ""
    ) -> None:
        """Draw a rectangle; ``fill`` is a colour that takes the place of that of its kind."""
        own = f' style="fill:{fill}"' if fill else ""
        self._parts.append(
            f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" '
            f'rx="2"{own}/>'
        )

    def write(
        self, x: float, y: float, text: str, kind: str = "ink", anchor: str = "start", size: int = 0
    ) -> None:
        """Write a line of text whose feet stand at ``y``."""
        more = f' font-size="{size}"' if size else ""
        self._parts.append(
            f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}"{more}>'
            f"{escape(text)}</text>"
        )

    def line(self, points: Sequence[tuple[float, float]], kind: str = "line") -> None:
        """Draw a line through points."""
        way = " ".join(f"{x:g},{y:g}" for x, y in points)
        self._parts.append(f'<polyline class="{kind}" points="{way}"/>')

    def text(self) -> str:
        """Return the text of the file."""
        return "\n".join([*self._parts, "</svg>"]) + "\n"
