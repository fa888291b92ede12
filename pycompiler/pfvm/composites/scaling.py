"""Hardmax and LpNormalization: operators along one axis that read its extreme or its norm."""

from __future__ import annotations

import numpy as np

from .writer import MOST_PLACES, Writer, axis_of


def hardmax(write: Writer) -> str | bool:
    """Write 1 at the first of the largest elements, and 0 elsewhere."""
    shape = write.type(0).shape
    axis = axis_of(write, -1)
    if not shape or shape[axis] > MOST_PLACES:
        return False
    value = write.node.input[0]
    wide = [shape[axis] if place == axis else 1 for place in range(len(shape))]
    places = write.constant(np.arange(shape[axis], dtype=np.float32).reshape(wide), "places")
    behind = write.constant(np.asarray(shape[axis], dtype=np.float32), "behind")
    largest = write.op("ReduceMax", value, write.ints([axis]), keepdims=1)
    where = write.op("Where", write.op("Equal", value, largest), places, behind)
    first = write.op("ReduceMin", where, write.ints([axis]), keepdims=1)
    chosen = write.op("Equal", places, first)
    return write.op("Where", chosen, write.number(1.0), write.number(0.0))


def lp_normalization(write: Writer) -> str | bool:
    """Divide by the norm of the axis; a row of zeros stays zero."""
    shape = write.type(0).shape
    power = int(write.attribute("p", 2))
    if not shape or power not in (1, 2):
        return False
    axes, value = write.ints([axis_of(write, -1)]), write.node.input[0]
    terms = write.op("Abs", value) if power == 1 else write.op("Mul", value, value)
    norm = write.op("ReduceSum", terms, axes, keepdims=1)
    norm = norm if power == 1 else write.op("Sqrt", norm)
    nothing = write.op("Equal", norm, write.number(0.0))
    safe = write.op("Where", nothing, write.number(1.0), norm)
    inverse = write.op("Reciprocal", safe)
    return write.op("Mul", value, inverse)
