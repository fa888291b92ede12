"""Words of one memory that lines touch, wherever the memory has units."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """The long words of ``memory`` from ``low`` to before ``high``."""

    memory: str
    low: int
    high: int

    def meets(self, other: Words) -> bool:
        """Whether both have a common word."""
        return self.memory == other.memory and self.low < other.high and other.low < self.high
