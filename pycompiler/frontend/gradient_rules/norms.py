"""Normalizations and ReLU: their statistics, which the gradient reads, are plain operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..marked import compared

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
        own = used = x.mean(axes)
        moved = x - own.reshape(wide)
        spread = (moved * moved).mean(axes)
        inverse = kept = torch.rsqrt(spread + eps)
        count = x.numel() // x.shape[1]
        for running, new in ((mean, own), (variance, spread * (count / max(1, count - 1)))):
            if running is not None:
                running.copy_(running * (1 - momentum) + new * momentum)
    else:
        used, inverse = mean, torch.rsqrt(variance + eps)
        own = kept = x.new_zeros(0)
    # One factor and one addend for each channel, as torch computes it.
    factor = inverse if weight is None else inverse * weight
    addend = -used * factor if bias is None else bias - used * factor
    return x * factor.reshape(wide) + addend.reshape(wide), own, kept


def _batch_norm_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor | None,
    mean: torch.Tensor | None,
    variance: torch.Tensor | None,
    own: torch.Tensor | None,
    kept: torch.Tensor | None,
    training: bool,
    eps: float,
    wanted: Sequence[bool],
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    """Return the gradients of input, weight and bias; None for one that is not wanted."""
    wide = [-1] + [1] * (x.ndim - 2)
    axes = [axis for axis in range(x.ndim) if axis != 1]
    if training:
        assert own is not None
        assert kept is not None
        used, inverse = own, kept
    else:
        assert mean is not None
        assert variance is not None
        used, inverse = mean, torch.rsqrt(variance + eps)
    moved = x - used.reshape(wide)
    total, meeting = grad.sum(axes), (grad * moved).sum(axes)
    factor = inverse if weight is None else inverse * weight
    found = None
    if wanted[0] and training:
        part = 1.0 / (x.numel() // x.shape[1])
        slope = meeting * (inverse * inverse * factor * -part)
        addend = total * (factor * -part)
        found = grad * factor.reshape(wide) + (moved * slope.reshape(wide) + addend.reshape(wide))
    elif wanted[0]:
        found = grad * factor.reshape(wide)
    return found, meeting * inverse if wanted[1] else None, total if wanted[2] else None


def _threshold_backward(grad: torch.Tensor, x: torch.Tensor, threshold: float) -> torch.Tensor:
    """Return the gradient of ReLU: one comparison and one choice."""
    above = compared("first", torch.gt, x, torch.full((), threshold, dtype=x.dtype))
    return torch.where(above, grad, 0)


def _smooth_l1_backward(
    grad: torch.Tensor, x: torch.Tensor, target: torch.Tensor, reduction: int, beta: float
) -> torch.Tensor:
    """Return the gradient of a loss whose mean is reduction 1; that of a NaN is one."""
    apart = x - target
    fraction = grad / max(1, apart.numel()) if reduction == 1 else grad
    return torch.where(apart.abs() >= beta, fraction * apart.sign(), fraction * apart / beta)


def _weight_norm_backward(
    grad: torch.Tensor, v: torch.Tensor, g: torch.Tensor, length: torch.Tensor, dim: int
) -> tuple[torch.Tensor, torch.Tensor]:
    axes = [axis for axis in range(v.ndim) if axis != dim % v.ndim]
    along = (grad * v).sum(axes, keepdim=True) / length
    return (grad - v * (along / length)) * (g / length), along


NORM_RULES: dict[Any, Callable[..., Any]] = {
    _ATEN.native_batch_norm_backward.default: _batch_norm_backward,
    _ATEN._weight_norm_interface_backward.default: _weight_norm_backward,
    _ATEN.smooth_l1_loss_backward.default: _smooth_l1_backward,
    _ATEN.threshold_backward.default: _threshold_backward,
    _ATEN.native_batch_norm.default: _batch_norm,
    _ATEN.native_layer_norm.default: _layer_norm,
}
