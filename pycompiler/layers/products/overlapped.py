"""Lines in which the MAU multiplies by one bank while the other is written.

This is a software pipeline over the tiles of a matrix. While the MAU multiplies by a tile, the ALU
converts the rows of the next tile, and each is written one line later. It also converts a part of
the vectors of the next batch, which wait in registers until their last product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...code.lines import Instruction, Line, Operand, PeOperand, Step
from ...code.nest import Nest, alike
from .roles import Precision
from .tiles import Pair, convert

_Parts = tuple[Instruction, ...]


class Tiles(Protocol):
    """The tiles of a matrix: ``places`` of each number meet the same ``groups`` of vectors."""

    kind: Precision
    places: int
    groups: int

    def rows(self, number: int, place: int) -> Sequence[Pair]:
        """Return the pairs that write a tile to its bank."""

    def vector(self, number: int, group: int) -> PeOperand:
        """Return the operand that reads a group of vectors."""

    def product(self, number: int, place: int, group: int, vector: Operand) -> _Parts:
        """Return the instructions that multiply a converted group by a tile."""


@dataclass(frozen=True)
class Overlapped:
    """The lines of the tiles of ``numbers``.

    The vectors of ``ahead`` numbers are a batch. ``registers`` have room for two batches. In a turn
    the MAU multiplies by one tile; before the first tile is turn -1. ``height`` is the number of
    pairs that write a tile.
    """

    tiles: Tiles
    numbers: range
    height: int
    ahead: int
    registers: Sequence[PeOperand]

    def code(self) -> Nest:
        """Yield the lines of all turns, and the last product."""
        yield from self._turn(-1)
        yield from alike(range(-(-len(self.numbers) // self.ahead)), self._sizes, self._batch)
        _, last = self._line(self._turns - 1, self.tiles.groups - 1, ())
        yield Step(last)

    @property
    def _turns(self) -> int:
        return len(self.numbers) * self.tiles.places

    def _size(self, batch: int) -> int:
        """Return how many numbers are in a batch."""
        return max(0, min(self.ahead, len(self.numbers) - batch * self.ahead)) if batch >= 0 else 0

    def _sizes(self, batch: int) -> tuple[int, ...]:
        """Return what decides the lines of a batch: its size, and those of its neighbours."""
        return tuple(self._size(near) for near in (batch - 1, batch, batch + 1))

    def _batch(self, batch: int) -> Nest:
        first = batch * self.ahead * self.tiles.places
        turns = range(first, first + self._size(batch) * self.tiles.places)
        return alike(turns, lambda turn: (self._made(turn - 1), self._made(turn)), self._turn)

    def _made(self, turn: int) -> tuple[int, int]:
        """Return how many vectors and how many rows the ALU converts in a turn."""
        vectors = self._vectors(turn)
        return len(vectors), self.height if turn + 1 < self._turns else 0

    def _vectors(self, turn: int) -> range:
        """Return which vectors of the next batch are converted in a turn."""
        places, batch, within = self.tiles.places, -1, 0
        if turn >= 0:
            batch, within = divmod(turn, self.ahead * places)
        most = self._size(batch + 1) * self.tiles.groups
        each = -(-most // max(1, self._size(batch) * places))
        first = (batch + 1) * self.ahead * self.tiles.groups
        return range(first, first + most)[within * each : (within + 1) * each]

    def _length(self, turn: int) -> int:
        return max(sum(self._made(turn)), self.tiles.groups if turn >= 0 else 0)

    def _turn(self, turn: int) -> Iterator[Line]:
        """Yield the lines of a turn. What follows its last line comes in the next turn."""
        then: _Parts = ()
        if turn >= 0:
            _, then = self._line(turn - 1, self._length(turn - 1) - 1, self._rows(turn - 1))
        rows = self._rows(turn)
        for at in range(self._length(turn)):
            converted, after = self._line(turn, at, rows)
            if then or converted:
                yield Step((*then, *converted))
            then = after

    def _rows(self, turn: int) -> Sequence[Pair]:
        """Return the rows that the ALU converts in a turn: those of the next tile."""
        if turn + 1 >= self._turns:
            return ()
        index, place = divmod(turn + 1, self.tiles.places)
        return self.tiles.rows(self.numbers[index], place)

    def _line(self, turn: int, at: int, rows: Sequence[Pair]) -> tuple[_Parts, _Parts]:
        """Return what the ALU converts in a line of a turn, and what comes one line later."""
        tiles, vectors, then = self.tiles, self._vectors(turn), _Parts()
        if turn >= 0 and at < tiles.groups:
            index, place = divmod(turn, tiles.places)
            vector = self._register(index * tiles.groups + at)
            then = tiles.product(self.numbers[index], place, at, vector)
        if at < len(vectors):
            index, group = divmod(vectors[at], tiles.groups)
            made = convert(tiles.kind, tiles.vector(self.numbers[index], group))
            return (made._replace(destinations=(self._register(vectors[at]),)),), then
        if at - len(vectors) < len(rows):
            source, write = rows[at - len(vectors)]
            return (convert(tiles.kind, source),), (*then, *write)
        return (), then

    def _register(self, vector: int) -> PeOperand:
        return self.registers[vector % (2 * self.ahead * self.tiles.groups)]
