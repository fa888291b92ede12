"""Lines of fragments at their addresses: packed, with what they touch.

Nodes that share a fragment often have the same addresses in LM too. Then they also share the packed
lines. MV lines that name DRAM differ, because the values of different nodes have different
addresses in DRAM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from emu2._core import Ready

from ..code.lines import BlockOperand, Fragment, Line, Literal, Move, Operand, Step
from ..machine import Target
from .line_shift import Shift, shifted
from .list_scheduler import schedule
from .ports import rules_of
from .ready import Addressed, ready_move
from .text import Addresses


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of one node, and the number of steps that use each issue slot."""

    lines: Sequence[Ready]
    busy: Mapping[str, int]


class Shelf:
    """The lines of fragments; equal fragments at equal addresses are made once."""

    def __init__(self, addresses: Addresses, target: Target):
        self._addresses, self._target = addresses, target
        # Keys are identities. The lines are kept so that no other object gets the same identity.
        self._in_dram: dict[int, tuple[Sequence[Line], frozenset[str | None], bool]] = {}
        self._made: dict[tuple[int, bool, tuple[int | None, ...], Shift], Lines] = {}

    def of(self, fragment: Fragment, shift: Shift = ()) -> Lines:
        """Return the lines of ``fragment`` in the order of issue, with the names of its values.

        What the fragment keeps in memories of ``shift`` has other addresses there.
        """
        names, lines = fragment.names, fragment.lines
        if not names:
            return self._ready(fragment, shift)
        _, free, own = self._in_dram.get(id(lines)) or self._moved(lines)
        places = tuple(self._addresses.get(n) for o, n in names.items() if o not in free)
        key = id(lines), fragment.packed, places, shift
        kept = self._made.get(key)
        if kept is None:
            if shift:
                # Other addresses change nothing of how instructions are packed.
                packed = self._made.get((*key[:3], ())) or self._ready(fragment)
                plain = tuple(ready.line for ready in packed.lines)
                fragment = replace(fragment, lines=plain, packed=True)
            kept = self._made[key] = self._ready(fragment, shift)
        if not own:
            return kept
        return Lines([self._own(ready, names) for ready in kept.lines], kept.busy)

    def _moved(self, lines: Sequence[Line]) -> tuple[Sequence[Line], frozenset[str | None], bool]:
        """Return the values of which no line but an MV has the address, and whether MVs have any.

        The address of a value in DRAM stands only in MVs, or in literals.
        """
        moves = (line for line in lines if isinstance(line, Move))
        operands = (operand for move in moves for operand in _blocks(move))
        found = {o.value for o in operands if o.memory == "dram"}
        free = frozenset(found - {one.value for line in lines for one in literals(line)})
        made = self._in_dram[id(lines)] = lines, free, bool(found)
        return made

    def _own(self, ready: Ready, names: Mapping[str, str]) -> Ready:
        """Return a shared line with the names of one node's values, for MVs and literals."""
        line = ready.line
        if not isinstance(line, Move):
            if not literals(line):
                return ready
            own = {name: self._addresses[name] for name in names.values()}
            both = {**ready.addresses, **own}
            return Ready(rules_of(self._target), _named(line, names), both, ready.ops)
        if all(operand.value is None for operand in _blocks(line)):
            return ready
        source, destination = (
            o if o.value is None else o._replace(value=names.get(o.value, o.value))
            for o in _blocks(line)
        )
        line = line._replace(source=source, destination=destination)
        return ready_move(line, self._addresses, self._target)

    def _ready(self, fragment: Fragment, shift: Shift = ()) -> Lines:
        names = fragment.names
        addresses: Addresses = self._addresses
        if names:
            addresses = {
                ours: self._addresses[name] for ours, name in names.items() if name in addresses
            }
        lines = fragment.lines
        made = Addressed(addresses, self._target)
        if not fragment.packed:
            lines = tuple(schedule(lines, made))
        if shift:
            lines = tuple(shifted(lines, shift))
        slots = (one.slot for line in lines if isinstance(line, Step) for one in line.instructions)
        return Lines(list(map(made.ready, lines)), Counter(slots))


def literals(line: Line) -> list[Literal]:
    """Return the literals of a line that name a value's address."""
    if isinstance(line, Move):
        return []
    found = (one for i in line.instructions for one in i.sources if isinstance(one, Literal))
    return [one for one in found if one.value is not None]


def _named(step: Step, names: Mapping[str, str]) -> Step:
    """Return a line whose literals have the names of one node's values."""

    def own(one: Operand) -> Operand:
        if not isinstance(one, Literal) or one.value is None:
            return one
        return one._replace(value=names.get(one.value, one.value))

    return step.with_operands(own)


def _blocks(move: Move) -> tuple[BlockOperand, BlockOperand]:
    return move.source, move.destination
