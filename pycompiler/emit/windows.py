"""Windows: a long program is made part by part, so that memory and time of a part stay bounded.

A part is the program of some nodes that follow each other. At its end all MVs have finished, so
the next part needs to know only the lines of its last steps. The first part tries all ways of
placing nodes. Later ones take what was best there: nodes of one network are much alike.
"""

from __future__ import annotations

from ..code.lines import Fragment
from ..machine import Target
from .addressed_lines import Shelf
from .concat import concatenate
from .merge import Way, merge
from .text import Addresses
from .units import Kind
from .writer import START, Behind, Code, joined

#: At most how many lines of nodes a part has, unless it has one node. No download runs ahead of its
#: part, so parts of half as many lines may take a few percent more cycles. With this length,
#: BERT-base takes 0.5 % more than as one part, and GPT-2 small 0.9 %.
WINDOW = 1 << 15


class Windows:
    """Makes the program of nodes that come one after the other; if ``merged``, they share lines."""

    def __init__(self, addresses: Addresses, target: Target, *, merged: bool):
        self._addresses, self._target, self._merged = addresses, target, merged
        self._codes: list[Code] = []
        self._nodes: list[tuple[str, str, Fragment]] = []
        self._kinds: list[Kind] = []
        self._behind, self._lines = START, 0
        self._ways: dict[bool, Way] = {}

    def add(self, name: str, comment: str, fragment: Fragment, kind: Kind) -> None:
        """Add a node."""
        if self._lines and self._lines + len(fragment.lines) > WINDOW:
            self._close()
        self._nodes.append((name, comment, fragment))
        self._kinds.append(kind)
        self._lines += len(fragment.lines)

    def finish(self) -> Code:
        """Return the program of all nodes."""
        self._close()
        return joined(self._codes)

    def _close(self) -> None:
        """Make the program of the nodes since the last part."""
        nodes, addresses, target, behind = self._nodes, self._addresses, self._target, self._behind
        shelf, code = Shelf(addresses, target), None
        if self._merged:
            code = merge(nodes, addresses, target, self._kinds, shelf, behind, self._ways)
        if code is None:
            code = concatenate(nodes, addresses, target, shelf, behind)
        self._codes.append(code)
        self._behind = Behind(behind.nodes + len(nodes), code.last)
        self._nodes, self._kinds, self._lines = [], [], 0
