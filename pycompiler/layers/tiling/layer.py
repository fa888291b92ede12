"""The layer of MNCoreTiles."""

from __future__ import annotations

from collections.abc import Iterator

from ...code.nest import Nest
from ...graph.graph import MNGraph, MNNode
from ...graph.layout import Layouts, Ways
from ...machine import Target
from ...pfvm.device_functions import TILE_FACTS, TILE_RINGS, TILES
from ..base import Cut, OtherLm, not_apart
from ..data_movement import Moving
from ..switch.pass_code import aside_of
from .axes import other_axes
from .code import tiles_code
from .layouts import late_ways, refusals, ways
from .plan import plan


class Tiles(Moving, OtherLm):
    """Cuts axes into tiles that overlap; places outside of an axis are 0.

    :mod:`.axes` defines the result. The tiles of an axis lie on units, or next to each other in a
    PE. The places of a tile lie in Addr.
    """

    op = TILES
    attributes = frozenset({*TILE_FACTS, TILE_RINGS})
    rigid = True

    def layouts(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Layouts:
        """Keep the digits of the other axes and of tiles; tiles without units get free ones."""
        found = list(ways(node, graph, target, hints)) or list(ways(node, graph, target, {}))
        return found[-1]

    def candidates(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
        """Yield layouts close to the hints: tiles on the units that they have, and on more."""
        yield from ways(node, graph, target, hints)

    def late_candidates(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
        """Yield layouts in which halos stay within the L1Bs or L2Bs, as far as units suffice."""
        yield from late_ways(node, graph, target, hints)

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield the axes that do not change."""
        source, result = node.inputs[0], node.outputs[0]
        for axis in other_axes(node, graph):
            if axis.size == axis.reach > 1:
                yield Cut(((source, axis.source), (result, axis.result)))

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield operands that are not in the two LMs, and layouts that do not go together."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        yield from not_apart(source, result)
        yield from refusals(node, graph, target)

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return the code: copies, then the exchange of halos axis by axis."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        return tiles_code(plan(node, graph, target), source, result, target, aside_of(node))


LAYERS = (Tiles(),)
