"""Tensors in the DRAM of a board."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..graph.dtypes import numpy_dtype
from ..graph.graph import TensorType
from ..pfvm.session import Array
from .device import Board, DramBlock
from .image import DramImage, dram_image


@dataclass(frozen=True, eq=False)
class DramTensor:
    """A tensor in every group's DRAM, in the order that ``layout`` gives.

    It starts ``offset`` long words after the start of ``block`` and keeps ``block`` allocated.
    """

    board: Board
    block: DramBlock
    offset: int
    layout: str
    dtype: str
    type: TensorType

    @property
    def image(self) -> DramImage:
        """The order of its elements."""
        return dram_image(self.layout, self.type.shape, self.dtype, self.board.target)

    @property
    def addr(self) -> int:
        """The address of its first long word."""
        return self.block.addr + self.offset

    def moved(self, block: DramBlock) -> DramTensor:
        """Return a tensor like this one at the start of another block."""
        return DramTensor(self.board, block, 0, self.layout, self.dtype, self.type)

    def like(self, other: DramTensor) -> bool:
        """Whether the long words of this tensor can be read as those of ``other``."""
        return self.board is other.board and self.type == other.type and self.same_order(other)

    def same_order(self, other: DramTensor) -> bool:
        """Whether both tensors keep their elements in the same order, on machines of one kind."""
        if (self.layout, self.dtype) == (other.layout, other.dtype):
            return True
        return self.image.same_order(other.image)

    def words(self, what: str = "read") -> NDArray[np.uint64]:
        """Return its long words, or their `validity`, shape ``(groups, words)``."""
        count = self.image.dram_words
        with self.board.lock:
            groups = range(self.board.target.groups)
            read = getattr(self.board.machine, what)
            return np.stack([read("dram", addr=self.addr, count=count, group=g) for g in groups])

    def read(self) -> Array:
        """Return its values."""
        return self.image.unpack(self.words(), numpy_dtype(self.type.elem))

    def undefined(self) -> NDArray[np.bool_]:
        """Return which elements have no defined value; needs a board that keeps findings."""
        bits = self.image.taken_from(self.words("validity"))
        undefined: NDArray[np.bool_] = (bits != np.iinfo(bits.dtype).max).reshape(self.type.shape)
        return undefined

    def write(self, array: Array) -> None:
        """Overwrite its values."""
        self.write_words(self.image.pack(array))

    def write_words(self, words: NDArray[np.uint64]) -> None:
        """Overwrite its long words, shape ``(groups, words)``."""
        with self.board.lock:
            for group, own in enumerate(words):
                self.board.machine.write("dram", own, addr=self.addr, group=group)
