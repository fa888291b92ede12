"""Integers that the device has no arithmetic for are computed as wider ones.

Integers of 8 and 16 bits are 32-bit integers on the device, in memory too. An operator that may
leave their range works on `int32`, and a Cast brings the result back, modulo 2^8 or 2^16. `uint32`
works on `int64`. So does the division of `int32`, which needs room for its corrections. The
division of 64-bit integers works on magnitudes without sign. Operators that make reals work on
doubles, as in onnxruntime.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..graph.graph import TensorType
from .names import all_names, reserved
from .session import Array
from .with_nodes import with_nodes

_SMALL = frozenset({"int8", "uint8", "int16", "uint16"})
_WIDE = {**dict.fromkeys(_SMALL, "int32"), "uint32": "int64"}
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


def widen_integers(model: onnx.ModelProto, types: dict[str, TensorType]) -> onnx.ModelProto:
    """Return the model with operators on narrow integers written on wider ones."""
    write = _Writer(types, all_names(model.graph))
    for node in model.graph.node:
        if node.domain not in ("", "ai.onnx") or not write.node(node):
            write.nodes.append(node)
    if not write.changed:
        return model
    return with_nodes(model, write.nodes, write.constants)


class _Writer:
    def __init__(self, types: dict[str, TensorType], taken: set[str]):
        self.types, self.taken = types, taken
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.changed = False

    def node(self, node: onnx.NodeProto) -> bool:
        """Write a node on wider integers; return False if it stays as it is."""
        elem = self.types[node.input[-1]].elem if node.input and node.input[-1] else ""
        op = node.op_type
        data = self.types[node.input[0]].elem if node.input and node.input[0] else ""
        places, picks = {**_OF_DATA, **_OF_PLACES}.get(op), op == "GatherElements"
        if op in _OF_REALS and data in (*_WIDE, "int32", *_LONG):
            self._of_data(node, data, "double", (0,))
        elif places is not None and (data == "uint32" or (data == "bool" and picks)):
            self._of_data(node, data, "int32" if data == "bool" else _WIDE[data], places)
        elif op in _DIVISIONS and elem in (*_WIDE, "int32", *_LONG):
            self._divide(node, elem)
        elif (op in _LEAVING and elem in _WIDE) or (op in _OTHERS and elem == "uint32"):
            wide = _WIDE[elem]
            first = 1 if op == "Where" else 0
            inputs = list(node.input[:first])
            inputs += [name and self.cast(node, name, wide) for name in node.input[first:]]
            if op in _TRUTHS:
                self.op(node, op, inputs, node.output[0])
            else:
                found = self.op(node, op, inputs)
                self.cast(node, found, elem, node.output[0])
        else:
            return False
        self.changed = True
        return True

    def _of_data(self, node: onnx.NodeProto, elem: str, wide: str, places: tuple[int, ...]) -> None:
        """Write an operator of numbers with wider ones; it may give several results."""
        made = onnx.NodeProto()
        made.CopyFrom(node)
        for place in places:
            made.input[place] = self.cast(node, node.input[place], wide)
        self.nodes.append(made)
        if node.op_type not in _OF_PLACES and node.output[0]:
            found = made.output[0] = reserved(f"{node.output[0]}.{wide}", self.taken)
            if wide == "double" and elem in _WIDE:  # the device casts no double to it
                found = self.cast(node, found, _WIDE[elem])
            self.cast(node, found, elem, node.output[0])

    def op(
        self, like: onnx.NodeProto, op: str, inputs: list[str], result: str = "", **facts: Any
    ) -> str:
        """Append an operator in the place of ``like``; return the name of its result."""
        name = result or reserved(f"{like.output[0]}.{op}", self.taken)
        made = helper.make_node(op, inputs, [name], **facts)
        if op == like.op_type and op not in _DIVISIONS:
            made.attribute.extend(like.attribute)
        made.name = f"{like.name or like.op_type}.{op}.{len(self.nodes)}"
        made.metadata_props.extend(like.metadata_props)
        self.nodes.append(made)
        return name

    def cast(self, like: onnx.NodeProto, name: str, elem: str, result: str = "") -> str:
        """Append a Cast to an element type."""
        to = int(onnx.TensorProto.DataType.Value(elem.upper()))
        return self.op(like, "Cast", [name], result, to=to)

    def number(self, like: onnx.NodeProto, value: int) -> str:
        return self.constant(like, np.array(value, np.int64))

    def constant(self, like: onnx.NodeProto, value: Array) -> str:
        name = reserved(f"{like.output[0]}.number", self.taken)
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def _divide(self, node: onnx.NodeProto, elem: str) -> None:
        """Divide magnitudes in floating point, and correct the quotient by its remainder.

        A quotient of magnitudes below 2^32 is off by 2^13 at most; that of its remainder is off by
        1 at most.
        """
        if elem in _LONG:
            self._divide_long(node, elem)
            return
        a, b = (self.cast(node, name, "int64") for name in node.input)
        p, q = (self.op(node, "Abs", [name]) for name in (a, b))
        zero, one = self.number(node, 0), self.number(node, 1)
        floats = self.cast(node, q, "float")
        total, rest = zero, p
        for _ in range(2):
            quotient = self.op(node, "Div", [self.cast(node, rest, "float"), floats])
            part = self.cast(node, quotient, "int64")
            total = self.op(node, "Add", [total, part])
            rest = self.op(node, "Sub", [p, self.op(node, "Mul", [total, q])])
        over = self.op(node, "GreaterOrEqual", [rest, q])
        under = self.op(node, "Less", [rest, zero])
        for found, op in ((over, "Add"), (under, "Sub")):
            step = self.op(node, "Where", [found, one, zero])
            total = self.op(node, op, [total, step])
        rest = self.op(node, "Sub", [p, self.op(node, "Mul", [total, q])])
        self._signed(node, elem, (a, b), total, rest)

    def _divide_long(self, node: onnx.NodeProto, elem: str) -> None:
        """Divide magnitudes as doubles. No quotient is too large: the factor below 1 sees to that.

        The first is off by less than 2^16, the second by 1 at most.
        """
        a, b = node.input
        if elem == "int64":
            p, q = (self.cast(node, self.op(node, "Abs", [x]), "uint64") for x in (a, b))
        else:
            p, q = a, b
        factor = self.constant(node, np.array(1 - 2.0**-50))
        zero, one = (self.constant(node, np.array(number, np.uint64)) for number in (0, 1))
        below = self.op(
            node, "Mul", [self.op(node, "Reciprocal", [self.cast(node, q, "double")]), factor]
        )
        total, rest = "", p
        for _ in range(2):
            guess = self.op(node, "Mul", [self.cast(node, rest, "double"), below])
            part = self.cast(node, guess, "uint64")
            total = self.op(node, "Add", [total, part]) if total else part
            rest = self.op(node, "Sub", [rest, self.op(node, "Mul", [part, q])])
        over = self.op(node, "GreaterOrEqual", [rest, q])
        total = self.op(node, "Add", [total, self.op(node, "Where", [over, one, zero])])
        rest = self.op(node, "Sub", [rest, self.op(node, "Where", [over, q, zero])])
        if elem == "int64":
            total, rest = (self.cast(node, name, elem) for name in (total, rest))
            self._signed(node, elem, (a, b), total, rest)
        else:
            self.op(node, "Identity", [total if node.op_type == "Div" else rest], node.output[0])

    def _signed(
        self, node: onnx.NodeProto, elem: str, given: tuple[str, str], total: str, rest: str
    ) -> None:
        """Give the quotient or remainder of magnitudes the sign that ONNX wants."""
        (a, b), zero = given, self.number(node, 0)
        negative = [self.op(node, "Less", [name, zero]) for name in (a, b)]
        opposite = self.op(node, "Xor", negative)
        if node.op_type == "Div":
            signed = self.op(node, "Where", [opposite, self.op(node, "Neg", [total]), total])
            self.cast(node, signed, elem, node.output[0])
            return
        rest = self.op(node, "Where", [negative[0], self.op(node, "Neg", [rest]), rest])
        if not any(a.name == "fmod" and a.i for a in node.attribute):
            # The result has the sign of the divisor.
            none = self.op(node, "Equal", [rest, zero])
            moved = self.op(node, "Where", [none, rest, self.op(node, "Add", [rest, b])])
            rest = self.op(node, "Where", [opposite, moved, rest])
        self.cast(node, rest, elem, node.output[0])
