"""Batch normalization whose running statistics are the means of all batches.

A module without `momentum` computes the weight of a batch from a tensor that counts batches, as a
Python number, which no trace can follow. Here, the weight is a tensor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook


@contextlib.contextmanager
def momenta_as_tensors() -> Iterator[None]:
    """Give such modules a tensor for their `momentum` while they run."""

    def before(module: torch.nn.Module, _: object) -> None:
        if isinstance(module, _BatchNorm) and module.momentum is None and module.training:
            counted = module.num_batches_tracked
            if counted is not None:
                weight: Any = 1.0 / (counted + 1).to(torch.float32)
                module.momentum = weight

    def after(module: torch.nn.Module, *_: object) -> None:
        if isinstance(module, _BatchNorm) and isinstance(module.momentum, torch.Tensor):
            module.momentum = None

    behind = register_module_forward_hook(after, always_call=True)
    with register_module_forward_pre_hook(before), behind:
        yield


def batch_norm(
    input: torch.Tensor,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    training: bool = False,
    momentum: float | torch.Tensor = 0.1,
    eps: float = 1e-5,
) -> torch.Tensor:
    """Return torch's result; a momentum that is a tensor moves the running statistics here."""
    given = (weight, bias, training)
    if not isinstance(momentum, torch.Tensor):
        return functional.batch_norm(input, running_mean, running_var, *given, momentum, eps)
    axes = [axis for axis in range(input.ndim) if axis != 1]
    with torch.no_grad():
        for running, new in (
            (running_mean, input.mean(axes)),
            (running_var, input.var(axes, correction=1)),
        ):
            if running is not None:
                running.copy_(running * (1 - momentum) + new * momentum)
    return functional.batch_norm(input, None, None, *given, 0.0, eps)
