"""The tensor of a proxy: values on the host, or a tensor in DRAM."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Protocol

import numpy as np

from ..graph.dtypes import numpy_dtype
from ..graph.graph import TensorType
from ..pfvm.session import Array
from .dram import DramTensor


class Source(Protocol):
    """A tensor whose values can be read and replaced."""

    @property
    def type(self) -> TensorType:
        """Element type and shape."""

    @property
    def place(self) -> DramTensor | None:
        """Its tensor in DRAM; None if functions may not read it there."""

    def values(self) -> Array:
        """Return the values as they are now."""

    def load(self, array: Array) -> None:
        """Replace the values by those of an array of the same type."""


class Held:
    """A tensor in a buffer of DRAM, or on the host.

    Code that is about to overwrite the buffer calls :meth:`keep` first, which saves the values.
    """

    def __init__(
        self,
        type: TensorType,
        *,
        place: DramTensor | None = None,
        values: Callable[[], Array] | None = None,
    ):
        self._type, self._place, self._values = type, place, values
        self._lock = contextlib.nullcontext() if place is None else place.board.lock

    @property
    def type(self) -> TensorType:
        """Element type and shape."""
        return self._type

    @property
    def place(self) -> DramTensor | None:
        """Its tensor in DRAM; None once it is on the host."""
        return self._place

    def values(self) -> Array:
        """Return the values as they are now."""
        with self._lock:
            if self._place is not None:
                return self._place.read()
            assert self._values is not None
            return self._values()

    def load(self, array: Array) -> None:
        """Replace the values in place, on the device or on the host."""
        with self._lock:
            if self._place is not None:
                self._place.write(array)
            else:
                copy = np.array(array)
                self._values = lambda: copy

    def keep(self) -> None:
        """Copy the long words to the host; they are unpacked when the values are read."""
        with self._lock:
            if self._place is None:
                return
            words, image = self._place.words(), self._place.image
            dtype = numpy_dtype(self._type.elem)
            self._place, self._values = None, lambda: image.unpack(words, dtype)


def on_host(type: TensorType, array: Array) -> Held:
    """Return a tensor on the host."""
    return Held(type, values=lambda: array)
