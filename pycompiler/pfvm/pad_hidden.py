"""Hidden columns between two products get a length that layouts can cut.

The columns of a product go through elementwise operators, and are the terms of another product. If
their number has few factors two, the second product cannot take halves, and no slices of its terms
have equal lengths. Columns of zeros, which stay zero on the way, make the number a multiple of a
larger power of two. Both matrices are constants, so only they change.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from .replacing import DOMAINS, Made, constant_of, only_user, shape_of
from .split_products import PRODUCTS, flag

#: At most one of so many columns is added.
_WASTE = 32
#: Operators of one operand that give 0 for 0.
_KEEP_ZERO = frozenset(
    {
        *("Abs", "Celu", "Elu", "Erf", "Gelu", "HardSwish", "Identity", "LeakyRelu", "Mish", "Neg"),
        *("Relu", "Selu", "Sign", "Sqrt", "Softsign", "Tanh", "ThresholdedRelu"),
    }
)


def pad_hidden(model: ir.Model) -> None:
    """Lengthen hidden columns of the main graph, in place. No result changes but by rounding."""
    for product in model.graph:
        if product.op_type in PRODUCTS and product.domain in DOMAINS and _terms(product):
            _pad(model.graph, product)


def padded(columns: int) -> int:
    """Return the number of columns: a multiple of a power of two, with little waste."""
    unit = 1 << max(columns // _WASTE, 1).bit_length() - 1
    return -(-columns // unit) * unit


def _terms(product: ir.Node) -> int:
    """Return the terms of a product by a constant matrix; 0 if it is none."""
    matrix = constant_of(product.inputs[1])
    if matrix is None or matrix.ndim != 2 or flag(product, "transA"):
        return 0
    return int(matrix.shape[1 if flag(product, "transB") else 0])


def _pad(graph: ir.Graph, second: ir.Node) -> None:
    terms = _terms(second)
    size = padded(terms)
    chain, added, node = _before(second, terms, graph)
    if size == terms or node is None or node.op_type not in PRODUCTS or not _terms(node):
        return
    biases = [number for number in range(2, len(node.inputs)) if node.inputs[number] is not None]
    if not all(_is_row(node.inputs[number], terms) for number in biases):
        return
    extra = size - terms
    _lengthen(node, 1, 0 if flag(node, "transB") else 1, extra)
    for one, number in (*added, *((node, number) for number in biases)):
        _lengthen(one, number, 0, extra)
    _lengthen(second, 1, 1 if flag(second, "transB") else 0, extra)
    for one in (*chain, node):
        value = one.outputs[0]
        value.shape = ir.Shape([*(shape_of(value) or ())[:-1], size])


def _before(
    second: ir.Node, terms: int, graph: ir.Graph
) -> tuple[list[ir.Node], list[tuple[ir.Node, int]], ir.Node | None]:
    """Return the nodes in front of a product, the row that one of them adds, and their source."""
    chain, node = list[ir.Node](), _maker(second.inputs[0], graph)
    while node is not None and node.op_type in _KEEP_ZERO and len(node.inputs) == 1:
        chain.append(node)
        node = _maker(node.inputs[0], graph)
    if node is None or node.op_type != "Add":
        return chain, [], node
    place = next((i for i, one in enumerate(node.inputs) if _is_row(one, terms)), None)
    if place is None:
        return chain, [], node
    return [*chain, node], [(node, place)], _maker(node.inputs[1 - place], graph)


def _maker(value: ir.Value | None, graph: ir.Graph) -> ir.Node | None:
    """Return the node that makes a value of known shape that only one node reads, and once."""
    node = None if value is None else value.producer()
    if node is None or node.graph is not graph or node.domain not in DOMAINS:
        return None
    known = only_user(value, graph) is not None and shape_of(value) is not None
    return node if known else None


def _is_row(value: ir.Value | None, columns: int) -> bool:
    array = constant_of(value)
    return array is not None and array.shape == (columns,)


def _lengthen(node: ir.Node, place: int, axis: int, extra: int) -> None:
    """Put a constant with ``extra`` zeros at the end of ``axis`` in place of an operand."""
    array = constant_of(node.inputs[place])
    assert array is not None
    widths = [(0, extra if number == axis else 0) for number in range(array.ndim)]
    node.replace_input_with(place, Made(node, "padded").constant(np.pad(array, widths)))
