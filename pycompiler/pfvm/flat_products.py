"""Products of rows that a view made of several axes.

torch writes a linear layer as a Gemm, with a view before it that makes a matrix, and one behind it
that takes the matrix apart. The product of the value before the view needs neither, and each of its
axes can be worked on slice by slice.
"""

from __future__ import annotations

import onnx_ir as ir

from .replacing import DOMAINS, VIEWS, Made, constant_of, only_user, shape_of


def unflatten_products(model: ir.Model) -> None:
    """Write such Gemms as MatMul and Add of the value before the view, in place."""
    for node in list(model.graph):
        if node.op_type == "Gemm" and node.domain in DOMAINS and _is_plain(node):
            rows, behind = node.inputs[0], only_user(node.outputs[0], model.graph)
            before = rows.producer() if rows is not None else None
            if before is not None and behind is not None:
                _unflatten(before, node, behind)


def _is_plain(node: ir.Node) -> bool:
    """Whether a Gemm is a product with a constant matrix, and a row that is added."""
    facts = {name: attribute.value for name, attribute in node.attributes.items()}
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    factors = facts.get("alpha", 1.0), facts.get("beta", 1.0)
    row = bias is None or len(shape_of(bias) or (0, 0)) == 1
    constant = constant_of(node.inputs[1]) is not None
    return constant and row and factors == (1.0, 1.0) and not facts.get("transA", 0)


def _unflatten(before: ir.Node, node: ir.Node, behind: ir.Node) -> None:
    """Replace a Gemm and the views around it, if they join the same axes and take them apart."""
    source, result = before.inputs[0], shape_of(behind.outputs[0])
    shape, rows = shape_of(source), shape_of(before.outputs[0])
    if not {before.op_type, behind.op_type} <= {*VIEWS} or not (shape and rows and result):
        return
    if min(len(shape), len(result)) < 3 or shape[:2] != result[:2]:
        return
    array = constant_of(node.inputs[1])
    assert array is not None
    turned = node.attributes.get_int("transB", 0)
    made = Made(behind, "rows")
    source = made.view(source, (*result[:-1], rows[-1]))
    found = made("MatMul", source, made.constant(array.T if turned else array), shape=result)
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        found = made("Add", found, node.inputs[2], shape=result)
    made.put(found, [node, behind])
