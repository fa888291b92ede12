"""Solvers: elimination, orthogonal bases, recursions, iterations on sparse and dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .programs import copied, dominant, positive_definite, program, whole


@program("gramschmidt", a=(27, 9))
def gramschmidt(xp: Any, a: Any) -> Any:
    """Q R = A by the modified method of Gram and Schmidt (PolyBench)."""
    columns = [a[:, k] for k in range(a.shape[1])]
    made, rows = [], []
    for k in range(a.shape[1]):
        q = columns[k] / xp.sqrt(xp.sum(columns[k] * columns[k]))
        made.append(q)
        for j in range(k + 1, a.shape[1]):
            r = xp.sum(q * columns[j])
            rows.append(r)
            columns[j] = columns[j] - q * r
    return xp.stack(made, 1), xp.stack(rows)


@program("lu", a=dominant(15, 15))
def lu(xp: Any, a: Any) -> Any:
    """L U = A without pivots, in place, by updates of rank one (PolyBench)."""
    a = copied(a)
    for k in range(a.shape[0] - 1):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, k + 1 :]
    return a


@program("cholesky", a=positive_definite(15, 15))
def cholesky(xp: Any, a: Any) -> Any:
    """L L^T = A by updates of rank one (PolyBench)."""
    a = copied(a)
    for k in range(a.shape[0]):
        a[k:, k] = a[k:, k] / xp.sqrt(a[k, k])
        if k + 1 < a.shape[0]:
            a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k + 1 :, k]
    return xp.tril(a)


@program("durbin", r=lambda rng: 0.5 ** np.arange(1, 14) * rng.uniform(0.5, 1, 13))
def durbin(xp: Any, r: Any) -> Any:
    """Solve Toeplitz equations by Durbin's recursion (PolyBench)."""
    y, beta, alpha = -r[:1], 1.0, -r[0]
    for k in range(1, r.shape[0]):
        beta = (1 - alpha * alpha) * beta
        alpha = -(r[k] + xp.sum(xp.flip(r[:k], (0,)) * y)) / beta
        y = xp.concatenate([y + alpha * xp.flip(y, (0,)), alpha[None]], 0)
    return y


@program("trisolv", a=dominant(21, 21), b=(21,))
def trisolv(xp: Any, a: Any, b: Any) -> Any:
    """L x = b, forward (PolyBench)."""
    b, found = b + 0, []
    for k in range(b.shape[0]):
        x = b[k] / a[k, k]
        found.append(x)
        b = b - a[:, k] * x
    return xp.stack(found)


@program("solve of torch.linalg, batched", a=dominant(33, 7, 7), b=(33, 7, 3))
def solve(xp: Any, a: Any, b: Any) -> Any:
    """A x = b by the library."""
    return xp.linalg.solve(a, b)


@program("cholesky of torch.linalg, batched", a=positive_definite(33, 7, 7))
def library_cholesky(xp: Any, a: Any) -> Any:
    """L L^T = A by the library."""
    return xp.linalg.cholesky(a)


@program("inverse and determinant, batched", a=dominant(33, 6, 6))
def inverse(xp: Any, a: Any) -> Any:
    """The inverse and the determinant over its largest power, by the library."""
    return xp.linalg.inv(a), xp.linalg.det(a)


@program("qr", a=(17, 9))
def qr(xp: Any, a: Any) -> Any:
    """Q R = A by the library; signs are those of a positive diagonal."""
    q, r = xp.linalg.qr(a)
    signs = xp.sign(xp.diagonal(r))
    return q * signs, r * signs[:, None]


@program("singular values", a=(13, 9))
def singular_values(xp: Any, a: Any) -> Any:
    """The singular values of a matrix, and the matrix from its three factors."""
    u, s, v = xp.linalg.svd(a, full_matrices=False)
    return s, (u * s) @ v


@program("symmetric eigenvalues", a=positive_definite(11, 11))
def eigenvalues(xp: Any, a: Any) -> Any:
    """The eigenvalues of a symmetric matrix, and the matrix from its factors."""
    values, vectors = xp.linalg.eigh(a)
    return values, (vectors * values) @ vectors.T


@program("conjugate gradient, dense", a=positive_definite(97, 97), b=(97,))
def conjugate_gradient(xp: Any, a: Any, b: Any) -> Any:
    """Six steps of Hestenes and Stiefel from x = 0."""
    x, r, p = xp.zeros_like(b), b, b
    rr = xp.sum(r * r)
    for _ in range(6):
        ap = a @ p
        step = rr / xp.sum(p * ap)
        x, r = x + step * p, r - step * ap
        before, rr = rr, xp.sum(r * r)
        p = r + (rr / before) * p
    return x


def laplacian(xp: Any, u: Any) -> Any:
    """Return 4 u less the four neighbours, with zeros around the grid."""
    wide = xp.concatenate([xp.zeros_like(u[:1]), u, xp.zeros_like(u[:1])], 0)
    side = xp.zeros_like(wide[:, :1])
    wide = xp.concatenate([side, wide, side], 1)
    return 4 * u - wide[:-2, 1:-1] - wide[2:, 1:-1] - wide[1:-1, :-2] - wide[1:-1, 2:]


@program("conjugate gradient, five points", b=(45, 51))
def conjugate_gradient_on_grid(xp: Any, b: Any) -> Any:
    """Five steps for Poisson's equation without a matrix."""
    x, r, p = xp.zeros_like(b), b, b
    rr = xp.sum(r * r)
    for _ in range(5):
        ap = laplacian(xp, p)
        step = rr / xp.sum(p * ap)
        x, r = x + step * p, r - step * ap
        before, rr = rr, xp.sum(r * r)
        p = r + (rr / before) * p
    return x


@program("sparse product by gather", values=(1501, 7), columns=whole(1501, 1501, 7), x=(1501,))
def sparse_product(xp: Any, values: Any, columns: Any, x: Any) -> Any:
    """Y = A x with a fixed number of entries in a row (the ELLPACK form of CSR)."""
    return xp.sum(values * x[columns], 1)


@program("PageRank by edges", source=whole(211, 997), target=whole(211, 997), x=(211,))
def page_rank(xp: Any, source: Any, target: Any, x: Any) -> Any:
    """Four steps x = 0.15 / n + 0.85 (sums over incoming edges of x / out-degree)."""
    ones = xp.ones_like(x)[source]
    degree = added(xp, xp.zeros_like(x), source, ones)
    for _ in range(4):
        moved = (x / xp.maximum(degree, xp.ones_like(degree)))[source]
        x = 0.15 / 211 + 0.85 * added(xp, xp.zeros_like(x), target, moved)
    return x


def added(xp: Any, to: Any, places: Any, values: Any) -> Any:
    """Return ``to`` with values added to rows at places, which may be equal."""
    if xp is not np:
        return to.index_add(0, places, values)
    to = to.copy()
    np.add.at(to, places, values)
    return to


@program("red-black Gauss-Seidel", u=(67, 71), f=(67, 71))
def red_black(xp: Any, u: Any, f: Any) -> Any:
    """Two sweeps in place: points whose coordinates have an even sum first, then the others."""
    u = copied(u)
    for _ in range(2):
        for rows, columns in ((1, 1), (2, 2), (1, 2), (2, 1)):
            around = u[rows - 1 : -2 : 2, columns:-1:2] + u[rows + 1 :: 2, columns:-1:2]
            around = around + u[rows:-1:2, columns - 1 : -2 : 2] + u[rows:-1:2, columns + 1 :: 2]
            u[rows:-1:2, columns:-1:2] = 0.25 * (around - f[rows:-1:2, columns:-1:2])
    return u


def restricted(u: Any) -> Any:
    """Return the mean of the nine points around every second inner point, by full weighting."""
    rows = 0.25 * u[:-2:2] + 0.5 * u[1:-1:2] + 0.25 * u[2::2]
    return 0.25 * rows[:, :-2:2] + 0.5 * rows[:, 1:-1:2] + 0.25 * rows[:, 2::2]


def prolonged(xp: Any, u: Any) -> Any:
    """Return twice as many points and one, in each axis, by linear interpolation, zero around."""
    for axis in (0, 1):
        u = u if axis == 0 else u.T
        none = xp.zeros_like(u[:1])
        between = 0.5 * (xp.concatenate([none, u], 0) + xp.concatenate([u, none], 0))
        first, rest = between[:1], xp.stack([u, between[1:]], 1)
        u = xp.concatenate([first, rest.reshape(2 * u.shape[0], u.shape[1])], 0)
        u = u if axis == 0 else u.T
    return u


@program("Poisson by multigrid", f=(31, 31))
def multigrid(xp: Any, f: Any) -> Any:
    """A V-cycle with damped Jacobi, full weighting and linear interpolation, from u = 0."""

    def cycle(f: Any, u: Any) -> Any:
        for _ in range(2):
            u = u + 0.2 * (f - laplacian(xp, u))
        if f.shape[0] > 3:
            coarse = 4 * restricted(f - laplacian(xp, u))
            u = u + prolonged(xp, cycle(coarse, xp.zeros_like(coarse)))
        return u + 0.2 * (f - laplacian(xp, u))

    return cycle(f, xp.zeros_like(f))


@program("tridiagonal systems, cyclic reduction", low=(57, 31), diagonal=(57, 31), b=(57, 31))
def cyclic_reduction(xp: Any, low: Any, diagonal: Any, b: Any) -> Any:
    """Parallel cyclic reduction of Hockney for many systems; both sides have the same numbers."""

    def shifted(x: Any, by: int, fill: Any) -> Any:
        if by > 0:
            return xp.concatenate([fill[:, :by], x[:, :-by]], 1)
        return xp.concatenate([x[:, -by:], fill[:, :-by]], 1)

    n, d = low.shape[1], 4 + xp.abs(diagonal)
    none, one = xp.zeros_like(d), xp.ones_like(d)
    a = xp.concatenate([none[:, :1], low[:, 1:]], 1) * 0.5
    c = xp.concatenate([low[:, 1:], none[:, :1]], 1) * 0.5
    step = 1
    while step < n:
        up, down = a / shifted(d, step, one), c / shifted(d, -step, one)
        d2 = d - up * shifted(c, step, none) - down * shifted(a, -step, none)
        b = b - up * shifted(b, step, none) - down * shifted(b, -step, none)
        a, c = -up * shifted(a, step, none), -down * shifted(c, -step, none)
        d, step = d2, 2 * step
    return b / d
