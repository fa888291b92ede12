"""The layer of MNCoreTiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from ...code.lines import Fragment
from ...graph.graph import Attribute, Location, MNGraph, MNNode, MNValue
from ...graph.layout import Layout
from ...machine import Target
from ...tolerance import MOVE
from ..base import Cut, OtherLm
from ..data_movement import MOVED, Moving
from . import code
from .axes import AXES, BEFORE, COUNTS, PLACES, REACH, other_axes
from .layouts import refusals, ways
from .plan import plan

TILES = "MNCoreTiles"


class Tiles(Moving, OtherLm):
    """Cuts axes into tiles that overlap; places outside of an axis are 0.

    :mod:`.axes` defines the result. The tiles of an axis lie on units, or next to each other in a
    PE. The places of a tile lie in Addr.
    """

    op = TILES
    dtypes = MOVED
    attributes = frozenset({AXES, COUNTS, PLACES, BEFORE, REACH})
    error = MOVE
    rigid = True

    def layouts(
        self, node: MNNode, graph: MNGraph, target: Target, hints: Mapping[str, Layout]
    ) -> dict[str, Layout]:
        """Keep the digits of the other axes and of tiles; tiles without units get free ones."""
        found = list(ways(node, graph, target, hints)) or list(ways(node, graph, target, {}))
        return found[-1]

    def candidates(
        self, node: MNNode, graph: MNGraph, target: Target, hints: Mapping[str, Layout]
    ) -> Iterator[dict[str, Layout]]:
        """Yield layouts close to the hints: tiles on the units that they have, and on more."""
        yield from ways(node, graph, target, hints)

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield the axes that do not change."""
        source, result = node.inputs[0], node.outputs[0]
        for axis in other_axes(node, graph):
            if axis.size == axis.reach > 1:
                yield Cut(((source, axis.source), (result, axis.result)))

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield operands that are not in the two LMs, and layouts that do not go together."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        if {source.location, result.location} != {Location.LM0, Location.LM1}:
            yield "operands that are not one in LM0 and one in LM1"
        yield from refusals(node, graph, target)

    def cost(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Estimate the steps."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        return _cost(_plain(source), _plain(result), node.attributes, target)

    def emit(self, node: MNNode, graph: MNGraph, target: Target) -> Fragment:
        """Return the code: copies, then the exchange of halos axis by axis."""
        source, result = graph.values[node.inputs[0]], graph.values[node.outputs[0]]
        found = plan(node, graph, target)
        return Fragment(tuple(code.lines(found, source, result, target)))


def _plain(value: MNValue) -> MNValue:
    """Return a value that differs from ``value`` in all that has no bearing on the cost."""
    return replace(value, name="", location=Location.LM, addr=None)


@lru_cache(maxsize=4096)
def _cost(
    source: MNValue, result: MNValue, attributes: tuple[tuple[str, Attribute], ...], target: Target
) -> int:
    names = ("source", "result")
    values = {n: replace(v, name=n) for n, v in zip(names, (source, result), strict=True)}
    node = MNNode("", TILES, names[:1], names[1:], attributes)
    return code.cost(plan(node, MNGraph("", "", values=values), target), target)


LAYERS = (Tiles(),)
