"""Lines in which the MAU multiplies by one bank while the other is written.

A vector stays in a register until its last product, so the ALU is free for the rows of the next
tile. The slots of one line then hold a product, a row that is written, and a conversion.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...code.lines import Forward, Instruction, Line, PeOperand, Step
from ...machine import Target
from .pipelined import pipelined
from .roles import Precision
from .tiles import Pair, convert


@dataclass(frozen=True, eq=False)
class Tile:
    """One tile of the matrix: the pairs that fill ``bank``, and those that multiply by it."""

    bank: str
    rows: Sequence[Pair]
    products: Sequence[Pair]


#: Tiles that are written one behind the other, each to its bank.
Turn = Sequence[Tile]
#: Turns whose vectors are converted together.
Batch = Sequence[Turn]


def tile_lines(
    batches: Sequence[Batch], kind: Precision, registers: Sequence[PeOperand], target: Target
) -> Iterator[Line]:
    """Yield the lines of ``batches``.

    They overlap if registers have room for the vectors of a batch beside those of the next one.
    """
    tiles = [[tile for turn in batch for tile in turn] for batch in batches]
    most = max((len(_vectors(batch)) for batch in tiles), default=0)
    if may_overlap(most, registers):
        yield from _Overlapped(tiles, kind, registers, target).lines()
        return
    for turn in (turn for batch in batches for turn in batch):
        yield from pipelined(one_behind_the_other(turn), kind, registers)


def may_overlap(vectors: int, registers: Sequence[PeOperand]) -> bool:
    """Whether lines of batches of so many vectors overlap."""
    return 2 * vectors <= len(registers)


def one_behind_the_other(turn: Turn) -> list[Pair]:
    """Return the pairs that fill the banks, and behind them those that multiply."""
    rows = [pair for tile in turn for pair in tile.rows]
    return rows + [pair for tile in turn for pair in tile.products]


def _vectors(tiles: Sequence[Tile]) -> list[PeOperand]:
    """Return the different vectors of tiles, in the order of their use."""
    return list(dict.fromkeys(source for tile in tiles for source, _ in tile.products))


@dataclass(frozen=True)
class _Conversion:
    """What the ALU converts: a vector of batch ``number``, or a row of ``tile`` for ``write``."""

    number: int
    source: PeOperand
    write: tuple[Instruction, ...] = ()
    tile: Tile | None = None


class _Overlapped:
    """Steps line by line: what the MAU multiplies, what is written, and what the ALU converts.

    Each of them works in the order of the batches and waits for the others. The ALU converts all
    vectors of a batch, then the rows of its tiles. So the memory of either operand has pauses, in
    which the next operands arrive. A row waits until the MAU has multiplied by what is in its bank.
    """

    def __init__(
        self,
        batches: Sequence[Sequence[Tile]],
        kind: Precision,
        registers: Sequence[PeOperand],
        target: Target,
    ) -> None:
        self._kind = kind
        self._distance = _distance(registers, target)
        self._conversions = deque(_conversions(batches))
        self._products = deque(
            (number, tile, source, use)
            for number, batch in enumerate(batches)
            for tile in batch
            for source, (use,) in tile.products
        )
        tiles = [tile for batch in batches for tile in batch]
        self._unwritten = {tile: len(tile.rows) for tile in tiles}
        #: products that are still to come, by bank, and how many are left when a tile may be filled
        self._due = Counter[str]()
        self._own_turn: dict[Tile, int] = {}
        for tile in reversed(tiles):
            self._due[tile.bank] += len(tile.products)
            self._own_turn[tile] = self._due[tile.bank]
        self._uses = Counter((number, source) for number, _, source, _ in self._products)
        self._free = deque(registers)
        #: the register of each vector, and the first step in which a product may read it
        self._held: dict[tuple[int, PeOperand], tuple[PeOperand, int]] = {}
        self._row: _Conversion | None = None

    def lines(self) -> Iterator[Line]:
        """Yield all lines."""
        step = 0
        while self._products:
            product, freed = self._multiply(step)
            made = (product, self._write(), self._convert(step))
            self._free += freed
            found = tuple(one for one in made if one is not None)
            if found:
                yield Step(found)
            step += 1

    def _multiply(self, step: int) -> tuple[Instruction | None, list[PeOperand]]:
        """Return the next product if its factors are there, and a register that it needs last."""
        number, tile, source, use = self._products[0]
        register, ready = self._held.get((number, source), (None, step))
        if register is None or step < ready or self._unwritten[tile]:
            return None, []
        self._products.popleft()
        self._due[tile.bank] -= 1
        self._uses[number, source] -= 1
        parts = tuple(register if part == Forward("alu") else part for part in use.sources)
        last = not self._uses[number, source]
        return replace(use, sources=parts), [register] if last else []

    def _write(self) -> Instruction | None:
        """Return the instruction that writes the row that the ALU made one step before."""
        if self._row is None:
            return None
        assert self._row.tile is not None
        (write,) = self._row.write
        self._unwritten[self._row.tile] -= 1
        self._row = None
        return write

    def _convert(self, step: int) -> Instruction | None:
        """Return the next conversion if there is a place for its result."""
        if not self._conversions:
            return None
        one = self._conversions[0]
        made = convert(self._kind, one.source)
        if one.tile is None and self._free:
            register = self._free.popleft()
            self._held[one.number, one.source] = register, step + self._distance
            made = replace(made, destinations=(register,))
        elif one.tile is not None and self._due[one.tile.bank] == self._own_turn[one.tile]:
            self._row = one
        else:
            return None
        self._conversions.popleft()
        return made


def _distance(registers: Sequence[PeOperand], target: Target) -> int:
    """Return the steps from a conversion to a product that may read its result in a register."""
    memories = {register.memory for register in registers}
    rules = (r for r in target.hazards if any(r.applies(m, "alu", "mau") for m in memories))
    least = (max((r.steps or 0) + 1, -(-((r.cycles or 0) + 1) // target.cycles)) for r in rules)
    return max(least, default=1)


def _conversions(batches: Sequence[Sequence[Tile]]) -> Iterator[_Conversion]:
    """Yield what the ALU converts, in its order."""
    for number, batch in enumerate(batches):
        for source in _vectors(batch):
            yield _Conversion(number, source)
        for tile in batch:
            for source, write in tile.rows:
                yield _Conversion(number, source, write, tile)
