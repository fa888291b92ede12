"""Cuts that make the matrices of products narrow enough for one L1B.

If all columns of a matrix fit an L1B, the rows of the data stay on their units from product to
product. The matrix of a wide layer does not fit, but slices of its columns, or of its terms, do.
"""

from __future__ import annotations

from math import gcd, prod

from ...graph.graph import MNNode
from ...layers.products.roles import precision_of, roles_of
from ...machine import Target
from .cut_classes import Axis
from .cuts import Cuts
from .sliced_graph import BESIDE

_PRODUCTS = ("MatMul", "Gemm")


def narrow_matrices(cuts: Cuts, *, inner: bool) -> dict[Axis, int]:
    """Return sizes of slices, by class, so that the shares of constant matrices fit LM1.

    With ``inner``, classes that reach inputs or outputs of the graph stay whole.
    """
    graph, target = cuts.plain, cuts.target
    before, cuts.sizes = cuts.sizes, {}
    try:
        for joined in (False, True):
            for node in graph.device_nodes():
                if node.op not in _PRODUCTS or node.inputs[1] not in graph.constants:
                    continue
                roles, name = roles_of(node, graph), node.inputs[1]
                axis = roles.b[1] if joined else roles.b[2]
                if axis is None or (inner and _reaches_out(cuts, (name, axis))):
                    continue
                factor = _share(cuts, name, target) / (BESIDE * target.words("lm1"))
                one = cuts.axes.of((name, axis))
                size = cuts.finer(one, factor) if factor > 1 else None
                if size is not None:
                    whole = _full(cuts, node, (name, axis)) if not joined else 1
                    cuts.sizes[one] = next(
                        (
                            less
                            for less in range(size, size // 2, -1)
                            if less % whole == 0 and cuts.allows(one, less)
                        ),
                        size,
                    )
        return dict(cuts.sizes)
    finally:
        cuts.sizes = before


def _full(cuts: Cuts, node: MNNode, axis: Axis) -> int:
    """Return what slices of columns are multiples of if they give every MAB whole blocks."""
    columns = cuts.target.counts["mab"] * precision_of(node, cuts.target).rows
    return columns // gcd(columns, cuts.axes.factor(axis))


def _reaches_out(cuts: Cuts, axis: Axis) -> bool:
    """Whether the class of an axis has inputs or outputs of the graph: then its values are many."""
    graph = cuts.plain
    ends = {*graph.inputs, *(name for _, name in graph.outputs)}
    return any(name in ends for name, _ in cuts.members.get(cuts.axes.of(axis), ()))


def _share(cuts: Cuts, name: str, target: Target) -> int:
    """Return the long words of a PE if the MABs of an L1B share a slice of a matrix."""
    value = cuts.plain.values[name]
    sizes = dict(enumerate(value.shape))
    for number, one in cuts.axes.of_value(name):
        sizes[number] = cuts.now(one) * cuts.axes.factor((name, number))
    units = target.counts["mab"] * target.counts["pe"]
    return -(-prod(sizes.values()) // (units * value.dtype.words_per_long))
