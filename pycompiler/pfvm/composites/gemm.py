"""Gemm as the device's layer takes it: without factors, and with sums that LM has room for."""

from __future__ import annotations

from math import prod
from typing import Any

from ...machine import Target
from . import integers
from .tile_choice import block_of, rows_of, weights_fit
from .writer import INTEGERS, Writer


def gemm(write: Writer) -> str | bool:
    """Write alpha, beta, and a C that is not a row, as operators after the Gemm.

    So is any C if the sums are long: without it, the contracted axis can be cut into time slices.
    Long sums over the channels and pixels of a picture become a sum of products of its pixels.
    """
    whole = write.type(0).elem in INTEGERS
    alpha, beta = (write.single(name, 1.0) for name in ("alpha", "beta"))
    bias = write.input(2)
    columns = write.types[write.node.output[0]].shape[1]
    shape = write.types[bias].shape if bias else ()
    row = bool(shape) and prod(shape[:-1]) == 1 and shape[-1] == columns
    flags: dict[str, Any] = {n: int(write.attribute(n, 0)) for n in ("transA", "transB")}
    terms = write.type(0).shape[0 if flags["transA"] else 1]
    if whole and not (alpha.is_integer() and beta.is_integer()):
        return False
    fits = write.target is None or weights_fit(terms, 1, write.target)
    picture = None if flags["transA"] else _picture(write, terms)
    plain = alpha == beta == 1.0 and (not bias or (row and fits)) and picture is None
    if whole:
        found = integers.product(write, terms, flags.values())
    elif picture is not None:
        found = _by_pixels(write, *picture, turned=bool(flags["transB"]))
    elif plain:
        return False
    else:
        found = write.op("Gemm", *write.node.input[:2], **flags)
    return bool(found) and _scaled(write, found, alpha, beta)


def _scaled(write: Writer, found: str, alpha: float, beta: float) -> str:
    """Append the factors and C."""
    bias = write.input(2)
    if alpha != 1.0:
        found = write.op("Mul", found, write.number(alpha))
    if bias:
        if beta != 1.0:
            bias = write.op("Mul", bias, write.number(beta))
        found = write.op("Add", found, bias)
    return write.op("Identity", found)


def _picture(write: Writer, terms: int) -> tuple[str, tuple[int, ...]] | None:
    """Return the picture whose channels and pixels are the terms, if they need products of pixels.

    A view makes one axis of channels and pixels, which nothing can cut. Products of pixels need no
    such axis: each sums the channels of one pixel.
    """
    source = write.viewed(write.node.input[0])
    shape = write.types[source].shape if source else ()
    rows = write.types[write.node.output[0]].shape[0]
    if write.target is None or len(shape) < 3 or shape[0] != rows or prod(shape[1:]) != terms:
        return None
    few = shape[1] < block_of(write.target)
    long = sums_are_long(terms, write.target) and not sums_are_long(shape[1], write.target)
    return (source, shape) if long and not few else None


def _by_pixels(write: Writer, picture: str, shape: tuple[int, ...], *, turned: bool) -> str:
    """Append a product for each pixel of a picture, and their sum."""
    columns = write.types[write.node.output[0]].shape[1]
    rank = len(shape)
    one = write.op("Transpose", picture, perm=(*range(2, rank), 0, 1))
    if turned:
        other = write.reshape(write.node.input[1], (columns, *shape[1:]))
        other = write.op("Transpose", other, perm=(*range(2, rank), 1, 0))
    else:
        other = write.reshape(write.node.input[1], (*shape[1:], columns))
        other = write.op("Transpose", other, perm=(*range(1, rank - 1), 0, rank - 1))
    found = write.op("MatMul", one, other)
    return write.op("ReduceSum", found, write.ints(range(rank - 2)), keepdims=0)


def sums_are_long(terms: int, target: Target) -> bool:
    """Whether the L1Bs of an L2B cannot hold one block of rows of the matrix together."""
    blocks = -(-terms // (target.counts["l1b"] * block_of(target)))
    return blocks * rows_of(target) > target.words("lm1")
