"""Functions of numpy that `torch.compile` traces: the program knows nothing of torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from .programs import program, uniform


@program("numpy: wave equation", through_compile=True, u=(87, 91), before=(87, 91))
def wave(xp: Any, u: Any, before: Any) -> Any:
    """Two steps on a membrane with a fixed edge, written with slices of numpy."""
    for _ in range(2):
        after = np.zeros_like(u)
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        after[1:-1, 1:-1] = 2 * u[1:-1, 1:-1] - before[1:-1, 1:-1] + 0.2 * around
        u, before = after, u
    return u


@program("numpy: least squares", through_compile=True, a=(201, 7), y=(201,))
def least_squares(xp: Any, a: Any, y: Any) -> Any:
    """The coefficients of a fit by normal equations."""
    return np.linalg.solve(a.T @ a, a.T @ y)


@program(
    "numpy: Black-Scholes",
    through_compile=True,
    price=uniform(3001, low=80.0, high=120.0),
    strike=uniform(3001, low=80.0, high=120.0),
    years=uniform(3001, low=0.2, high=2.0),
)
def black_scholes(xp: Any, price: Any, strike: Any, years: Any) -> Any:
    """The worth of calls; the normal distribution by formula 26.2.17 of Abramowitz and Stegun."""

    def normal(x: Any) -> Any:
        t = 1 / (1 + 0.2316419 * np.abs(x))
        series = 1.781477937 + t * (-1.821255978 + t * 1.330274429)
        series = t * (0.319381530 + t * (-0.356563782 + t * series))
        tail = 0.3989422804014327 * np.exp(-0.5 * x * x) * series
        return np.where(x < 0, tail, 1 - tail)

    spread = 0.3 * np.sqrt(years)
    d1 = (np.log(price / strike) + (0.02 + 0.045) * years) / spread
    return price * normal(d1) - strike * np.exp(-0.02 * years) * normal(d1 - spread)


@program("numpy: moving statistics", through_compile=True, x=(17, 403))
def moving(xp: Any, x: Any) -> Any:
    """Means and deviations of windows of 15, from sums of prefixes."""
    none = np.zeros_like(x[:, :1])
    sums = np.concatenate([none, np.cumsum(x, axis=1)], axis=1)
    squares = np.concatenate([none, np.cumsum(x * x, axis=1)], axis=1)
    mean = (sums[:, 15:] - sums[:, :-15]) / 15
    return mean, np.sqrt((squares[:, 15:] - squares[:, :-15]) / 15 - mean * mean)
