"""Modulo scheduling: a program over one row becomes a pipeline over many.

Every ``interval`` steps a new row starts. All rows run through the same flat schedule. In each step
modulo the interval, a unit issues one instruction, and every memory has one read and one write
port. A reader in the next step takes a result from the forwarding path of its unit. A later reader
takes it from a register of a bank whose ports are free in both steps. Registers rotate, so a result
lives until its last reader although the next rows are under way.

An input of few long words, which many rows read again, may lie in registers like a constant.

The crate ``placing`` finds steps and banks for an interval; the registers are found here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from emu2 import _core

from ...machine import REGISTER_FILES, Target
from .program import Constant, Input, Operation, Program, Result, Row, Source, reads
from .separate_inputs import HELD, separate
from .software_pipeline import Issue, Plan, RotatingRegisters

#: The register files, and the T register, which holds one row.
BANKS = (*REGISTER_FILES, "t")

_UNITS = ("alu", "mau")
#: Longer programs do not try every interval, but steps of a share of the shortest.
_MANY, _COARSE = 100, 20


def _distances(target: Target) -> tuple[int, int, int]:
    """Return the steps from the write of a whole row to its first read, by the rules of the spec.

    Those of LM, of registers and of masks.
    """

    def most(*memories: str) -> int:
        found = [1]
        for rule in target.hazards:
            if rule.memories & set(memories):
                cycles = 0 if rule.cycles is None else -(-(rule.cycles + 1) // target.cycles)
                found.append(cycles if rule.steps is None else rule.steps + 1)
        return max(found)

    return most("lm0", "lm1"), most(*BANKS), most(target.masks["memory"])


@dataclass(frozen=True)
class _Schedule:
    """The instructions of a row, with the step of each and the bank of each operand.

    ``stored`` has results in banks, with the last step in which they are read there.
    """

    interval: int
    operations: Sequence[Operation]
    steps: Mapping[int, int]
    banks: Sequence[tuple[str, ...]]
    stored: Mapping[tuple[int, str], int]
    constants: Sequence[tuple[str, Constant]]
    held: Sequence[tuple[str, int]]

    def plan(self, target: Target, held: Sequence[int], final: int, shared: bool) -> Plan | None:
        """Return the plan with registers for every stored result; None if there are too few.

        ``held`` has the long words of each input that lies in registers. Instruction ``final``
        makes the result. Results whose lives do not meet have one register if ``shared``.
        """
        free = dict.fromkeys(REGISTER_FILES, 0)
        constants: dict[tuple[str, Constant], int] = {}
        for bank, constant in self.constants:
            constants[bank, constant] = free.get(bank, 0)
            if bank in free:
                free[bank] += 1
        free = {bank: -(-words // target.cycles) * target.cycles for bank, words in free.items()}
        inputs: dict[tuple[str, int], int] = {}
        for bank, number in self.held:
            inputs[bank, number] = free[bank]
            free[bank] += -(-held[number] // target.cycles) * target.cycles
        entries = 1  # mask register 0 is all ones
        places: dict[tuple[str, int], RotatingRegisters] = {}
        lives: dict[tuple[str, int], set[int]] = {}
        for (index, bank), until in self.stored.items():
            life = range(self.steps[index], until + 1)
            copies = max(1, -(-(until - self.steps[index]) // self.interval))
            phases = {step % self.interval for step in life}
            short = len(life) <= self.interval
            apart = (at for (own, at), met in lives.items() if own == bank and not met & phases)
            reused = next(apart, None) if shared and short and bank != "t" else None
            if reused is not None:
                places[bank, index] = RotatingRegisters(reused, 1)
            elif bank == target.masks["memory"]:
                places[bank, index] = RotatingRegisters(entries, copies)
                entries += copies
            elif bank == "t":
                places[bank, index] = RotatingRegisters(0, 1)
            else:
                places[bank, index] = RotatingRegisters(free[bank], copies)
                free[bank] += copies * target.cycles
            if short:
                lives.setdefault((bank, places[bank, index].base), set()).update(phases)
        fits = all(free[bank] <= target.words(bank) for bank in REGISTER_FILES)
        if not fits or entries > target.masks["entries"]:
            return None
        return Plan(
            self.interval, self._issues(), final, places, constants, inputs, free, target.cycles
        )

    def _issues(self) -> tuple[Issue, ...]:
        stores = defaultdict[int, list[str]](list)
        for index, bank in self.stored:
            stores[index].append(bank)
        return tuple(
            Issue(step, index, self.operations[index], self.banks[index], tuple(stores[index]))
            for index, step in sorted(self.steps.items(), key=itemgetter(1))
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
    least = max(units.count("alu"), units.count("mau"), 1)
    turn = 1 if len(units) <= _MANY else 1 + least // _COARSE
    read = [source.row for operation in program.operations for source in operation.sources]
    constants = list(dict.fromkeys(row for row in read if isinstance(row, Constant)))
    rows = [_in_numbers(operation, constants) for operation in program.operations]
    uniform = [len(set(one.words)) == 1 for one in constants]
    names, places = _places(homes, result_home, uniform, target)
    for interval in range(least, most + 1, turn):
        found = _core.place_rows(rows, order, interval, places)
        if found is None:
            continue
        operations, steps, banks, stored, kept, inputs = found
        made = _Schedule(
            interval,
            [_in_rows(own, program.operations) for own in operations],
            dict(steps),
            [tuple(names[at] for at in own) for own in banks],
            {(index, names[at]): last for index, at, last in stored},
            [(names[at], constants[number]) for at, number in kept],
            [(names[at], number) for at, number in inputs],
        )
        for shared in (False, True):
            plan = made.plan(target, held, len(units) - 1, shared)
            if plan is not None:
                return plan
    return None


def _places(
    homes: Sequence[str], result_home: str, uniform: Sequence[bool], target: Target
) -> tuple[Sequence[str], _core._PlacesOfRows]:
    """Return the names of banks and forwarding paths, and what the crate must know of them."""
    lms = dict.fromkeys(one for one in (*homes, result_home) if one not in (*REGISTER_FILES, HELD))
    names = (*BANKS, target.masks["memory"], *lms, *_UNITS)
    at = [None if home == HELD else names.index(home) for home in homes]
    sizes = len(REGISTER_FILES), len(names) - len(_UNITS), len(_UNITS), _UNITS.index("alu")
    return names, (*sizes, at, names.index(result_home), uniform, *_distances(target))


def _in_numbers(
    operation: Operation, constants: Sequence[Constant]
) -> tuple[int, list[tuple[int, int, bool]], int | None]:
    """Return unit, operands and flags of an instruction, as the crate takes them."""

    def read(row: Row) -> tuple[int, int]:
        if isinstance(row, Constant):
            return 1, constants.index(row)
        return (0, row.number) if isinstance(row, Input) else (2, row.index)

    flush = None if operation.flush is None else operation.flush.index
    reads = [(*read(source.row), source.extend) for source in operation.sources]
    return _UNITS.index(operation.unit), reads, flush


def _in_rows(made: tuple[int | None, list[int]], operations: Sequence[Operation]) -> Operation:
    """Return an instruction of the crate: one of the program, perhaps again, or a copy of a row."""
    origin, reads = made
    if origin is None:
        return Operation("alu", "lpassa", (Source(Result(reads[0])),))
    sources = zip(operations[origin].sources, reads, strict=True)
    return replace(
        operations[origin],
        sources=tuple(
            replace(source, row=Result(read)) if isinstance(source.row, Result) else source
            for source, read in sources
        ),
    )
