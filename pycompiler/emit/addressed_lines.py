"""Lines of fragments at their addresses: packed, with their text and their accesses.

Nodes that share a fragment often have the same addresses in LM too. Then they also share the packed
lines, the text and the accesses. MV lines that name DRAM differ, because the values of different
nodes have different addresses in DRAM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from emu2._core import Needs, Op

from ..code.lines import BlockOperand, Fragment, Instruction, Line, Literal, Move, Step
from ..cost.moves import move_cost
from ..machine import Target
from .hazards import Accesses, accesses
from .line_shift import Shift, shifted
from .list_scheduler import once, schedule
from .ports import op_of, rules_of
from .text import Addresses, instruction_text

#: Memories that MVs access.
SHARED = frozenset({"dram", "pdm", "l2bm", "dar"})


@dataclass(frozen=True, eq=False, slots=True)
class Ready:
    """A line with its accesses and its text.

    The text of an MV is empty here: it is made when the MV gets a tag. ``shared`` says whether the
    line touches a memory that MVs use. ``needs`` is what decides about its step.
    """

    line: Line
    touched: Accesses
    text: str
    shared: bool
    needs: Needs | None = None

    @property
    def known(self) -> Needs:
        """What decides about its step; lines that are joined have nothing to decide."""
        assert self.needs is not None
        return self.needs


def needs_of(line: Line, touched: Accesses, ops: Sequence[Op], target: Target) -> Needs:
    """Return what decides about the step of a line or an MV."""
    rules = rules_of(target)
    if isinstance(line, Move):
        cost = move_cost(line, target)
        held = cost.ports, cost.holds, cost.latency
        return Needs(rules, (), touched.reads, touched.writes, held)
    shared = touched if touches_shared(touched) else Accesses((), ())
    return Needs(rules, ops, shared.reads, shared.writes, None)


def touches_shared(touched: Accesses) -> bool:
    """Whether a line touches a memory that MVs use."""
    return any(a.memory in SHARED for a in (*touched.reads, *touched.writes))


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
        self._in_dram: dict[int, tuple[Sequence[Line], frozenset[str | None]]] = {}
        self._made: dict[tuple[int, bool, tuple[int | None, ...], Shift], Lines] = {}

    def of(self, fragment: Fragment, shift: Shift = ()) -> Lines:
        """Return the lines of ``fragment`` in the order of issue, with the names of its values.

        What the fragment keeps in memories of ``shift`` has other addresses there.
        """
        names, lines = fragment.names, fragment.lines
        if not names:
            return self._ready(fragment, shift)
        _, in_dram = self._in_dram.get(id(lines)) or self._moved(lines)
        # The address of a value in DRAM stands only in MVs, or in literals.
        free = in_dram - {one.value for line in lines for one in literals(line)}
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
        if not in_dram:
            return kept
        return Lines([self._own(ready, names) for ready in kept.lines], kept.busy)

    def _moved(self, lines: Sequence[Line]) -> tuple[Sequence[Line], frozenset[str | None]]:
        moves = (line for line in lines if isinstance(line, Move))
        operands = (operand for move in moves for operand in _blocks(move))
        found = frozenset(o.value for o in operands if o.memory == "dram")
        self._in_dram[id(lines)] = lines, found
        return lines, found

    def _own(self, ready: Ready, names: Mapping[str, str]) -> Ready:
        """Return a shared line with the names of one node's values, for MVs and literals."""
        line = ready.line
        if not isinstance(line, Move):
            return replace(ready, line=_named(line, names)) if literals(line) else ready
        source, destination = (
            o if o.value is None else replace(o, value=names.get(o.value, o.value))
            for o in _blocks(line)
        )
        line = replace(line, source=source, destination=destination)
        touched = accesses(line, self._addresses)
        return Ready(line, touched, "", True, needs_of(line, touched, (), self._target))

    def _ready(self, fragment: Fragment, shift: Shift = ()) -> Lines:
        names = fragment.names
        addresses: Addresses = self._addresses
        if names:
            addresses = {
                ours: self._addresses[name] for ours, name in names.items() if name in addresses
            }
        lines = fragment.lines
        if not fragment.packed:
            lines = tuple(schedule(lines, addresses, self._target))
        if shift:
            lines = tuple(shifted(lines, shift))
        target = self._target
        text = once(lambda instruction: instruction_text(instruction, addresses, target))
        op = once(lambda instruction: op_of(instruction, addresses, target))
        out: list[Ready] = []
        busy: Counter[str] = Counter()
        for line in lines:
            touched = accesses(line, addresses)
            written, ops = "", tuple[Op, ...]()
            if isinstance(line, Step):
                busy.update(instruction.slot for instruction in line.instructions)
                written = "; ".join(map(text, line.instructions))
                ops = tuple(map(op, line.instructions))
            needs = needs_of(line, touched, ops, target)
            out.append(Ready(line, touched, written, touches_shared(touched), needs))
        return Lines(out, busy)


def joined_line(lines: Sequence[Ready]) -> Ready:
    """Return one line of all instructions."""
    instructions = tuple(
        one for ready in lines if isinstance(ready.line, Step) for one in ready.line.instructions
    )
    touched = Accesses(
        tuple(access for ready in lines for access in ready.touched.reads),
        tuple(access for ready in lines for access in ready.touched.writes),
    )
    text = "; ".join(ready.text for ready in lines)
    return Ready(Step(instructions), touched, text, any(ready.shared for ready in lines))


def literals(line: Line) -> list[Literal]:
    """Return the literals of a line that name a value's address."""
    if isinstance(line, Move):
        return []
    found = (one for i in line.instructions for one in i.sources if isinstance(one, Literal))
    return [one for one in found if one.value is not None]


def _named(step: Step, names: Mapping[str, str]) -> Step:
    """Return a line whose literals have the names of one node's values."""

    def own(instruction: Instruction) -> Instruction:
        sources = tuple(
            replace(one, value=names.get(one.value or "", one.value))
            if isinstance(one, Literal)
            else one
            for one in instruction.sources
        )
        return replace(instruction, sources=sources)

    return Step(tuple(own(instruction) for instruction in step.instructions))


def _blocks(move: Move) -> tuple[BlockOperand, BlockOperand]:
    return move.source, move.destination
