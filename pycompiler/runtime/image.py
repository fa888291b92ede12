"""The DRAM image of a value: the address of each element in the DRAMs.

An image is built from the layout's formula and the word order of the download that reads it.
Images are cached per layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import error
from ..graph.dtypes import MNDtype
from ..graph.half import halves_of, singles_of
from ..graph.layout import UNIT_LEVELS, Layout, Level, SubAxis
from ..graph.layout_text import parse_layout
from ..graph.verify import layout_ranges
from ..layers.dram_transfer_order import order_of
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
        self._half = dtype is MNDtype.HALF
        self.slices = layout.slices
        # If all L1Bs hold the same, all groups do: then one L1B and one group tell everything.
        above = (*layout.on(Level.L2B), *layout.on(Level.L1B))
        self._alike = self.slices == 1 and all(sub.size == 1 for sub in above)
        self._levels = _IN_L1B if self._alike else UNIT_LEVELS
        self._groups = target.groups
        self._order = order_of(self.plan, self._alike)
        words, own = self._order.above, self.plan.dram_words
        if self.slices > 1:  # the words of a group follow each other, slice by slice
            words = words + words // own * (self.dram_words - own)
        groups = 1 if self._alike else self._groups
        filled = groups * self.dram_words * self.words_per_long
        #: Of numbers of elements and of words. There are some for every element.
        most = max(filled, prod(shape), self._strides()[Level.TIME] * self.slices)
        self._number = np.dtype(np.int32 if most < 1 << 31 else np.int64)
        self._above = words.astype(self._number)
        self._local = self._order.local.reshape(-1).astype(self._number)
        lm, word = _places(layout, shape, self._strides(), self._number)
        self._take = np.empty(lm.size, self._number)
        self._fill = np.full(filled, -1, self._number)
        for first, places in self._copied(layout, lm, word, self._copies(layout, target)):
            elements = np.arange(first, first + places.shape[1], dtype=self._number)
            before = self._fill[places]
            self._fill[places] = elements
            if ((before >= 0) & (before != elements) | (self._fill[places] != elements)).any():
                reason = "two elements fall on one word of DRAM"
                raise error("P0402", layout=str(layout), reason=reason)
            # The first copy has the digits 0.
            self._take[elements] = places[0]

    @property
    def alike(self) -> bool:
        """Whether all groups hold the same, so that the words of one group tell everything."""
        return self._alike

    @property
    def taken(self) -> IntArray:
        """The word of each element, flat; words have the dtype's width."""
        return self._take

    @property
    def owners(self) -> IntArray:
        """The element of each word, -1 for padding; of one group if all groups are alike."""
        return self._fill

    @property
    def dram_words(self) -> int:
        """Long words per group, for all time slices together."""
        return self.slices * self.plan.dram_words

    def _sources(self, lm: IntArray) -> IntArray:
        """Return ``group * dram_words + word`` of the DRAM long words that words of LM come from.

        ``lm`` are indices in the array of LM words.
        """
        share = self._local.size
        l2b, local = np.divmod(lm, share) if lm.size and lm.max() >= share else (0, lm)
        time, l2b = np.divmod(l2b, len(self._above)) if self.slices > 1 else (0, l2b)
        found: IntArray = self._above[l2b, self._local[local]]
        return found + time * self.plan.dram_words

    def _copies(self, layout: Layout, target: Target) -> list[SubAxis]:
        """Return the digits of units and of words in a long word on which elements have copies."""
        ranges = {**layout_ranges(target), Level.W: self.words_per_long, Level.TIME: 1}
        here = (*self._levels, Level.W)
        return [one for one in layout.copies({**ranges, Level.ADDR: 1}) if one.level in here]

    def _distances(self, copy: SubAxis) -> IntArray | None:
        """Return the distance in DRAM, in long words, from the first copy on a digit to each copy.

        None if the distance differs from element to element. Copies that are loaded from the same
        words count as one.
        """
        level = UNIT_LEVELS.index(copy.level)
        array, axis = (self._order.local, level - 1) if level else (self._above, 0)
        unit = np.arange(array.shape[axis])
        first = unit - unit // copy.stride % copy.size * copy.stride
        behind = array - array.take(first, axis)
        found = [behind.take(unit[unit - first == k * copy.stride], axis) for k in range(copy.size)]
        distances = [int(one.flat[0]) for one in found]
        if any((one != distance).any() for one, distance in zip(found, distances, strict=True)):
            return None
        if level and any(distances):
            return None
        return np.unique(distances).astype(np.int64)

    def _copied(
        self, layout: Layout, lm: IntArray, word: IntArray, copies: Sequence[SubAxis]
    ) -> Iterator[tuple[int, IntArray]]:
        """Yield blocks ``(first element, places[copy, element])`` that cover ``copies``."""
        strides = self._strides()
        at, shift = np.zeros(1, np.int64), np.zeros(1, np.int64)
        packed = any(sub.size > 1 for sub in layout.on(Level.W))
        if not packed and not any(copy.level is Level.W for copy in copies):
            # A dtype that is not packed fills each word of the long word with the same element.
            shift = np.arange(self.words_per_long, dtype=np.int64)
        for copy in copies:
            digit = np.arange(copy.size, dtype=np.int64) * copy.stride
            if copy.level is Level.W:
                shift = (shift[:, None] + digit).reshape(-1)
            elif (distances := self._distances(copy)) is not None:
                shift = (shift[:, None] + distances * self.words_per_long).reshape(-1)
            else:
                at = (at[:, None] + digit * strides[copy.level]).reshape(-1)
        at, shift = at.astype(self._number), shift.astype(self._number)
        size = max(1, _BLOCK // (at.size * shift.size))
        for first in range(0, lm.size, size):
            part = slice(first, first + size)
            found = self._sources(at[:, None] + lm[part]) * self.words_per_long + word[part]
            yield first, (found[:, None] + shift[:, None]).reshape(-1, found.shape[-1])

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
        elif self._half and flat.dtype.kind not in "iu":
            flat = halves_of(flat)
        elif flat.itemsize < self._word.itemsize and flat.dtype.kind in "iu":
            flat = flat.astype(np.dtype(f"i{self._word.itemsize}"))
        elif flat.itemsize < self._word.itemsize:  # 16-bit floats are singles on the device
            flat = flat.astype(np.float32)
        bits = flat.view(np.dtype(f"u{self._word.itemsize}"))
        padded = np.append(bits, bits.dtype.type(0))  # index -1 selects this zero
        fill = self._fill.reshape(-1, self.words_per_long)
        longs = np.empty(len(fill), np.uint64)
        for first in range(0, len(fill), _BLOCK):  # Ctrl-C is heard between two blocks
            block = slice(first, first + _BLOCK)
            longs[block] = padded[fill[block]].astype(self._word).view(">u8")[:, 0]
        return np.broadcast_to(longs.reshape(-1, self.dram_words), (self._groups, self.dram_words))

    def place(self, element: int) -> tuple[int, int, int]:
        """Return group, long word and word inside it of a flat element; of copies, the first."""
        long, part = divmod(int(self._take[element]), self.words_per_long)
        group, word = divmod(long, self.dram_words)
        return group, word, part

    def unpack(self, words: NDArray[np.uint64], dtype: np.dtype[np.generic]) -> Array:
        """Return the tensor whose long words, as :meth:`pack` makes them, are ``words``.

        ``dtype`` has the width of the device's dtype, or is bool, a 16-bit float or an integer of
        8 or 16 bits.
        """
        return from_bits(self.taken_from(words), dtype, self._half).reshape(self.shape)

    def taken_from(self, words: NDArray[np.uint64]) -> NDArray[np.unsignedinteger]:
        """Return the word of each element, flat, out of the long words of all groups."""
        found: NDArray[np.unsignedinteger] = words.reshape(-1).astype(">u8").view(self._word)
        return found[self._take]


def from_bits(bits: NDArray[np.unsignedinteger], dtype: np.dtype[np.generic], half: bool) -> Array:
    """Return the values of words of the device; ``half`` says that they are its own halves.

    ``dtype`` has the width of the words, or is bool, a 16-bit float or an integer of 8 or 16 bits.
    """
    if dtype == np.bool_:
        return np.asarray(bits != 0)
    if half and dtype.kind not in "iu":
        return np.asarray(singles_of(bits).astype(dtype))
    if dtype.itemsize < bits.dtype.itemsize and dtype.kind in "iu":
        return np.asarray(bits.astype(np.uint64).astype(dtype))
    if dtype.itemsize < bits.dtype.itemsize:
        return np.asarray(bits.astype(np.uint32).view(np.float32).astype(dtype))
    native: Array = bits.astype(bits.dtype.newbyteorder("=")).view(dtype)
    return native


def _places(
    layout: Layout, shape: tuple[int, ...], strides: Mapping[Level, int], number: np.dtype[Any]
) -> tuple[IntArray, IntArray]:
    """Return each element's index in the array of LM words, and its word there, as ``number``."""
    lm, word = np.zeros(shape, number), np.zeros(shape, number)
    for axis, size in enumerate(shape):
        index = np.arange(size, dtype=np.int64)
        index = index.reshape([-1 if number == axis else 1 for number in range(len(shape))])
        alone = Layout((layout.axes[axis],))
        for level, coordinate in alone.coordinates(index).items():
            if level is Level.W:
                word += coordinate.astype(number)
            else:
                lm += (coordinate * strides[level]).astype(number)
    return lm.reshape(-1), word.reshape(-1)


@lru_cache(maxsize=64)
def dram_image(layout: str, shape: tuple[int, ...], dtype: str, target: Target) -> DramImage:
    """Return the image of values of ``layout`` (as text) and ``shape``."""
    return DramImage(parse_layout(layout), shape, MNDtype(dtype), target)
