"""The work of a node: multiply-adds of products, and long words of its operands and results."""

from __future__ import annotations

from math import ceil, prod

from ..graph.dtypes import MNDtype
from ..graph.graph import MNGraph, MNNode
from ..layers import matmul
from ..layers.products.roles import roles_of
from ..pfvm.windows import WEIGHT_GRADIENT

_PRODUCTS = frozenset(layer.op for layer in matmul.LAYERS)


def multiply_adds(node: MNNode, graph: MNGraph) -> int:
    """Return the multiply-adds of a matrix product or convolution; 0 for other operators."""
    if node.op == WEIGHT_GRADIENT:
        # Each of the gradients' places meets all weights of its channel.
        roles = roles_of(node, graph)
        return prod(graph.values[node.inputs[1]].shape) * roles.k * roles.taps
    if node.op not in _PRODUCTS:
        return 0
    roles = roles_of(node, graph)
    return prod(graph.values[node.outputs[0]].shape) * roles.k * roles.taps


def operand_words(node: MNNode, graph: MNGraph) -> int:
    """Return the long words of operands and results, each once, without copies and padding."""
    names = dict.fromkeys(name for name in (*node.inputs, *node.outputs) if name)
    bits = sum(prod(graph.values[n].shape) * graph.values[n].dtype.bits for n in names)
    return ceil(bits / MNDtype.LONG.bits)
