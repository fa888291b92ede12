"""Finds which accesses of a node to transfer memories need common words, and which need not.

A layer sends block after block through the same words of L1BM. Nothing flows from one block to the
next, so each of them could lie elsewhere. Compilers that give registers to variables call such a
set of accesses a *web*: all writes and reads between which data flows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import gcd, lcm

from ..code.lines import BlockOperand, Instruction, Line, Move, Operand
from ..graph.disjoint_sets import DisjointSets
from ..machine import Target

#: The memories that data passes on its way. No node finds there what another one left.
MEMORIES = ("l1bm", "l2bm", "pdm")
#: The memory whose blocks begin at a multiple of their words.
_BLOCKS = "l1bm"
#: Where accesses have no coarser unit, a node would take too long.
_MOST_CELLS = 1 << 14
#: What a write fills that reaches all units of a memory.
_ALL: frozenset[object] = frozenset(["all"])


@dataclass(eq=False)
class Web:
    """Instructions that need common words of ``memory``, from ``low`` to ``high``.

    Their addresses may grow by multiples of ``unit``. ``count`` is how many instructions there are.
    """

    memory: str
    low: int
    high: int
    unit: int = 1
    count: int = 0


#: The webs of each instruction of a line, at most one in each memory; those of an MV.
Webs = tuple[tuple[Web, ...], ...]


@dataclass(frozen=True)
class _Access:
    """The words of an operand. A write fills ``parts`` of the memory; a read has none."""

    low: int
    high: int
    parts: frozenset[object] | None


@dataclass
class _Cell:
    """What the lines so far have done with some words.

    ``web`` is the line that last began to fill them, and ``parts`` what has been filled since.
    ``before`` are the web and the parts that were there when it began.
    """

    web: int
    parts: set[object]
    before: tuple[int, set[object]] | None
    read: bool = False


def webs_of(lines: Sequence[Line], target: Target) -> list[Webs]:
    """Return the webs of each line of a node.

    A memory in which the node reads what an earlier one left, or words that only a register knows,
    has no webs.
    """
    parts = [(line,) if isinstance(line, Move) else line.instructions for line in lines]
    flat = [one for line in parts for one in line]
    found = [_of_memory(memory, flat, target) for memory in MEMORIES]
    numbers = iter(range(len(flat)))
    return [
        tuple(tuple(w[n] for w in found if n in w) for n in islice(numbers, len(line)))
        for line in parts
    ]


def _of_memory(
    memory: str, lines: Sequence[Instruction | Move], target: Target
) -> Mapping[int, Web]:
    accesses = {n: own for n, line in enumerate(lines) if (own := _accesses(line, memory, target))}
    every = [access for own in accesses.values() for access in own if access is not None]
    if not every or any(None in own for own in accesses.values()):
        return {}
    words = gcd(*(edge for access in every for edge in (access.low, access.high)))
    if max(access.high for access in every) > words * _MOST_CELLS:
        return {}
    webs = DisjointSets[int]()
    cells: dict[int, _Cell] = {}
    for number, own in accesses.items():
        for access in own:
            assert access is not None
            for place in range(access.low // words, access.high // words):
                cell = cells.get(place)
                if access.parts is None:
                    if cell is None:
                        return {}
                    _read(cell, webs)
                elif cell is None:
                    cell = cells[place] = _Cell(number, set(access.parts), None)
                elif cell.read:
                    before = cell.web, cell.parts
                    cell = cells[place] = _Cell(number, set(access.parts), before)
                else:
                    cell.parts |= access.parts
                webs.join(number, cell.web)
    made: dict[int, Web] = {}
    for number, own in accesses.items():
        for access in own:
            assert access is not None
            web = made.setdefault(webs.root(number), Web(memory, access.low, access.high))
            web.low, web.high = min(web.low, access.low), max(web.high, access.high)
            if memory == _BLOCKS:
                web.unit = lcm(web.unit, access.high - access.low)
        made[webs.root(number)].count += 1
    return {number: made[webs.root(number)] for number in accesses}


def _read(cell: _Cell, webs: DisjointSets[int]) -> None:
    """Note a read. What the last writes did not fill is still there from before."""
    if not cell.read and cell.before is not None:
        web, parts = cell.before
        if not (parts <= cell.parts or cell.parts >= _ALL):
            webs.join(web, cell.web)
            cell.parts |= parts
    cell.read = True


def _accesses(one: Instruction | Move, memory: str, target: Target) -> list[_Access | None]:
    """Return the accesses of an instruction, reads first; None for one that is not known."""
    if isinstance(one, Move):
        operands: list[tuple[Operand, frozenset[object] | None]] = [
            (one.source, None),
            (one.destination, _units(one.destination, target)),
        ]
    else:
        operands = [(source, None) for source in one.sources]
        operands += [(destination, _filled(one)) for destination in one.destinations]
    out: list[_Access | None] = []
    for operand, parts in operands:
        if isinstance(operand, BlockOperand) and operand.memory == memory:
            known = operand.value is None and operand.entries is None
            low = operand.offset
            out.append(_Access(low, low + operand.words, parts) if known else None)
    return out


def _filled(instruction: Instruction) -> frozenset[object]:
    """Return what an instruction fills: a transfer down to some of the units names them."""
    goals = (one for one in instruction.destinations if isinstance(one, BlockOperand))
    down = any(goal.memory == _BLOCKS for goal in goals)
    some = instruction.mnemonic.partition("@")[2]
    return frozenset([some]) if down and some else _ALL


def _units(operand: BlockOperand, target: Target) -> frozenset[object]:
    if operand.group is None and operand.l2b is None:
        return _ALL
    groups = range(target.groups) if operand.group is None else (operand.group,)
    l2bs = range(target.l2bs_per_group) if operand.l2b is None else (operand.l2b,)
    return frozenset(product(groups, l2bs))
