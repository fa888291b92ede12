"""Gradients of operators that move elements. Views cost nothing: their gradients are views too."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from .back import Back, Rule


def _view(back: Back) -> bool:
    back.give(0, back.reshape(back.grad, back.shape(0)))
    return True


def _transpose(back: Back) -> bool:
    rank = len(back.shape(0))
    perm = list(back.attribute("perm", list(reversed(range(rank)))))
    back.give(0, back.op("Transpose", back.grad, perm=[perm.index(axis) for axis in range(rank)]))
    return True


def _expand(back: Back) -> bool:
    back.give_each(0, back.grad)
    return True


def _tile(back: Back) -> bool:
    repeats = back.known(1)
    if repeats is None:
        return False
    shape = back.shape(0)
    apart = [size for pair in zip(repeats, shape, strict=True) for size in pair]
    axes = [2 * axis for axis in range(len(shape))]
    total = back.op("ReduceSum", back.reshape(back.grad, apart), back.ints(axes), keepdims=0)
    back.give(0, total)
    return True


def _concat(back: Back) -> bool:
    shape = back.result_shape()
    axis = int(back.attribute("axis", 0)) % len(shape)
    sizes = [back.shape(index)[axis] for index in range(len(back.node.input))]
    ends = list(accumulate(sizes))
    for index, (size, end) in enumerate(zip(sizes, ends, strict=True)):
        if back.wants(index):
            back.give(index, back.cut(back.grad, [axis], [end - size], [end]))
    return True


def _split(back: Back) -> bool:
    axis = int(back.attribute("axis", 0)) % len(back.shape(0))
    parts = []
    for index, grad in enumerate(back.grads):
        shape = back.result_shape(index)
        parts.append(grad or zeros(back, shape))
    back.give(0, back.op("Concat", *parts, axis=axis))
    return True


def zeros(back: Back, shape: tuple[int, ...]) -> str:
    """Append zeros of the node's element type."""
    return back.op("Expand", back.number(0.0), back.ints(shape))


def spread(
    back: Back, value: str, shape: list[int], axis: int, first: int, step: int, size: int
) -> str:
    """Append the elements of ``axis`` at ``first``, ``first + step``, ... of ``size``, among zeros.

    ``shape`` is the shape of ``value``; its size along ``axis`` becomes ``size``.
    """
    count = shape[axis]
    if step > 1:
        apart = [*shape[: axis + 1], 1, *shape[axis + 1 :]]
        value = back.padded(back.reshape(value, apart), [axis + 1], [(0, step - 1)])
        shape[axis] = count * step
        value = back.reshape(value, shape)
    more = first + shape[axis] - size
    if more > 0:
        shape[axis] -= more
        value = back.cut(value, [axis], [0], [shape[axis]])
    value = back.padded(value, [axis], [(first, size - first - shape[axis])])
    shape[axis] = size
    return value


def _slice(back: Back) -> bool:
    starts, ends, shape = back.known(1), back.known(2), back.shape(0)
    if starts is None or ends is None:
        return False
    axes = back.known(3) or list(range(len(starts)))
    steps = back.known(4) or [1] * len(starts)
    value, held = back.grad, list(back.result_shape())
    for start, axis, step in zip(starts, axes, steps, strict=True):
        place = axis % len(shape)
        size, count = shape[place], held[place]
        low, high = (0, size) if step > 0 else (0, size - 1)
        first = min(max(start + size if start < 0 else start, low), high)
        if step < 0:
            least = np.iinfo(np.int64).min
            value = back.cut(value, [place], [-1], [least], [-1])
            first, step = first + (count - 1) * step, -step
        value = spread(back, value, held, place, first, step, size)
    back.give(0, value)
    return True


def _pad(back: Back) -> bool:
    pads, shape = back.known(1), back.shape(0)
    if pads is None or bytes(back.attribute("mode", b"constant")) != b"constant":
        return False
    if back.wants(2):
        return False
    axes = [axis % len(shape) for axis in back.known(3) or range(len(shape))]
    value, count = back.grad, len(axes)
    for axis, begin, end in zip(axes, pads[:count], pads[count:], strict=True):
        low, high = max(begin, 0), max(end, 0)
        if low or high:
            length = shape[axis] + min(begin, 0) + min(end, 0)
            value = back.cut(value, [axis], [low], [low + length])
        value = back.padded(value, [axis], [(max(-begin, 0), max(-end, 0))])
    back.give(0, value)
    return True


def _triangle(back: Back) -> bool:
    back.give(
        0,
        back.op(
            "Trilu", back.grad, *filter(None, back.node.input[1:]), upper=back.attribute("upper", 1)
        ),
    )
    return True


MOVES: dict[str, Rule] = {
    "Concat": _concat,
    "Expand": _expand,
    "Flatten": _view,
    "Pad": _pad,
    "Reshape": _view,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _view,
    "Tile": _tile,
    "Transpose": _transpose,
    "Trilu": _triangle,
    "Unsqueeze": _view,
}
