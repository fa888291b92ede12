"""Constants of rules: tensors whose values are known while torch traces."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.utils._python_dispatch import _disable_current_modes


def constant(make: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Return the tensor that ``make`` computes with real values, outside of the trace."""
    with _disable_current_modes():
        return make()
