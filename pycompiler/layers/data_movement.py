"""The base class of operators that only move elements."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.dtypes import MNDtype
from ..graph.graph import MNGraph, MNNode
from .base import UntiedAxes

#: Device dtypes of the elements that may be moved.
MOVED = frozenset(
    {
        MNDtype.FLOAT,
        MNDtype.DOUBLE,
        MNDtype.SINGLE_BOOL,
        MNDtype.INT,
        MNDtype.LONG,
        MNDtype.UINT,
        MNDtype.ULONG,
    }
)


class Moving(UntiedAxes):
    """An operator whose result consists of unchanged elements of its inputs."""

    dtypes = MOVED
    anchored = True

    def unsupported(self, node: MNNode, graph: MNGraph, dtypes: Sequence[MNDtype]) -> str | None:
        """Return why the node cannot run on the device; None if it can."""
        found = super().unsupported(node, graph, dtypes)
        if found is None and len(set(dtypes)) > 1:
            return f"{self.op} with a parameter that is no constant"
        return found
