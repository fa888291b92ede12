"""torch tensors to arrays and back, by the element types ONNX knows."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import torch

from ..pfvm.session import Array

#: ONNX element type name -> torch dtype
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
    "complex64": torch.complex64,
    "complex128": torch.complex128,
}


def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def to_array(tensor: torch.Tensor) -> Array:
    """Return the tensor's values; strides, gradients and devices do not matter."""
    plain = tensor.detach().cpu().contiguous()
    if plain.dtype is torch.bfloat16:
        return np.asarray(plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16))
    return np.asarray(plain.numpy())


def to_tensor(array: Array) -> torch.Tensor:
    """Return a tensor of its own with the array's values."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))
