"""MNCoreLookup: rows of a table that stays in DRAM, picked by address.

The machine reads DRAM through its address registers (DAR): an MV takes the address of each block
from the next entry. Only the selected rows are loaded to LM, never the table.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...code.nest import Nest
from ...graph.graph import Location, MNGraph, MNNode
from ...graph.layout import Layout, Layouts
from ...machine import Target
from ...pfvm.device_functions import LOOKUP
from ..base import Cut, Picks, Placement, layout_of, other_layouts
from ..data_movement import MOVED
from ..dram_transfer_plan import plan_transfer
from .code import lookup_code
from .rows import (
    batches,
    index_layout,
    longest_row,
    result_layout,
    row_shape,
    table_layout,
    unit_words,
)


class Lookup(Picks):
    """``result[i..] = table[index[i..]]``, with the table in DRAM."""

    op = LOOKUP
    dtypes = MOVED
    in_dram = frozenset({0})

    def layouts(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Layouts:
        """Spread the rows over L2Bs and L1Bs, as in the result's hint if there is one."""
        for hint in (hints.get(node.outputs[0]), None):
            found = self._around(node, graph, target, hint)
            if found is not None:
                return found
        raise AssertionError(f"`{node.name}` has no layout")

    def _around(
        self, node: MNNode, graph: MNGraph, target: Target, wanted: Layout | None
    ) -> Layouts | None:
        table, index, out = (graph.values[n] for n in (*node.inputs, node.outputs[0]))
        made = result_layout(wanted, out.shape, out.dtype, target)
        if made is None:
            return None
        return {
            table.name: table_layout(table.shape, table.dtype, target),
            index.name: index_layout(made, out.shape, index.dtype, target),
            out.name: made,
        }

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield the axes of the index."""
        for axis, size in enumerate(graph.values[node.inputs[1]].shape):
            if size > 1:
                yield Cut(((node.inputs[1], axis), (node.outputs[0], axis)))

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Leave the table in DRAM."""
        return Placement((Location.DRAM, Location.LM1), (Location.LM0,))

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield wrong memories, rows that are too long, layouts other than those of its code."""
        table, index, out = (graph.values[n] for n in (*node.inputs, node.outputs[0]))
        if table.location is not Location.DRAM:
            yield "a table outside of DRAM"
        if table.shape[1] > longest_row(table.dtype, target):
            yield f"rows of {table.shape[1]} elements"
            return
        made = self._around(node, graph, target, layout_of(out))
        if made is None:
            yield f"`{out.name}` in layout {out.layout}"
            return
        yield from other_layouts(made, graph, target)
        row = row_shape(table.shape[1], table.dtype, target)
        # Rows follow each other in DRAM only if chunks of the table are whole units of MVs.
        *chunks, _ = plan_transfer(layout_of(table), target).chunks
        padded = any(
            one.l2_words > one.lm_steps * target.cycles * unit_words(target) for one in chunks
        )
        if padded or not batches(layout_of(out), layout_of(index), index.shape, row, target):
            yield "memories too small for a row, or rows that do not follow each other in DRAM"

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return the code."""
        return lookup_code(node, graph, target)


LAYERS = (Lookup(),)
