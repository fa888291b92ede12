"""Normalizations: their statistics, which the gradient reads, are results of plain operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

_ATEN = torch.ops.aten


def _layer_norm(
    x: torch.Tensor,
    shape: Sequence[int],
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the normalized rows, and the mean and inverse deviation of each row."""
    axes = list(range(-len(shape), 0))
    mean = x.mean(axes, keepdim=True)
    moved = x - mean
    inverse = torch.rsqrt((moved * moved).mean(axes, keepdim=True) + eps)
    out = moved * inverse
    out = out if weight is None else out * weight
    return out if bias is None else out + bias, mean, inverse


def _batch_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor | None,
    variance: torch.Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the result, and mean and inverse deviation of the batch; change running statistics.

    Without ``training``, the running statistics are used, and the two are empty.
    """
    wide = [-1] + [1] * (x.ndim - 2)
    if training or mean is None or variance is None:
        axes = [axis for axis in range(x.ndim) if axis != 1]
        own = x.mean(axes)
        moved = x - own.reshape(wide)
        spread = (moved * moved).mean(axes)
        inverse = kept = torch.rsqrt(spread + eps)
        count = x.numel() // x.shape[1]
        for running, new in ((mean, own), (variance, spread * (count / max(1, count - 1)))):
            if running is not None:
                running.copy_(running * (1 - momentum) + new * momentum)
    else:
        moved, inverse = x - mean.reshape(wide), torch.rsqrt(variance + eps)
        own = kept = x.new_zeros(0)
    out = moved * inverse.reshape(wide)
    out = out if weight is None else out * weight.reshape(wide)
    return out if bias is None else out + bias.reshape(wide), own, kept


NORM_RULES: dict[Any, Callable[..., Any]] = {
    _ATEN.native_batch_norm.default: _batch_norm,
    _ATEN.native_layer_norm.default: _layer_norm,
}
