"""Gives downloads addresses in L1BM that other nodes rarely use, so that both can run together.

A download uses all of L1BM: it fills L1BM, then empties it. But a word is needed there for a few
steps only. So a download in stream form empties each block as soon as it has arrived, and uses a
ring buffer of a few blocks at the end of L1BM. Most other nodes use the words from 0 on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import lcm

from ..code.lines import BlockOperand, Fragment, Line, Move, Operand, PeOperand, Step
from ..layers.dram_transfer_plan import RING_SHARE
from ..machine import REGISTER_FILES, Target

_MEMORY = "l1bm"
#: The part of the ring that downloads have which fit it.
_SMALL = 4
#: Makers of masks use this many words at the end of a register file.
_LAST = 2


@dataclass(frozen=True)
class _Ring:
    base: int
    words: int

    def place(self, operand: BlockOperand, first: int) -> BlockOperand | None:
        """Return the operand in the ring, in which long word ``first`` counts as 0."""
        at = (operand.offset + first) % self.words
        if at + operand.words > self.words:
            return None
        return operand._replace(offset=self.base + at)


class ReorderedAddresses:
    """The stream form of downloads; fragments that share their lines share its lines too."""

    def __init__(self, target: Target):
        self._words = target.words(_MEMORY)
        self._registers = _Registers(target)
        self._made: dict[int, tuple[Sequence[Line], tuple[Line, ...]]] = {}

    def of(self, fragment: Fragment) -> Fragment:
        """Return a download in stream form, or as it is if it has none."""
        kept = self._made.get(id(fragment.lines))
        if kept is None:
            own = [
                self._registers.of(line) if isinstance(line, Step) else line
                for line in fragment.lines
            ]
            lines = _streamed(own, self._words) or fragment.lines
            kept = self._made[id(fragment.lines)] = fragment.lines, lines
        return replace(fragment, lines=kept[1])


def _streamed(lines: Sequence[Line], words: int) -> tuple[Line, ...] | None:
    steps = [line for line in lines if isinstance(line, Step)]
    blocks = [block for step in steps if (block := _filled(step) or _emptied(step)) is not None]
    # A block begins at a multiple of its words, also where counts are no powers of two.
    unit = lcm(*(block.words for block in blocks))
    size = words // RING_SHARE // unit * unit
    if not size:
        return None
    low, own = (words - size) // unit * unit, size // _SMALL // unit * unit
    rings = [_Ring(low, size)]
    if own:
        # A bias may have to wait until a product has ended. The matrix behind it need not.
        small = max(block.offset + block.words for block in blocks) <= own
        one = small and len(list(_chunks(lines))) == 1
        first = _Ring(low + size - own, own) if one else _Ring(low, size - own)
        rings.insert(0, first)
    return next((found for ring in rings if (found := _in_ring(lines, ring, unit))), None)


def _in_ring(lines: Sequence[Line], ring: _Ring, unit: int) -> tuple[Line, ...] | None:
    out: list[Line] = []
    first = 0
    for chunk in _chunks(lines):
        steps = [line for line in chunk if isinstance(line, Step)]
        found = _chunk(steps, ring, first)
        if found is None:
            return None
        out += (line for line in chunk if isinstance(line, Move))
        out += found[0]
        first = (first + -(-found[1] // unit) * unit) % ring.words
    return tuple(out)


def _chunks(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Cut a download before the MVs that begin a chunk."""
    chunk: list[Line] = []
    for line in lines:
        if isinstance(line, Move) and chunk and isinstance(chunk[-1], Step):
            yield chunk
            chunk = []
        chunk.append(line)
    yield chunk


def _chunk(steps: Sequence[Step], ring: _Ring, first: int) -> tuple[list[Step], int] | None:
    """Return the steps of a chunk in the ring, and the words that it takes; None if impossible.

    Each step that empties a block comes after those that fill it. A step that fills a block again
    comes after all that empty it.
    """
    fills = [(block, step) for step in steps if (block := _filled(step)) is not None]
    fills.sort(key=lambda one: one[0].offset)
    out: list[Step] = []
    done = 0
    #: The block that the words of the ring hold, by word; and until which word blocks are empty.
    emptied = -1
    for step in steps:
        if _filled(step) is not None:
            continue
        block = _emptied(step)
        if block is not None:
            end = block.offset + block.words
            while done < len(fills) and fills[done][0].offset < end:
                filled, own = fills[done]
                # It overwrites the words that are a round behind it.
                if filled.offset + filled.words - ring.words > max(emptied, 0):
                    return None
                moved = _moved(own, ring, first)
                if moved is None:
                    return None
                out.append(moved)
                done += 1
            if block.offset < emptied:
                return None
            emptied = end
            moved = _moved(step, ring, first)
            if moved is None:
                return None
            step = moved
        out.append(step)
    if done < len(fills):
        return None
    return out, emptied if emptied > 0 else 0


def _filled(step: Step) -> BlockOperand | None:
    return next((b for i in step.instructions for b in _blocks(i.destinations)), None)


def _emptied(step: Step) -> BlockOperand | None:
    return next((b for i in step.instructions for b in _blocks(i.sources)), None)


def _blocks(operands: Sequence[Operand]) -> Iterator[BlockOperand]:
    for operand in operands:
        if isinstance(operand, BlockOperand) and operand.memory == _MEMORY:
            yield operand


def _moved(step: Step, ring: _Ring, first: int) -> Step | None:
    """Return the step with its block in the ring."""
    sides = (side for one in step.instructions for side in (one.sources, one.destinations))
    places: dict[Operand, BlockOperand | None]
    places = {block: ring.place(block, first) for side in sides for block in _blocks(side)}
    if None in places.values():
        return None
    return step.with_operands(lambda operand: places.get(operand) or operand)


class _Registers:
    """Other mask registers, and another word for the number of a unit, than other nodes use.

    Masks are made from the first register on; here they are counted from the last one down. The
    words of a register file that downloads use are its last ones.
    """

    def __init__(self, target: Target):
        self._masks = target.masks["memory"]
        self._entries = target.masks["entries"]
        self._cycles = target.cycles
        self._files = {memory: target.words(memory) for memory in REGISTER_FILES}

    def of(self, step: Step) -> Step:
        """Return the step with other registers."""
        return step.with_operands(self._operand)

    def _operand(self, operand: Operand) -> Operand:
        if not isinstance(operand, PeOperand):
            return operand
        if operand.mask is not None:
            operand = operand._replace(mask=self._register(operand.mask))
        if operand.memory == self._masks:
            return self._register(operand)
        words = self._files.get(operand.memory)
        if words is not None and operand.value is None:
            assert min(operand.offsets) >= words - _LAST
            return operand._replace(offsets=tuple(at - _LAST for at in operand.offsets))
        return operand

    def _register(self, register: PeOperand) -> PeOperand:
        entry = register.offsets[0] // self._cycles
        if not entry:
            return register
        moved = (self._entries - 2 * entry) * self._cycles
        return register._replace(offsets=tuple(at + moved for at in register.offsets))
