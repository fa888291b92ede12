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

#: What stands around the tables.
_TEXT = Path(__file__).with_suffix(".txt")


def page() -> str:
    """Return the page."""
    return _TEXT.read_text(encoding="utf-8").format(
        doubles=_doubles(),
        rows=_table(_row(LAYERS[op]) for op in sorted(LAYERS) if not op.startswith("MNCore")),
        others=_table(_composite(op, COMPOSITES[op]) for op in sorted(COMPOSITES)),
        operators=", ".join(sorted(DRAWN)),
        written=", ".join(sorted(WRITTEN_OUT)),
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
