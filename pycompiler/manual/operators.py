"""Writes docs/operators.md from the registry: ``python -m pycompiler.manual.operators [FILE]``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import log2
from pathlib import Path

from ..graph.dtypes import MNDtype, device_dtype
from ..layers.base import Layer
from ..layers.elementwise import Elementwise
from ..layers.functions.elementwise_function import INT, INTEGERS, LONG, ULONG, Function
from ..layers.operators import LAYERS
from ..pages import write_page
from ..pfvm.composites import COMPOSITES, Composite
from ..pfvm.onnx_functions import WRITTEN_OUT
from ..pfvm.random_numbers import RULES as DRAWN
from ..tolerance import ELEMENTWISE, FUNCTION, MOVE, PRODUCT, PRODUCTS, RELATIVE, SUM, SUMS

PAGE = Path(__file__).parent.parent.parent / "docs" / "operators.md"

#: The dtypes whose results are exact.
_WHOLE = {*INTEGERS, MNDtype.UINT, MNDtype.SINGLE_BOOL}

_HEAD = """<!-- Generated from the table of layers by `make manual`; do not edit. -->

# Operators on the device

An operator that is not listed, or is used in a form that the table does not give, runs on the
host. The report names it under `host_fallback` with the reason. Option `strict` makes it an error.

* `T` stands for the same dtype in every place. Inputs broadcast. Shapes are static.
* A bound limits |result - reference| / |reference|, with the reference in double precision.
  `exact` means that every bit is right. An operator that torch writes as two operators (rsqrt,
  silu) has the bounds of both. [Errors of functions](function_errors.md) has what was measured.
* The bounds are those of `Float`. In `Double`, {doubles}.
  Parameters that ONNX keeps as attributes, such as `alpha` and `epsilon`, are singles even then.
* 16-bit floats are singles on the device. They are rounded when a `Cast` or an output makes them
  short. PyTorch also rounds inner steps (powers in `matrix_exp`, places in `grid_sample`).
* Integers of 8 and 16 bits (int8, uint8, int16, uint16) have 32 bits on the device. Add, Sub, Mul,
  Neg, Abs, Div, Mod, BitShift and a `Cast` take results modulo 2^8 or 2^16. Operators of `Int`
  accept them. Add, Sub, Mul, Div, Mod, Min, Max, Clip, comparisons, Where, BitShift and the
  bitwise operators of uint32 work on int64. Div and Mod of int32 do too. Div and Mod of int64 and
  uint64 work on doubles. All of them are exact.
* Truth values are masks of 32 bits, beside operands of every width.
* Floats of 8 bits and elements of 2 or 4 bits are refused by name ([P0135](errors.md), P0136).
* The other dtypes of the compiler (Int8, Byte, Short, UShort, HalfBool, LongBool) have layouts, but
  no element type is stored so.
* Results below 2^-126 (2^-1022 in `Double`) become 0, and denormals count as 0.
* The sign of a zero is kept by operators that move or choose numbers: copies, Where, Clip, Min
  and Max (of two zeros, Min and Max give either). torch's `signbit` and `copysign` read it. Where
  numbers are computed, it is outside of the contract: Add, Mul, Div, Neg, Sqrt, Floor, Ceil, Round,
  Cast and the functions made of them give most zeros the sign +, also where PyTorch gives -0.
* The machine has no NaN. Where PyTorch gives one (0 / 0, the logarithm or root of a negative
  number), the result is some number. Operators that read a constant with a NaN run on the host.
  Inputs keep their bits: IsNaN finds a NaN among them, Min, Max, Clip and comparisons take it for a
  number beyond the infinity of its sign, and arithmetic takes it for that infinity.
* Products of infinities are outside the contract. exp, max, comparisons and choices handle
  infinities. Some operators pick by a product with zeros and ones, or with weights. An infinity
  or a NaN then also reaches results that do not read it, as 0 times infinity. They are: sums and
  means of `embedding_bag`, adaptive average pools, Resize by weights (on the host `nearest` too),
  and the gradients of Gather (`x[i]`, `index_select`, `embedding`), of an `index_put` that adds up,
  of `embedding_bag`, of Resize and of adaptive pools. `gather`, scatters, `diagonal`, `trace`,
  losses of classes and their gradients choose instead: an infinity stays in its place.

| operator | dtypes | error bound | restrictions |
|---|---|---|---|
"""

_WRITTEN_OUT = """
## Written as other operators

The dtypes are those of the first input. Forms that are not given run on the host. K is the number
of terms of the longest sum plus 8. The largest term may be a difference or a quotient on the way.

| operator | dtypes | error bound | restrictions |
|---|---|---|---|
"""
_RANDOM = """
## Random numbers

{operators} and Bernoulli are written out as hashes of counters: [the generator](training.md) is
that of training steps. The count of calls is a value that each call renews, so each call has other
numbers. A model read from a file begins at 0, a torch function at a hash of torch's seed. The
attribute `seed` decides the numbers of an operator, together with the count of calls. Uniform
numbers and Bernoulli are the same to the bit on the device and on `pfvm:cpu`, with every
scheduler. Normal numbers differ from the formula by at most 2e-6 of the deviation, and none is
larger than 5.77 deviations. Numbers have as many random bits as the element type has digits, and at
most 24.
Random operators in a body run on the host, unless it is that of a loop that can be unrolled.
Multinomial draws with replacement.

"""

_FUNCTIONS = """
## Written as ONNX defines them

For these operators, in forms that no row above gives, ONNX's standard has a function of simpler
operators. It is written out, and each of its operators has its own bound. [The page of ONNX's node
tests](onnx.md) says which forms run on the device as a whole.

"""


def page() -> str:
    """Return the page."""
    rows = (_row(LAYERS[op]) for op in sorted(LAYERS) if not op.startswith("MNCore"))
    others = (_composite(op, COMPOSITES[op]) for op in sorted(COMPOSITES))
    named = ", ".join(sorted(WRITTEN_OUT))
    random = _RANDOM.format(operators=", ".join(sorted(DRAWN)))
    return (
        _HEAD.format(doubles=_doubles())
        + _table(rows)
        + _WRITTEN_OUT
        + _table(others)
        + random.rstrip("\n")
        + "\n"
        + _FUNCTIONS
        + f"{named}.\n"
    )


def _table(rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _composite(op: str, composite: Composite) -> tuple[str, str, str, str]:
    dtypes = sorted({device_dtype(elem).value for elem in composite.elems})
    found = set(map(device_dtype, composite.elems))
    whole, note = found & _WHOLE, composite.note
    summed = composite.error in (SUM, PRODUCT)
    exact = whole == found and (summed or composite.error == FUNCTION)
    bound = _bound(MOVE if exact else composite.error)
    if whole and summed and not exact:
        names = ", ".join(sorted(dtype.value for dtype in whole))
        note = "; ".join(filter(None, (note, f"exact in {names}")))
    return op, ", ".join(dtypes), bound, note


def _row(layer: Layer) -> tuple[str, str, str, str]:
    if isinstance(layer, Elementwise):
        dtypes = _dtypes(layer.function)
        notes = list(_notes(layer.function))
    else:
        dtypes = ", ".join(sorted(dtype.value for dtype in layer.dtypes))
        notes = [_attributes(layer.attributes)] if layer.attributes else []
        notes += [layer.note] if layer.note else []
    return layer.op, dtypes, _bound(layer.error), "; ".join(notes)


def _doubles() -> str:
    """Return the bounds of doubles beside those of singles."""
    pairs = [
        f"{_bound(error)} is {_bound(error, 'Double')}" for error in (ELEMENTWISE, FUNCTION, SUM)
    ]
    shown = (pair.replace(" of the largest product of K terms", "") for pair in pairs)
    return ", ".join(shown)


def _bound(error: str, dtype: str = "Float") -> str:
    summed = SUMS.get((dtype, error))
    if summed is not None:
        return f"K 2^{log2(summed):g} of the largest product of K terms"
    if error == PRODUCT:
        return f"K 2^{log2(PRODUCTS[dtype, error]):g} of a product of K factors"
    largest = RELATIVE.get((dtype, error), 0.0)
    return f"2^{log2(largest):g}" if largest else "exact"


def _dtypes(function: Function) -> str:
    if function.pairs:
        return ", ".join(sorted(f"{a.value} to {b.value}" for a, b in function.pairs))
    named = ", ".join(dtype.value for dtype in function.dtypes)
    forms = {"same": "", "test": "(T, ..) to SingleBool, ", "choice": "(SingleBool, T, T) to T, "}
    return f"{forms[function.style]}T: {named}"


def _notes(function: Function) -> Iterator[str]:
    if function.attributes:
        yield _attributes(function.attributes)
    if function.note:
        yield function.note
    exact = [dtype.value for dtype in function.dtypes if dtype in (INT, LONG, ULONG)]
    if exact and _bound(function.error) != "exact":
        yield f"exact in {', '.join(exact)}, modulo 2^32 or 2^64"


def _attributes(names: frozenset[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in sorted(names))
    return f"attribute{'s' * (len(names) > 1)} {shown}"


if __name__ == "__main__":
    write_page(page(), PAGE)
