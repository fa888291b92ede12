"""The cheapest of several ways to make a program.

Estimates decide. Where they are near each other, programs do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

#: Programs decide between ways whose estimates are that near each other: nineteen of twenty
#: estimates are as near their programs (benches/estimates.py).
NEAR = 1.25


class Way(Protocol):
    """A way to make a program."""

    @property
    def estimated(self) -> int:
        """An estimate of the cycles, without the program."""

    @property
    def cycles(self) -> int:
        """The cycles of the program, which is made if it was not yet."""


def cheapest(ways: Mapping[str, Way]) -> tuple[str, dict[str, int]]:
    """Return the name of the cheapest way, of equal ones the first, and the cycles of each.

    Those of ways that are not near the best are estimates; nobody makes their programs.
    """
    cycles = {name: way.estimated for name, way in ways.items()}
    most = NEAR * min(cycles.values())
    near = [name for name, estimated in cycles.items() if estimated <= most]
    if len(near) > 1:
        cycles |= {name: ways[name].cycles for name in near}
    return min(near, key=lambda name: cycles[name]), cycles
