"""Einsum: operand by operand, as a product of matrices or of elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from .writer import Writer

#: Stand for the axes of an ellipsis, from the last one back.
_ELLIPSIS = "".join(chr(0x2460 + number) for number in range(8))


@dataclass(frozen=True)
class _Factor:
    """A tensor with a label for each axis."""

    value: str
    labels: str


def einsum(write: Writer) -> str | bool:
    """Multiply the operands from the left to the right; sum what no other operand needs."""
    equation = write.attribute("equation", b"").decode().replace(" ", "")
    names = list(write.node.input)
    ranks = [len(write.types[name].shape) for name in names]
    terms, result = _read(equation, ranks)
    sizes: dict[str, int] = {}
    for name, labels in zip(names, terms, strict=True):
        for label, size in zip(labels, write.types[name].shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    factors = [
        _plain(write, name, labels, sizes) for name, labels in zip(names, terms, strict=True)
    ]
    found = factors[0]
    for number, factor in enumerate(factors[1:], 1):
        later = "".join(own.labels for own in factors[number + 1 :]) + result
        found = _product(write, found, factor, later, sizes)
    found = _summed(write, found, result)
    order = sorted(range(len(found.labels)), key=lambda axis: result.index(found.labels[axis]))
    value = write.op("Transpose", found.value, perm=order) if order else found.value
    missing = [axis for axis, label in enumerate(result) if label not in found.labels]
    if missing:
        value = write.op("Unsqueeze", value, write.ints(missing))
    return write.op("Identity", value)


def _read(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the labels of the operands and of the result."""
    left, arrow, result = equation.partition("->")
    terms, widest = [], 0
    for term, rank in zip(left.split(","), ranks, strict=True):
        count = rank - len(term.replace("...", ""))
        widest = max(widest, count if "..." in term else 0)
        terms.append(term.replace("...", _ELLIPSIS[:count][::-1]))
    rest = _ELLIPSIS[:widest][::-1]
    if arrow:
        return terms, result.replace("...", rest)
    every = "".join(terms)
    return terms, rest + "".join(
        label for label in sorted(set(every)) if label not in rest and every.count(label) == 1
    )


def _plain(write: Writer, value: str, labels: str, sizes: dict[str, int]) -> _Factor:
    """Append the diagonals of repeated labels; drop axes of size 1 that other operands widen."""
    shape = list(write.types[value].shape)
    dropped = [axis for axis, label in enumerate(labels) if shape[axis] < sizes[label]]
    if dropped:
        value = write.op("Squeeze", value, write.ints(dropped))
        labels = "".join(label for axis, label in enumerate(labels) if axis not in dropped)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            other = labels.index(label, first + 1)
            wide = [sizes[label] if axis in (first, other) else 1 for axis in range(len(labels))]
            same = write.constant(np.eye(sizes[label], dtype=bool).reshape(wide), "diagonal")
            value = write.op("Where", same, value, write.number(0.0))
            value = write.op("ReduceSum", value, write.ints([other]), keepdims=0)
            labels = labels[:other] + labels[other + 1 :]
    return _Factor(value, labels)


def _summed(write: Writer, factor: _Factor, wanted: str) -> _Factor:
    """Append the sum over the axes that are not ``wanted``."""
    axes = [axis for axis, label in enumerate(factor.labels) if label not in wanted]
    if not axes:
        return factor
    kept = "".join(label for label in factor.labels if label in wanted)
    return _Factor(write.op("ReduceSum", factor.value, write.ints(axes), keepdims=0), kept)


def _product(
    write: Writer, one: _Factor, other: _Factor, later: str, sizes: dict[str, int]
) -> _Factor:
    """Append the product of two factors, summed over the labels that nothing later needs."""
    one = _summed(write, one, other.labels + later)
    other = _summed(write, other, one.labels + later)
    both = [label for label in one.labels if label in other.labels]
    batch = "".join(label for label in both if label in later)
    inner = "".join(label for label in both if label not in later)
    rows, columns = (
        "".join(label for label in own.labels if label not in both) for own in (one, other)
    )
    labels = batch + rows + columns
    if not inner:  # products of single elements keep single precision
        wide = (
            _laid_out(write, factor, kept, labels, sizes)
            for factor, kept in ((one, batch + rows), (other, batch + columns))
        )
        return _Factor(write.op("Mul", *wide), labels)
    # Without a batch, rows stay axes of their own: flat ones of odd sizes would move.
    left = (batch, rows, inner) if batch or not rows else (rows, inner)
    parts = []
    for factor, (kept, *flat) in ((one, left), (other, (batch, inner, columns))):
        moved = _moved(write, factor, "".join((kept, *flat)))
        joined = [prod(sizes[label] for label in labels) for labels in flat]
        parts.append(write.reshape(moved, [*(sizes[label] for label in kept), *joined]))
    found = write.op("MatMul", *parts)
    return _Factor(write.reshape(found, [sizes[n] for n in labels]), labels)


def _moved(write: Writer, factor: _Factor, order: str) -> str:
    if factor.labels == order:
        return factor.value
    return write.op("Transpose", factor.value, perm=[factor.labels.index(n) for n in order])


def _laid_out(write: Writer, factor: _Factor, kept: str, labels: str, sizes: dict[str, int]) -> str:
    """Append the factor with its axes in the order of ``labels``, and axes of size 1 between.

    This is no Unsqueeze, because onnx's shape inference takes short lists for shapes there.
    """
    value = _moved(write, factor, kept)
    if kept == labels:
        return value
    shape = [sizes[label] if label in kept else 1 for label in labels]
    return write.op("Reshape", value, write.ints(shape))
