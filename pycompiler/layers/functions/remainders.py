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
from .elementwise_function import BINARY, REALS, Function
from .program import Result, Row
from .reals import Reals, of_reals
from .roots import reciprocal_of_moderate

#: The bits of a quotient that a round takes: the products of so few are exact, although the MAU
#: omits those of the last bits of both factors. The rounds are what the largest quotient needs.
_BITS, _ROUNDS = 18, 15
#: More than the error of a reciprocal, and too little for two more in a quotient of a round.
_ABOVE = 1 + 2.0**-22


def _mod(r: Reals, x: Row, y: Row, fmod: int = 1) -> Row:
    """Return x - y trunc(x / y), with the sign of x."""
    if r.wide:
        return wide_remainders.remainder(r, x, y)
    rest: Row = r.magnitude(x)
    divisor = r.bits("and", y, r.EXPONENT)
    scaled = r.bits("or", r.bits("and", y, r.FRACTION), r.ONE)
    inverse = r.mul(reciprocal_of_moderate(r, scaled), _ABOVE)
    for _ in range(_ROUNDS):
        rest = _round(r, rest, divisor, scaled, inverse)
    return r.signed(r.normal(rest), x)


def _round(r: Reals, rest: Row, divisor: Row, scaled: Row, inverse: Row) -> Result:
    """Return the rest after a round; a rest below the divisor stays as it is."""
    own = r.bits("and", rest, r.EXPONENT)
    field = r.bits("max", divisor, r.bits("sub", own, _BITS << r.FIELD))
    number = r.bits("sub", rest, r.bits("sub", field, r.ONE))
    quotient = r.real("floor", r.mul(number, inverse))
    left = r.fma(r.neg(quotient), scaled, number)
    positive = r.bits("lsr", left, r.WIDTH - 1).flags  # set where no bit is left
    more = r.alu("lxor", scaled, r.keep(positive, scaled))
    made = r.mul(r.add(left, more), field)
    reached = r.mask(r.bits("max", own, field).flags)
    return r.select(reached, made, rest)


def _refused(attributes: Mapping[str, Attribute]) -> str | None:
    return None if attributes.get("fmod") == 1 else "Mod of floats needs the attribute `fmod`"


FUNCTIONS: tuple[Function, ...] = (
    Function(
        "Mod",
        of_reals(_mod),
        BINARY,
        REALS,
        MOVE,
        attributes=frozenset({"fmod"}),
        refuse=_refused,
        note="`fmod` 1; of integers, see above",
    ),
)
