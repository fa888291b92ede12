"""Registered values: parameters and buffers that the functions of a context share by name.

On a board they are stored in DRAM: once a function that reads a value is loaded, the host keeps no
copy. Functions that need different layouts of a value have one copy each; a write updates all.
"""

from __future__ import annotations

import numpy as np

from ..errors import error
from ..graph.graph import TensorType
from ..pfvm.registered import PRIVATE
from ..pfvm.session import Array
from .dram import DramTensor


class Registered:
    """One registered value."""

    #: None: functions bind the copies themselves.
    place: DramTensor | None = None

    def __init__(self, name: str, type: TensorType, array: Array):
        self.name, self._type = name, type
        self._array: Array | None = np.array(array)
        self._copies: list[DramTensor] = []

    @property
    def type(self) -> TensorType:
        """Element type and shape."""
        return self._type

    def values(self) -> Array:
        """Return the values as they are now."""
        if self._array is not None:
            return self._array
        return self._copies[0].read()

    def load(self, array: Array) -> None:
        """Replace the values, in every copy."""
        if not self._copies:
            self._array = np.array(array)
        for copy in self._copies:
            copy.write(array)

    def renew(self, place: DramTensor) -> None:
        """Replace the values by those at ``place``.

        A copy with the same word order gets its words; others are reordered. ``place`` may be one
        of the copies itself.
        """
        for copy in self._copies:
            if copy.addr == place.addr and copy.board is place.board:
                continue
            if copy.like(place):
                copy.write_words(place.words())
            else:
                copy.write(place.read())
        if not self._copies:
            self._array = place.read()

    def copy_like(self, place: DramTensor) -> DramTensor:
        """Return the copy with the word order of ``place``; if there is none, make it a copy."""
        for copy in self._copies:
            if copy.like(place):
                return copy
        place.write(self.values())
        self._copies.append(place)
        self._array = None
        return place


class Registry:
    """The registered values of a context by name."""

    def __init__(self) -> None:
        self._values: dict[str, Registered] = {}

    def __getitem__(self, name: str) -> Registered:
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def clear(self) -> None:
        """Forget all values."""
        self._values.clear()

    def share(self, name: str, type: TensorType, array: Array) -> Registered:
        """Return the value called ``name``; a new value starts with the data of ``array``.

        Without a name, no other function shares the value. P0608 if a value of that name has
        another type.
        """
        if name == PRIVATE:
            return Registered(name, type, array)
        found = self._values.setdefault(name, Registered(name, type, array))
        if found.type != type:
            problem = f"there is one of {found.type} already, this one is {type}"
            raise error("P0608", name=name, problem=problem)
        return found
