"""The entries of the table of elementwise operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...graph.dtypes import MNDtype
from ...graph.graph import Attribute
from ...tolerance import ELEMENTWISE
from .program import Program, Row

FLOAT, BOOL, HALF = MNDtype.FLOAT, MNDtype.SINGLE_BOOL, MNDtype.HALF
DOUBLE, ULONG = MNDtype.DOUBLE, MNDtype.ULONG
INT, LONG, UINT = MNDtype.INT, MNDtype.LONG, MNDtype.UINT
REALS = (FLOAT, DOUBLE)
INTEGERS = (INT, LONG, ULONG)
SIGNED = (*REALS, INT, LONG)
NUMBERS = (*REALS, *INTEGERS)


@dataclass(frozen=True)
class Call:
    """One use of a function: its inputs with their dtypes, and the dtype of its result."""

    inputs: tuple[Row, ...]
    dtypes: tuple[MNDtype, ...]
    result: MNDtype
    attributes: Mapping[str, Attribute]

    @property
    def letter(self) -> str:
        """The precision letter of integer ALU instructions on the last input."""
        return "l" if self.dtypes[-1] in (LONG, ULONG) else "i"

    @property
    def real(self) -> str:
        """The precision letter of ALU instructions that compare numbers like the last input."""
        letters = {FLOAT: "f", HALF: "h", DOUBLE: "d", ULONG: "ul"}
        return letters.get(self.dtypes[-1], self.letter)


Build = Callable[[Program, Call], Row]


def _same(inputs: Sequence[MNDtype], result: MNDtype) -> MNDtype | None:
    return result if set(inputs) == {result} else None


def _test(inputs: Sequence[MNDtype], result: MNDtype) -> MNDtype | None:
    return inputs[0] if len(set(inputs)) == 1 and result is BOOL else None


def _choice(inputs: Sequence[MNDtype], result: MNDtype) -> MNDtype | None:
    return _same(inputs[1:], result) if inputs[0] is BOOL else None


def _fused(inputs: Sequence[MNDtype], result: MNDtype) -> MNDtype | None:
    return FLOAT if {*inputs, result} <= {FLOAT, BOOL} else None


#: Rules for the dtypes of inputs and result. A rule returns the dtype that decides the others, or
#: None if they do not agree.
STYLES: dict[str, Callable[[Sequence[MNDtype], MNDtype], MNDtype | None]] = {
    "same": _same,
    "test": _test,
    "choice": _choice,
    "fused": _fused,
}


@dataclass(frozen=True)
class Function:
    """An elementwise operator: the forms it accepts, its program, and its error bound.

    ``style`` names a row of :data:`STYLES`; ``pairs`` lists (input, result) dtypes instead.
    ``error`` is a row of the tolerance table for results in floating point; others are exact.
    ``refuse`` returns the reason why the attributes are not accepted, or None.
    """

    op: str
    build: Build
    arity: range
    dtypes: tuple[MNDtype, ...] = (FLOAT,)
    error: str = ELEMENTWISE
    style: str = "same"
    pairs: frozenset[tuple[MNDtype, MNDtype]] = frozenset()
    attributes: frozenset[str] = frozenset()
    refuse: Callable[[Mapping[str, Attribute]], str | None] = field(default=lambda _: None)
    note: str = ""
    #: whether it also works on halves that the compiler stores, four in a long word
    halves: bool = False

    def mismatch(self, inputs: Sequence[MNDtype], result: MNDtype) -> str | None:
        """Return why the function does not compute in these dtypes, or None if it does."""
        if len(inputs) not in self.arity:
            return f"{self.op} has no form with {len(inputs)} inputs on the device"
        if self.pairs:
            fits = len(inputs) == 1 and (inputs[0], result) in self.pairs
        else:
            decided = STYLES[self.style](inputs, result)
            fits = decided in self.dtypes or (self.halves and decided is HALF)
        if fits:
            return None
        shown = ", ".join(dtype.value for dtype in inputs)
        return f"{self.op} does not compute ({shown}) -> {result.value} on the device"


UNARY, BINARY, TERNARY = range(1, 2), range(2, 3), range(3, 4)
