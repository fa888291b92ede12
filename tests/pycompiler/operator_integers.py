"""Rows of matrix products of integers: modulo 2^32 or 2^64, every bit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from math import prod

from operator_host_forms import gemm_as_product
from operator_rows import (
    DTYPES,
    HUGE,
    LONG,
    NATURAL,
    WHOLE,
    Row,
    Sample,
    Tensor,
    part_of,
    values,
)

from pycompiler.tolerance import SUM

MOST = 3000  # products of elements: larger ones are in pfvm/test_integer_products.py
SIZES = (1, 2, 3, 4, 7, 8, 10, 17)


def _sizes(rng: random.Random, batch: tuple[int, ...]) -> tuple[int, int, int]:
    m, n, k = (rng.choice(SIZES) for _ in range(3))
    return (m, n, k) if prod(batch) * m * n * k <= MOST else _sizes(rng, batch)


def _matmul(dtype: str) -> Callable[[random.Random], Sample]:
    """Batched and broadcast, or with a vector on either side."""

    def sample(rng: random.Random) -> Sample:
        batch = tuple(rng.choice([1, 2, 3]) for _ in range(rng.randint(0, 4)))
        m, n, k = _sizes(rng, batch)
        a = values(rng, dtype, (k,) if rng.random() < 0.1 else (*part_of(rng, batch), m, k))
        b = values(rng, dtype, (k,) if rng.random() < 0.1 else (*part_of(rng, batch), k, n))
        fixed = frozenset(rng.choice(["", "", "a", "b"]))
        return Sample({"a": a, "b": b}, lambda a, b: a @ b, fixed)

    return sample


def _gemm(dtype: str) -> Callable[[random.Random], Sample]:
    """All transpositions; factors that are whole numbers, and a C of any shape that broadcasts."""

    def sample(rng: random.Random) -> Sample:
        m, n, k = _sizes(rng, ())
        left, right = rng.randint(0, 1), rng.randint(0, 1)
        alpha, beta = (rng.choice([1, 1, 2, 5]) for _ in range(2))
        a = values(rng, dtype, (k, m) if left else (m, k))
        b = values(rng, dtype, (n, k) if right else (k, n))
        shape = rng.choice([None, (n,), (1, n), (m, 1), (1,), (), (m, n)])
        c = None if shape is None else values(rng, dtype, shape)

        def function(a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
            found = ((a.T if left else a) @ (b.T if right else b)) * alpha
            return found if c is None else found + c * beta

        facts = {"transA": left, "transB": right, "alpha": float(alpha), "beta": float(beta)}
        fixed = frozenset("bc" if rng.random() < 0.5 else "")
        return Sample({"a": a, "b": b, "c": c}, function, fixed, facts)

    return sample


def _rows() -> Iterator[Row]:
    for dtype in (WHOLE, LONG, NATURAL, HUGE):
        claim = DTYPES[dtype].value
        yield Row("MatMul", claim, dtype, _matmul(dtype), SUM, range(1, 7))
        yield Row("Gemm", claim, dtype, _gemm(dtype), SUM, range(2, 3), host=gemm_as_product)


ROWS: tuple[Row, ...] = tuple(_rows())
