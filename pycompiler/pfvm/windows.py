"""The sliding windows of pools and convolutions, by axis, from the attributes of the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .held import Array

_SHAPE = {"kernel_shape", "strides", "pads", "dilations", "ceil_mode"}
#: The attribute by which a pool stays on the host; the layers take only explicit padding.
HOST = "auto_pad"
#: The attributes of pools whose windows lie along one axis.
ALONG_ONE_AXIS = {
    "MaxPool": frozenset(_SHAPE | {"storage_order"}),
    "AveragePool": frozenset(_SHAPE | {"count_include_pad"}),
}
#: The attributes of convolutions.
CONVOLUTION = frozenset({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"})
#: Gradient of a convolution: with fewer places, one product for all pictures gives the gradient of
#: weights; with more, each picture has its own, and a sum follows.
APART = 16
#: The graph's own operator for a Conv whose groups have one channel, in input and result.
DEPTHWISE = "MNCoreDepthwise"
#: The graph's own operator for a Conv whose operands have an axis of groups before the channels.
GROUPED = "MNCoreGroupedConv"
#: The graph's own operator for the gradient of a Conv's weights.
WEIGHT_GRADIENT = "MNCoreWeightGradient"


@dataclass(frozen=True)
class AxisWindow:
    """The windows along one axis of ``size`` elements, ``count`` of them.

    ``before`` and ``after`` are the elements of padding. ``padding_counts`` says that an average
    counts the padding.
    """

    size: int
    count: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    padding_counts: bool

    @property
    def plain(self) -> bool:
        """Whether every window holds the one element of its own place."""
        return self.kernel == self.stride == 1 and self.count == self.size and not self.before

    @property
    def reach(self) -> int:
        """How far the last window goes past the input; negative if it ends before the input's."""
        return (self.count - 1) * self.stride + self._extent - self.size - self.before

    @property
    def whole(self) -> bool:
        """Whether every window holds an element of the input."""
        return bool((self.taps >= 0).any(1).all())

    @cached_property
    def taps(self) -> Array:
        """The place of each tap of each window, (windows, taps); -1 for a tap on padding."""
        found = self._places
        return np.where((found >= 0) & (found < self.size), found, -1)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The number of taps that an average of each window divides by."""
        if self.padding_counts:
            # A last window that `ceil_mode` makes may go past the padding.
            found = (self._places < self.size + self.after).sum(1)
        else:
            found = (self.taps >= 0).sum(1)
        return tuple(int(count) for count in found)

    @property
    def _extent(self) -> int:
        return (self.kernel - 1) * self.dilation + 1

    @cached_property
    def _places(self) -> Array:
        starts = np.arange(self.count) * self.stride - self.before
        return np.asarray(starts[:, None] + np.arange(self.kernel) * self.dilation)


def windows_of(
    attributes: Mapping[str, Any], shape: Sequence[int], result: Sequence[int]
) -> tuple[AxisWindow, ...]:
    """Return the windows along each spatial axis; ``result`` are the sizes of the result."""
    rank = len(shape)
    kernel = tuple(attributes["kernel_shape"])
    strides, dilations = (
        tuple(attributes.get(name, ())) or (1,) * rank for name in ("strides", "dilations")
    )
    pads = tuple(attributes.get("pads", ())) or (0,) * (2 * rank)
    auto = attributes.get("auto_pad", "NOTSET")
    auto = auto.decode() if isinstance(auto, bytes) else auto
    counts = bool(attributes.get("count_include_pad", 0))
    found = []
    for axis in range(rank):
        before, after = pads[axis], pads[axis + rank]
        if auto == "VALID":
            before = after = 0
        elif auto in ("SAME_UPPER", "SAME_LOWER"):
            reach = (kernel[axis] - 1) * dilations[axis] + 1
            missing = max(0, (result[axis] - 1) * strides[axis] + reach - shape[axis])
            before = missing // 2 if auto == "SAME_UPPER" else missing - missing // 2
            after = missing - before
        facts = (kernel[axis], strides[axis], dilations[axis], before, after, counts)
        found.append(AxisWindow(shape[axis], result[axis], *facts))
    return tuple(found)
