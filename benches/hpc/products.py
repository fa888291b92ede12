"""Products of matrices and vectors, as in PolyBench/C 4.2, and statistics of columns."""

from __future__ import annotations

from typing import Any

from .programs import dominant, program

ALPHA, BETA = 1.5, 1.2


@program("gemm", c=(301, 257), a=(301, 199), b=(199, 257))
def gemm(xp: Any, c: Any, a: Any, b: Any) -> Any:
    """C = alpha A B + beta C (PolyBench)."""
    return ALPHA * (a @ b) + BETA * c


@program("2mm", a=(131, 117), b=(117, 143), c=(143, 101), d=(131, 101))
def two_products(xp: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """D = alpha A B C + beta D (PolyBench)."""
    return ALPHA * (a @ b) @ c + BETA * d


@program("3mm", a=(131, 117), b=(117, 143), c=(143, 101), d=(101, 125))
def three_products(xp: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """G = (A B) (C D) (PolyBench)."""
    return (a @ b) @ (c @ d)


@program("atax", a=(299, 343), x=(343,))
def atax(xp: Any, a: Any, x: Any) -> Any:
    """Y = A^T (A x) (PolyBench)."""
    return a.T @ (a @ x)


@program("bicg", a=(299, 343), p=(343,), r=(299,))
def bicg(xp: Any, a: Any, p: Any, r: Any) -> Any:
    """Q = A p and s = A^T r (PolyBench)."""
    return a @ p, a.T @ r


@program("mvt", a=(311, 311), x1=(311,), x2=(311,), y1=(311,), y2=(311,))
def mvt(xp: Any, a: Any, x1: Any, x2: Any, y1: Any, y2: Any) -> Any:
    """x1 + A y1 and x2 + A^T y2 (PolyBench)."""
    return x1 + a @ y1, x2 + a.T @ y2


@program("gesummv", a=(251, 251), b=(251, 251), x=(251,))
def gesummv(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """Y = alpha A x + beta B x (PolyBench)."""
    return ALPHA * (a @ x) + BETA * (b @ x)


@program("gemver", a=(203, 203), u1=(203,), v1=(203,), u2=(203,), v2=(203,), y=(203,), z=(203,))
def gemver(xp: Any, a: Any, u1: Any, v1: Any, u2: Any, v2: Any, y: Any, z: Any) -> Any:
    """A = A + u1 v1^T + u2 v2^T, x = beta A^T y + z, w = alpha A x (PolyBench)."""
    a = a + u1[:, None] * v1 + u2[:, None] * v2
    x = BETA * (a.T @ y) + z
    return a, x, ALPHA * (a @ x)


@program("syrk", a=(143, 117), c=(143, 143))
def syrk(xp: Any, a: Any, c: Any) -> Any:
    """The lower triangle of C = alpha A A^T + beta C (PolyBench)."""
    return xp.tril(ALPHA * (a @ a.T) + BETA * c) + xp.triu(c, 1)


@program("syr2k", a=(143, 117), b=(143, 117), c=(143, 143))
def syr2k(xp: Any, a: Any, b: Any, c: Any) -> Any:
    """The lower triangle of C = alpha (A B^T + B A^T) + beta C (PolyBench)."""
    return xp.tril(ALPHA * (a @ b.T + b @ a.T) + BETA * c) + xp.triu(c, 1)


@program("trmm", a=(131, 131), b=(131, 167))
def trmm(xp: Any, a: Any, b: Any) -> Any:
    """B = alpha A^T B with a lower triangle A whose diagonal is 1 (PolyBench)."""
    return ALPHA * (b + xp.tril(a, -1).T @ b)


@program("symm", a=(131, 131), b=(131, 167), c=(131, 167))
def symm(xp: Any, a: Any, b: Any, c: Any) -> Any:
    """C = alpha A B + beta C, where A is symmetric and only its lower triangle is read."""
    whole = xp.tril(a) + xp.tril(a, -1).T
    return ALPHA * (whole @ b) + BETA * c


@program("doitgen", a=(19, 23, 61), c4=(61, 61))
def doitgen(xp: Any, a: Any, c4: Any) -> Any:
    """A[r, q, p] = sum over s of A[r, q, s] C4[s, p] (PolyBench)."""
    return a @ c4


@program("covariance", data=(263, 117))
def covariance(xp: Any, data: Any) -> Any:
    """The covariances of columns (PolyBench)."""
    centred = data - xp.mean(data, 0)
    return centred.T @ centred / (data.shape[0] - 1)


@program("correlation", data=(263, 117))
def correlation(xp: Any, data: Any) -> Any:
    """The correlations of columns; a deviation of at most 0.1 counts as 1 (PolyBench)."""
    rows = data.shape[0]
    centred = data - xp.mean(data, 0)
    deviation = xp.sqrt(xp.mean(centred * centred, 0))
    deviation = xp.where(deviation <= 0.1, xp.ones_like(deviation), deviation)
    scaled = centred / (rows**0.5 * deviation)
    return scaled.T @ scaled


@program("batched small products", a=(157, 7, 9), b=(157, 9, 5), c=(157, 5, 7))
def batched(xp: Any, a: Any, b: Any, c: Any) -> Any:
    """A B C for many small matrices, as finite elements assemble them."""
    return a @ b @ c


@program("tensor contraction", a=(13, 11, 9, 7), b=(9, 7, 15))
def contraction(xp: Any, a: Any, b: Any) -> Any:
    """C[i, j, m] = sum over k, l of A[i, j, k, l] B[k, l, m] (coupled clusters)."""
    return xp.einsum("ijkl,klm->ijm", a, b)


@program("power iteration", a=dominant(121, 121), x=(121,))
def power_iteration(xp: Any, a: Any, x: Any) -> Any:
    """Six steps x = A x / |A x|, and the Rayleigh quotient."""
    for _ in range(6):
        y = a @ x
        x = y / xp.sqrt(xp.sum(y * y))
    return x, xp.sum(x * (a @ x))
