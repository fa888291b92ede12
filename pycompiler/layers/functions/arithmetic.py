"""Sums, products, signs and bounds of singles, doubles, halves, and 32- and 64-bit integers."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from ...graph.dtypes import MNDtype
from ...tolerance import MOVE
from .doubles import Doubles
from .elementwise_function import (
    BINARY,
    DOUBLE,
    FLOAT,
    HALF,
    LONG,
    NUMBERS,
    REALS,
    SIGNED,
    TERNARY,
    ULONG,
    UNARY,
    Build,
    Call,
    Function,
)
from .program import ZERO, Program, Result, Row, double, halves, long, neg, word

_MAGNITUDE, _LARGEST = 0x7FFFFFFF, 0x7F7FFFFF

#: x times the number FACTOR, a double; of singles.
SHARE, FACTOR = "MNCoreShare", "factor"


def _reals(p: Program, call: Call) -> Program | Doubles:
    """Return what writes the arithmetic of singles or doubles."""
    return Doubles(p) if call.result is DOUBLE else p


def _add(p: Program, call: Call) -> Row:
    a, b = call.inputs
    if call.result is HALF:
        return p.op("mau", "hvaddr", a, halves(b))
    if call.result in REALS:
        return _reals(p, call).add(a, b)
    return p.alu(f"{call.letter}add", a, b)


def _sub(p: Program, call: Call) -> Row:
    a, b = call.inputs
    if call.result is HALF:
        return p.op("mau", "hvaddr", a, neg(halves(b)))
    if call.result in REALS:
        return _reals(p, call).sub(a, b)
    return p.alu(f"{call.letter}sub", a, b)


def _mul(p: Program, call: Call) -> Row:
    a, b = call.inputs
    if call.result is HALF:
        return p.op("mau", "hvmulr", a, b)
    if call.result in REALS:
        return _reals(p, call).mul(a, b)
    return integer_product(p, a, b, call.result)


def integer_product(p: Program, a: Row, b: Row, dtype: MNDtype) -> Row:
    """Return the low bits of ``a * b``, from exact products of thirds.

    A third of a 32-bit integer has 11 bits, a third of a 64-bit integer 22. Three products of two
    thirds, and their sum, fit the fraction of a single or of a double. The low bits of the factors'
    fractions are 0, so the multiplier omits nothing.
    """
    wide = dtype in (LONG, ULONG)
    letter, bits = ("l", 22) if wide else ("i", 11)
    f = "d" if wide else "f"
    # An integer below 2^fraction is put into the fraction bits of the number 2^fraction.
    magic = double(2.0**52) if wide else word(0x4B000000)
    low = long((1 << bits) - 1) if wide else word((1 << bits) - 1)
    shift, shift2 = (long(bits), long(2 * bits)) if wide else (word(bits), word(2 * bits))

    def third(x: Row, number: int) -> Result:
        part: Row = x
        if number:
            part = p.alu(f"u{letter}lsr", x, shift if number == 1 else shift2)
        if number < 2:
            part = p.alu(f"{letter}and", part, low)
        return p.op("mau", f"{f}vadd", p.alu(f"{letter}or", part, magic), neg(magic))

    def product(x: Row, y: Row, z: Row | None = None) -> Result:
        if not wide:
            return p.mul(x, y) if z is None else p.fma(x, y, z)
        upper = p.op("mau", "dvmulu", x, y) if z is None else p.op("mau", "dvfmau", x, y, z)
        return p.op("mau", "dvfmad", x, y, upper)

    def integer(x: Row) -> Result:
        return p.alu(f"{f}ftoi", x)

    (a0, a1, a2), (b0, b1, b2) = ([third(x, n) for n in range(3)] for x in (a, b))
    lower = integer(product(a0, b0))
    middle = integer(product(a1, b0, product(a0, b1)))
    upper = integer(product(a2, b0, product(a1, b1, product(a0, b2))))
    middle = p.alu(f"{letter}lsl", middle, shift)
    upper = p.alu(f"{letter}lsl", upper, shift2)
    return p.alu(f"{letter}add", p.alu(f"{letter}add", lower, middle), upper)


def _neg(p: Program, call: Call) -> Row:
    (a,) = call.inputs
    if call.result in REALS:
        return _reals(p, call).normal(neg(a))
    return p.alu(f"{call.letter}sub", ZERO, a)


def _abs(p: Program, call: Call) -> Row:
    (a,) = call.inputs
    if call.result is FLOAT:
        return p.alu("iand", a, _MAGNITUDE)
    if call.result is DOUBLE:
        return Doubles(p).magnitude(a)
    if call.result is ULONG:
        return a
    negative = p.alu(f"{call.letter}sub", ZERO, a)
    return p.alu(f"{call.letter}max", a, negative)


def _extreme(name: str) -> Build:
    return lambda p, call: reduce(partial(p.alu, f"{call.real}{name}"), call.inputs)


def _sum(p: Program, call: Call) -> Row:
    return reduce(_reals(p, call).add, call.inputs)


def _clip(p: Program, call: Call) -> Row:
    x, low, high = call.inputs
    return p.alu(f"{call.real}min", p.alu(f"{call.real}max", x, low), high)


def _relu(p: Program, call: Call) -> Row:
    (a,) = call.inputs
    if call.result in REALS:
        # `frelu` gives -0 for negative inputs. The maximum gives its first operand if both are
        # zero, or too small for normal numbers: +0, as torch has it.
        return p.alu(f"{call.real}max", ZERO, a)
    return p.alu(f"{call.real}max", a, ZERO)


def _leaky_relu(p: Program, call: Call) -> Row:
    (a,) = call.inputs
    alpha = call.attributes.get("alpha", 0.01)
    assert isinstance(alpha, float)
    below, above = p.alu(f"{call.real}min", a, ZERO), p.alu(f"{call.real}relu", a, a)
    return _reals(p, call).fma(below, alpha, above)


def _share(p: Program, call: Call) -> Row:
    """Multiply by both singles of a double, and round once: a sum of n equal numbers gives them.

    The first single is not above the double. The MAU knows no infinities, so these stay what they
    are.
    """
    factor = call.attributes[FACTOR]
    assert isinstance(factor, float)
    upper = np.float32(factor)
    if abs(upper) > abs(factor):
        upper = np.nextafter(upper, np.float32(0))
    x, lower = call.inputs[0], np.float32(factor - float(upper))
    product = p.fma(x, float(upper), p.mul(x, float(lower)))
    finite = p.flags("isub", _LARGEST, p.alu("iand", x, _MAGNITUDE))
    return p.select(p.mask(finite), product, x)


FUNCTIONS: tuple[Function, ...] = (
    Function("Add", _add, BINARY, NUMBERS, halves=True),
    Function("Sub", _sub, BINARY, NUMBERS, halves=True),
    Function("Mul", _mul, BINARY, NUMBERS, halves=True),
    Function("Neg", _neg, UNARY, SIGNED, MOVE),
    Function("Abs", _abs, UNARY, NUMBERS, MOVE),
    Function("Min", _extreme("min"), range(1, 100), NUMBERS, MOVE, halves=True),
    Function("Max", _extreme("max"), range(1, 100), NUMBERS, MOVE, halves=True),
    Function("Sum", _sum, range(1, 3), REALS),
    Function("Clip", _clip, TERNARY, NUMBERS, MOVE, halves=True),
    Function("Relu", _relu, UNARY, SIGNED, MOVE, halves=True),
    Function("LeakyRelu", _leaky_relu, UNARY, REALS, attributes=frozenset({"alpha"})),
    Function(SHARE, _share, UNARY, attributes=frozenset({FACTOR})),
)
