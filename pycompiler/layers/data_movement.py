"""What operators that only move elements have in common."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.dtypes import MNDtype
from ..graph.graph import MNGraph, MNNode
from ..tolerance import MOVE
from .base import Frame, Layer

#: Device dtypes that may be moved about.
MOVED = frozenset({MNDtype.FLOAT, MNDtype.SINGLE_BOOL, MNDtype.INT, MNDtype.LONG, MNDtype.UINT})


class Moving(Layer):
    """An operator whose result has elements of its inputs, unchanged."""

    dtypes = MOVED
    error = MOVE
    anchored = True

    def frame(self, node: MNNode, graph: MNGraph) -> Frame:
        """Tie no axes: the operands have layouts of their own."""
        return Frame((), ())

    def unsupported(self, node: MNNode, graph: MNGraph, dtypes: Sequence[MNDtype]) -> str | None:
        """Why the node cannot run on the device."""
        found = super().unsupported(node, graph, dtypes)
        if found is None and len(set(dtypes)) > 1:
            return f"{self.op} with a parameter that is no constant"
        return found
