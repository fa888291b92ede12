"""Gradients of convolutions and pools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ..pfvm.windows import APART
from .back import Back, Rule
from .moves import spread


@dataclass(frozen=True)
class _Windows:
    """The windows along the axes of an image: sizes of the image, and one number per axis each."""

    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]

    @property
    def reach(self) -> list[int]:
        """The padded elements that the windows read, from the first."""
        facts = zip(self.counts, self.strides, self.dilations, self.kernel, strict=True)
        return [(n - 1) * step + gap * (taps - 1) + 1 for n, step, gap, taps in facts]

    @property
    def padded(self) -> list[tuple[int, int]]:
        """The elements to add before and behind each axis; the windows read no others."""
        facts = zip(self.begins, self.reach, self.sizes, strict=True)
        return [(begin, max(0, end - begin - size)) for begin, end, size in facts]

    def taps(self) -> Iterator[tuple[int, ...]]:
        """Yield the places in a window."""
        return product(*map(range, self.kernel))

    def firsts(self, tap: tuple[int, ...]) -> list[int]:
        """Return the padded place of a tap in the first window, by axis."""
        return [place * gap for place, gap in zip(tap, self.dilations, strict=True)]


def _windows(back: Back, image: int, outcome: tuple[int, ...], kernel: tuple[int, ...]) -> _Windows:
    """Read the attributes of a node whose input ``image`` gives ``outcome`` along the axes."""
    axes = len(kernel)
    sizes = back.shape(image)[2:]
    ones = [1] * axes
    strides = tuple(map(int, back.attribute("strides", ones)))
    gaps = tuple(map(int, back.attribute("dilations", ones)))
    begins = list(map(int, back.attribute("pads", [0] * 2 * axes)))[:axes]
    auto = bytes(back.attribute("auto_pad", b"NOTSET")).decode()
    if auto.startswith("SAME"):
        facts = zip(sizes, outcome, kernel, strides, gaps, strict=True)
        missing = [
            max(0, (n - 1) * step + gap * (taps - 1) + 1 - size)
            for size, n, taps, step, gap in facts
        ]
        begins = [(pad + (auto == "SAME_LOWER")) // 2 for pad in missing]
    return _Windows(sizes, outcome, kernel, strides, gaps, tuple(begins))


def _part(back: Back, value: str, windows: _Windows, tap: tuple[int, ...]) -> str:
    """Append the elements that one tap of all windows reads, from the padded image."""
    axes = list(range(2, 2 + len(tap)))
    firsts = windows.firsts(tap)
    facts = zip(firsts, windows.counts, windows.strides, strict=True)
    ends = [first + (count - 1) * step + 1 for first, count, step in facts]
    return back.cut(value, axes, firsts, ends, list(windows.strides))


def _wide(back: Back, value: str, windows: _Windows) -> str:
    return back.padded(value, list(range(2, 2 + len(windows.kernel))), windows.padded)


def _put_back(back: Back, part: str, windows: _Windows, tap: tuple[int, ...]) -> str:
    """Append an image of zeros, with ``part`` where one tap of all windows reads it."""
    shape = [*back.shape(0)[:2], *windows.counts]
    facts = zip(windows.firsts(tap), windows.strides, windows.sizes, windows.padded, strict=True)
    for axis, (first, step, size, (begin, end)) in enumerate(facts, 2):
        part = spread(back, part, shape, axis, first, step, size + begin + end)
    return part


def _cropped(back: Back, value: str, windows: _Windows) -> str:
    axes, starts, ends = [], [], []
    for axis, (size, pads) in enumerate(zip(windows.sizes, windows.padded, strict=True), 2):
        if any(pads):
            axes.append(axis)
            starts.append(pads[0])
            ends.append(pads[0] + size)
    return back.cut(value, axes, starts, ends) if axes else value


def _weight_gradient(
    back: Back, image: str, grad: str, windows: _Windows, shape: tuple[int, ...]
) -> str:
    """Append the gradient of weights of ``shape``.

    A product adds over places, so it gives a matrix of taps and channels by channels.
    """
    groups = int(back.attribute("group", 1))
    outs, ins = shape[0] // groups, shape[1]
    pictures, places = back.shape(0)[0], prod(windows.counts)
    whole = places < APART and pictures > 1
    front = [groups] if groups > 1 else []

    def rows(value: str, channels: int) -> str:
        """Append the value as (pictures, groups, channels, places)."""
        if not whole:
            return back.reshape(value, [pictures, *front, channels, places])
        apart = back.reshape(value, [pictures, groups, channels, places])
        together = back.op("Transpose", apart, perm=[1, 2, 0, 3])
        return back.reshape(together, [1, *front, channels, pictures * places])

    padded = _wide(back, image, windows)
    taps = [rows(_part(back, padded, windows, tap), ins) for tap in windows.taps()]
    axis = 1 + len(front)
    left = taps[0] if len(taps) == 1 else back.op("Concat", *taps, axis=axis)
    found = back.op("MatMul", left, back.turned(rows(grad, outs), axis + 2))
    if pictures > 1 and not whole:
        found = back.op("ReduceSum", found, back.ints([0]), keepdims=0)
    apart = back.reshape(found, [groups, len(taps), ins, outs])
    return back.reshape(back.op("Transpose", apart, perm=[0, 3, 2, 1]), shape)


def _bias(back: Back) -> str:
    axes = [axis for axis in range(len(back.result_shape())) if axis != 1]
    return back.op("ReduceSum", back.grad, back.ints(axes), keepdims=0)


def _facts(windows: _Windows) -> dict[str, Any]:
    """Return the attributes of a convolution along ``windows`` that stand alike in both ways."""
    ends = [end for _, end in windows.padded]
    return {
        "strides": list(windows.strides),
        "dilations": list(windows.dilations),
        "pads": [*windows.begins, *ends],
    }


def _conv(back: Back) -> bool:
    shape = back.shape(1)
    windows = _windows(back, 0, back.result_shape()[2:], shape[2:])
    if back.wants(0):
        # The transposed convolution ends where the last window does; what follows gets nothing.
        reached = [
            end - begin - behind
            for end, (begin, behind) in zip(windows.reach, windows.padded, strict=True)
        ]
        rest = [size - end for size, end in zip(windows.sizes, reached, strict=True)]
        value = back.op(
            "ConvTranspose",
            back.grad,
            back.input(1),
            group=back.attribute("group", 1),
            **_facts(windows),
        )
        axes = list(range(2, 2 + len(rest)))
        back.give(0, back.padded(value, axes, [(0, more) for more in rest]))
    if back.wants(1):
        back.give(1, _weight_gradient(back, back.input(0), back.grad, windows, shape))
    if back.wants(2):
        back.give(2, _bias(back))
    return True


def _conv_transpose(back: Back) -> bool:
    """Convolve: a transposed convolution is the way back of one, from result to operand."""
    shape, outcome = back.shape(1), back.result_shape()[2:]
    given = bytes(back.attribute("auto_pad", b"NOTSET")) == b"NOTSET"
    if not given or back.attribute("output_shape", None):
        return False
    axes, ones = len(outcome), [1] * len(outcome)
    begins = list(map(int, back.attribute("pads", [0] * 2 * axes)))[:axes]
    windows = _Windows(
        outcome,
        back.shape(0)[2:],
        shape[2:],
        tuple(map(int, back.attribute("strides", ones))),
        tuple(map(int, back.attribute("dilations", ones))),
        tuple(begins),
    )
    grad = back.grad
    if back.wants(0):
        padded = _wide(back, grad, windows)
        found = back.op(
            "Conv",
            padded,
            back.input(1),
            group=back.attribute("group", 1),
            strides=list(windows.strides),
            dilations=list(windows.dilations),
        )
        ends = list(back.shape(0)[2:])
        back.give(0, back.cut(found, list(range(2, 2 + axes)), [0] * axes, ends))
    if back.wants(1):
        back.give(1, _weight_gradient(back, grad, back.input(0), windows, shape))
    if back.wants(2):
        back.give(2, _bias(back))
    return True


def _max_pool(back: Back) -> bool:
    """Give each gradient to the first element of its window that is the greatest."""
    kernel = tuple(map(int, back.attribute("kernel_shape", [])))
    windows = _windows(back, 0, back.result_shape()[2:], kernel)
    least = back.constant(np.asarray(-np.inf, dtype=np.float32), "least")
    amounts = windows.padded
    wide = back.input(0)
    if any(map(any, amounts)):
        ends = [begin for begin, _ in amounts] + [end for _, end in amounts]
        axes = back.ints(list(range(2, 2 + len(kernel))))
        wide = back.op("Pad", wide, back.ints(ends), least, axes)
    greatest, total, free = back.node.output[0], "", ""
    for tap in windows.taps():
        hit = back.op("Equal", _part(back, wide, windows, tap), greatest)
        other = back.op("Not", hit)
        if free:
            hit, other = back.op("And", hit, free), back.op("And", other, free)
        free = other
        placed = _put_back(back, back.where(hit, back.grad), windows, tap)
        total = back.op("Add", total, placed) if total else placed
    back.give(0, _cropped(back, total, windows))
    return True


def _average_pool(back: Back) -> bool:
    kernel = tuple(map(int, back.attribute("kernel_shape", [])))
    windows = _windows(back, 0, back.result_shape()[2:], kernel)
    counted = bool(back.attribute("count_include_pad", 0))
    behind = list(map(int, back.attribute("pads", [0] * 2 * len(kernel))))[len(kernel) :]
    if counted and bytes(back.attribute("auto_pad", b"NOTSET")) != b"NOTSET":
        return False
    shares = np.ones((), dtype=np.float32)
    for axis, size in enumerate(windows.sizes):
        begin = windows.begins[axis]
        low, high = (-begin, size + behind[axis]) if counted else (0, size)
        first = np.arange(windows.counts[axis]) * windows.strides[axis] - begin
        places = first[:, None] + np.arange(kernel[axis]) * windows.dilations[axis]
        held = ((places >= low) & (places < high)).sum(1)
        shares = shares[..., None] / np.maximum(held, 1).astype(np.float32)
    shared = back.op("Mul", back.grad, back.constant(shares.astype(np.float32), "shares"))
    total = ""
    for tap in windows.taps():
        placed = _put_back(back, shared, windows, tap)
        total = back.op("Add", total, placed) if total else placed
    back.give(0, _cropped(back, total, windows))
    return True


WINDOWS: dict[str, Rule] = {
    "AveragePool": _average_pool,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _max_pool,
}
