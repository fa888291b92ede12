"""Softmax, the normalisations of whole axes, and means."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .writer import INTEGERS, Writer, axis_of


def softmax(write: Writer) -> bool:
    """Subtract the largest element, then divide the powers by their sum."""
    axes = [axis_of(write, -1)] if write.type(0).shape else []
    if not axes:
        return False
    shifted, total = _shifted(write, axes)
    write.op("Mul", shifted, write.op("Reciprocal", total), result=write.node.output[0])
    return True


def _shifted(write: Writer, axes: list[int]) -> tuple[str, str]:
    value = write.node.input[0]
    largest = write.op("ReduceMax", value, write.ints(axes), keepdims=1)
    powers = write.op("Exp", write.op("Sub", value, largest))
    return powers, write.op("ReduceSum", powers, write.ints(axes), keepdims=1)


def log_softmax(write: Writer) -> bool:
    """Subtract the logarithm of the sum of powers."""
    if not write.type(0).shape:
        return False
    axes = [axis_of(write, -1)]
    value = write.node.input[0]
    largest = write.op("ReduceMax", value, write.ints(axes), keepdims=1)
    moved = write.op("Sub", value, largest)
    total = write.op("ReduceSum", write.op("Exp", moved), write.ints(axes), keepdims=1)
    write.op("Sub", moved, write.op("Log", total), result=write.node.output[0])
    return True


def layer_norm(write: Writer) -> bool:
    """Subtract the mean, divide by the deviation, scale and shift."""
    if len(write.node.output) > 1 and any(write.node.output[1:]):
        return False
    shape = write.type(0).shape
    axes = list(range(axis_of(write, -1), len(shape)))
    count = prod(shape[axis] for axis in axes)
    value = write.node.input[0]
    normal = standardised(write, value, axes, count)
    return _scaled(write, normal)


def rms_norm(write: Writer) -> bool:
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


def _scaled(write: Writer, normal: str) -> bool:
    scale, shift = (*write.node.input[1:], "", "")[:2]
    for op, operand in (("Mul", scale), ("Add", shift)):
        if operand:
            normal = write.op(op, normal, operand)
    write.op("Identity", normal, result=write.node.output[0])
    return True


def batch_norm(write: Writer) -> bool:
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
    write.op("Add", moved, shift, result=write.node.output[0])
    return True


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


def instance_norm(write: Writer) -> bool:
    """Subtract the mean of every channel, divide by its deviation, scale and shift."""
    shape = write.type(0).shape
    axes = list(range(2, len(shape)))
    value, count = write.node.input[0], prod(shape[2:])
    wide = write.ints([-1] + [1] * len(axes))
    normal = standardised(write, value, axes, count)
    scale, shift = (write.op("Reshape", name, wide) for name in write.node.input[1:3])
    write.op("Add", write.op("Mul", normal, scale), shift, result=write.node.output[0])
    return True


def _reduced(write: Writer) -> list[int] | None:
    """Return the axes of a reduction; None if they are not constant."""
    rank = len(write.type(0).shape)
    name = write.node.input[1] if len(write.node.input) > 1 else ""
    if name and name not in write.data:
        return None
    found = [int(axis) % rank for axis in write.data[name].reshape(-1)] if name else []
    if found or int(write.attribute("noop_with_empty_axes", 0)):
        return found
    return list(range(rank))


def mean(write: Writer) -> bool:
    """Write the mean over axes."""
    axes = _reduced(write)
    return axes is not None and mean_over(write, axes, int(write.attribute("keepdims", 1)))


def mean_of_several(write: Writer) -> bool:
    """Write the mean of tensors as a share of their sum."""
    total, *others = write.node.input
    for other in others:
        total = write.op("Add", total, other)
    write.share(total, len(write.node.input), write.node.output[0])
    return True


def l1(write: Writer) -> bool:
    """Write the sum of magnitudes."""
    axes = _reduced(write)
    return bool(axes) and _summed(write, write.op("Abs", write.node.input[0]), axes or [])


def l2(write: Writer) -> bool:
    """Write the root of the sum of squares."""
    axes, value = _reduced(write), write.node.input[0]
    return bool(axes) and _summed(write, write.op("Mul", value, value), axes or [], "Sqrt")


def _summed(write: Writer, value: str, axes: Sequence[int], then: str = "Identity") -> bool:
    keep = int(write.attribute("keepdims", 1))
    total = write.op("ReduceSum", value, write.ints(axes), keepdims=keep)
    write.op(then, total, result=write.node.output[0])
    return True


def log_sum_exp(write: Writer) -> bool:
    """Subtract the largest element, then take the logarithm of the sum of powers."""
    axes, value = _reduced(write), write.node.input[0]
    if not axes:
        return False
    largest = write.op("ReduceMax", value, write.ints(axes), keepdims=1)
    powers = write.op("Exp", write.op("Sub", value, largest))
    total = write.op("ReduceSum", powers, write.ints(axes), keepdims=1)
    found = write.op("Add", write.op("Log", total), largest)
    if int(write.attribute("keepdims", 1)):
        write.op("Identity", found, result=write.node.output[0])
    else:
        write.op("Squeeze", found, write.ints(axes), result=write.node.output[0])
    return True


def mean_over(write: Writer, axes: Sequence[int], keep: int) -> bool:
    """Write a mean as a share of the sum; one of integers is cut to an integer."""
    if not axes:
        write.op("Identity", write.node.input[0], result=write.node.output[0])
        return True
    shape = write.type(0).shape
    count = prod(shape[axis] for axis in axes)
    total = write.op("ReduceSum", write.node.input[0], write.ints(axes), keepdims=keep)
    if write.type(0).elem in INTEGERS:
        write.op("Div", total, write.number(max(1, count)), result=write.node.output[0])
    else:
        write.share(total, count, write.node.output[0])
    return True
