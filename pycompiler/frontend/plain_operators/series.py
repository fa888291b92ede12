"""Series of Chebyshev's polynomials for functions of doubles.

Their coefficients are those of the polynomial that has torch's own values at as many places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch.utils._python_dispatch import _disable_current_modes

Function = Callable[[torch.Tensor], torch.Tensor]


@cache
def coefficients(function: Function, terms: int) -> tuple[float, ...]:
    """Return the coefficients of a function on [-1, 1]."""
    with _disable_current_modes(), torch.no_grad():
        angle = (torch.arange(terms, dtype=torch.float64) + 0.5) * (math.pi / terms)
        value = function(torch.cos(angle))
        order = torch.arange(terms, dtype=torch.float64)[:, None]
        found = (torch.cos(order * angle) * value).sum(1) * (2 / terms)
        return tuple(found.tolist())


def summed(x: torch.Tensor, factors: Sequence[float]) -> torch.Tensor:
    """Return the sum of the series at ``x``, by Clenshaw's recurrence."""
    twice = 2 * x
    one, other = torch.zeros_like(x), torch.zeros_like(x)
    for factor in reversed(factors[1:]):
        one, other = twice * one - other + factor, one
    return x * one - other + 0.5 * factors[0]
