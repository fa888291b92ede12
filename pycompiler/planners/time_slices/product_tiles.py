"""Find the slices of one product that fit LM and take the fewest steps.

Most axes of a product belong to two of its three operands. If such an axis is cut finer, the third
operand must be moved more often. All combinations of sizes are tried with the layer's own layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product
from math import prod
from operator import ge

from ...cost.moves import latency_steps
from ...graph.dtypes import MNDtype
from ...graph.graph import MNGraph, MNNode, TensorType
from ...graph.plan import plans_of
from ...layers.base import Cut, distinct, layout_of
from ...layers.operators import LAYERS
from ...machine import Target
from ..lpz.costs import Costs
from ..lpz.known import Known
from .cut_classes import Axis
from .sliced_graph import too_large

#: A class, the node's axes in it, and the sizes its slices may have; the present size is the first.
Choice = tuple[Axis, Cut, tuple[int, ...]]

_BANKS = "lm0", "lm1"
#: guess: a sum of products and the product to add may take this share of LM. The planner may choose
#: layouts in which the factors have more copies than here.
_SUMS = 0.6


def best_tiles(
    node: MNNode, graph: MNGraph, target: Target, choices: Sequence[Choice], fraction: float
) -> tuple[tuple[Axis, int], ...]:
    """Return classes with sizes of slices, outermost loop first; empty if no sizes fit.

    Slices of the present sizes do not fit in the layouts of the planner. Slices that fit, with the
    sum of the slices before, are not cut finer.
    """
    known = Known()
    best: tuple[int, tuple[tuple[Axis, int], ...]] | None = None
    whole: list[tuple[int, ...]] = []
    present = tuple(found[0] for _, _, found in choices)
    for sizes in product(*(found for _, _, found in choices)):
        if sizes == present or any(all(map(ge, one, sizes)) for one in whole):
            continue
        small = _small(node, graph, target, choices, sizes)
        if small is None or any(too_large(small, target, fraction)):
            continue
        cut = [at for at, size in enumerate(sizes) if size < present[at]]
        counts = {at: -(-present[at] // sizes[at]) for at in cut}
        tiles = _Tiles(small, Costs(small, target, known), fraction)
        if not tiles.parted:
            whole.append(sizes)
        for order in _orders(cut, choices):
            steps = tiles.steps([choices[at][1] for at in order], [counts[at] for at in order])
            if best is None or steps < best[0]:
                best = steps, tuple((choices[at][0], sizes[at]) for at in order)
    return () if best is None else best[1]


def _orders(cut: Sequence[int], choices: Sequence[Choice]) -> Iterator[tuple[int, ...]]:
    """Yield the orders of the loops; joined classes are innermost."""
    outer = [at for at in cut if not choices[at][1].joins]
    inner = tuple(at for at in cut if choices[at][1].joins)
    yield from ((*order, *inner) for order in permutations(outer))


def _small(
    node: MNNode, graph: MNGraph, target: Target, choices: Sequence[Choice], sizes: Sequence[int]
) -> MNGraph | None:
    """Return a graph of ``node`` with its plan; its operands are cut to ``sizes`` and laid out.

    If sums are joined, a second node adds the product to the sum of the slices before. None if LM
    has fewer words than the operands.
    """
    values = {n: graph.values[n] for n in (*node.inputs, *node.outputs) if n}
    for (_, cut, found), size in zip(choices, sizes, strict=True):
        for name, number in cut.axes:
            shape = values[name].shape
            size_here = shape[number] // found[0] * size
            shape = (*shape[:number], size_here, *shape[number + 1 :])
            values[name] = replace(values[name], type=TensorType(values[name].type.elem, shape))
    room = sum(target.words(bank) for bank in _BANKS) * prod(target.pe_shape) * MNDtype.LONG.bits
    if sum(prod(value.shape) * value.dtype.bits for value in values.values()) > room:
        return None
    small = graph.with_values(values)
    layouts = LAYERS[node.op].layouts(node, small, target, {})
    placed = {
        name: replace(values[name], layout=layout, num_lw=layout.num_lw(target.cycles))
        for name, layout in layouts.items()
    }
    nodes = [replace(node, plan=plans_of(layouts).get(node.name))]
    cut_now = (cut for size, (_, cut, found) in zip(sizes, choices, strict=True) if size < found[0])
    if op := next((cut.joins for cut in cut_now if cut.joins), None):
        (out,) = node.outputs
        ends = f"{out}.before", f"{out}.sum"
        placed |= {name: replace(placed[out], name=name) for name in ends}
        nodes.append(MNNode(f"{node.name}.join", op, (ends[0], out), ends[1:]))
    return small.with_values(placed, nodes=tuple(nodes))


class _Tiles:
    """The steps of all slices of a product; ``graph`` has the nodes of one slice."""

    def __init__(self, graph: MNGraph, costs: Costs, fraction: float):
        node, *joins = graph.nodes
        names = distinct([n for one in graph.nodes for n in (*one.inputs, *one.outputs) if n])
        layouts = {name: layout_of(graph.values[name]) for name in names}
        self.own = costs.node(node, layouts)
        self.joins = sum(costs.node(one, layouts) for one in joins)
        names = distinct([n for n in (*node.inputs, *node.outputs) if n])
        words = {name: graph.values[name].num_lw or 0 for name in names}
        room = fraction * sum(costs.target.words(bank) for bank in _BANKS)
        # The next slice arrives beside this one if there is room, so that nobody waits for its MVs.
        hidden = (
            latency_steps(costs.target) if sum(words.values()) + max(words.values()) <= room else 0
        )
        self.moved = {
            name: costs.overlapped_transfer(graph.values[name], layouts[name]) - hidden
            for name in names
        }
        #: What the sum of the slices before moves at each join: nothing if it stays in LM.
        (out,) = node.outputs
        parted = joins and 2 * words[out] > _SUMS * room
        self.parted = 2 * self.moved[out] if parted else 0

    def steps(self, order: Sequence[Cut], counts: Sequence[int]) -> int:
        """Count the steps if the loops over slices have this order, the outermost first.

        A slice of an operand stays in LM during the loops inside its own innermost loop.
        """
        slices = prod(counts)
        outer = prod(count for cut, count in zip(order, counts, strict=True) if not cut.joins)
        total = slices * self.own + (slices - outer) * (self.joins + self.parted)
        for name, moved in self.moved.items():
            own = [at for at, cut in enumerate(order) if name in dict(cut.axes)]
            total += moved * prod(counts[: max(own) + 1] if own else ())
        return total
