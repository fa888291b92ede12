"""Random numbers that device and host compute alike: hashes of counters, in plain operators.

A number is the hash of three counters: the random operator, the call of the function, and the
element. The count of calls is a registered value of the model's own, which each call renews. So no
order of execution changes a number. The steps of the hash are those of the finalizer of
MurmurHash3, with shifts by 16.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial, pi

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .composites.writer import Rule, Writer, rewritten
from .held import Array
from .metadata import read, record
from .names import all_names, bodies_of, fresh, keys, nodes_of, record_keys, reserved
from .opsets import NEWEST, OLDEST, STANDARD, opset_of
from .prepare import prepare, static_types
from .random import is_random
from .registered import PRIVATE, attach, detach, mark, mark_updates
from .unroll import unroll
from .with_nodes import with_nodes

#: Odd numbers, which spread neighbouring calls and operators; the factors of the hash.
CALLS, SITES = -1640531527, -2048144789
ROUNDS = (-2048144789, -1028477387)
LOW16, HIGH16 = (1 << 16) - 1, -(1 << 16)

_START = "pycompiler.first_call"
_CALLS, _HELD = "random_calls", (1 << 31) - 1
#: Random bits of a number in each element type: as many as it has digits, at most 24.
_DIGITS = {"float": 24, "double": 24, "float16": 11, "bfloat16": 8}
#: The smallest normal number of singles.
_LEAST = 2.0**-126


def first_call(seed: int) -> int:
    """Return the number of the first call for a seed of torch, of up to 64 bits.

    It is a hash, because calls count on from it: calls of neighbouring seeds do not meet.
    """
    low, high = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    return seed_key(low ^ seed_key(high + 1)) & 0x3FFFFFFF


def set_first_call(model: onnx.ModelProto, seed: int) -> None:
    """Record the number of the first call of a model that makes random numbers."""
    functions = (node for function in model.functions for node in function.node)
    if _draws(model.graph) or any(map(is_random, functions)):
        record(model, _START, first_call(seed))


def with_random_numbers(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with its random operators written out, and with a count of calls.

    ``model`` has inferred types. Loops of known lengths around such operators are taken apart.
    Operators in other bodies stay, and forms without a rule; the host runs them.
    """
    if not OLDEST <= opset_of(model) <= NEWEST:
        return model
    inner = [node for node in model.graph.node if any(map(_draws, bodies_of(node)))]
    if not inner and not _draws(model.graph):
        return model
    given, results = keys(model)
    plain, registered = detach(model)
    plain = prepare(unroll(plain) if inner else plain)
    taken = all_names(plain.graph)
    calls, new = (reserved(name, taken) for name in (_CALLS, f"{_CALLS}__new"))
    drawn = _Sites(calls)

    def rule_of(node: onnx.NodeProto) -> Rule | None:
        rule = RULES.get(node.op_type) if node.domain in STANDARD and is_random(node) else None
        return rule and (lambda write: rule(write, drawn))

    plain = rewritten(plain, static_types(plain), rule_of)
    if not drawn.count:
        return model
    name = fresh(f"{calls}.one", all_names(plain.graph))
    one = numpy_helper.from_array(np.array(1, np.int32), name)
    added = helper.make_node("Add", [calls, one.name], [new], name=new)
    out = with_nodes(plain, [*plain.graph.node, added], [one])
    out.graph.output.append(helper.make_tensor_value_info(new, TensorProto.INT32, ()))
    first = np.array(read(model, _START, 0), np.int32)
    out = attach(out, [*registered, numpy_helper.from_array(first, calls)])
    mark(out, {calls: PRIVATE})
    mark_updates(out, {new: calls})
    record_keys(out, given, [*results, fresh(new, results)])
    out, registered = detach(out)
    return attach(prepare(out), registered)


def _draws(graph: onnx.GraphProto) -> bool:
    return any(map(is_random, nodes_of(graph)))


class _Sites:
    """Numbers the draws of a model: each has its own stream of numbers."""

    def __init__(self, calls: str):
        self.calls, self.count = calls, 0
        #: Names of constants, and of the numbers of the elements of a shape: draws share them.
        self.constants: dict[tuple[str, bytes], str] = {}
        self.places: dict[tuple[int, ...], str] = {}

    def key(self, seed: float | None, draw: int) -> int:
        """Return the key of a draw, the ``draw``-th of its operator.

        A seed decides the key alone, so that operators with equal seeds give equal numbers.
        """
        self.count += 1
        if seed is None:
            return self.count * SITES % (1 << 31)
        bits = int(np.float32(seed).view(np.uint32))
        return seed_key(bits + draw * SITES) & _HELD


def seed_key(bits: int) -> int:
    """Return the hash of the low 32 bits of an integer, which lies in [0, 2^32)."""
    for factor in (*ROUNDS, 1):
        bits &= 0xFFFFFFFF
        bits = (bits ^ (bits >> 16)) * factor
    return bits & 0xFFFFFFFF


class _Draw:
    """Writes the random numbers of one operator."""

    def __init__(self, write: Writer, sites: _Sites):
        self.write, self.sites, self.draws = write, sites, 0

    def op(self, op: str, *inputs: str | float) -> str:
        """Append an operator of singles; numbers become constants."""
        return self.write.op(op, *(n if isinstance(n, str) else self.single(n) for n in inputs))

    def single(self, value: float) -> str:
        return self._shared(np.array(value, np.float32))

    def cast(self, value: str, to: int) -> str:
        return self.write.op("Cast", value, to=to)

    def integer(self, value: int) -> str:
        return self._shared(np.array(value, np.int32))

    def _shared(self, number: Array) -> str:
        known, key = self.sites.constants, (str(number.dtype), number.tobytes())
        if key not in known:
            known[key] = self.write.constant(number, "number")
        return known[key]

    def _mixed(self, bits: str) -> str:
        """Append the hash of 32-bit integers."""
        op = self.write.op
        for factor in (*ROUNDS, 1):
            # onnxruntime has no shift of signed integers: a float holds the 16 digits exactly.
            high = self.cast(op("BitwiseAnd", bits, self.integer(HIGH16)), TensorProto.FLOAT)
            half = self.cast(op("Mul", high, self.single(2.0**-16)), TensorProto.INT32)
            bits = op("BitwiseXor", bits, op("BitwiseAnd", half, self.integer(LOW16)))
            if factor != 1:
                bits = op("Mul", bits, self.integer(factor))
        return bits

    def _places(self, shape: Sequence[int]) -> str:
        """Append the number of each element, as a sum of one small constant per axis."""
        if tuple(shape) in self.sites.places:
            return self.sites.places[tuple(shape)]
        total, step = "", 1
        for axis in reversed(range(len(shape))):
            wide = [-1 if a == axis else 1 for a in range(len(shape))]
            own = np.arange(shape[axis], dtype=np.int64) * step
            # Numbers beyond 32 bits wrap around.
            name = self.write.constant(own.astype(np.uint32).view(np.int32).reshape(wide), "place")
            total = self.write.op("Add", total, name) if total else name
            step *= shape[axis]
        self.sites.places[tuple(shape)] = total or self.integer(0)
        return self.sites.places[tuple(shape)]

    def uniform(self, shape: Sequence[int], digits: int = 24) -> str:
        """Append floats of ``digits`` random bits in [0, 1)."""
        op = self.write.op
        given = self.write.attribute("seed", None)
        key = self.integer(self.sites.key(given, self.draws))
        self.draws += 1
        call = op("Mul", self.sites.calls, self.integer(CALLS))
        bits = self._mixed(op("Add", self._places(shape), self._mixed(op("Add", call, key))))
        top = self.cast(
            op("BitwiseAnd", bits, self.integer(-(1 << 32 - digits))), TensorProto.FLOAT
        )
        return self.op("Add", self.op("Mul", top, 2.0**-32), 0.5)

    def normal(self, shape: Sequence[int]) -> str:
        """Append normal floats, at most 5.77 in size, by the formula of Box and Muller."""
        length, angle = self.uniform(shape), self.uniform(shape)
        size = self.op("Mul", self.op("Log", self.op("Sub", 1.0, length)), -2.0)
        return self.op("Mul", self.op("Sqrt", size), self._cosine(angle))

    def _cosine(self, turns: str) -> str:
        """Append the cosine of turns in [0, 1), within 5e-7: Cos would reduce its argument.

        It is the sine of the quarter turns from -1 to 1 that Abs leaves, by Taylor's series.
        """
        quarter = self.op("Sub", self.op("Abs", self.op("Sub", turns, 0.5)), 0.25)
        square, found = self.op("Mul", quarter, quarter), ""
        for power in reversed(range(1, 12, 2)):
            term = (-1.0 if power % 4 == 3 else 1.0) * (2.0 * pi) ** power / factorial(power)
            found = self.op("Add", self.op("Mul", found, square), term) if found else ""
            found = found or self.single(term)
        return self.op("Mul", found, quarter)


def _elem(write: Writer, result: str) -> tuple[str, int]:
    elem = write.types[result].elem
    return elem, TensorProto.DataType.Value(elem.upper())


def _shifted(
    write: Writer, draw: _Draw, value: str, factor: float, offset: float, most: float | None = None
) -> str:
    """Append the result: ``value`` times ``factor`` plus ``offset``, in its element type."""
    if factor != 1:
        value = draw.op("Mul", value, factor)
    if offset != 0:
        value = draw.op("Add", value, offset)
    if most is not None and (factor, offset) != (1, 0):
        value = draw.op("Min", value, most)
    return draw.cast(value, _elem(write, write.node.output[0])[1])


def _uniform(write: Writer, sites: _Sites) -> str | bool:
    result, draw = write.node.output[0], _Draw(write, sites)
    elem, _ = _elem(write, result)
    if elem not in _DIGITS:
        return False
    low, high = float(write.attribute("low", 0.0)), float(write.attribute("high", 1.0))
    value = draw.uniform(write.types[result].shape, _DIGITS[elem])
    return _shifted(write, draw, value, high - low, low, _below(high, elem) if low < high else None)


def _below(high: float, elem: str) -> float:
    """Return the number before ``high``: a sum may round to it, but a random whole number may not.

    Numbers have at most the digits of singles, also as doubles.
    """
    kind = helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(elem.upper()))
    kind = np.dtype(np.float32) if elem == "double" else kind
    found = np.array(high, np.float64).astype(kind)
    before = np.nextafter(found, np.array(-np.inf, kind))
    most = float(before if float(found) >= high else found)
    return min(most, -_LEAST) if -_LEAST < most <= 0 else most  # the device makes 0 of less


def _normal(write: Writer, sites: _Sites) -> str | bool:
    result, draw = write.node.output[0], _Draw(write, sites)
    if _elem(write, result)[0] not in _DIGITS:
        return False
    mean, scale = float(write.attribute("mean", 0.0)), float(write.attribute("scale", 1.0))
    return _shifted(write, draw, draw.normal(write.types[result].shape), scale, mean)


def _dropout(write: Writer, sites: _Sites) -> bool:
    """Write a Dropout that is switched on, or whose input decides in each call."""
    x, ratio, training = write.node.input
    result, mask = (*write.node.output, "")[:2]
    elem, to = _elem(write, x)
    if elem not in _DIGITS:
        return False
    on = write.data.get(training)
    if on is not None and not on.any():
        return False
    draw, shape = _Draw(write, sites), write.types[x].shape
    dropped = draw.cast(ratio, TensorProto.FLOAT) if ratio else draw.single(0.5)
    kept = draw.op("Less", draw.uniform(shape), draw.op("Sub", 1.0, dropped))
    value = draw.cast(x, TensorProto.FLOAT) if elem != "double" else x
    kind = TensorProto.FLOAT if elem != "double" else to
    factor = draw.cast(draw.op("Div", 1.0, draw.op("Sub", 1.0, dropped)), kind)
    nothing = draw.cast(draw.single(0.0), kind)
    value = write.op("Where", kept, write.op("Mul", value, factor), nothing)
    value = draw.cast(value, to)
    if on is None:
        value = write.op("Where", training, value, x)
        kept = write.op("Or", kept, write.op("Not", training))
    write.op("Identity", value, result=result)
    if mask:
        write.op("Identity", kept, result=mask)
    return True


def _multinomial(write: Writer, sites: _Sites) -> str | bool:
    """Write draws with replacement: the first class whose partial sum of chances reaches a number.

    Classes without a chance are left out. Their partial sums may differ from the ones before by
    rounding.
    """
    (x,), result = write.node.input, write.node.output[0]
    batch, classes = write.types[x].shape
    count, draw = write.types[result].shape[1], _Draw(write, sites)
    if not batch * classes * count:
        return False
    value, last = draw.cast(x, TensorProto.FLOAT), write.ints([1])
    value = write.op("Sub", value, write.op("ReduceMax", value, last, keepdims=1))
    chances = write.op("Exp", value)
    sums = write.op("CumSum", chances, write.constant(np.array(1), "axis"))
    some = write.op("Greater", chances, draw.single(0.0))
    reached = write.op("Where", some, sums, draw.single(0.0))
    total = write.op("ReduceMax", reached, last, keepdims=1)
    # Above 0 and at most the largest sum of a class with a chance.
    level = write.op("Mul", draw.op("Sub", 1.0, draw.uniform((batch, count))), total)
    levels = write.op("Unsqueeze", level, write.ints([2]))
    hit = write.op("LessOrEqual", levels, write.op("Unsqueeze", reached, last))
    own = np.arange(classes, dtype=np.float32).reshape(1, 1, classes)
    places = write.op("Where", hit, write.constant(own, "classes"), draw.single(float(classes)))
    places = write.op("ReduceMin", places, write.ints([2]), keepdims=0)
    return draw.cast(places, _elem(write, result)[1])


#: How each random operator is written; False leaves the node.
RULES: dict[str, Callable[[Writer, _Sites], str | bool]] = {
    "Dropout": _dropout,
    "Multinomial": _multinomial,
    "RandomNormal": _normal,
    "RandomNormalLike": _normal,
    "RandomUniform": _uniform,
    "RandomUniformLike": _uniform,
}
