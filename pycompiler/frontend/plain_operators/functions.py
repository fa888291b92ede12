"""Functions of torch that decide by values while they are traced, written out without that."""

from __future__ import annotations

import math
from typing import Any

import torch

from .matrices import least_squares


def cov(
    input: torch.Tensor,
    *,
    correction: int = 1,
    fweights: torch.Tensor | None = None,
    aweights: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the covariance of the rows; weights are taken as they are, without a check."""
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    x = x if x.ndim == 2 else x.reshape(1, -1)
    weights = [w.to(x.dtype) for w in (fweights, aweights) if w is not None]
    if weights:
        w = math.prod(weights[1:], start=weights[0])
        total = w.sum()
        mean = (x * w).sum(1, keepdim=True) / total
        rest = (w * aweights).sum() / total if aweights is not None else 1.0
        norm = (total - correction * rest).clamp(min=0)
        moved = x - mean
        found = (moved * w) @ moved.T / norm
    else:
        moved = x - x.mean(1, keepdim=True)
        found = moved @ moved.T / max(0.0, x.shape[1] - correction or math.nan)
    return found.squeeze()


def corrcoef(input: torch.Tensor) -> torch.Tensor:
    """Return the correlation of the rows."""
    found = cov(input)
    if not found.ndim:
        return found / found
    spread = torch.sqrt(found.diagonal())
    return (found / spread[:, None] / spread).clamp(-1, 1)


def lstsq(
    A: torch.Tensor,  # noqa: N803
    B: torch.Tensor,  # noqa: N803
    rcond: float | None = None,
    *,
    driver: str | None = None,
) -> Any:
    """Return the solution, residuals, rank and singular values, for a matrix of full rank."""
    made: Any = torch.return_types.linalg_lstsq  # type: ignore[attr-defined]
    return made(least_squares(A, B))


def gaussian_nll_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    var: torch.Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> torch.Tensor:
    """Return the loss; variances are taken as they are, without a check."""
    if not isinstance(var, torch.Tensor):
        var = torch.full_like(input, var)
    if var.shape != input.shape and var.ndim == input.ndim - 1:
        var = var[..., None]
    var = var.clamp(min=eps)
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()
