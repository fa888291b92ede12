"""Find the slices of one product that fit LM and move the fewest words.

Most axes of a product belong to two of its three operands. If such an axis is cut finer, the third
operand must be moved more often. All combinations of sizes are tried with the layer's own layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product
from math import prod

from ...graph.graph import MNGraph, MNNode, TensorType
from ...graph.plan import plans_of
from ...layers.base import Cut, distinct
from ...layers.operators import LAYERS
from ...machine import Target
from .cut_classes import Axis
from .sliced_graph import too_large

#: A class, the node's axes in it, and the sizes its slices may have; the present size is the first.
Choice = tuple[Axis, Cut, tuple[int, ...]]

_PER_SLICE = 50  # the cost of the beginning of a slice, in long words moved


def best_tiles(
    node: MNNode, graph: MNGraph, target: Target, choices: Sequence[Choice], fraction: float
) -> tuple[tuple[Axis, int], ...]:
    """Return classes with sizes of slices, outermost loop first; empty if no sizes fit."""
    best: tuple[float, tuple[tuple[Axis, int], ...]] | None = None
    for sizes in product(*(found for _, _, found in choices)):
        small = _small(node, graph, target, choices, sizes)
        if any(too_large(small, target, fraction)):
            continue
        words = {
            name: small.values[name].num_lw or 0 for name in (*node.inputs, *node.outputs) if name
        }
        cut = [
            at
            for at, (size, (*_, found)) in enumerate(zip(sizes, choices, strict=True))
            if size < found[0]
        ]
        counts = {at: -(-choices[at][2][0] // sizes[at]) for at in cut}
        for order in _orders(cut, choices):
            cost = _traffic(node, words, choices, order, counts)
            if best is None or cost < best[0]:
                best = cost, tuple((choices[at][0], sizes[at]) for at in order)
    return () if best is None else best[1]


def _orders(cut: Sequence[int], choices: Sequence[Choice]) -> Iterator[tuple[int, ...]]:
    """Yield the orders of the loops; joined classes are innermost."""
    outer = [at for at in cut if not choices[at][1].joins]
    inner = tuple(at for at in cut if choices[at][1].joins)
    yield from ((*order, *inner) for order in permutations(outer))


def _small(
    node: MNNode, graph: MNGraph, target: Target, choices: Sequence[Choice], sizes: Sequence[int]
) -> MNGraph:
    """Return a graph of ``node`` with its plan; its operands are cut to ``sizes`` and laid out."""
    values = {n: graph.values[n] for n in (*node.inputs, *node.outputs) if n}
    for (_, cut, found), size in zip(choices, sizes, strict=True):
        for name, number in cut.axes:
            shape = values[name].shape
            size_here = shape[number] // found[0] * size
            shape = (*shape[:number], size_here, *shape[number + 1 :])
            values[name] = replace(values[name], type=TensorType(values[name].type.elem, shape))
    small = graph.with_values(values)
    layouts = LAYERS[node.op].layouts(node, small, target, {})
    placed = {
        name: replace(values[name], layout=layout, num_lw=layout.num_lw(target.cycles))
        for name, layout in layouts.items()
    }
    plan = plans_of(layouts).get(node.name)
    return small.with_values(placed, nodes=(replace(node, plan=plan),))


def _traffic(
    node: MNNode,
    words: Mapping[str, int],
    choices: Sequence[Choice],
    order: Sequence[int],
    counts: Mapping[int, int],
) -> float:
    """Count the words that all slices move.

    A slice of an operand stays in LM during the loops inside its own innermost loop.
    """
    total = float(_PER_SLICE * prod(counts.values()))
    for name in distinct([n for n in (*node.inputs, *node.outputs) if n]):
        own = [place for place, at in enumerate(order) if name in dict(choices[at][1].axes)]
        turns = order[: max(own) + 1] if own else ()
        total += words.get(name, 0) * prod(counts[at] for at in turns)
    return total
