"""The remainder of a division, exact over the whole range; of doubles, see `wide_remainders`.

Each round takes eighteen bits of the quotient. The numbers of a round are scaled so that the
divisor, times the power of two that a quotient of that many bits allows, lies from 1 to 2. The
quotient of a round is right or one too large, so every difference is exact. By 0, and of infinity,
the remainder is some number.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...graph.graph import Attribute
from ...tolerance import MOVE
from . import wide_remainders
from .doubles import by_dtype
from .elementwise_function import BINARY, REALS, Call, Function
from .program import Program, Result, Row, neg
from .roots import reciprocal_of_moderate

_SIGN, _MAGNITUDE, _EXPONENT, _FRACTION = 0x80000000, 0x7FFFFFFF, 0x7F800000, 0x007FFFFF
_ONE, _FIELD = 0x3F800000, 23
#: The bits of a quotient that a round takes: the products of so few are exact, although the MAU
#: omits those of the last bits of both factors. The rounds are what the largest quotient needs.
_BITS, _ROUNDS = 18, 15
#: More than the error of a reciprocal, and too little for two more in a quotient of a round.
_ABOVE = 1 + 2.0**-22


def _mod(p: Program, call: Call) -> Row:
    """Return x - y trunc(x / y), with the sign of x."""
    x, y = call.inputs
    rest: Row = p.alu("iand", x, _MAGNITUDE)
    divisor = p.alu("iand", y, _EXPONENT)
    scaled = p.alu("ior", p.alu("iand", y, _FRACTION), _ONE)
    inverse = p.mul(reciprocal_of_moderate(p, scaled), _ABOVE)
    for _ in range(_ROUNDS):
        rest = _round(p, rest, divisor, scaled, inverse)
    return p.alu("ior", p.normal(rest), p.alu("iand", x, _SIGN))


def _round(p: Program, rest: Row, divisor: Row, scaled: Row, inverse: Row) -> Result:
    """Return the rest after a round; a rest below the divisor stays as it is."""
    own = p.alu("iand", rest, _EXPONENT)
    field = p.alu("imax", divisor, p.alu("isub", own, _BITS << _FIELD))
    number = p.alu("isub", rest, p.alu("isub", field, _ONE))
    quotient = p.alu("ffloor", p.mul(number, inverse))
    left = p.fma(neg(quotient), scaled, number)
    positive = p.flags("ilsr", left, 31)  # set where no bit is left
    more = p.alu("lxor", scaled, p.keep(positive, scaled))
    made = p.mul(p.add(left, more), field)
    reached = p.mask(p.flags("imax", own, field))
    return p.select(reached, made, rest)


def _refused(attributes: Mapping[str, Attribute]) -> str | None:
    return None if attributes.get("fmod") == 1 else "Mod of floats needs the attribute `fmod`"


FUNCTIONS: tuple[Function, ...] = (
    Function(
        "Mod",
        by_dtype(_mod, wide_remainders.remainder),
        BINARY,
        REALS,
        MOVE,
        attributes=frozenset({"fmod"}),
        refuse=_refused,
        note="`fmod` 1; of integers, see above",
    ),
)
