"""The DRAM image of a value: the address of each element in the DRAMs.

An image is built from the layout's formula and the word order of the download that reads it, chunk
by chunk: nothing of a tensor's size is made to find an order or an address. Images are cached per
layout.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache, reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ..errors import error
from ..graph.dtypes import MNDtype
from ..graph.half import halves_of, singles_of
from ..graph.layout import UNIT_LEVELS, Layout, Level, SubAxis
from ..graph.layout_text import parse_layout
from ..graph.verify import layout_ranges
from ..layers.dram_transfer_order import ChunkOrder, orders_of, words_at
from ..layers.dram_transfer_plan import plan_transfer
from ..machine import IntArray, Target
from ..pfvm.session import Array

_MEET = "two elements fall on one word of DRAM"


class _Coordinates(NamedTuple):
    """What the coordinates ``at`` of a level add to the index of an element; others hold none.

    The shape of ``adds`` is (axes, coordinates).
    """

    at: IntArray
    adds: IntArray


class _Words(NamedTuple):
    """The long words of DRAM that a chunk of one size reads, and what each holds.

    ``place``: ``group * dram_words + word``, from the chunk's first word on. ``lm``: the long word
    of LM from the chunk's first on. ``adds``: what its unit adds to the indices of its elements.
    """

    place: IntArray
    lm: IntArray
    adds: IntArray


class DramImage:
    """The permutation between a tensor and its long words in the DRAMs of all groups."""

    def __init__(self, layout: Layout, shape: tuple[int, ...], dtype: MNDtype, target: Target):
        self.shape = shape
        self.plan = plan_transfer(layout, target)
        self.words_per_long = dtype.words_per_long
        self._layout = layout
        self._word = np.dtype(f">u{dtype.bits // 8}")
        self._half = dtype is MNDtype.HALF
        self.slices = layout.slices
        #: Long words per group, for all time slices together.
        self.dram_words = self.slices * self.plan.dram_words
        above = (*layout.on(Level.L2B), *layout.on(Level.L1B))
        #: If all L1Bs hold the same, all groups do: then one L1B and one group tell everything.
        self.alike = self.slices == 1 and all(sub.size == 1 for sub in above)
        self._groups = 1 if self.alike else target.groups
        self._orders = orders_of(self.plan, self.alike)
        pairs = enumerate(zip(shape, layout.padded_shape, strict=True))
        #: The axes that have padding.
        self._cut = [axis for axis, (size, padded) in pairs if size < padded]
        ranges = {**layout_ranges(target), Level.W: self.words_per_long}
        ranges |= {Level.ADDR: self.plan.num_lw, Level.TIME: self.slices}
        copies = layout.copies(ranges)
        if all(sub.level is not Level.W or sub.size == 1 for sub in (*layout.subaxes, *copies)):
            # A dtype that is not packed fills each word of the long word with the same element.
            copies += (SubAxis(self.words_per_long, Level.W),)
        if self.alike:
            copies = tuple(one for one in copies if one.level not in (Level.L2B, Level.L1B))
        self._of = {level: self._coordinates(level, ranges[level], copies) for level in Level}
        #: By identity of the arrays that chunks of one size share, and by their rows.
        self._patterns: dict[tuple[int, int], _Words] = {}
        for order in self._orders:  # P0402 is told before anything is packed
            self._words(order)

    @property
    def taken(self) -> IntArray:
        """The word of each element, flat; words have the dtype's width. It is made anew."""
        each = self.words_per_long
        return self._first(np.arange(self._groups * self.dram_words * each).reshape(-1, each))

    @property
    def owners(self) -> IntArray:
        """The element of each word, -1 for padding; of one group if all groups are alike.

        It is made anew.
        """
        out = np.full((self._groups * self.dram_words, self.words_per_long), -1)
        for place, elements in self.blocks():
            out[place] = elements
        return out.reshape(-1)

    def _coordinates(self, level: Level, count: int, copies: tuple[SubAxis, ...]) -> _Coordinates:
        """Return what the ``count`` coordinates of a level hold. P0402 if two elements meet."""
        at, adds = np.zeros(1, np.int64), np.zeros((len(self.shape), 1), np.int64)
        digits = [(copy, [0] * len(adds)) for copy in copies if copy.level is level]
        for axis, subs in enumerate(self._layout.axes):
            weight = 1
            for sub in reversed(subs):
                weights = [weight * (own == axis) for own in range(len(adds))]
                digits += [(sub, weights)] if sub.level is level else []
                weight *= sub.size
        for sub, weights in digits:
            digit = np.arange(sub.size, dtype=np.int64)
            at = (at[:, None] + digit * sub.stride).reshape(-1)
            adds = _sums(adds, np.array(weights, np.int64)[:, None] * digit)
        if at.max() >= count or np.bincount(at).max() > 1:
            raise error("P0402", layout=str(self._layout), reason=_MEET)
        return _Coordinates(at, adds)

    def _words(self, order: ChunkOrder) -> _Words:
        """Return the words that a chunk reads. P0402 if one of them is two elements."""
        # Words behind the layout's rows hold nothing.
        rows = min(order.below.shape[-1], self.plan.layout.num_lw(1) - order.lm)
        key = id(order.below), rows
        if key not in self._patterns:
            units = [self._of[level] for level in UNIT_LEVELS]
            l2b, *inner = (unit.at for unit in units)
            below = order.below[..., :rows][np.ix_(*inner)]
            group, at = (array[l2b[:, None], below.reshape(-1)] for array in order[-2:])
            size = int(at.max()) + 1
            word = (group * size + at).reshape(-1)
            adds = reduce(_sums, (unit.adds for unit in units))
            adds = np.repeat(adds, rows, axis=1)
            lm = np.tile(np.arange(rows), word.size // rows)
            owner = np.full(int(word.max()) + 1, -1)
            owner[word] = np.arange(word.size)
            of_word = owner[word]
            if (adds[:, of_word] != adds).any() or (lm[of_word] != lm).any():
                raise error("P0402", layout=str(self._layout), reason=_MEET)
            group, at = np.divmod(np.flatnonzero(owner >= 0), size)
            kept = owner[owner >= 0]
            self._patterns[key] = _Words(group * self.dram_words + at, lm[kept], adds[:, kept])
        return self._patterns[key]

    def blocks(self, strides: Sequence[int] | None = None) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield what long words hold, for each chunk of each time slice.

        First their places, ``group * dram_words + word``; then, shape (long words, words in a long
        word), the numbers of the elements, -1 for padding. Numbers are flat, or have ``strides``.
        """
        flat = [prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]
        steps = np.array(flat if strides is None else strides, np.int64)
        addr, word, time = (self._of[level] for level in (Level.ADDR, Level.W, Level.TIME))
        row = np.full(self.plan.num_lw, -1)
        row[addr.at] = np.arange(len(addr.at))
        column = np.full(self.words_per_long, -1)
        column[word.at] = steps @ word.adds
        numbers = {id(words): steps @ words.adds for words in self._patterns.values()}
        for when, adds in zip(time.at.tolist(), time.adds.T, strict=True):
            own = addr.adds + adds[:, None]
            number = steps @ own
            for order in self._orders:
                words = self._words(order)
                rows = row[order.lm + words.lm]
                found = (numbers[id(words)] + number[rows])[:, None] + column
                for axis in self._cut:
                    index, most = words.adds[axis] + own[axis, rows], self.shape[axis]
                    if index.max() + word.adds[axis].max() >= most:
                        beyond = index[:, None] + word.adds[axis] >= most
                        found[:, word.at] = np.where(beyond, -1, found[:, word.at])
                found[rows < 0] = -1
                found[:, column < 0] = -1
                yield words.place + order.dram + when * self.plan.dram_words, found

    def same_order(self, other: DramImage) -> bool:
        """Whether words packed by one image can be unpacked by the other."""
        return self is other or self._facts == other._facts

    @cached_property
    def _facts(self) -> tuple[object, ...]:
        digest = hashlib.sha256(self.owners.tobytes()).digest()
        return self.shape, self._word, self._half, digest

    def pack(self, array: Array) -> NDArray[np.uint64]:
        """Return the long words of ``array``, shape ``(groups, dram_words)``; padding is zero."""
        steps = [stride // array.itemsize for stride in array.strides]
        if min(steps, default=0) < 0:
            return self.pack(np.ascontiguousarray(array))
        # Other orders than the row-major one are read where they are.
        size = sum((n - 1) * step for n, step in zip(array.shape, steps, strict=True)) + 1
        flat = as_strided(array, (size if array.size else 0,), (array.itemsize,))
        longs = np.zeros(self._groups * self.dram_words, np.uint64)
        for place, elements in self.blocks(steps) if flat.size else ():
            bits = self._bits(flat.take(elements, mode="clip"))
            if elements.min() < 0:
                bits[elements < 0] = 0
            longs[place] = bits.astype(self._word).view(">u8")[:, 0]
        groups = self.plan.target.groups
        return np.broadcast_to(longs.reshape(-1, self.dram_words), (groups, self.dram_words))

    def _bits(self, found: Array) -> NDArray[np.unsignedinteger]:
        """Return the words of elements on the device."""
        width = self._word.itemsize
        if found.dtype == np.bool_:  # on the device true is all ones, so it can serve as a mask
            found = -found.astype(np.dtype(f"i{width}"))
        elif self._half and found.dtype.kind not in "iu":
            found = halves_of(found)
        elif found.itemsize < width and found.dtype.kind in "iu":
            found = found.astype(np.dtype(f"i{width}"))
        elif found.itemsize < width:  # 16-bit floats are singles on the device
            found = found.astype(np.float32)
        return found.view(np.dtype(f"u{width}"))

    def place(self, element: int) -> tuple[int, int, int]:
        """Return group, long word and word inside it of a flat element; of copies, the first."""
        index = (np.array(one) for one in np.unravel_index(element, self.shape))
        found = self._layout.coordinates(*index)
        group, word = words_at(self.plan, self._orders, found)
        return int(group), int(word), int(found.get(Level.W, np.array(0)))

    def unpack(self, words: NDArray[np.uint64], dtype: np.dtype[np.generic]) -> Array:
        """Return the tensor whose long words, as :meth:`pack` makes them, are ``words``.

        ``dtype`` has the width of the device's dtype, or is bool, a 16-bit float or an integer of
        8 or 16 bits.
        """
        return from_bits(self.taken_from(words), dtype, self._half).reshape(self.shape)

    def taken_from(self, words: NDArray[np.uint64]) -> NDArray[np.unsignedinteger]:
        """Return the word of each element, flat, out of the long words of all groups."""
        return self._first(words.reshape(-1, 1).astype(">u8").view(self._word))

    def _first(self, words: NDArray[Any]) -> NDArray[Any]:
        """Return the first copy of each element, flat; ``words`` has a row for each long word."""
        out = np.empty(prod(self.shape) + 1, words.dtype)  # padding falls on the last one
        for place, elements in self.blocks():
            out[elements[::-1, ::-1]] = words[place][::-1, ::-1]  # numpy keeps the last
        return out[:-1]


def _sums(first: IntArray, second: IntArray) -> IntArray:
    """Return all sums of a column of ``first`` and one of ``second``, row by row."""
    count = first.shape[1] * second.shape[1]
    return (first[:, :, None] + second[:, None, :]).reshape(len(first), count)


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


@lru_cache(maxsize=64)
def dram_image(layout: str, shape: tuple[int, ...], dtype: str, target: Target) -> DramImage:
    """Return the image of values of ``layout`` (as text) and ``shape``."""
    return DramImage(parse_layout(layout), shape, MNDtype(dtype), target)
