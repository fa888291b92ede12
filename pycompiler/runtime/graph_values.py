"""Values of a graph with addresses, read on a machine that stands between two nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..graph.dtypes import MNDtype, numpy_dtype
from ..graph.graph import Location, MNGraph, MNValue
from ..graph.layout import UNIT_LEVELS, Level
from ..machine import Target
from ..pfvm.session import Array
from .image import DramImage, dram_image, from_bits

#: ``read`` of a machine or a debugger, or ``validity`` of a machine.
Read = Callable[..., NDArray[np.uint64]]


def on_device(value: MNValue) -> bool:
    """Whether a value has a place on the device."""
    return value.layout is not None and value.addr is not None


def in_later_slice(value: MNValue) -> bool:
    """Whether parts of a value lie in LM at another time."""
    local = value.location is not Location.DRAM
    return local and value.layout is not None and value.layout.slices > 1


class GraphValues:
    """Finds all elements of a value where its layout puts them. The graph has addresses."""

    def __init__(self, graph: MNGraph, target: Target):
        self._graph, self._target = graph, target

    def read(self, name: str, read: Read) -> Array:
        """Return a value of the device as an array; ``read`` reads the machine."""
        value = self._graph.values[name]
        half = value.dtype is MNDtype.HALF
        found = from_bits(self._bits(value, read), numpy_dtype(value.type.elem), half)
        return found.reshape(value.shape)

    def undefined(self, name: str, validity: Read) -> NDArray[np.bool_]:
        """Return which elements nothing has written; ``validity`` asks a sanitized machine."""
        value = self._graph.values[name]
        bits = self._bits(value, validity)
        undefined: NDArray[np.bool_] = (bits != np.iinfo(bits.dtype).max).reshape(value.shape)
        return undefined

    def _bits(self, value: MNValue, read: Read) -> NDArray[np.unsignedinteger]:
        """Return the word of each element, flat."""
        assert value.layout is not None
        assert value.addr is not None
        if value.location is Location.DRAM:
            image = self.image(value)
            groups = range(self._target.groups)
            count = image.dram_words
            words = [read("dram", addr=value.addr, count=count, group=g) for g in groups]
            return image.taken_from(np.stack(words))
        return self._local(value, read)

    def _local(self, value: MNValue, read: Read) -> NDArray[np.unsignedinteger]:
        layout, width = value.layout, value.dtype.bits
        assert layout is not None
        count = layout.extent(Level.ADDR)
        words = read(value.location.memory, addr=value.addr, count=count)
        levels = (*UNIT_LEVELS, Level.ADDR)
        words = words.reshape(-1, *words.shape[2:])  # groups and their L2Bs are one level
        at = layout.coordinates(*np.indices(value.shape, sparse=True))
        places = [np.broadcast_to(at.get(level, 0), value.shape).reshape(-1) for level in levels]
        part = np.broadcast_to(at.get(Level.W, 0), value.shape).reshape(-1)
        # The first word of a long word has its most significant bits.
        shift = (8 * words.itemsize - width * (part + 1)).astype(np.uint64)
        bits: NDArray[np.unsignedinteger] = words[tuple(places)] >> shift
        return bits.astype(f"u{width // 8}").astype(f">u{width // 8}")

    def image(self, value: MNValue) -> DramImage:
        """Return where a value's elements lie in DRAM."""
        return dram_image(str(value.layout), value.shape, value.dtype.value, self._target)
