"""ConvTranspose as a convolution that computes ``stride`` neighbours of every axis at once.

With stride ``s``, result ``q * s + r`` reads the places ``q + e`` of the input, where ``e`` depends
on ``r`` and on the tap alone. So the ``s`` results with one ``q`` are ``s`` channels of a
convolution without stride, whose weights are those of the node in another order. Views put the
channels back where they belong. Where the stride exceeds the taps, some results read nothing: they
are zeros, and no channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod

from .convolution import convolve
from .folding import Operands
from .tiles import Axis
from .writer import Writer


@dataclass(frozen=True)
class _Axis:
    """One spatial axis: the input's size, the result's, and the attributes along the axis.

    ``before`` results are left out in front of the first.
    """

    size: int
    results: int
    taps: int
    stride: int
    dilation: int
    before: int

    @property
    def places(self) -> int:
        """The number of ``q``: the results are the first of ``places * stride``."""
        return -(-self.results // self.stride)

    @cached_property
    def reads(self) -> dict[tuple[int, int], int]:
        """The tap by ``r`` and ``e``, where there is one."""
        return {
            (r, (r + self.before - tap * self.dilation) // self.stride): tap
            for r in range(self.stride)
            for tap in range(self.taps)
            if (r + self.before - tap * self.dilation) % self.stride == 0
        }

    @property
    def first(self) -> int:
        """The smallest ``e``."""
        return min(e for _, e in self.reads)

    @property
    def last(self) -> int:
        """The largest ``e``."""
        return max(e for _, e in self.reads)

    @property
    def apart(self) -> int:
        """The distance between the values of ``e``."""
        return gcd(*(e - self.first for _, e in self.reads)) or 1

    @property
    def phases(self) -> list[int]:
        """Each ``r`` that reads anything."""
        return sorted({r for r, _ in self.reads})

    @property
    def order(self) -> list[list[int]]:
        """For each of ``phases`` the tap of each ``e`` in order; ``taps`` stands for a zero."""
        shifts = range(self.first, self.last + 1, self.apart)
        return [[self.reads.get((r, e), self.taps) for e in shifts] for r in self.phases]


def conv_transpose(write: Writer) -> str | bool:
    """Reorder the weights, convolve, and move the neighbours from the channels to their axes."""
    shape, weights = write.type(0).shape, write.type(1).shape
    if write.target is None or len(shape) < 3:
        return False
    group, rank = int(write.attribute("group", 1)), len(shape) - 2
    axes = _axes(write, weights[2:])
    value, factor, bias = (*write.node.input, "")[:3]
    counts = [len(axis.phases) for axis in axes]
    sparse = counts != [axis.stride for axis in axes]
    factor, kernel = _weights(write, factor, weights, group, axes)
    # Results that read nothing are their bias.
    bias, later = ("", bias) if sparse else (bias, "")
    if bias:
        bias = write.reshape(bias, (weights[1] * group, 1))
        bias = write.op("Concat", *[bias] * prod(counts), axis=1)
        bias = write.reshape(bias, (weights[1] * group * prod(counts),))
    pads = [(-axis.first, axis.places - axis.size + axis.last) for axis in axes]
    # Negative padding cuts elements off.
    starts = [max(0, -begin) for begin, _ in pads]
    ends = [axis.size + min(0, end) for axis, (_, end) in zip(axes, pads, strict=True)]
    if any(starts) or ends != list(shape[2:]):
        value = write.cut(value, range(2, rank + 2), starts, ends, shape=shape)
    sizes = [end - start for start, end in zip(starts, ends, strict=True)]
    operands = Operands(value, (*shape[:2], *sizes), factor, kernel, bias, group)
    found = [
        Axis(size, taps, 1, axis.apart, max(0, begin), max(0, end))
        for size, taps, axis, (begin, end) in zip(sizes, kernel[2:], axes, pads, strict=True)
    ]
    rows, places = weights[1] * group, [axis.places for axis in axes]
    result = str(convolve(write, operands, found, written=True))
    if prod(axis.stride for axis in axes) > 1:
        result = write.reshape(result, (shape[0], rows, *counts, *places))
        result = _beside_their_places(write, result, axes)
    whole = (shape[0], rows, *(axis.places * axis.stride for axis in axes))
    result = write.first_of(write.reshape(result, whole), whole, [a.results for a in axes])
    if later:
        result = write.op("Add", result, write.reshape(later, (rows, *[1] * rank)))
    return write.op("Identity", result)


def _beside_their_places(write: Writer, value: str, axes: Sequence[_Axis]) -> str:
    """Move the phases of each axis behind its places; phases that read nothing are zeros."""
    rank = len(axes)
    pairs = [axis for i in range(rank) for axis in (2 + rank + i, 2 + i)]
    value = write.op("Transpose", value, perm=[0, 1, *pairs])
    for number, axis in enumerate(axes):
        value = _with_zeros(write, value, 3 + 2 * number, axis)
    return value


def _with_zeros(write: Writer, value: str, number: int, axis: _Axis) -> str:
    """Append zeros for the phases that read nothing; axis ``number`` has the others."""
    phases = axis.phases
    first, end = phases[0], axis.stride - 1 - phases[-1]
    if phases[-1] - first + 1 == len(phases):
        return write.padded(value, [number], [(first, end)])
    value = write.padded(value, [number], [(0, 1)])
    order = [phases.index(r) if r in phases else len(phases) for r in range(axis.stride)]
    return write.picked(value, number, order)


def _axes(write: Writer, kernel: Sequence[int]) -> list[_Axis]:
    sizes, results = write.type(0).shape[2:], write.types[write.node.output[0]].shape[2:]
    rank = len(sizes)
    ones, zeros = [1] * rank, [0] * rank
    strides, dilations = (write.attribute(name, ones) for name in ("strides", "dilations"))
    more = write.attribute("output_padding", zeros)
    pads = list(write.attribute("pads", zeros + zeros))
    mode = write.attribute("auto_pad", b"NOTSET").decode()
    out: list[_Axis] = []
    for axis, size in enumerate(sizes):
        extent = (kernel[axis] - 1) * dilations[axis] + 1
        before = pads[axis]
        total = strides[axis] * (size - 1) + more[axis] + extent - results[axis]
        if mode.startswith("SAME") or write.attribute("output_shape", None):
            total = max(0, total)
            before = total // 2 if mode == "SAME_UPPER" else total - total // 2
        elif mode == "VALID":
            before = 0
        # The result's size says what is left out behind it; `output_padding` is part of it.
        facts = kernel[axis], strides[axis], dilations[axis], before
        out.append(_Axis(size, results[axis], *facts))
    return out


def _weights(
    write: Writer, factor: str, weights: tuple[int, ...], group: int, axes: Sequence[_Axis]
) -> tuple[str, tuple[int, ...]]:
    """Append what reorders the weights; return their name and their shape in the convolution."""
    rank, own = len(axes), weights[0] // group
    # A zero behind the taps stands for those that a phase lacks; without stride none is lacking.
    lacking = [any(axis.taps in row for row in axis.order) for axis in axes]
    factor = write.padded(factor, range(2, rank + 2), [(0, int(lacks)) for lacks in lacking])
    for number, axis in enumerate(axes):
        factor = write.picked(factor, 2 + number, [tap for row in axis.order for tap in row])
    counts, taps = [len(axis.phases) for axis in axes], [len(axis.order[0]) for axis in axes]
    split = [size for pair in zip(counts, taps, strict=True) for size in pair]
    factor = write.reshape(factor, (group, own, weights[1], *split))
    phases, kept = range(3, 3 + 2 * rank, 2), range(4, 4 + 2 * rank, 2)
    factor = write.op("Transpose", factor, perm=[0, 2, *phases, 1, *kept])
    kernel = (weights[1] * group * prod(counts), own, *taps)
    return write.reshape(factor, kernel), kernel
