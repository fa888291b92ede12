"""Modulo scheduling: a program over one row becomes a pipeline over many.

Every ``interval`` steps a new row starts. All rows run through the same flat schedule. In each step
modulo the interval, a unit issues one instruction, and every memory has one read and one write
port. A reader in the next step takes a result from the forwarding path of its unit. A later reader
takes it from a register of a bank whose ports are free in both steps. Registers rotate, so a result
lives until its last reader although the next rows are under way.

An input of few long words, which many rows read again, may lie in registers like a constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...machine import REGISTER_FILES, Target
from .program import Constant, Flags, Input, Operation, Program, Result, Row, Source, reads
from .separate_inputs import HELD, separate
from .software_pipeline import Issue, Plan, RotatingRegisters

#: The register files, and the T register, which holds one row.
BANKS = (*REGISTER_FILES, "t")

_UNITS = ("alu", "mau")
#: Longer programs do not try every interval, but steps of a share of the shortest.
_MANY, _COARSE = 100, 20
#: Stands for a key that a dictionary did not have.
_MISSING = object()


@dataclass(frozen=True)
class _Distances:
    """Steps from the write of a whole row to its first read, by the rules of the spec."""

    lm: int
    stored: int
    masks: int

    @classmethod
    def of(cls, target: Target) -> _Distances:
        def most(*memories: str) -> int:
            found = [1]
            for rule in target.hazards:
                if rule.memories & set(memories):
                    cycles = 0 if rule.cycles is None else -(-(rule.cycles + 1) // target.cycles)
                    found.append(cycles if rule.steps is None else rule.steps + 1)
            return max(found)

        return cls(most("lm0", "lm1"), most(*BANKS), most(target.masks["memory"]))


@dataclass
class _Attempt:
    """A partial schedule with a given interval."""

    operations: list[Operation]
    final: int
    interval: int
    homes: Sequence[str]
    result_home: str
    lm: frozenset[str]
    apart: _Distances
    #: the memory of the mask registers
    masks: str
    steps: dict[int, int] = field(default_factory=dict)
    units: set[tuple[str, int]] = field(default_factory=set)
    #: (bank, phase) -> the row or flags read there, and the step of the flat schedule
    readers: dict[tuple[str, int], tuple[Row | Flags, int]] = field(default_factory=dict)
    writers: set[tuple[str, int]] = field(default_factory=set)
    #: result -> bank -> last step in which it is read there
    stored: dict[tuple[int, str], int] = field(default_factory=dict)
    constants: dict[tuple[str, Constant], None] = field(default_factory=dict)
    held: dict[tuple[str, Input], None] = field(default_factory=dict)
    banks: dict[int, tuple[str, ...]] = field(default_factory=dict)
    #: what changed, with the values before, so that an attempt can be taken back
    changes: list[tuple[Any, Any, Any]] = field(default_factory=list)

    # -- ports ---------------------------------------------------------------------------------

    def _phase(self, bank: str, step: int) -> tuple[str, int]:
        return bank, step % self.interval

    def _may_read(self, bank: str, what: Row | Flags, step: int) -> bool:
        found = self.readers.get(self._phase(bank, step))
        if found is not None and found != (what, step):
            return False
        if bank not in self.lm:
            return True
        return not any(
            (bank, (step - turn) % self.interval) in self.writers for turn in range(self.apart.lm)
        )

    def _may_write(self, bank: str, step: int) -> bool:
        if self._phase(bank, step) in self.writers:
            return False
        return bank not in self.lm or not any(
            (bank, (step + turn) % self.interval) in self.readers for turn in range(self.apart.lm)
        )

    # -- operands ------------------------------------------------------------------------------

    def _choices(self, what: Row | Flags, step: int, extend: bool) -> Iterator[str]:
        """Yield the banks and forwarding paths from which ``what`` could be read in ``step``."""
        if isinstance(what, Input) and self.homes[what.number] == HELD:
            yield from sorted(REGISTER_FILES, key=lambda bank: (bank, what) not in self.held)
        elif isinstance(what, Input):
            yield self.homes[what.number]
        elif isinstance(what, Constant):
            yield from sorted(REGISTER_FILES, key=lambda bank: (bank, what) not in self.constants)
            if self._t_may_hold(what):
                yield "t"
        elif isinstance(what, Flags):
            if self._storable(what.index, self.masks, step, self.apart.masks):
                yield self.masks
        else:
            operation = self.operations[what.index]
            if step == self.steps[what.index] + 1 and not extend:
                yield operation.unit
            elif step >= self.steps[what.index] + self.apart.stored:
                # The T register has no words, so a source that is converted is not read there.
                banks = REGISTER_FILES if extend else BANKS
                free = (b for b in banks if self._storable(what.index, b, step, self.apart.stored))
                yield from sorted(free, key=lambda bank: (what.index, bank) not in self.stored)

    def _storable(self, index: int, bank: str, step: int, apart: int) -> bool:
        """Whether ``bank`` keeps the result, or could keep it, until ``step``."""
        made = self.steps[index]
        if step < made + apart:
            return False
        if bank == "t" and not self._t_is_free(index, step):
            return False
        return (index, bank) in self.stored or self._may_write(bank, made)

    def _t_may_hold(self, constant: Constant) -> bool:
        """Whether the T register can hold the constant all the time: it has no words of its own."""
        if len(set(constant.words)) > 1:
            return False
        others = (held for bank, held in self.constants if bank == "t")
        return all(held == constant for held in others) and not any(
            bank == "t" for _, bank in self.stored
        )

    def _t_is_free(self, index: int, step: int) -> bool:
        """Whether the T register, which holds one row, can keep the result until ``step``."""
        made = self.steps[index]
        if step > made + self.interval or any(bank == "t" for bank, _ in self.constants):
            return False
        mine = {phase % self.interval for phase in range(made, step)}
        others = (
            (self.steps[i], last) for (i, b), last in self.stored.items() if b == "t" and i != index
        )
        return not any(
            phase % self.interval in mine for start, last in others for phase in range(start, last)
        )

    def _read_all(self, wanted: Sequence[tuple[Row | Flags, bool]], step: int) -> list[str] | None:
        """Return a bank for each operand and note all reads; None if some operand has no bank."""
        if not wanted:
            return []
        (what, extend), *rest = wanted
        for bank in list(self._choices(what, step, extend)):
            before = len(self.changes)
            if bank not in _UNITS:
                if not self._may_read(bank, what, step):
                    continue
                self._note_read(bank, what, step)
            others = self._read_all(rest, step)
            if others is not None:
                return [bank, *others]
            self._restore(before)
        return None

    def _note_read(self, bank: str, what: Row | Flags, step: int) -> None:
        self._set(self.readers, self._phase(bank, step), (what, step))
        if isinstance(what, Constant):
            self._set(self.constants, (bank, what), None)
        elif isinstance(what, Input) and self.homes[what.number] == HELD:
            self._set(self.held, (bank, what), None)
        elif isinstance(what, Result | Flags):
            self._add(self.writers, self._phase(bank, self.steps[what.index]))
            last = self.stored.get((what.index, bank), 0)
            self._set(self.stored, (what.index, bank), max(step, last))

    def _set(self, held: dict[Any, Any], key: Any, value: Any) -> None:
        self.changes.append((held, key, held.get(key, _MISSING)))
        held[key] = value

    def _add(self, held: set[tuple[str, int]], key: tuple[str, int]) -> None:
        if key not in held:
            self.changes.append((held, key, _MISSING))
            held.add(key)

    def _restore(self, before: int) -> None:
        """Take back all changes but the first ``before``."""
        while len(self.changes) > before:
            held, key, value = self.changes.pop()
            if isinstance(held, set):
                held.discard(key)
            elif value is _MISSING:
                del held[key]
            else:
                held[key] = value

    # -- instructions --------------------------------------------------------------------------

    def place(self, index: int) -> bool:
        """Issue the instruction in the first step that has room for it."""
        before = 1 + max((self.steps[i] for i in reads(self.operations[index])), default=-1)
        window = range(before, before + self.interval + self.apart.stored + 1)
        return any(self._issue(index, step) for step in window) or any(
            self._issue_renewed(index, number, step)
            for step in window
            for number in range(len(self.operations[index].sources))
        )

    def _issue(self, index: int, step: int) -> bool:
        operation = self.operations[index]
        if self._phase(operation.unit, step) in self.units:
            return False
        wanted: list[tuple[Row | Flags, bool]] = [(s.row, s.extend) for s in operation.sources]
        if operation.flush is not None:
            wanted.append((operation.flush, False))
        before = len(self.changes)
        banks = self._read_all(wanted, step)
        last = index == self.final
        if banks is None or (last and not self._may_write(self.result_home, step)):
            self._restore(before)
            return False
        if last:
            self._add(self.writers, self._phase(self.result_home, step))
        self._add(self.units, self._phase(operation.unit, step))
        self.steps[index], self.banks[index] = step, tuple(banks)
        return True

    def _issue_renewed(self, index: int, number: int, step: int) -> bool:
        """Issue the instruction behind a new one that copies or recomputes one of its operands.

        The operand then comes by forwarding, which needs no port.
        """
        operation = self.operations[index]
        source = operation.sources[number]
        if not isinstance(source.row, Result) or source.extend:
            return False
        before, copy = len(self.changes), len(self.operations)
        renewed = replace(source, row=Result(copy))
        sources = (*operation.sources[:number], renewed, *operation.sources[number + 1 :])
        again = self.operations[source.row.index]
        for first in (Operation("alu", "lpassa", (Source(source.row),)), again):
            self.operations.append(first)
            made = max((self.steps[i] for i in reads(first)), default=-1)
            if made < step and self._issue(copy, step):
                self.operations[index] = replace(operation, sources=sources)
                if self._issue(index, step + 1):
                    return True
                self.operations[index] = operation
                del self.steps[copy], self.banks[copy]
            self.operations.pop()
            self._restore(before)
        return False

    # -- registers -----------------------------------------------------------------------------

    def plan(self, target: Target, held: Sequence[int]) -> Plan | None:
        """Return the plan with registers for every stored result; None if there are too few.

        ``held`` has the long words of each input that lies in registers.
        """
        return self._plan(target, held, shared=False) or self._plan(target, held, shared=True)

    def _plan(self, target: Target, held: Sequence[int], *, shared: bool) -> Plan | None:
        """Return the plan; results whose lives do not meet have one register if ``shared``."""
        free = dict.fromkeys(REGISTER_FILES, 0)
        constants: dict[tuple[str, Constant], int] = {}
        for bank, constant in self.constants:
            constants[bank, constant] = free.get(bank, 0)
            if bank in free:
                free[bank] += 1
        free = {bank: -(-words // target.cycles) * target.cycles for bank, words in free.items()}
        inputs: dict[tuple[str, int], int] = {}
        for bank, row in self.held:
            inputs[bank, row.number] = free[bank]
            free[bank] += -(-held[row.number] // target.cycles) * target.cycles
        entries = 1  # mask register 0 is all ones
        places: dict[tuple[str, int], RotatingRegisters] = {}
        lives: dict[tuple[str, int], set[int]] = {}
        for (index, bank), until in self.stored.items():
            life = range(self.steps[index], until + 1)
            copies = max(1, -(-(until - self.steps[index]) // self.interval))
            phases = {step % self.interval for step in life}
            reused = None
            if shared and len(life) <= self.interval and bank != "t":
                found = (at for own, at in lives if own == bank)
                reused = next((at for at in found if not lives[bank, at] & phases), None)
            if reused is not None:
                places[bank, index] = RotatingRegisters(reused, 1)
            elif bank == self.masks:
                places[bank, index] = RotatingRegisters(entries, copies)
                entries += copies
            elif bank == "t":
                places[bank, index] = RotatingRegisters(0, 1)
            else:
                places[bank, index] = RotatingRegisters(free[bank], copies)
                free[bank] += copies * target.cycles
            if len(life) <= self.interval:
                lives.setdefault((bank, places[bank, index].base), set()).update(phases)
        fits = all(free[bank] <= target.words(bank) for bank in REGISTER_FILES)
        if not fits or entries > target.masks["entries"]:
            return None
        stores: dict[int, list[str]] = {}
        for index, bank in self.stored:
            stores.setdefault(index, []).append(bank)
        issues = sorted(
            (
                Issue(
                    step,
                    index,
                    self.operations[index],
                    self.banks[index],
                    tuple(stores.get(index, ())),
                )
                for index, step in self.steps.items()
            ),
            key=lambda issue: issue.step,
        )
        return Plan(
            self.interval, tuple(issues), self.final, places, constants, inputs, free, target.cycles
        )


def _heights(program: Program) -> list[int]:
    """Return for each instruction the length of the longest chain that begins with it."""
    heights = [1] * len(program.operations)
    for index in reversed(range(len(program.operations))):
        for read in reads(program.operations[index]):
            heights[read] = max(heights[read], heights[index] + 1)
    return heights


def plan_rows(
    program: Program,
    homes: Sequence[str],
    result_home: str,
    target: Target,
    most: int,
    held: Sequence[int] = (),
) -> Plan | None:
    """Return the pipeline with the shortest interval, at most ``most``; None if there is none.

    ``homes`` are the memories of the inputs, ``result_home`` the one of the result. Inputs whose
    home is :data:`HELD` have the long words that ``held`` says for their number.
    """
    program = separate(program, homes)
    heights = _heights(program)
    order = sorted(range(len(heights)), key=lambda index: -heights[index])
    units = [operation.unit for operation in program.operations]
    lm = frozenset((*homes, result_home)) - {*REGISTER_FILES, HELD}
    apart = _Distances.of(target)
    least = max(units.count("alu"), units.count("mau"), 1)
    turn = 1 if len(units) <= _MANY else 1 + least // _COARSE
    for interval in range(least, most + 1, turn):
        operations, final = list(program.operations), len(program.operations) - 1
        attempt = _Attempt(
            operations, final, interval, homes, result_home, lm, apart, target.masks["memory"]
        )
        if all(attempt.place(index) for index in order):
            plan = attempt.plan(target, held)
            if plan is not None:
                return plan
    return None
