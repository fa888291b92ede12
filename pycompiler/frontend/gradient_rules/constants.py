"""Constants of rules: tensors whose values are known while torch traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch._dispatch.python import no_python_dispatcher
from torch.utils._python_dispatch import _disable_current_modes

from ..marked import takes_real


@contextmanager
def outside_the_trace() -> Iterator[None]:
    """Let torch compute real values, with its own kernels rather than their decompositions."""
    with _disable_current_modes(), no_python_dispatcher():
        yield


def constant(make: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Return the tensor that ``make`` computes with real values, outside of the trace.

    A trace that takes no real tensors, as that of AOT autograd, gets it as torch's own constants.
    """
    with outside_the_trace():
        made = make()
    lifted: torch.Tensor = made if takes_real() else torch.ops.aten.lift_fresh_copy.default(made)
    return lifted


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of weights and sums of a gradient: halves are computed as singles."""
    return torch.promote_types(dtype, torch.float32)
