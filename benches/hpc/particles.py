"""Particles and chance: forces of all pairs, cells, paths of prices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .programs import program, uniform, whole
from .solvers import added


@program("N-body", x=(209, 3), m=uniform(209))
def n_body(xp: Any, x: Any, m: Any) -> Any:
    """Softened accelerations of all pairs."""
    away = x[None] - x[:, None]
    square = xp.sum(away * away, -1) + 0.01
    weight = m / (square * xp.sqrt(square))
    return xp.sum(weight[:, :, None] * away, 1)


def _in_cells(rng: np.random.Generator) -> np.ndarray:
    """Place three particles a cell near the corners of a lattice, so that none are too near."""
    corners = np.array([[0.2, 0.2, 0.3], [0.7, 0.3, 0.8], [0.3, 0.8, 0.6]])
    return np.asarray(corners[:, :, None, None, None] + 0.1 * rng.uniform(size=(3, 3, 5, 5, 7)))


@program("molecular dynamics with cells", x=_in_cells)
def lennard_jones(xp: Any, x: Any) -> Any:
    """Forces of Lennard and Jones on a torus of cells: 27 cells by `roll`, cut at one cell."""
    total = xp.zeros_like(x)
    slots = x.shape[0]
    for shift in np.ndindex(3, 3, 3):
        by = tuple(int(s) - 1 for s in shift)
        for other in range(slots):
            moved = xp.roll(x[other], by, (1, 2, 3))
            parts = [moved[d] - by[d] - x[:, d] for d in range(3)]
            square = parts[0] * parts[0] + parts[1] * parts[1] + parts[2] * parts[2]
            near = (square < 1) & (square > 1e-9)
            inverse = 0.09 / xp.where(near, square, xp.ones_like(square))
            cube = inverse * inverse * inverse
            force = xp.where(near, (cube - 2 * cube * cube) * inverse, xp.zeros_like(cube))
            total = total + xp.stack([force * part for part in parts], 1)
        if shift == (0, 1, 2):
            break
    return total


@program("Monte Carlo, Asian option", z=(1201, 13))
def asian(xp: Any, z: Any) -> Any:
    """The mean pay-off of a mean price over paths of given normal numbers."""
    steps = z.shape[1]
    moves = (0.03 - 0.5 * 0.04) / steps + (0.2 / steps**0.5) * z
    prices = 100 * xp.exp(xp.cumsum(moves, 1))
    over = xp.mean(prices, 1) - 100
    return xp.mean(xp.where(over > 0, over, xp.zeros_like(over)))


@program("Monte Carlo, pi", x=uniform(20011), y=uniform(20011))
def pi(xp: Any, x: Any, y: Any) -> Any:
    """Four times the share of points in a quarter of a circle."""
    inside = xp.where(x * x + y * y < 1, xp.ones_like(x), xp.zeros_like(x))
    return 4 * xp.mean(inside)


@program("Box-Muller", u=uniform(5003, low=1e-6), v=uniform(5003))
def box_muller(xp: Any, u: Any, v: Any) -> Any:
    """Normal numbers from uniform ones."""
    radius = xp.sqrt(-2 * xp.log(u))
    return radius * xp.cos(6.283185307179586 * v), radius * xp.sin(6.283185307179586 * v)


@program("histogram", x=uniform(3001), bins=whole(37, 3001))
def histogram(xp: Any, x: Any, bins: Any) -> Any:
    """Weights added to 37 places, and how many there are."""
    none = xp.zeros_like(x[:37])
    return added(xp, none, bins, x), added(xp, none, bins, xp.ones_like(x))


@program("k-means", x=(701, 5), centres=(9, 5))
def k_means(xp: Any, x: Any, centres: Any) -> Any:
    """A step of Lloyd: nearest centres, and the means of their points."""
    away = x[:, None] - centres
    nearest = xp.argmin(xp.sum(away * away, -1), 1)
    sums = added(xp, xp.zeros_like(centres), nearest, x)
    counts = added(xp, xp.zeros_like(centres[:, 0]), nearest, xp.ones_like(x[:, 0]))
    return sums / xp.maximum(counts, xp.ones_like(counts))[:, None]


@program("graph aggregation", x=(151, 11), source=whole(151, 601), target=whole(151, 601))
def aggregation(xp: Any, x: Any, source: Any, target: Any) -> Any:
    """The sums of the neighbours' features, as in graph networks."""
    return x + added(xp, xp.zeros_like(x), target, x[source])


@program("Coulomb on a grid", grid=(33, 35, 2), charges=(57, 3))
def coulomb(xp: Any, grid: Any, charges: Any) -> Any:
    """The direct potential of charges in each point of a grid."""
    dx = grid[:, :, :1] - charges[:, 0]
    dy = grid[:, :, 1:] - charges[:, 1]
    return xp.sum(charges[:, 2] / xp.sqrt(dx * dx + dy * dy + 0.01), -1)
