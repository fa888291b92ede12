"""The element types that torch and ONNX share."""

from __future__ import annotations

import torch

#: ONNX element type name -> torch dtype. Complex tensors are absent: ONNX has them as pairs.
TORCH_DTYPES: dict[str, torch.dtype] = {
    "float": torch.float32,
    "double": torch.float64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "bool": torch.bool,
    "int8": torch.int8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
    "uint8": torch.uint8,
    "uint16": torch.uint16,
    "uint32": torch.uint32,
    "uint64": torch.uint64,
}


def dtype_name(dtype: torch.dtype) -> str:
    """Return the short name of a dtype: ``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def strange_kind(tensor: torch.Tensor) -> str | None:
    """Return why ``tensor`` cannot be compiled (``sparse``, ``complex64``...), or None."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        return "nested" if tensor.is_nested else "sparse"
    known = tensor.dtype in TORCH_DTYPES.values()
    return None if known else dtype_name(tensor.dtype)
