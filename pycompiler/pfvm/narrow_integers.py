"""Integers that the device has no arithmetic for are computed as wider ones.

Integers of 8 and 16 bits are 32-bit integers on the device, in memory too. An operator that may
leave their range works on `int32`, and a Cast brings the result back, modulo 2^8 or 2^16. `uint32`
works on `int64`. So does the division of `int32`, which needs room for its corrections. The
division of 64-bit integers works on magnitudes without sign. Operators that make reals work on
doubles, as in onnxruntime.
"""

from __future__ import annotations

import numpy as np
import onnx

from ..graph.graph import TensorType
from .composites.writer import SMALL, Rule, Writer, rewritten
from .opsets import STANDARD

_WIDE = {**dict.fromkeys(SMALL, "int32"), "uint32": "int64"}
#: Operators whose results may leave the range of small integers.
_LEAVING = frozenset({"Add", "Sub", "Mul", "Neg", "Abs", "BitwiseNot", "BitShift"})
_TRUTHS = frozenset({"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"})
#: Operators that compare, choose or change bits: only `uint32` needs wider operands for them.
_OTHERS = (
    frozenset(["Min", "Max", "Clip", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Where"]) | _TRUTHS
)
#: Operators that read numbers at these places, and give numbers of that type first.
_OF_DATA = {
    **dict.fromkeys(("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"), (0,)),
    **dict.fromkeys(("CumSum", "CumProd", "TopK", "GatherElements", "Trilu"), (0,)),
    **dict.fromkeys(("ScatterElements", "ScatterND"), (0, 2)),
    "TensorScatter": (0, 1),
}
#: The same, but what they give are places.
_OF_PLACES = dict.fromkeys(("ArgMax", "ArgMin"), (0,))
#: Operators of integers that make reals, which are cut to integers.
_OF_REALS = frozenset({"ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "Shrink"})
_DIVISIONS = frozenset({"Div", "Mod"})
_LONG = frozenset({"int64", "uint64"})
_OPERATORS = _LEAVING | _OTHERS | _OF_DATA.keys() | _OF_PLACES.keys() | _OF_REALS | _DIVISIONS
_INTEGERS = _WIDE.keys() | _LONG | {"int32"}


def widen_integers(model: onnx.ModelProto, types: dict[str, TensorType]) -> onnx.ModelProto:
    """Return the model with operators on narrow integers written on wider ones."""
    return rewritten(model, types, _rule_of)


def _rule_of(node: onnx.NodeProto) -> Rule | None:
    return _widen if node.domain in STANDARD and node.op_type in _OPERATORS else None


def _widen(write: Writer) -> str | bool:
    """Write a node on wider integers; return False if it stays as it is."""
    op, inputs = write.node.op_type, write.node.input
    elem, data = (write.types[name].elem if name else "" for name in (inputs[-1], inputs[0]))
    places, picks = {**_OF_DATA, **_OF_PLACES}.get(op), op == "GatherElements"
    if op in _OF_REALS and data in _INTEGERS:
        return _of_data(write, data, "double", (0,))
    if places is not None and (data == "uint32" or (data == "bool" and picks)):
        return _of_data(write, data, "int32" if data == "bool" else _WIDE[data], places)
    if op in _DIVISIONS and elem in _INTEGERS:
        return (_divide_long if elem in _LONG else _divide)(write, elem)
    wider = (op in _LEAVING and elem in _WIDE) or (op in _OTHERS and elem == "uint32")
    return wider and _on_wider(write, elem)


def _on_wider(write: Writer, elem: str) -> str:
    """Write an operator of numbers of one type, and cast its result back."""
    op, inputs = write.node.op_type, write.node.input
    first = 1 if op == "Where" else 0
    wide = (name and write.cast(name, _WIDE[elem]) for name in inputs[first:])
    found = write.op(op, *inputs[:first], *wide)
    write.nodes[-1].attribute.extend(write.node.attribute)
    return found if op in _TRUTHS else write.cast(found, elem)


def _of_data(write: Writer, elem: str, wide: str, places: tuple[int, ...]) -> bool:
    """Write an operator of numbers with wider ones; it may give several results."""
    result = write.node.output[0]
    inputs = enumerate(write.node.input)
    made = write.again([write.cast(n, wide) if at in places else n for at, n in inputs])
    if made.op_type not in _OF_PLACES and result:
        found = made.output[0] = write.name(wide)
        if wide == "double" and elem in _WIDE:  # the device casts no double to it
            found = write.cast(found, _WIDE[elem])
        write.cast(found, elem, result)
    return True


def _divide(write: Writer, elem: str) -> str:
    """Divide magnitudes in floating point, and correct the quotient by its remainder.

    A quotient of magnitudes below 2^32 is off by 2^13 at most; that of its remainder is off by
    1 at most.
    """
    op = write.op
    a, b = (write.cast(name, "int64") for name in write.node.input)
    p, q = (op("Abs", name) for name in (a, b))
    zero, one = (write.constant(np.array(number), "number") for number in (0, 1))
    floats = write.cast(q, "float")
    total, rest = zero, p
    for _ in range(2):
        part = write.cast(op("Div", write.cast(rest, "float"), floats), "int64")
        total = op("Add", total, part)
        rest = op("Sub", p, op("Mul", total, q))
    over, under = op("GreaterOrEqual", rest, q), op("Less", rest, zero)
    for found, change in ((over, "Add"), (under, "Sub")):
        total = op(change, total, op("Where", found, one, zero))
    rest = op("Sub", p, op("Mul", total, q))
    return _signed(write, elem, (a, b), total, rest)


def _divide_long(write: Writer, elem: str) -> str:
    """Divide magnitudes as doubles. No quotient is too large: the factor below 1 sees to that.

    The first is off by less than 2^16, the second by 1 at most.
    """
    op, (a, b) = write.op, write.node.input
    p, q = (write.cast(op("Abs", x), "uint64") if elem == "int64" else x for x in (a, b))
    factor = write.constant(np.array(1 - 2.0**-50), "number")
    zero, one = (write.constant(np.array(number, np.uint64), "number") for number in (0, 1))
    below = op("Mul", op("Reciprocal", write.cast(q, "double")), factor)
    total, rest = "", p
    for _ in range(2):
        part = write.cast(op("Mul", write.cast(rest, "double"), below), "uint64")
        total = op("Add", total, part) if total else part
        rest = op("Sub", rest, op("Mul", part, q))
    over = op("GreaterOrEqual", rest, q)
    total = op("Add", total, op("Where", over, one, zero))
    rest = op("Sub", rest, op("Where", over, q, zero))
    if elem == "int64":
        return _signed(write, elem, (a, b), *(write.cast(name, elem) for name in (total, rest)))
    return op("Identity", total if write.node.op_type == "Div" else rest)


def _signed(write: Writer, elem: str, given: tuple[str, str], total: str, rest: str) -> str:
    """Give the quotient or remainder of magnitudes the sign that ONNX wants."""
    (a, b), op = given, write.op
    zero = write.constant(np.array(0), "number")
    negative = [op("Less", name, zero) for name in (a, b)]
    opposite = op("Xor", *negative)
    if write.node.op_type == "Div":
        return write.cast(op("Where", opposite, op("Neg", total), total), elem)
    rest = op("Where", negative[0], op("Neg", rest), rest)
    if not write.attribute("fmod", 0):
        # The result has the sign of the divisor.
        none = op("Equal", rest, zero)
        moved = op("Where", none, rest, op("Add", rest, b))
        rest = op("Where", opposite, moved, rest)
    return write.cast(rest, elem)
