"""The shape that a model declares for a value."""

from __future__ import annotations

import onnx


def static_shape(info: onnx.ValueInfoProto) -> tuple[int, ...] | None:
    """Return the shape of a tensor; None if it is not static."""
    tensor = info.type.tensor_type
    if not info.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return None
    dims = tensor.shape.dim
    if not all(dim.HasField("dim_value") for dim in dims):
        return None
    return tuple(int(dim.dim_value) for dim in dims)
