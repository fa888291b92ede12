"""Sums, products, signs and bounds of singles, doubles, halves, and 32- and 64-bit integers."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from ...graph.dtypes import MNDtype
from ...tolerance import MOVE
from .elementwise_function import (
    BINARY,
    DOUBLE,
    HALF,
    INTEGERS,
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
from .program import ZERO, Program, Result, Row, halves, neg
from .reals import Reals, of_reals

#: x times the number FACTOR, a double; of singles.
SHARE, FACTOR = "MNCoreShare", "factor"


def _reals(p: Program, call: Call) -> Reals:
    """Return what writes the arithmetic of singles or doubles."""
    return Reals(p, call.result is DOUBLE)


def _added(name: str) -> Build:
    def build(p: Program, call: Call) -> Row:
        a, b = call.inputs
        if call.result in INTEGERS:
            return p.alu(f"{call.letter}{name}", a, b)
        if call.result is HALF:
            return p.op("mau", "hvaddr", a, halves(b) if name == "add" else neg(halves(b)))
        return _reals(p, call).add(a, b if name == "add" else neg(b))

    return build


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
    r = Reals(p, dtype in (LONG, ULONG))
    third = r.own((11, 22))
    # An integer below 2^fraction is put into the fraction bits of the number 2^fraction.
    magic = 2.0**r.FIELD

    def part(x: Row, number: int) -> Result:
        found: Row = r.alu(r.own(("uilsr", "ullsr")), x, number * third) if number else x
        if number < 2:
            found = r.bits("and", found, (1 << third) - 1)
        return r.sub(r.bits("or", found, magic), magic)

    (a0, a1, a2), (b0, b1, b2) = ([part(x, n) for n in range(3)] for x in (a, b))
    lower = r.real("ftoi", r.mul(a0, b0))
    middle = r.real("ftoi", r.fma(a1, b0, r.mul(a0, b1)))
    upper = r.real("ftoi", r.fma(a2, b0, r.fma(a1, b1, r.mul(a0, b2))))
    middle = r.bits("lsl", middle, third)
    upper = r.bits("lsl", upper, 2 * third)
    return r.bits("add", r.bits("add", lower, middle), upper)


def _neg(p: Program, call: Call) -> Row:
    (a,) = call.inputs
    if call.result in REALS:
        return _reals(p, call).normal(neg(a))
    return p.alu(f"{call.letter}sub", ZERO, a)


def _abs(p: Program, call: Call) -> Row:
    (a,) = call.inputs
    if call.result in REALS:
        return _reals(p, call).magnitude(a)
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


def _leaky_relu(r: Reals, a: Row, alpha: float = 0.01) -> Row:
    below, above = r.real("min", a, 0.0), r.real("relu", a, a)
    return r.fma(below, float(alpha), above)


def _share(r: Reals, x: Row, factor: float) -> Row:
    """Multiply by both singles of a double, and round once: a sum of n equal numbers gives them.

    The first single is not above the double. The MAU knows no infinities, so these stay what they
    are.
    """
    upper = np.float32(factor)
    if abs(upper) > abs(factor):
        upper = np.nextafter(upper, np.float32(0))
    lower = np.float32(factor - float(upper))
    product = r.fma(x, float(upper), r.mul(x, float(lower)))
    finite = r.bits("sub", r.LARGEST, r.magnitude(x)).flags
    return r.select(r.mask(finite), product, x)


FUNCTIONS: tuple[Function, ...] = (
    Function("Add", _added("add"), BINARY, NUMBERS, halves=True),
    Function("Sub", _added("sub"), BINARY, NUMBERS, halves=True),
    Function("Mul", _mul, BINARY, NUMBERS, halves=True),
    Function("Neg", _neg, UNARY, SIGNED, MOVE),
    Function("Abs", _abs, UNARY, NUMBERS, MOVE),
    Function("Min", _extreme("min"), range(1, 100), NUMBERS, MOVE, halves=True),
    Function("Max", _extreme("max"), range(1, 100), NUMBERS, MOVE, halves=True),
    Function("Sum", _sum, range(1, 3), REALS),
    Function("Clip", _clip, TERNARY, NUMBERS, MOVE, halves=True),
    Function("Relu", _relu, UNARY, SIGNED, MOVE, halves=True),
    Function("LeakyRelu", of_reals(_leaky_relu), UNARY, REALS, attributes=frozenset({"alpha"})),
    Function(SHARE, of_reals(_share), UNARY, attributes=frozenset({FACTOR})),
)
