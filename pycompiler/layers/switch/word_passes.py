"""Passes over the words of a long word: by word addresses, or by rotation and masks.

Words of 32 bits have addresses of their own. Narrower words are cut out of rotated long words and
joined.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ...code.lines import Forward, Literal, Operand, PeOperand, Special, Step, alu_step
from ...graph.graph import MNValue
from ...machine import WORDS_PER_LONG, Target
from .pass_moves import Moves

_BITS = 64
ADDRESSED_BITS = _BITS // WORDS_PER_LONG
_Cut = tuple[int, int]  # how far a long word is rotated left, and the mask of the bits kept
_CONSTANTS, _SUM = "grf1", "grf0"


def word_steps(found: Moves, source: MNValue, result: MNValue, target: Target) -> list[Step]:
    """Return the code of a pass over words of the values' dtype."""
    if source.dtype.bits == ADDRESSED_BITS:
        return list(_by_address(found, source, result, target))
    return list(_by_rotation(found, source, result, target))


def _by_address(found: Moves, source: MNValue, result: MNValue, target: Target) -> Iterator[Step]:
    rows = sorted(
        zip(
            found.result_at.tolist(),
            found.result.tolist(),
            found.source_at.tolist(),
            found.source.tolist(),
            strict=True,
        )
    )
    for start in range(0, len(rows), target.cycles):
        part = rows[start : start + target.cycles]
        part += [part[-1]] * (target.cycles - len(part))
        yield alu_step(
            "ipassa",
            (_word(source, [r[2] for r in part], [r[3] for r in part]),),
            _word(result, [r[0] for r in part], [r[1] for r in part]),
        )


def _word(value: MNValue, at: Sequence[int], word: Sequence[int]) -> PeOperand:
    memory = value.location.memory
    return PeOperand(memory, tuple(at), value.name, word=tuple(word))


def _groups(
    found: Moves, bits: int
) -> tuple[dict[tuple[_Cut, ...], list[tuple[int, ...]]], set[_Cut]]:
    """Group the long words of the result by the cuts that make them; return also all cuts.

    Each row of a group has the address in the result, then the source address of each cut.
    """
    count = _BITS // bits
    pieces: dict[int, dict[tuple[int, int], int]] = defaultdict(lambda: defaultdict(int))
    ones = (1 << bits) - 1
    rows = zip(found.result_at, found.result, found.source_at, found.source, strict=True)
    for at, word, source_at, source in rows:
        turn = int(source - word) % count * bits
        kept = ones << (count - 1 - int(word)) * bits
        pieces[int(at)][turn, int(source_at)] |= kept
    groups: dict[tuple[_Cut, ...], list[tuple[int, ...]]] = defaultdict(list)
    cuts: set[_Cut] = set()
    for at, found_here in sorted(pieces.items()):
        items = sorted((turn, kept, where) for (turn, where), kept in found_here.items())
        key = tuple((turn, kept) for turn, kept, _ in items)
        cuts.update(key)
        groups[key].append((at, *(where for *_, where in items)))
    return groups, cuts


def _by_rotation(found: Moves, source: MNValue, result: MNValue, target: Target) -> Iterator[Step]:
    groups, cuts = _groups(found, source.dtype.bits)
    constants: dict[int, PeOperand] = {}
    for number in sorted({turn for turn, _ in cuts} | {kept for _, kept in cuts}):
        at = (len(constants),) * target.cycles
        constants[number] = PeOperand(_CONSTANTS, at)
        for word in range(WORDS_PER_LONG):
            bits = number >> (WORDS_PER_LONG - 1 - word) * ADDRESSED_BITS & (
                (1 << ADDRESSED_BITS) - 1
            )
            place = PeOperand(_CONSTANTS, at, word=word)
            yield alu_step("imm", (Literal(bits),), place)
    total = PeOperand(_SUM, tuple(range(target.cycles)))
    forward = Forward("alu")
    for key, rows in groups.items():
        for start in range(0, len(rows), target.cycles):
            part = rows[start : start + target.cycles]
            part += [part[-1]] * (target.cycles - len(part))
            there = _long(result, [row[0] for row in part])
            for index, (turn, kept) in enumerate(key):
                last = index == len(key) - 1
                here: Operand = _long(source, [row[index + 1] for row in part])
                if turn:
                    yield alu_step("lbsl", (here, constants[turn]), Special("nowrite"))
                    here = forward
                goal: Operand = total if index == 0 else Special("nowrite")
                yield alu_step(
                    "land", (here, constants[kept]), there if last and index == 0 else goal
                )
                if index:
                    yield alu_step("lor", (forward, total), there if last else total)


def _long(value: MNValue, at: Sequence[int]) -> PeOperand:
    return PeOperand(value.location.memory, tuple(at), value.name)
