"""Pieces: what runs together on one side, in an order without a cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ..graph.stages import stages
from .source import Source, Unit


@dataclass(frozen=True, eq=False)
class Piece:
    """Units of one side. ``inputs`` and ``outputs`` are the values that cross its border.

    ``numbers`` are its nodes, in the order of the model.
    """

    name: str
    on_device: bool
    units: tuple[Unit, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of its nodes, in an order in which they can run."""
        return tuple(number for unit in self.units for number in unit.numbers)


def in_order(units: Sequence[Unit], source: Source) -> list[Unit]:
    """Return the units so that each comes after those whose results it reads.

    A composite has one result and no value of its own is read outside, so an order exists.
    """
    # The last node of a unit makes its result: what reads it comes later, what it reads earlier.
    return sorted(units, key=lambda unit: unit.numbers[-1])


def pieces_of(units: Sequence[Unit], reasons: Mapping[Unit, str], source: Source) -> list[Piece]:
    """Return the pieces in the order in which they run; units with a reason run on the host.

    Pieces alternate between the sides, and no order has fewer on the device.
    """
    ordered = in_order(units, source)
    unit_of = {number: place for place, unit in enumerate(ordered) for number in unit.numbers}
    before = [
        {unit_of[other] for number in unit.numbers for other in source.before(number)} - {place}
        for place, unit in enumerate(ordered)
    ]
    found = stages([unit not in reasons for unit in ordered], before)
    staged = sorted(zip(found, range(len(ordered)), strict=True))
    counts = {True: 0, False: 0}
    made = []
    for _, group in groupby(staged, key=lambda pair: pair[0]):
        own = tuple(ordered[place] for _, place in group)
        side = own[0] not in reasons
        name = f"{'device' if side else 'host'}_{counts[side]}"
        counts[side] += 1
        inputs, outputs = source.ends([number for unit in own for number in unit.numbers])
        made.append(Piece(name, side, own, tuple(inputs), tuple(outputs)))
    return made
