"""Softmax, the normalisations of whole axes, and means."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod

from .writer import Writer, axis_of

#: The largest finite numbers.
_SINGLE, _BRAIN = 2.0**128 - 2.0**104, 2.0**128 - 2.0**120
_MOST = {"float": _SINGLE, "bfloat16": _BRAIN, "float16": 65504.0, "double": sys.float_info.max}


def softmax(write: Writer) -> str | bool:
    """Subtract the largest element, then divide the powers by their sum."""
    axes = [axis_of(write, -1)] if write.type(0).shape else []
    if not axes:
        return False
    _, powers, total = _shifted(write, axes, _largest(write, axes))
    return write.op("Mul", powers, write.op("Reciprocal", total))


def _largest(write: Writer, axes: Sequence[int]) -> str:
    return write.op("ReduceMax", write.node.input[0], write.ints(axes), keepdims=1)


def _shifted(write: Writer, axes: Sequence[int], by: str) -> tuple[str, str, str]:
    """Append the differences to ``by``, their powers, and the sums of these."""
    moved = write.op("Sub", write.node.input[0], by)
    powers = write.op("Exp", moved)
    return moved, powers, write.op("ReduceSum", powers, write.ints(axes), keepdims=1)


def log_softmax(write: Writer) -> str | bool:
    """Subtract the logarithm of the sum of powers."""
    axes = [axis_of(write, -1)] if write.type(0).shape else []
    if not axes:
        return False
    moved, _, total = _shifted(write, axes, _largest(write, axes))
    return write.op("Sub", moved, write.op("Log", total))


def layer_norm(write: Writer) -> str | bool:
    """Subtract the mean, divide by the deviation, scale and shift."""
    if len(write.node.output) > 1 and any(write.node.output[1:]):
        return False
    shape = write.type(0).shape
    axes = list(range(axis_of(write, -1), len(shape)))
    count = prod(shape[axis] for axis in axes)
    return _scaled(write, standardised(write, write.node.input[0], axes, count))


def rms_norm(write: Writer) -> str | bool:
    """Divide by the root of the mean square."""
    shape = write.type(0).shape
    axes = list(range(axis_of(write, -1), len(shape)))
    normal = _normalised(write, write.node.input[0], axes, prod(shape[a] for a in axes))
    return _scaled(write, normal)


def standardised(write: Writer, value: str, axes: Sequence[int], count: int) -> str:
    """Append ``value`` less its mean over ``axes``, divided by its deviation."""
    moved = write.op("Sub", value, write.mean(value, axes, count))
    return _normalised(write, moved, axes, count)


def _normalised(write: Writer, value: str, axes: Sequence[int], count: int) -> str:
    variance = write.mean(write.op("Mul", value, value), axes, count)
    epsilon = write.number(write.single("epsilon", 1e-5))
    deviation = write.op("Sqrt", write.op("Add", variance, epsilon))
    return write.op("Mul", value, write.op("Reciprocal", deviation))


def _scaled(write: Writer, normal: str) -> str | bool:
    scale, shift = (*write.node.input[1:], "", "")[:2]
    for op, operand in (("Mul", scale), ("Add", shift)):
        if operand:
            normal = write.op(op, normal, operand)
    return write.op("Identity", normal)


def batch_norm(write: Writer) -> str | bool:
    """Use the stored mean and variance, or those of the batch in training."""
    shape = write.type(0).shape
    wide = write.ints([-1] + [1] * (len(shape) - 2))
    value, *facts = write.node.input
    scale, shift, mean, variance = (write.op("Reshape", name, wide) for name in facts)
    if int(write.attribute("training_mode", 0)):
        mean, variance = _batch_statistics(write, facts[2:])
    elif any(write.node.output[1:]):
        return False
    epsilon = write.number(write.single("epsilon", 1e-5))
    deviation = write.op("Sqrt", write.op("Add", variance, epsilon))
    factor = write.op("Mul", scale, write.op("Reciprocal", deviation))
    moved = write.op("Mul", write.op("Sub", value, mean), factor)
    return write.op("Add", moved, shift)


def _batch_statistics(write: Writer, running: Sequence[str]) -> tuple[str, str]:
    """Append mean and variance of each channel; the running ones move towards them."""
    shape, value = write.type(0).shape, write.node.input[0]
    axes = [axis for axis in range(len(shape)) if axis != 1]
    count = prod(shape[axis] for axis in axes)
    mean = write.mean(value, axes, count)
    moved = write.op("Sub", value, mean)
    variance = write.mean(write.op("Mul", moved, moved), axes, count)
    kept = write.single("momentum", 0.9)
    for old, new, goal in zip(running, (mean, variance), write.node.output[1:], strict=False):
        if goal:
            own = write.op("Reshape", new, write.ints([-1]))
            parts = (
                write.op("Mul", part, write.number(factor))
                for part, factor in ((old, kept), (own, 1 - kept))
            )
            write.op("Add", *parts, result=goal)
    return mean, variance


def instance_norm(write: Writer) -> str | bool:
    """Subtract the mean of every channel, divide by its deviation, scale and shift."""
    shape = write.type(0).shape
    axes = list(range(2, len(shape)))
    value, count = write.node.input[0], prod(shape[2:])
    wide = write.ints([-1] + [1] * len(axes))
    normal = standardised(write, value, axes, count)
    scale, shift = (write.op("Reshape", name, wide) for name in write.node.input[1:3])
    return write.op("Add", write.op("Mul", normal, scale), shift)


def mean(write: Writer) -> str | bool:
    """Write a mean over axes from the sum."""
    axes, (value, *_), shape = write.reduced_axes(), write.node.input, write.type(0).shape
    if axes:
        keep = int(write.attribute("keepdims", 1))
        total = write.op("ReduceSum", value, write.ints(axes), keepdims=keep)
        return write.mean_of(total, prod(shape[axis] for axis in axes))
    return axes is not None and write.op("Identity", value)


def mean_of_several(write: Writer) -> str | bool:
    """Write the mean of tensors from their sum."""
    total, *others = write.node.input
    for other in others:
        total = write.op("Add", total, other)
    return write.mean_of(total, len(write.node.input))


def log_sum_exp(write: Writer) -> str | bool:
    """Subtract the largest element, if finite, then take the logarithm of the sum of powers."""
    axes = write.reduced_axes()
    if not axes:
        return False
    top = _MOST[write.type(0).elem]
    by = write.op("Clip", _largest(write, axes), write.number(-top), write.number(top))
    _, _, total = _shifted(write, axes, by)
    found, keep = write.op("Add", write.op("Log", total), by), int(write.attribute("keepdims", 1))
    more = () if keep else (write.ints(axes),)
    return write.op("Identity" if keep else "Squeeze", found, *more)
