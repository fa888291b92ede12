"""Rewrites single operators as others that compute the same: one function per operator."""

from __future__ import annotations

from math import prod

import onnx_ir as ir

from .replacing import DOMAINS, Made, Rule, constant_of, replace

_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE)


def _clip(node: ir.Node, made: Made) -> ir.Value | None:
    """Write a Clip with one bound as Max or Min, and a Clip without bounds as Identity."""
    x, low, high = (*node.inputs, None, None)[:3]
    if low is not None and high is not None:
        return None
    if low is not None:
        return made("Max", x, low)
    return made("Min", x, high) if high is not None else made("Identity", x)


def _pow(node: ir.Node, made: Made) -> ir.Value | None:
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
            return _product(x, int(number), made)
        if floats and number in _POWERS:
            for op in _POWERS[number].split():
                x = made(op, *[x] * (1 + (op == "Mul")))
            return x
    if x.dtype not in _FLOATS or y.dtype in (x.dtype, None):
        return None
    return made("Pow", x, made("Cast", y, to=int(x.dtype)))


def _product(x: ir.Value, number: int, made: Made) -> ir.Value:
    """Return a whole power as a product of squares."""
    found = x
    for bit in f"{number:b}"[1:]:
        found = made("Mul", found, found)
        if bit == "1":
            found = made("Mul", found, x)
    return found if made.nodes else made("Identity", x)


#: The operators that make a power, one behind the other; ``Mul`` makes a square.
_POWERS = {0.5: "Sqrt", -0.5: "Sqrt Reciprocal", -1.0: "Reciprocal", -2.0: "Mul Reciprocal"}
#: Whole powers below these are products. Larger ones of an integer beyond 1 exceed 64 bits.
_MOST_OF_FLOATS, _MOST_OF_INTEGERS = 5, 64

#: Whole numbers up to this one are exact in float32.
_EXACT = 1 << 24


def _of_truths(node: ir.Node, made: Made) -> ir.Value | None:
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
    floats = made("Cast", truths, to=int(ir.DataType.FLOAT))
    reduced = made(node.op_type, floats, *node.inputs[1:], facts=node.attributes)
    return made("Cast", reduced, to=int(x.dtype))


def _sum(node: ir.Node, made: Made) -> ir.Value | None:
    """Write a Sum of more than two inputs as sums of two."""
    found, *others = node.inputs
    if len(others) < 2:
        return None
    for other in others:
        found = made("Add", found, other)
    return found


def _log(node: ir.Node, made: Made) -> ir.Value | None:
    """Write log(sigmoid(x)) as -softplus(-x): the sigmoid is 0 where the logarithm is below -88.

    torch's exporter writes logsigmoid so, and the losses that are made of it.
    """
    x = node.inputs[0]
    maker = x.producer() if x is not None else None
    if maker is None or maker.op_type != "Sigmoid" or maker.domain not in DOMAINS:
        return None
    return made("Neg", made("Softplus", made("Neg", maker.inputs[0])))


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
    """Apply the rules to the main graph, in place."""
    replace(list(model.graph), RULES)
