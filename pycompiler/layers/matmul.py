"""Matrix products: MatMul, Gemm with its bias, and Conv, also in groups.

A MAB multiplies its matrix register by one vector a cycle. Vector and result lie across its PEs. So
the inner digits of the contracted axis lie across words and PEs in both operands. The rows of the
register are the columns of the result, which come out over words and PEs. Longer contractions add
to the sums in the register file. The ALU converts every factor to block float while the MAU works
on the factor of the step before.

``single`` keeps single precision; a block has as many elements as a MAB has PEs. ``pseudo_single``
rounds to 18 bits and has twice as many elements in a block, ``half`` rounds to half words and has
four times as many. Both add in single precision. Products of doubles are ``double``: two
instructions multiply, each on half of the PEs of a MAB.

A convolution contracts channels and taps. The axes with taps lie in Addr, so that a tap is an
offset of the address. Groups are an axis of pixels, weights and result, like a batch of matrices.
:mod:`pycompiler.pfvm.composites.convolution` writes padding, small groups and tiles of pixels as
other operators.

The schedules stand in :mod:`.products.schedules`: every MAB holds its operands, or the vectors come
through L1BM.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from math import prod

from ..code.lines import Fragment
from ..code.nest import Nest
from ..graph.dtypes import MNDtype
from ..graph.graph import Location, MNGraph, MNNode
from ..graph.layout import Layouts, Ways
from ..machine import Target
from ..pfvm.windows import CONVOLUTION, GROUPED
from ..tolerance import SUM
from .base import Cut, Layer, Placement, UntiedAxes, other_layouts, outside_lm
from .products.choose import across_groups, candidate_layouts, choose_layouts, steps
from .products.roles import PRECISION, bias_of, roles_of
from .products.schedules import SCHEDULES, schedule_of

#: The values of `auto_pad` that may pad.
_PADDED = ("SAME_UPPER", "SAME_LOWER")

__all__ = ["LAYERS", "PRECISION", "PRODUCTS", "Product"]


class Product(UntiedAxes):
    """MatMul or Gemm."""

    dtypes = frozenset({MNDtype.FLOAT, MNDtype.HALF, MNDtype.DOUBLE})
    error = SUM
    anchored = True
    apart = True
    schedules = tuple(SCHEDULES)

    def __init__(self, op: str, attributes: frozenset[str]):
        self.op = op
        self.attributes = attributes | {PRECISION}

    def unsupported(self, node: MNNode, graph: MNGraph, dtypes: Sequence[MNDtype]) -> str | None:
        """Return why the node cannot run on the device; None if it can."""
        facts = dict(node.attributes)
        for name in ("alpha", "beta"):
            if facts.get(name, 1.0) != 1.0:
                return f"{self.op} with {name} {facts[name]}"
        if self.op == "Conv":
            pads = facts.get("pads", ())
            if (isinstance(pads, tuple) and any(pads)) or facts.get(
                "auto_pad", "NOTSET"
            ) in _PADDED:
                return "Conv with padding"
            if facts.get("group", 1) != 1:
                return f"Conv in {facts['group']} groups"
        bias = bias_of(node)
        if self.op == "Gemm" and bias is not None:
            shape = graph.values[bias].shape
            if prod(shape[:-1]) != 1 or shape[-1] != graph.values[node.outputs[0]].shape[1]:
                return "Gemm with a C that is no row"
        if len(set(dtypes)) > 1:
            return f"{self.op} of several dtypes"
        return super().unsupported(node, graph, dtypes)

    def cuts(self, node: MNNode, graph: MNGraph) -> Iterator[Cut]:
        """Yield batch axes without taps, rows, columns; without a bias the contracted axis too."""
        roles, bias = roles_of(node, graph), bias_of(node)
        a, b, c = node.inputs[0], node.inputs[1], node.outputs[0]
        (a_batch, a_m, a_k), (b_batch, b_k, b_n), (c_batch, c_m, c_n) = roles.a, roles.b, roles.c
        row = [] if bias is None else [(bias, len(graph.values[bias].shape) - 1)]
        groups = [(bias, 0)] if bias is not None and self.op == GROUPED else []
        wanted: list[tuple[int, list[tuple[str, int | None]], str | None]] = [
            (size, [(a, ia), (b, ib), *(groups if ib is not None else []), (c, ic)], None)
            for index, (size, ia, ib, ic) in enumerate(
                zip(roles.batch, a_batch, b_batch, c_batch, strict=True)
            )
            if index not in roles.windows or roles.windows[index].trivial
        ]
        wanted.append((roles.m, [(a, a_m), (c, c_m)], None))
        wanted.append((roles.n, [(b, b_n), *row, (c, c_n)], None))
        if bias is None:
            wanted.append((roles.k, [(a, a_k), (b, b_k)], "Add"))
        for size, places, joins in wanted:
            if size > 1:
                yield Cut(tuple((n, axis) for n, axis in places if axis is not None), joins)

    def layouts(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Layouts:
        """Spread batch, n and m over the units; digits that hints have on units may stay."""
        return choose_layouts(node, graph, target, hints)

    def candidates(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
        """Yield the layouts of :meth:`layouts`, and other spreads of both schedules."""
        yield self.layouts(node, graph, target, hints)
        yield from candidate_layouts(node, graph, target, hints)

    def across_groups(self, node: MNNode, graph: MNGraph, target: Target, hints: Layouts) -> Ways:
        """Yield layouts in which groups share the contracted axis, or columns that go with it."""
        for terms in (True, False):
            yield from across_groups(node, graph, target, hints, terms=terms)

    def place(self, node: MNNode, graph: MNGraph) -> Placement:
        """Put the matrix in LM1, the vectors in LM0, bias and result where more room is left."""
        beside = schedule_of(node).beside
        known = {node.inputs[1]: Location.LM1, node.inputs[0]: Location.LM0}
        banks = [known.get(name, beside) for name in dict.fromkeys(node.inputs) if name]
        # Sums over groups take words of DRAM on their way: a second result.
        return Placement(tuple(banks), (beside, *(Location.DRAM,) * (len(node.outputs) - 1)))

    def refusals(self, node: MNNode, graph: MNGraph, target: Target) -> Iterator[str]:
        """Yield layouts that the matrix register cannot work on."""
        yield from outside_lm((*node.inputs, node.outputs[0]), graph)
        wanted = schedule_of(node).wanted(node, graph, target)
        if isinstance(wanted, str):
            yield wanted
            return
        yield from other_layouts(wanted, graph, target)

    def code(self, node: MNNode, graph: MNGraph, target: Target) -> Nest:
        """Return the code of the schedule."""
        return chain(*schedule_of(node).code(node, graph, target))

    def cost(self, node: MNNode, graph: MNGraph, target: Target) -> int:
        """Return the steps."""
        return steps(node, graph, target)

    def scattered(self, node: MNNode) -> bool:
        """Return what the schedule says."""
        return schedule_of(node).scattered

    def emit(self, node: MNNode, graph: MNGraph, target: Target) -> Fragment:
        """Return the lines."""
        return replace(super().emit(node, graph, target), loose=self.scattered(node))


LAYERS: tuple[Layer, ...] = (
    Product("MatMul", frozenset()),
    Product("Gemm", frozenset({"alpha", "beta", "transA", "transB"})),
    Product("Conv", CONVOLUTION),
    Product(GROUPED, frozenset({"dilations", "strides"})),
)

PRODUCTS = frozenset(layer.op for layer in LAYERS)
