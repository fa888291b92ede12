"""Functions of torch that decide by values while they are traced, written out without that."""

from __future__ import annotations

import math
from typing import Any

import torch

from ...errors import error
from .matrices import by_singular_values, least_squares


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


def bincount(
    input: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0
) -> torch.Tensor:
    """Return how often each number below ``minlength`` occurs; P0103 without it.

    If another number occurs, torch's result is longer: here, all counts are -1 then, and infinite
    with weights.
    """
    if minlength <= 0:
        raise error(
            "P0103",
            name="bincount",
            shape="the largest value decides; give it a `minlength` above all values",
        )
    hit, beyond = input == torch.arange(minlength)[:, None], (input >= minlength).any()
    if weights is None:
        return torch.where(beyond, -1, hit.to(torch.int64).sum(1))
    held = weights if weights.dtype == torch.float32 else weights.to(torch.float64)
    return torch.where(beyond, math.inf, torch.where(hit, held, torch.zeros_like(held)).sum(1))


def masked_select(input: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the elements under a mask; the host finds out how many they are."""
    input, mask = torch.broadcast_tensors(input, mask)  # type: ignore[no-untyped-call]
    return input[mask]


def unique_consecutive(*_: Any, **__: Any) -> Any:
    """Raise P0103."""
    raise error(
        "P0103",
        name="unique_consecutive",
        shape="its values decide; compare neighbours instead, as x[1:] != x[:-1] does",
    )


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
    by_values = driver in ("gelsd", "gelss") and min(A.shape[-2:])
    solution, residuals, rank, values = (by_singular_values if by_values else least_squares)(
        A, B, rcond
    )
    if driver == "gels":
        rank = rank.new_zeros(0)
    if driver in (None, "gelsy"):
        residuals = residuals.new_zeros(0)
    if driver not in ("gelsd", "gelss"):
        values = values.new_zeros(0)
    return made((solution, residuals, rank, values))


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
