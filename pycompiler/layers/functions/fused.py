"""Several elementwise operators as one: their values pass on in registers, not through LM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...graph.dtypes import MNDtype
from ...graph.graph import Attribute
from ...tolerance import ELEMENTWISE
from .elementwise_function import BOOL, FLOAT, Call, Function
from .program import Program, Row, single

#: The operator, which the compiler makes of others; its attribute lists them.
FUSED = "MNCoreFused"
STEPS = "steps"
#: The most inputs of one such operator.
MOST_INPUTS = 5


#: An operand of a step: an input of the node (from 0), an earlier step (from -1), or a number.
Read = int | float
Step = tuple[str, tuple[Read, ...], MNDtype]


def text_of(steps: Sequence[Step]) -> str:
    """Return the text of steps, for the attribute."""
    return ";".join(
        " ".join((op, dtype.value, *(r.hex() if isinstance(r, float) else str(r) for r in reads)))
        for op, reads, dtype in steps
    )


def steps_of(attributes: Mapping[str, Attribute]) -> list[Step]:
    """Return operator, operands and result dtype of each step."""
    text = attributes[STEPS]
    assert isinstance(text, str)
    found: list[Step] = []
    for line in text.split(";"):
        op, dtype, *reads = line.split()
        operands = (float.fromhex(r) if "x" in r else int(r) for r in reads)
        found.append((op, tuple(operands), MNDtype(dtype)))
    return found


def fused(table: Mapping[str, Function]) -> Function:
    """Return the operator, whose steps are operators of ``table``."""

    def build(p: Program, call: Call) -> Row:
        rows: list[Row] = []
        dtypes: list[MNDtype] = []

        def operand(read: Read) -> tuple[Row, MNDtype]:
            if isinstance(read, float):
                return single(read), FLOAT
            if read >= 0:
                return call.inputs[read], call.dtypes[read]
            return rows[-1 - read], dtypes[-1 - read]

        for op, reads, dtype in steps_of(call.attributes):
            own, kinds = zip(*map(operand, reads), strict=True)
            rows.append(table[op].build(p, Call(own, kinds, dtype, {})))
            dtypes.append(dtype)
        return rows[-1]

    arity, dtypes = range(1, MOST_INPUTS + 1), (FLOAT, BOOL)
    return Function(
        FUSED, build, arity, dtypes, ELEMENTWISE, "fused", attributes=frozenset({STEPS})
    )
