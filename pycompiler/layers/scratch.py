"""Register files as places for words, where the helpers of layers expect a value in LM."""

from __future__ import annotations

from dataclasses import dataclass

from ..graph.dtypes import MNDtype
from ..graph.graph import MNValue
from .fragment import PeOperand


@dataclass(frozen=True)
class _Memory:
    memory: str


@dataclass(frozen=True)
class Scratch:
    """Words of a register file from ``base`` on."""

    memory: str
    base: int = 0
    dtype: MNDtype = MNDtype.FLOAT

    @property
    def name(self) -> None:
        """No value: addresses are absolute."""
        return None

    @property
    def location(self) -> _Memory:
        """Where the words are."""
        return _Memory(self.memory)


Words = MNValue | Scratch


def vector(place: Words, at: tuple[int, ...], mask: str = "") -> PeOperand:
    """Return the long words ``at`` of ``place``, one per cycle."""
    base = place.base if isinstance(place, Scratch) else 0
    words = tuple(int(word) + base for word in at)
    return PeOperand(place.location.memory, words, place.name, mask=mask)
