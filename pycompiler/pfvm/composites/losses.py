"""Losses over classes."""

from __future__ import annotations

import numpy as np

from .norms import log_shares
from .picking import unsqueezed
from .writer import Writer


def cross_entropy(write: Writer) -> str | bool:
    """Write log-softmax, then the likelihood."""
    chances = log_shares(write, [1])
    if len(write.node.output) > 1 and write.node.output[1]:
        write.op("Identity", chances, result=write.node.output[1])
    return _likelihood(write, chances, write.type(0).shape)


def nll(write: Writer) -> str | bool:
    """Write the likelihood of given logarithms."""
    return _likelihood(write, write.node.input[0], write.type(0).shape)


def _likelihood(write: Writer, chances: str, shape: tuple[int, ...]) -> str | bool:
    """Append the negative likelihood of the targets, weighted and reduced."""
    target = write.node.input[1]
    elem = write.type(1).elem
    size, rank = shape[1], len(shape)
    wide = [size if place == 1 else 1 for place in range(rank)]
    places = write.constant(np.arange(size).reshape(wide).astype(elem), "places")
    # A target that is no class, such as an ignored one, equals no place.
    same = write.op("Equal", unsqueezed(write, target, [1]), places)
    ignored = write.attribute("ignore_index", None)
    if ignored is not None and 0 <= int(ignored) < size:
        number = write.constant(np.asarray(int(ignored), dtype=elem), "ignored")
        same = write.op("And", same, write.op("Not", write.op("Equal", places, number)))
    zero = write.number(0.0)
    weights = write.number(-1.0)
    if len(write.node.input) > 2 and write.node.input[2]:
        weight = write.op("Reshape", write.node.input[2], write.ints(wide))
        weights = write.op("Neg", weight)
    each = write.op("Where", same, write.op("Mul", chances, weights), zero)
    reduction = bytes(write.attribute("reduction", b"mean")).decode()
    if reduction == "none":
        return write.op("ReduceSum", each, write.ints([1]), keepdims=0)
    total = write.op("ReduceSum", each, keepdims=0)
    if reduction == "sum":
        return total
    counted = write.op("Where", same, write.op("Neg", weights), zero)
    count = write.op("ReduceSum", counted, keepdims=0)
    return write.op("Mul", total, write.op("Reciprocal", count))
