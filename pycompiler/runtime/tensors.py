"""Converts torch tensors to arrays and back."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import torch

from ..pfvm.session import Array


def to_array(tensor: torch.Tensor) -> Array:
    """Return the tensor's values, whatever its strides, gradient and device."""
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if plain.dtype is torch.bfloat16:
        return np.asarray(plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16))
    return np.asarray(plain.numpy())


def to_tensor(array: Array) -> torch.Tensor:
    """Return a new tensor with the array's values."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))
