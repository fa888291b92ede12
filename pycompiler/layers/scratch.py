"""Words of register files, for helpers of layers that otherwise work on values in LM."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..code.lines import PeOperand
from ..graph.dtypes import MNDtype
from ..graph.graph import MNValue


@dataclass(frozen=True)
class _Memory:
    memory: str


@dataclass(frozen=True)
class Scratch:
    """Words of a register file from ``base`` on."""

    memory: str
    base: int = 0
    dtype: MNDtype = MNDtype.FLOAT

    def at(self, words: Iterable[int]) -> tuple[int, ...]:
        """Return the addresses of long words, counted from ``base``."""
        return tuple(self.base + word for word in words)

    @property
    def name(self) -> None:
        """None, as there is no value: addresses are absolute."""
        return None

    @property
    def location(self) -> _Memory:
        """The memory of the words."""
        return _Memory(self.memory)


Words = MNValue | Scratch


def vector(place: Words, at: tuple[int, ...], mask: PeOperand | None = None) -> PeOperand:
    """Return the long words ``at`` of ``place``, one per cycle."""
    base = place.base if isinstance(place, Scratch) else 0
    words = tuple(int(word) + base for word in at)
    return PeOperand(place.location.memory, words, place.name, mask=mask)
