"""Tensors that stay on the device until somebody asks for them."""

from __future__ import annotations

import torch

from ..frontend.torch_dtypes import TORCH_DTYPES
from .function import Output
from .tensors import to_tensor


class TensorProxy:
    """One output of a compiled function. It keeps its values when the function is called again."""

    def __init__(self, output: Output):
        self._output = output

    @property
    def shape(self) -> torch.Size:
        """The tensor's shape."""
        return torch.Size(self._output.type.shape)

    @property
    def dtype(self) -> torch.dtype:
        """The tensor's dtype."""
        return TORCH_DTYPES[self._output.type.elem]

    def cpu(self) -> torch.Tensor:
        """Return a copy on the host."""
        return to_tensor(self._output.values())

    def __repr__(self) -> str:
        return f"TensorProxy(shape={tuple(self.shape)}, dtype={self.dtype})"
