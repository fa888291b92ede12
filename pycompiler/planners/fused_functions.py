"""Chains of operators that the device computes as one function of singles.

The reciprocal of a root is one: the iteration gives 1/sqrt(x) itself. A mean is a sum times the
reciprocal of a count, rounded once, for which the graph goes through doubles. An axis of values of
different widths has no digit on W, so what lies beside such a mean, as all of a BatchNorm does,
could not have its channels in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..graph.draft import Edit
from ..graph.graph import MNNode
from ..graph.rewrite import Part, Pattern, Rewrite
from ..layers.functions.arithmetic import FACTOR, SHARE
from ..layers.functions.roots import RSQRT

#: Both singles of a number in these bounds are far from the ends of their range.
_LEAST, _MOST = 2.0**-64, 2.0**64


def _reciprocal_root(nodes: Sequence[MNNode], part: Part) -> Edit | None:
    """Compute 1 / sqrt(x) by one function."""
    last, root = nodes
    return _fused(nodes, RSQRT, (), part) if _singles(last, root, part) else None


def _share(nodes: Sequence[MNNode], part: Part) -> Edit | None:
    """Multiply by two singles that make up c: single(double(x) * c) is x * c, rounded once."""
    last, product, first = nodes
    number = part.facts.data.get(product.inputs[1])
    factor = float(number.item()) if number is not None and number.size == 1 else 0.0
    wide = part.values[product.outputs[0]].type.elem == "double"
    if not wide or not _LEAST < abs(factor) < _MOST or not _singles(last, first, part):
        return None
    return _fused(nodes, SHARE, ((FACTOR, factor),), part)


def _singles(last: MNNode, first: MNNode, part: Part) -> bool:
    """Whether a chain makes singles of singles of the same shape."""
    source, result = (part.values[name] for name in (first.inputs[0], last.outputs[0]))
    return {source.type.elem, result.type.elem} == {"float"} and source.shape == result.shape


def _fused(
    nodes: Sequence[MNNode], op: str, facts: tuple[tuple[str, float], ...], part: Part
) -> Edit:
    last, first = nodes[0], nodes[-1]
    one = replace(last, op=op, inputs=first.inputs, attributes=facts or last.attributes)
    return Edit(gone={node.name for node in nodes[1:]}, instead={last.name: one})


def _chain(*ops: str) -> Pattern:
    """Return the pattern of operators behind each other, the last first."""
    first, *rest = ops
    return Pattern(frozenset({first}), (_chain(*rest),) if rest else ())


RECIPROCAL_ROOT = Rewrite(
    "reciprocal_root",
    "two roundings become the one of the function",
    _chain("Reciprocal", "Sqrt"),
    _reciprocal_root,
)
MEAN_IN_SINGLES = Rewrite(
    "mean_in_singles", "at most half an ulp of the single", _chain("Cast", "Mul", "Cast"), _share
)
