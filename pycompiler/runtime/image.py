"""The DRAM image of a value: the place of each element in the DRAMs.

An image is built from the layout's formula and the word order of the download that reads it.
Images are cached per layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..errors import error
from ..graph.dtypes import MNDtype
from ..graph.half import half_format
from ..graph.layout import UNIT_LEVELS, Layout, Level
from ..graph.layout_text import parse_layout
from ..graph.verify import layout_ranges
from ..layers.dram_transfer_order import lm_words, lm_words_of_l1b
from ..layers.dram_transfer_plan import plan_transfer
from ..machine import IntArray, Target
from ..pfvm.session import Array

#: The units of an L1B.
_IN_L1B = (Level.MAB, Level.PE)
_BLOCK = 1 << 22  # entries per block: bounds the scratch memory of a large value


class DramImage:
    """The permutation between a tensor and its long words in the DRAMs of all groups."""

    def __init__(self, layout: Layout, shape: tuple[int, ...], dtype: MNDtype, target: Target):
        self.shape = shape
        self.plan = plan_transfer(layout, target)
        self.words_per_long = dtype.words_per_long
        self._word = np.dtype(f">u{dtype.bits // 8}")
        self._half = half_format(target) if dtype is MNDtype.HALF else None
        self.slices = layout.slices
        # If all L1Bs hold the same, all groups do: then one L1B and one group tell everything.
        above = (*layout.on(Level.L2B), *layout.on(Level.L1B))
        self._alike = self.slices == 1 and all(sub.size == 1 for sub in above)
        self._levels = _IN_L1B if self._alike else UNIT_LEVELS
        self._groups = target.groups
        lm, word = _places(layout, shape, self._strides())
        sources = self._sources()
        self._take = sources[lm] * self.words_per_long + word
        groups = 1 if self._alike else self._groups
        self._fill = np.full(groups * self.dram_words * self.words_per_long, -1, np.int64)
        elements = np.arange(self._take.size, dtype=np.int64)
        for first, places in self._copied(layout, lm, word, sources, target):
            self._fill[places] = elements[first : first + places.shape[1]]
        for first, places in self._copied(layout, lm, word, sources, target):
            if (self._fill[places] != elements[first : first + places.shape[1]]).any():
                reason = "two elements fall on one word of DRAM"
                raise error("P0402", layout=str(layout), reason=reason)

    @property
    def dram_words(self) -> int:
        """Long words per group, for all time slices together."""
        return self.slices * self.plan.dram_words

    def _sources(self) -> IntArray:
        """Return the DRAM long word that each long word of LM comes from, slice after slice."""
        if self._alike:
            return lm_words_of_l1b(self.plan).reshape(-1)
        group, word = np.divmod(lm_words(self.plan).reshape(-1), self.plan.dram_words)
        first = group * self.dram_words + word
        slices = np.arange(self.slices, dtype=np.int64) * self.plan.dram_words
        found: IntArray = (slices[:, None] + first).reshape(-1)
        return found

    def _copied(
        self, layout: Layout, lm: IntArray, word: IntArray, sources: IntArray, target: Target
    ) -> Iterator[tuple[int, IntArray]]:
        """Yield blocks ``(first element, places[copy, element])`` that cover all copies."""
        strides = self._strides()
        ranges = {**layout_ranges(target), Level.W: self.words_per_long, Level.TIME: 1}
        at, shift = np.zeros(1, np.int64), np.zeros(1, np.int64)
        here = (*self._levels, Level.W)
        copies = [one for one in layout.copies({**ranges, Level.ADDR: 1}) if one.level in here]
        packed = any(sub.size > 1 for sub in layout.on(Level.W))
        if not packed and not any(copy.level is Level.W for copy in copies):
            # A dtype that is not packed fills each word of the long word with the same element.
            shift = np.arange(self.words_per_long, dtype=np.int64)
            at = np.zeros_like(shift)
        for copy in copies:
            digit = np.arange(copy.size, dtype=np.int64) * copy.stride
            unmoved = np.zeros_like(digit)
            word_digit = digit if copy.level is Level.W else unmoved
            lm_digit = unmoved if copy.level is Level.W else digit * strides[copy.level]
            at = (at[:, None] + lm_digit).reshape(-1)
            shift = (shift[:, None] + word_digit).reshape(-1)
        size = max(1, _BLOCK // at.size)
        for first in range(0, lm.size, size):
            part = slice(first, first + size)
            found = sources[at[:, None] + lm[part]] * self.words_per_long
            yield first, found + shift[:, None] + word[part]

    def _strides(self) -> dict[Level, int]:
        """Return, per level, the words between two coordinates in the array of LM words."""
        strides, stride = {Level.ADDR: 1}, self.plan.num_lw
        for level in reversed(self._levels):
            strides[level] = stride
            stride *= self.plan.target.level_range[level.value]
        strides[Level.TIME] = stride
        return strides

    def same_order(self, other: DramImage) -> bool:
        """Whether words packed by one image can be unpacked by the other."""
        if self is other:
            return True
        if (self.shape, self._word, self._half) != (other.shape, other._word, other._half):
            return False
        if self._fill.shape != other._fill.shape:
            return False
        return np.array_equal(self._fill, other._fill)

    def pack(self, array: Array) -> NDArray[np.uint64]:
        """Return the long words of ``array``, shape ``(groups, dram_words)``; padding is zero."""
        flat = np.ascontiguousarray(array).reshape(-1)
        if flat.dtype == np.bool_:  # on the device true is all ones, so it can serve as a mask
            flat = -flat.astype(np.dtype(f"i{self._word.itemsize}"))
        elif self._half is not None and flat.dtype.kind not in "iu":
            flat = self._half.to_half(flat.astype(np.float32))
        elif flat.itemsize < self._word.itemsize:  # 16-bit floats are singles on the device
            flat = flat.astype(np.float32)
        bits = flat.view(np.dtype(f"u{self._word.itemsize}"))
        padded = np.append(bits, bits.dtype.type(0))  # index -1 selects this zero
        words = padded[self._fill].astype(self._word)
        longs = words.view(">u8").astype(np.uint64).reshape(-1, self.dram_words)
        return np.broadcast_to(longs, (self._groups, self.dram_words))

    def unpack(self, words: NDArray[np.uint64], dtype: np.dtype[np.generic]) -> Array:
        """Return the tensor whose long words, as :meth:`pack` makes them, are ``words``.

        ``dtype`` has the width of the device's dtype, or is bool or a 16-bit float.
        """
        bits = words.reshape(-1).astype(">u8").view(self._word)[self._take]
        if dtype == np.bool_:
            return np.asarray((bits != 0).reshape(self.shape))
        if self._half is not None and dtype.kind not in "iu":
            return np.asarray(self._half.from_half(bits).astype(dtype).reshape(self.shape))
        if dtype.itemsize < self._word.itemsize:
            single = bits.astype(np.uint32).view(np.float32)
            return np.asarray(single.astype(dtype).reshape(self.shape))
        native: Array = bits.astype(self._word.newbyteorder("=")).view(dtype)
        return native.reshape(self.shape)


def _places(
    layout: Layout, shape: tuple[int, ...], strides: Mapping[Level, int]
) -> tuple[IntArray, IntArray]:
    """Return each element's index in the array of LM words, and its word there."""
    lm = np.zeros(shape, dtype=np.int64)
    word = np.zeros(shape, dtype=np.int64)
    for axis, size in enumerate(shape):
        index = np.arange(size, dtype=np.int64)
        index = index.reshape([-1 if number == axis else 1 for number in range(len(shape))])
        alone = Layout((layout.axes[axis],))
        for level, coordinate in alone.coordinates(index).items():
            if level is Level.W:
                word += coordinate
            else:
                lm += coordinate * strides[level]
    return lm.reshape(-1), word.reshape(-1)


@lru_cache(maxsize=64)
def dram_image(layout: str, shape: tuple[int, ...], dtype: str, target: Target) -> DramImage:
    """Return the image of values of ``layout`` (as text) and ``shape``."""
    return DramImage(parse_layout(layout), shape, MNDtype(dtype), target)
