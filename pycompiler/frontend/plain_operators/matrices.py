"""Small linear systems and factorizations, written out step by step.

An n x n matrix takes n steps of a few operators each. Matrices may have batch axes in front.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch

from ...errors import error
from .complex_numbers import of_reals

_ATEN = torch.ops.aten
#: Largest n of an n x n matrix: its steps are that many copies of some ten operators.
MOST = 32


def _checked(op: str, a: torch.Tensor) -> int:
    size = min(a.shape[-2:])
    if size > MOST:
        large = f"{op} of more than {MOST} rows"
        raise error("P0138", op=large, replacement="use an iteration, such as conjugate gradients")
    return size


def _places(count: int, like: torch.Tensor) -> torch.Tensor:
    return torch.arange(count, device=like.device)


def _t(a: torch.Tensor) -> torch.Tensor:
    return a.transpose(-2, -1)


def _factored(
    op: str, a: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return L and U in one matrix, pivots from 1, the permutation, and its sign.

    Row i of the permutation is 1 at the row of ``a`` that row i of L U equals.
    """
    steps, rows = _checked(op, a), a.shape[-2]
    place = _places(rows, a)
    order = torch.eye(rows, dtype=a.dtype).expand(*a.shape[:-2], rows, rows)
    sign, pivots = torch.ones(a.shape[:-2], dtype=a.dtype), []
    for step in range(steps):
        column = a[..., step].abs()
        largest = torch.where(place >= step, column, -torch.ones_like(column)).argmax(-1)
        a, order = (_exchanged(m, step, largest) for m in (a, order))
        sign = torch.where(largest == step, sign, -sign)
        pivots.append(largest + 1)
        below = (place > step)[:, None]
        pivot = a[..., step : step + 1, step : step + 1]
        divisor = torch.where(pivot == 0, torch.ones_like(pivot), pivot)
        factors = torch.where(below, a[..., step : step + 1] / divisor, torch.zeros_like(pivot))
        right = _places(a.shape[-1], a) > step
        a = torch.where(right, a - factors * a[..., step : step + 1, :], a)
        a = torch.where(below & (_places(a.shape[-1], a) == step), factors, a)
    chosen = torch.stack(pivots, -1) if pivots else torch.zeros(*sign.shape, 0)
    return a, chosen.to(torch.int32), order, sign


def _exchanged(m: torch.Tensor, step: int, row: torch.Tensor) -> torch.Tensor:
    """Exchange row ``step`` of each matrix with the ``row`` of that number."""
    place = _places(m.shape[-2], m)[:, None]
    other, own = place == row[..., None, None], m[..., step : step + 1, :]
    best = (m * other.to(m.dtype)).sum(-2, keepdim=True)
    return torch.where(place == step, best, torch.where(other, own, m))


def _solved(a: torch.Tensor, b: torch.Tensor, upper: bool, unit: bool) -> torch.Tensor:
    """Return X of a X = b for a triangular matrix; other elements of ``a`` are not read."""
    count = a.shape[-1]
    if not count:
        return b.clone()
    place, rows = _places(count, a)[:, None], []
    for step in reversed(range(count)) if upper else range(count):
        row = b[..., step : step + 1, :]
        if not unit:
            row = row / a[..., step : step + 1, step : step + 1]
        rows.append(row)
        rest = place < step if upper else place > step
        b = torch.where(rest, b - a[..., step : step + 1] * row, b)
    return torch.cat(rows[::-1] if upper else rows, -2)


def _same_batch(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    front = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])  # type: ignore[no-untyped-call]
    return a.expand(*front, *a.shape[-2:]), b.expand(*front, *b.shape[-2:])


def _info(a: torch.Tensor) -> torch.Tensor:
    return torch.zeros(a.shape[:-2], dtype=torch.int32)


def _lu_factor_ex(a: torch.Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    found, pivots, _, _ = _factored("linalg.lu_factor", a)
    return found, pivots, _info(a)


def _lu(a: torch.Tensor, *, pivot: bool = True) -> Any:
    found, _, order, _ = _factored("linalg.lu", a)
    size = min(a.shape[-2:])
    lower = found[..., :, :size].tril(-1) + torch.eye(a.shape[-2], size, dtype=a.dtype)
    return _t(order), lower, found[..., :size, :].triu()


def _lu_unpack(
    found: torch.Tensor, pivots: torch.Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    size, rows = _checked("lu_unpack", found), found.shape[-2]
    order = torch.eye(rows, dtype=found.dtype).expand(*found.shape[:-2], rows, rows)
    order = _t(_swapped_rows(order, pivots, backwards=False)) if unpack_pivots else order
    lower = found[..., :, :size].tril(-1) + torch.eye(rows, size, dtype=found.dtype)
    return order, lower, found[..., :size, :].triu()


def _swapped_rows(b: torch.Tensor, pivots: torch.Tensor, backwards: bool) -> torch.Tensor:
    """Return ``b`` with rows swapped as the pivots say."""
    steps = range(pivots.shape[-1])
    for step in reversed(steps) if backwards else steps:
        b = _exchanged(b, step, pivots[..., step] - 1)
    return b


def _lu_solve(
    found: torch.Tensor,
    pivots: torch.Tensor,
    b: torch.Tensor,
    *,
    left: bool = True,
    adjoint: bool = False,
) -> torch.Tensor:
    if not left:
        return _t(_lu_solve(found, pivots, _t(b), adjoint=not adjoint))
    _checked("linalg.lu_solve", found)
    found, b = _same_batch(found, b)
    if adjoint:
        b = _solved(_t(found), b, upper=False, unit=False)
        b = _solved(_t(found), b, upper=True, unit=True)
        return _swapped_rows(b, pivots, backwards=True)
    b = _swapped_rows(b, pivots, backwards=False)
    return _solved(found, _solved(found, b, upper=False, unit=True), upper=True, unit=False)


def _solve_ex(
    a: torch.Tensor, b: torch.Tensor, *, left: bool = True, check_errors: bool = False
) -> Any:
    vector = b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]
    right, left = b[..., None] if vector else b, left or vector
    if left and a.shape[:-2] == right.shape[:-2]:
        # The rows of b go along: they need no exchanges of their own.
        both, pivots, _, _ = _factored("linalg.solve", torch.cat([a, right], -1))
        found, right = both[..., : a.shape[-1]], both[..., a.shape[-1] :]
        result = _solved(found, right, upper=True, unit=False)
    else:
        found, pivots, _, _ = _factored("linalg.solve", a)
        result = _lu_solve(found, pivots, right, left=left)
    return (result[..., 0] if vector else result), found, pivots, _info(a)


def _inv_ex(a: torch.Tensor, *, check_errors: bool = False) -> Any:
    found, _, order, _ = _factored("linalg.inv", a)
    lower = _solved(found, order, upper=False, unit=True)
    return _solved(found, lower, upper=True, unit=False), _info(a)


def _for_the_way_back(a: torch.Tensor) -> torch.Tensor:
    """Return the matrix that torch factors: the gradient takes the factors of the transpose."""
    return _t(a) if a.is_contiguous() else a


def _det(a: torch.Tensor) -> Any:
    found, pivots, _, sign = _factored("linalg.det", _for_the_way_back(a))
    result = sign
    for step in range(a.shape[-1]):
        result = result * found[..., step, step]
    return result, found, pivots


def _slogdet(a: torch.Tensor) -> Any:
    found, pivots, _, sign = _factored("linalg.slogdet", _for_the_way_back(a))
    own = found.diagonal(dim1=-2, dim2=-1)
    for step in range(a.shape[-1]):
        sign = sign * torch.sign(own[..., step])
    return sign, own.abs().log().sum(-1), found, pivots


def _cholesky_ex(a: torch.Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    size = _checked("linalg.cholesky", a)
    if not size:
        return a.clone(), _info(a)
    place, columns = _places(size, a), []
    for step in range(size):
        column = a[..., step] / torch.sqrt(a[..., step : step + 1, step])
        column = torch.where(place >= step, column, torch.zeros_like(column))
        columns.append(column)
        a = a - column[..., :, None] * column[..., None, :]
    found = torch.stack(columns, -2 if upper else -1)
    return found, _info(a)


def _cholesky_solve(b: torch.Tensor, a: torch.Tensor, upper: bool = False) -> torch.Tensor:
    _checked("cholesky_solve", a)
    a, b = _same_batch(a, b)
    lower = _t(a) if upper else a
    return _solved(_t(lower), _solved(lower, b, False, False), True, False)


def _cholesky_inverse(a: torch.Tensor, upper: bool = False) -> torch.Tensor:
    one = torch.eye(a.shape[-1], dtype=a.dtype).expand(a.shape)
    return _cholesky_solve(one, a, upper)


def _solve_triangular(
    a: torch.Tensor, b: torch.Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> torch.Tensor:
    if not left:
        flipped = _solve_triangular(_t(a), _t(b), upper=not upper, unitriangular=unitriangular)
        return _t(flipped)
    _checked("linalg.solve_triangular", a)
    a, b = _same_batch(a, b)
    return _solved(a, b, upper, unitriangular)


def _triangular_solve(
    b: torch.Tensor,
    a: torch.Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> Any:
    used = _t(a) if transpose else a
    found = _solve_triangular(used, b, upper=upper != transpose, unitriangular=unitriangular)
    return found, _same_batch(a, b)[0].clone()


def _qr(a: torch.Tensor, mode: str = "reduced") -> Any:
    """Return Q and R by Householder's reflections, with LAPACK's signs."""
    size, rows = _checked("linalg.qr", a), a.shape[-2]
    place = _places(rows, a)
    q = torch.eye(rows, dtype=a.dtype).expand(*a.shape[:-2], rows, rows)
    for step in range(min(size, rows - 1)):
        column = a[..., step]
        tail = torch.where(place > step, column, torch.zeros_like(column))
        first, rest = column[..., step : step + 1], (tail * tail).sum(-1, keepdim=True)
        norm = torch.sqrt(first * first + rest)
        front = torch.where(first < 0, first - norm, first + norm)
        v = torch.where(place == step, front, tail)
        square = (v * v).sum(-1, keepdim=True)
        done = rest == 0
        weight = torch.where(done, rest, 2 / torch.where(done, torch.ones_like(rest), square))
        v, scaled = v[..., :, None], (v * weight)[..., :, None]
        a = a - scaled * (v * a).sum(-2, keepdim=True)
        q = q - (q * _t(v)).sum(-1, keepdim=True) * _t(scaled)
    kept = rows if mode == "complete" else size
    r = a[..., :kept, :].triu()
    if mode == "r":
        return a.new_zeros(0), r
    return q[..., :kept], r


def by_singular_values(a: torch.Tensor, b: torch.Tensor, rcond: float | None = None) -> Any:
    """Return the shortest solution of least squares; residuals as for a matrix of full rank."""
    vector, least = b.ndim == a.ndim - 1, torch.finfo(a.dtype).eps * max(a.shape[-2:])
    right = b[..., None] if vector else b
    u, values, v = torch.linalg.svd(a, full_matrices=False)
    known = values > values[..., :1] * (least if rcond is None else rcond)
    inverse = torch.where(known, 1 / torch.where(known, values, 1.0), 0.0)[..., None]
    found = v.mH @ (inverse * (u.mH @ right))
    off = (a @ found - right).abs()
    residuals = (off * off).sum(-2) if a.shape[-2] > a.shape[-1] else values.new_zeros(0)
    return (found[..., 0] if vector else found), residuals, known.sum(-1), values.detach()


def least_squares(a: torch.Tensor, b: torch.Tensor, _: float | None = None) -> Any:
    """Return the solution of least squares for a matrix of full rank."""
    rows, columns = a.shape[-2:]
    vector = b.ndim == a.ndim - 1
    right = b[..., None] if vector else b
    if rows >= columns:
        q, r = torch.linalg.qr(a)
        found = torch.linalg.solve_triangular(r, _t(q) @ right, upper=True)
    else:
        q, r = torch.linalg.qr(_t(a))
        found = q @ torch.linalg.solve_triangular(_t(r), right, upper=False)
    off = a @ found - right
    residuals = (off * off).sum(-2) if rows > columns else a.new_zeros(0)
    rank = torch.full(a.shape[:-2], min(rows, columns), dtype=torch.int64)
    values = a.new_zeros(*a.shape[:-2], 0)
    return (found[..., 0] if vector else found), residuals, rank, values


def _matrix_exp(a: torch.Tensor) -> torch.Tensor:
    """Return the sum of the powers: of a / 2^8, squared eight times.

    What is squared has no ones on its diagonal, which would take 8 of the digits of the rest. The
    powers reach doubles where the norm of ``a`` is below 100.
    """
    _checked("linalg.matrix_exp", a)
    one = torch.eye(a.shape[-1], dtype=a.dtype)
    small, series = a / 256, one / 12
    for power in range(11, 0, -1):
        series = (one + small @ series) / power
    beyond = small @ series
    for _ in range(8):
        beyond = 2 * beyond + beyond @ beyond
    return one + beyond


def _tensorinv(a: torch.Tensor, ind: int = 2) -> torch.Tensor:
    found: torch.Tensor = _inv_ex(a.reshape(prod(a.shape[:ind]), -1))[0]
    return found.reshape(*a.shape[ind:], *a.shape[:ind])


def _results(made_of: Callable[..., Any], chosen: int | slice) -> Callable[..., Any]:
    """Return the form of an operator that has some of the results of another."""
    return lambda *args, **named: made_of(*args, **named)[chosen]


def _householder_product(a: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the first columns of the product of reflections that geqrf gives."""
    rows, columns = a.shape[-2:]
    _checked("linalg.householder_product", a)
    place = _places(rows, a)
    q = torch.eye(rows, columns, dtype=a.dtype).expand(a.shape)
    for step in reversed(range(weights.shape[-1])):
        v = torch.where(place > step, a[..., step], (place == step).to(a.dtype))[..., :, None]
        q = q - v * weights[..., step, None, None] * (v * q).sum(-2, keepdim=True)
    return q


MATRICES: dict[Any, Callable[..., Any]] = {
    _ATEN.linalg_lu_factor_ex.default: _lu_factor_ex,
    _ATEN.linalg_lu.default: _lu,
    _ATEN.lu_unpack.default: _lu_unpack,
    _ATEN.linalg_lu_solve.default: _lu_solve,
    _ATEN.linalg_lu_factor.default: _results(_lu_factor_ex, slice(2)),
    _ATEN.linalg_ldl_factor.default: _results(torch.linalg.ldl_factor_ex, slice(2)),
    _ATEN.linalg_inv.default: _results(_inv_ex, 0),
    _ATEN.linalg_tensorinv.default: _tensorinv,
    _ATEN.inverse.default: _results(_inv_ex, 0),
    _ATEN.linalg_solve.default: _results(_solve_ex, 0),
    _ATEN.linalg_cholesky.default: _results(_cholesky_ex, 0),
    _ATEN._linalg_solve_ex.default: _solve_ex,
    _ATEN.linalg_inv_ex.default: _inv_ex,
    _ATEN._linalg_det.default: _det,
    _ATEN._linalg_slogdet.default: _slogdet,
    _ATEN.linalg_cholesky_ex.default: _cholesky_ex,
    _ATEN.cholesky_solve.default: _cholesky_solve,
    _ATEN.cholesky_inverse.default: _cholesky_inverse,
    _ATEN.linalg_solve_triangular.default: _solve_triangular,
    _ATEN.triangular_solve.default: _triangular_solve,
    _ATEN.linalg_householder_product.default: _householder_product,
    _ATEN.linalg_qr.default: _qr,
    _ATEN.linalg_matrix_exp.default: _matrix_exp,
}
MATRICES = {op: of_reals(function) for op, function in MATRICES.items()}
