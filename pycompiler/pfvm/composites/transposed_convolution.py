"""ConvTranspose as a convolution of its input with zeros between the elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .convolution import convolve
from .folding import Operands
from .tiles import Axis
from .writer import Writer


@dataclass(frozen=True)
class _Axis:
    """One spatial axis: the input's size, and the attributes along the axis."""

    size: int
    taps: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def spread(self) -> int:
        """The size with zeros between the elements."""
        return (self.size - 1) * self.stride + 1

    @property
    def pads(self) -> tuple[int, int]:
        """Zeros before and behind the spread elements; negative ones cut elements off."""
        reach = (self.taps - 1) * self.dilation
        return reach - self.before, reach - self.after


def conv_transpose(write: Writer) -> bool:
    """Spread the elements, mirror the taps, and swap the channels of the weights."""
    shape, weights = write.type(0).shape, write.type(1).shape
    if write.target is None or len(shape) < 3:
        return False
    group, rank = int(write.attribute("group", 1)), len(shape) - 2
    axes = _axes(write, weights[2:])
    value, factor, bias = (*write.node.input, "")[:3]
    value = _spread(write, value, shape, axes)
    cuts = [(max(0, -pad[0]), max(0, -pad[1])) for pad in (axis.pads for axis in axes)]
    sizes = [axis.spread for axis in axes]
    if any(map(any, cuts)):
        ends = [size - cut[1] for size, cut in zip(sizes, cuts, strict=True)]
        value = write.cut(value, range(2, rank + 2), [cut[0] for cut in cuts], ends)
        sizes = [end - cut[0] for end, cut in zip(ends, cuts, strict=True)]
    rows, own = weights[1] * group, weights[0] // group
    factor = write.reshape(factor, (group, own, weights[1], *weights[2:]))
    factor = write.op("Transpose", factor, perm=[0, 2, 1, *range(3, rank + 3)])
    factor = write.reshape(factor, (rows, own, *weights[2:]))
    last = [size - 1 for size in weights[2:]]
    before = [-size - 1 for size in weights[2:]]
    factor = write.cut(factor, range(2, rank + 2), last, before, [-1] * rank)
    operands = Operands(value, (*shape[:2], *sizes), factor, (rows, own, *weights[2:]), bias, group)
    found = [
        Axis(size, axis.taps, 1, axis.dilation, max(0, axis.pads[0]), max(0, axis.pads[1]))
        for size, axis in zip(sizes, axes, strict=True)
    ]
    return convolve(write, operands, found, written=True)


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
            before = total // 2 if mode == "SAME_UPPER" else total - total // 2
        elif mode == "VALID":
            before = 0
        # The result's size says what is left out behind it; `output_padding` is part of it.
        after = strides[axis] * (size - 1) + extent - results[axis] - before
        facts = kernel[axis], strides[axis], dilations[axis], before, after
        out.append(_Axis(size, *facts))
    return out


def _spread(write: Writer, value: str, shape: tuple[int, ...], axes: Sequence[_Axis]) -> str:
    """Append what puts ``stride - 1`` zeros between the elements of each axis."""
    if all(axis.stride == 1 for axis in axes):
        return value
    apart = [size for axis in axes for size in (axis.size, 1)]
    value = write.reshape(value, (*shape[:2], *apart))
    places = range(3, 3 + 2 * len(axes), 2)
    value = write.padded(value, places, [(0, axis.stride - 1) for axis in axes])
    value = write.reshape(value, (*shape[:2], *(axis.size * axis.stride for axis in axes)))
    ends = [axis.spread for axis in axes]
    return write.cut(value, range(2, 2 + len(axes)), [0] * len(axes), ends)
