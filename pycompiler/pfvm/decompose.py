"""Rewrites single operators as others that compute the same: one function per operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import onnx_ir as ir

from .batch_norm import constant_of

#: Returns the nodes that replace a node (the last makes its output), or None to leave the node.
Rule = Callable[[ir.Node], Sequence[ir.Node] | None]

_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE)


def _node(op: str, *inputs: ir.Value | None, **attributes: int) -> ir.Node:
    return ir.node(op, inputs, attributes)


def _clip(node: ir.Node) -> Sequence[ir.Node] | None:
    """Write a Clip with one bound as Max or Min, and a Clip without bounds as Identity."""
    x, low, high = (*node.inputs, None, None)[:3]
    if low is not None and high is not None:
        return None
    if low is not None:
        return [_node("Max", x, low)]
    return [_node("Min", x, high)] if high is not None else [_node("Identity", x)]


def _pow(node: ir.Node) -> Sequence[ir.Node] | None:
    """Write small constant exponents as products, square roots and reciprocals.

    Other exponents get the type of the base. Whole powers of integers are products of squares.
    """
    x, y = node.inputs
    assert x is not None
    assert y is not None
    exponent, floats = constant_of(y), x.dtype in _FLOATS
    if exponent is not None and exponent.size == 1 and exponent.ndim <= len(x.shape or ()):
        number = float(exponent.reshape(()))
        if number.is_integer() and 0 < number < (_MOST_OF_FLOATS if floats else _MOST_OF_INTEGERS):
            return _product(x, int(number))
        if floats and number in _POWERS:
            made: list[ir.Node] = []
            for op in _POWERS[number].split():
                made.append(_node(op, *[made[-1].outputs[0] if made else x] * (1 + (op == "Mul"))))
            return made
    if x.dtype not in _FLOATS or y.dtype in (x.dtype, None):
        return None
    cast = _node("Cast", y, to=int(x.dtype))
    return [cast, _node("Pow", x, cast.outputs[0])]


def _product(x: ir.Value, number: int) -> Sequence[ir.Node]:
    """Return a whole power as a product of squares."""
    made: list[ir.Node] = []
    found = x
    for bit in f"{number:b}"[1:]:
        made.append(_node("Mul", found, found))
        if bit == "1":
            made.append(_node("Mul", made[-1].outputs[0], x))
        found = made[-1].outputs[0]
    return made or [_node("Identity", x)]


#: The operators that make a power, one behind the other; ``Mul`` makes a square.
_POWERS = {0.5: "Sqrt", -0.5: "Sqrt Reciprocal", -1.0: "Reciprocal", -2.0: "Mul Reciprocal"}
#: Whole powers below these are products. Larger ones of an integer beyond 1 exceed 64 bits.
_MOST_OF_FLOATS, _MOST_OF_INTEGERS = 5, 64

#: Whole numbers up to this one are exact in float32.
_EXACT = 1 << 24


def _of_truths(node: ir.Node) -> Sequence[ir.Node] | None:
    """Reduce truth values, cast to whole numbers, in float32: the device reduces floats only."""
    x = node.inputs[0]
    cast = x.producer() if x is not None else None
    if x is None or cast is None or cast.op_type != "Cast" or cast.inputs[0] is None:
        return None
    if x.dtype not in (ir.DataType.INT64, ir.DataType.INT32):
        return None
    shape, truths = x.shape, cast.inputs[0]
    if truths.dtype != ir.DataType.BOOL or shape is None or not shape.is_static():
        return None
    if prod(shape.numpy()) > _EXACT:
        return None
    floats = _node("Cast", truths, to=int(ir.DataType.FLOAT))
    attributes = {name: attribute.as_int() for name, attribute in node.attributes.items()}
    reduced = _node(node.op_type, floats.outputs[0], *node.inputs[1:], **attributes)
    return [floats, reduced, _node("Cast", reduced.outputs[0], to=int(x.dtype))]


def _sum(node: ir.Node) -> Sequence[ir.Node] | None:
    """Write a Sum of more than two inputs as sums of two."""
    first, *others = node.inputs
    if len(others) < 2:
        return None
    made: list[ir.Node] = []
    for other in others:
        made.append(_node("Add", made[-1].outputs[0] if made else first, other))
    return made


def _log(node: ir.Node) -> Sequence[ir.Node] | None:
    """Write log(sigmoid(x)) as -softplus(-x): the sigmoid is 0 where the logarithm is below -88.

    torch's exporter writes logsigmoid so, and the losses that are made of it.
    """
    x = node.inputs[0]
    maker = x.producer() if x is not None else None
    if maker is None or maker.op_type != "Sigmoid" or maker.domain not in ("", "ai.onnx"):
        return None
    turned = _node("Neg", maker.inputs[0])
    grown = _node("Softplus", turned.outputs[0])
    return [turned, grown, _node("Neg", grown.outputs[0])]


RULES: dict[str, Rule] = {
    "Clip": _clip,
    "Log": _log,
    "Pow": _pow,
    "ReduceMax": _of_truths,
    "ReduceMin": _of_truths,
    "ReduceSum": _of_truths,
    "Sum": _sum,
}


def decompose(model: ir.Model) -> None:
    """Apply the rules to the main graph, in place. New nodes take over the source lines."""
    for node in list(model.graph):
        rule = RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        made = None if rule is None else rule(node)
        if made is None:
            continue
        for number, new in enumerate(made):
            new.name = f"{node.name or node.op_type}.{number}"
            new.metadata_props.update(node.metadata_props)
        old, final = node.outputs[0], made[-1].outputs[0]
        final.name, final.shape, final.type = old.name, old.shape, old.type
        for number, new in enumerate(made[:-1]):
            for value in new.outputs:
                value.name = f"{old.name}.{new.op_type}{number or ''}"
        model.graph.insert_before(node, made)
        old.replace_all_uses_with(final, replace_graph_outputs=True)
        model.graph.remove(node, safe=True)
