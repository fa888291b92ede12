"""EyeLike and Range: tensors that only their shape, or two numbers, decide."""

from __future__ import annotations

import numpy as np
from onnx import helper

from ...graph.dtypes import onnx_elem_type
from .writer import Writer

#: Larger constants stay operators: they take room in the app.
_MOST = 1 << 22


def eye(write: Writer) -> str | bool:
    """Write ones on a diagonal of a matrix as a constant."""
    goal = write.node.output[0]
    rows, columns = write.types[goal].shape
    if rows * columns > _MOST:
        return False
    kind = helper.tensor_dtype_to_np_dtype(onnx_elem_type(write.types[goal].elem))
    ones = np.eye(rows, columns, k=int(write.attribute("k", 0))).astype(kind)
    return write.op("Identity", write.constant(ones, "eye"))


def evenly_spaced(write: Writer) -> str | bool:
    """Write the start plus multiples of the step; the declared type says how many."""
    start, _, step = write.node.input
    (count,) = write.types[write.node.output[0]].shape
    if count > _MOST:
        return False
    places = write.own(np.arange(count), "places")
    return write.op("Add", write.op("Mul", places, step), start)
