"""Norms of torch in operations that devices have, where torch's own decomposition has others."""

from __future__ import annotations

import torch


def group_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    batch: int,
    channels: int,
    places: int,
    groups: int,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the norm, and the mean and the inverse deviation of each group."""
    parts = x.reshape(batch, groups, channels // groups * places)
    mean = parts.mean(-1, keepdim=True)
    off = parts - mean
    inverse = ((off * off).mean(-1, keepdim=True) + eps).rsqrt()
    made = (off * inverse).reshape(x.shape)
    row = (1, channels, *(1,) * (x.ndim - 2))
    if weight is not None:
        made = made * weight.reshape(row)
    if bias is not None:
        made = made + bias.reshape(row)
    return made, mean.squeeze(-1), inverse.squeeze(-1)
