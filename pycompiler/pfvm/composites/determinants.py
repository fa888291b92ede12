"""Det: elimination with the largest pivot of each column."""

from __future__ import annotations

from math import prod

import numpy as np

from .writer import Writer

#: The most rows: each takes some fifteen operators.
MOST_ROWS = 32


def determinant(write: Writer) -> str | bool:
    """Multiply the pivots; the matrix loses a row and a column with each."""
    *front, rows, columns = write.type(0).shape
    if rows != columns or not 0 < rows <= MOST_ROWS or 0 in front:
        return False
    value = write.reshape(write.node.input[0], [prod(front), rows, rows])
    zero, one = write.number(0.0), write.number(1.0)
    found = ""
    for size in range(rows, 1, -1):
        places = write.constant(np.arange(size, dtype=np.float32)[:, None], "places")
        behind = write.constant(np.asarray(size, dtype=np.float32), "behind")
        sizes = write.op("Abs", write.cut(value, [2], [0], [1]))
        largest = write.op("ReduceMax", sizes, write.ints([1]), keepdims=1)
        where = write.op("Where", write.op("Equal", sizes, largest), places, behind)
        place = write.op("ReduceMin", where, write.ints([1]), keepdims=1)
        chosen = write.op("Equal", places, place)
        best = write.op("Where", chosen, value, zero)
        best = write.op("ReduceSum", best, write.ints([1]), keepdims=1)
        # The first row takes the place of the best one.
        value = write.op("Where", chosen, write.cut(value, [1], [0], [1]), value)
        value = write.cut(value, [1], [1], [size])
        pivot = write.cut(best, [2], [0], [1])
        first = write.op("Equal", place, write.constant(np.zeros((), np.float32), "first"))
        signed = write.op("Where", first, pivot, write.op("Neg", pivot))
        found = write.op("Mul", found, signed) if found else signed
        divisor = write.op("Where", write.op("Equal", pivot, zero), one, pivot)
        factors = write.op("Div", write.cut(value, [2], [0], [1]), divisor)
        change = write.op("Mul", factors, write.cut(best, [2], [1], [size]))
        value = write.op("Sub", write.cut(value, [2], [1], [size]), change)
    found = write.op("Mul", found, value) if found else value
    return write.op("Identity", write.reshape(found, front))
