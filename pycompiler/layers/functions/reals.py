"""Singles and doubles by the same methods, so that a function is written once for both.

What differs by format, such as bounds and coefficients, stands in pairs: of singles, of doubles. A
double has more iterations and longer series. Many are Taylor's, whose coefficients are formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from .elementwise_function import DOUBLE, Build, Call
from .program import Flags, Operand, Program, Result, Row, Source, double, long, neg

_T = TypeVar("_T")


class Reals:
    """Instructions of a program on numbers of one format, and the facts of this format.

    A float stands for a number of the format, an int for as many bits as a number has.
    """

    def __init__(self, p: Program, wide: bool) -> None:
        self.p = p
        self.wide = wide
        #: Bits of a number, bits below its exponent field, and what this field adds to an exponent.
        self.WIDTH, self.FIELD, self.BIAS = (64, 52, 1023) if wide else (32, 23, 127)
        self.SIGN = 1 << self.WIDTH - 1
        self.MAGNITUDE = self.SIGN - 1
        self.FRACTION = (1 << self.FIELD) - 1
        self.INFINITY = self.EXPONENT = self.MAGNITUDE - self.FRACTION
        self.ONE = self.BIAS << self.FIELD
        self.LARGEST = self.INFINITY - 1
        self.SMALLEST = 2.0 ** (1 - self.BIAS)

    def own(self, pair: tuple[_T, _T]) -> _T:
        """Return what holds for this format, from a pair of that of singles and that of doubles."""
        return pair[self.wide]

    def row(self, operand: Operand) -> Source:
        """Return an operand as a source."""
        if self.wide and isinstance(operand, float | int):
            return Source(double(operand) if isinstance(operand, float) else long(operand))
        return Program.row(operand)

    # -- MAU -----------------------------------------------------------------------------------

    def _mau(self, mnemonic: str, *operands: Operand) -> Result:
        letter = self.own(("f", "d"))
        return self.p.op("mau", f"{letter}v{mnemonic}", *map(self.row, operands))

    def fma(self, a: Operand, b: Operand, c: Operand) -> Result:
        """Return ``a * b + c``, rounded once.

        A product of doubles takes two instructions: half of the PEs of a MAB multiply in each.
        """
        if self.wide:
            return self._mau("fmad", a, b, self._mau("fmau", a, b, c))
        return self._mau("fma", a, b, c)

    def mul(self, a: Operand, b: Operand) -> Result:
        """Return ``a * b``."""
        if self.wide:
            return self._mau("fmad", a, b, self._mau("mulu", a, b))
        return self._mau("mul", a, b)

    def add(self, a: Operand, b: Operand) -> Result:
        """Return ``a + b``."""
        return self._mau("add", a, b)

    def sub(self, a: Operand, b: Operand) -> Result:
        """Return ``a - b``."""
        return self.add(a, self.neg(b))

    def neg(self, a: Operand) -> Source:
        """Return the operand with its sign flipped (MAU only)."""
        return neg(self.row(a))

    def twice(self, a: Operand) -> Result:
        """Return ``2 a``, by one instruction."""
        return self.add(a, a) if self.wide else self.mul(a, 2.0)

    def normal(self, a: Operand) -> Result:
        """Return ``a`` with positive zeros; numbers below the smallest one become 0."""
        return self._mau("passa", a)

    def polynomial(self, x: Operand, coefficients: Sequence[float]) -> Result:
        """Return ``c0 + c1 x + c2 x^2 ...`` by Horner's rule; at least two coefficients."""
        *rest, last, high = coefficients
        total = self.fma(high, x, last)
        for coefficient in reversed(rest):
            total = self.fma(total, x, coefficient)
        return total

    # -- ALU -----------------------------------------------------------------------------------

    def alu(self, mnemonic: str, *operands: Operand) -> Result:
        """Return the result of an ALU instruction."""
        return self.p.alu(mnemonic, *map(self.row, operands))

    def real(self, name: str, *operands: Operand) -> Result:
        """Return the result of an ALU instruction on numbers."""
        return self.alu(self.own(("f", "d")) + name, *operands)

    def bits(self, name: str, *operands: Operand) -> Result:
        """Return the result of an ALU instruction on the bits of numbers."""
        return self.alu(self.own(("i", "l")) + name, *operands)

    def keep(self, flags: Flags, a: Operand) -> Result:
        """Return ``a`` where the flag is set, 0 elsewhere."""
        return self.p.keep(flags, self.row(a))

    def mask(self, flags: Flags) -> Result:
        """Return all ones where the flag is set, 0 elsewhere."""
        return self.p.mask(flags)

    def select(self, mask: Operand, a: Operand, b: Operand) -> Result:
        """Return ``a`` where the mask is all ones, ``b`` where it is 0."""
        return self.p.select(mask, self.row(a), self.row(b))

    def magnitude(self, x: Operand) -> Result:
        """Return ``|x|``."""
        return self.bits("and", x, self.MAGNITUDE)

    def signed(self, found: Operand, x: Operand) -> Result:
        """Give a positive number the sign of ``x``."""
        return self.bits("or", found, self.bits("and", x, self.SIGN))

    def up_to(self, x: Operand, bound: float) -> Result:
        """Return the mask of numbers up to a bound."""
        return self.mask(self.real("min", x, bound).flags)

    def of_small(self, x: Operand) -> Result:
        """Convert integers of magnitude below a quarter of 2^FIELD, exactly.

        Adding such an integer to the bits of 1.5 * 2^FIELD adds it to the value.
        """
        magic = 1.5 * 2.0**self.FIELD
        return self.sub(self.bits("add", x, magic), magic)


def of_reals(function: Callable[..., Row]) -> Build:
    """Return the program of a function of numbers, in the format of the last input.

    The attributes of the operator are the function's keywords.
    """

    def build(p: Program, call: Call) -> Row:
        reals = Reals(p, call.dtypes[-1] is DOUBLE)
        return function(reals, *call.inputs, **call.attributes)

    return build
