"""A pipeline over the long words of values, as lines of a fragment."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..code.lines import Forward, Instruction, Literal, Operand, PeOperand, Special, Step, alu_step
from ..code.nest import Nest, Repeat, stages
from ..cost.sequence import steps_of
from ..machine import WORDS_PER_LONG, Target
from .functions.modulo_schedule import plan_rows
from .functions.program import Constant, Input, Program, Source
from .functions.separate_inputs import HELD
from .functions.software_pipeline import Issue, Plan

_STAGING = "grf0"  # where results wait when their LM cannot be written at once

#: The operand or result of a row.
Rows = Callable[[int], PeOperand]


@dataclass(frozen=True, eq=False)
class Pipeline:
    """How a program runs over rows: directly, or through registers in chunks of ``chunk`` rows.

    The LM that the result goes to may hold operands too; its port then allows a write only when
    nothing is read for some steps. A short program is faster when its results wait in registers.
    ``held`` has the long words of each operand that is copied to registers first, 0 for others.
    """

    plan: Plan
    chunk: int | None = None
    held: tuple[int, ...] = ()


@lru_cache(maxsize=1024)
def pipeline(
    program: Program, homes: tuple[str, ...], home: str, target: Target, held: tuple[int, ...] = ()
) -> Pipeline | None:
    """Return the better pipeline for operands in ``homes`` and a result in ``home``.

    ``held`` has the long words of each operand that lies in registers meanwhile, 0 for others. None
    if the registers are too few for them.
    """
    most = 8 + 2 * len(program.operations)
    if any(held):
        homes = tuple(HELD if words else at for at, words in zip(homes, held, strict=True))
    found: list[Pipeline] = []
    direct = plan_rows(program, homes, home, target, most, held)
    if direct is not None:
        found.append(Pipeline(direct, held=held))
    # A row that waits takes a step more.
    worth = most if direct is None else direct.interval - 2
    if home in homes:
        staged = plan_rows(program, homes, _STAGING, target, worth, held)
        if staged is not None:
            room = (target.words(_STAGING) - staged.free[_STAGING]) // target.cycles
            if room > 0:
                found.append(Pipeline(staged, room, held))
    assert found or any(held), "a program that no interval fits"
    many = 4 * target.words(_STAGING)
    return min(found, key=lambda one: _steps(one, len(homes), many, target), default=None)


def best_pipeline(
    program: Program,
    homes: tuple[str, ...],
    home: str,
    target: Target,
    rows: int,
    words: tuple[int, ...],
) -> tuple[Pipeline, int]:
    """Return the pipeline with the fewest lines for ``rows`` rows, and their number.

    ``words`` has the long words of each operand. Those of which the rows read each one several
    times may be copied to registers first.
    """
    plain = pipeline(program, homes, home, target)
    assert plain is not None
    most = min(rows * target.cycles // 2, target.words(_STAGING) // 4)
    held = tuple(count if count <= most else 0 for count in words)
    other = pipeline(program, homes, home, target, held) if any(held) else None
    tried = [one for one in (plain, other) if one is not None]
    counts = [_steps(one, len(homes), rows, target) for one in tried]
    return tried[counts.index(min(counts))], min(counts)


@lru_cache(maxsize=4096)
def _steps(found: Pipeline, operands: int, rows: int, target: Target) -> int:
    """Count the lines for ``rows`` rows of so many operands, wherever they are."""

    def anywhere(row: int) -> PeOperand:
        return PeOperand(_STAGING, tuple(range(target.cycles)))

    nest = pipeline_code(found, [anywhere] * operands, anywhere, rows, target)
    return steps_of(stages(nest, target), target)


def pipeline_code(
    found: Pipeline, operands: Sequence[Rows], results: Rows, rows: int, target: Target
) -> Nest:
    """Return the code that computes ``rows`` rows of results; operands are by input number."""
    plan, operands = found.plan, list(operands)
    yield from _constants(plan, target)
    for number in sorted({number for _, number in plan.inputs}):
        operands[number] = yield from _held(found, number, operands[number], rows, target)
    if found.chunk is None:
        yield from _lines(plan, operands, results, rows, target)
        return
    size, base = found.chunk, plan.free[_STAGING]

    def waiting(row: int) -> PeOperand:
        at = base + row * target.cycles
        return PeOperand(_STAGING, tuple(range(at, at + target.cycles)))

    def chunk(turn: int) -> Nest:
        first = turn * size
        count = min(size, rows - first)
        yield from _lines(plan, operands, waiting, count, target, first)
        yield Repeat(count, lambda row: [alu_step("lpassa", (waiting(row),), results(first + row))])

    yield Repeat(rows // size, chunk)
    if rows % size:
        yield from chunk(rows // size)


def _held(
    found: Pipeline, number: int, rows: Rows, count: int, target: Target
) -> Generator[Step, None, Rows]:
    """Yield the copies of an operand to registers; return where its ``count`` rows lie there."""
    cycles, read = target.cycles, [rows(row) for row in range(count)]
    known = sorted({word for one in read for word in one.offsets})
    place = {word: at for at, word in enumerate(known)}
    banks = {bank: at for (bank, own), at in found.plan.inputs.items() if own == number}
    for start in range(0, found.held[number], cycles):
        part = tuple(known[min(start + c, len(known) - 1)] for c in range(cycles))
        homes = tuple(
            PeOperand(bank, tuple(range(at + start, at + start + cycles)))
            for bank, at in banks.items()
        )
        source = read[0]._replace(offsets=part)
        yield Step((Instruction("alu", "lpassa", (source,), homes),))
    return lambda row: read[row]._replace(
        value=None, offsets=tuple(place[word] for word in read[row].offsets)
    )


def _constants(plan: Plan, target: Target) -> Iterator[Step]:
    """Yield the steps that load the constants: one step if both words of a constant are equal."""
    places: dict[Constant, list[PeOperand]] = {}
    for (bank, constant), at in plan.constants.items():
        places.setdefault(constant, []).append(_constant(bank, at, target))
    for constant, homes in places.items():
        words = constant.words
        if words[0] == words[1]:
            yield _immediate(words[0], homes)
            continue
        for number in range(WORDS_PER_LONG):
            yield _immediate(words[number], [home._replace(word=number) for home in homes])


def _immediate(word: int, homes: Sequence[PeOperand]) -> Step:
    return Step((Instruction("alu", "imm", (Literal(word),), tuple(homes)),))


def _lines(
    plan: Plan, operands: Sequence[Rows], results: Rows, rows: int, target: Target, first: int = 0
) -> Nest:
    """Return the code of ``rows`` rows; their operands are those from row ``first`` on."""

    def line(issued: Sequence[tuple[Issue, int]]) -> Step:
        return Step(
            tuple(
                _instruction(
                    plan, issue, row, [own(first + row) for own in operands], results(row), target
                )
                for issue, row in issued
            )
        )

    return plan.timeline(rows, line)


def _instruction(
    plan: Plan,
    issue: Issue,
    row: int,
    operands: Sequence[PeOperand],
    result: PeOperand,
    target: Target,
) -> Instruction:
    operation = issue.operation
    banks = issue.banks
    sources = tuple(
        _source(plan, source, bank, row, operands, target)
        for source, bank in zip(operation.sources, banks, strict=False)
    )
    flush = None
    if operation.flush is not None:
        flush = _register(plan, target.masks["memory"], operation.flush.index, row, target)
    stores: list[Operand] = []
    for bank in issue.stores:
        place = _register(plan, bank, issue.index, row, target)
        stores.append(place._replace(word=0) if operation.first_word and bank != "t" else place)
    if issue.index == plan.final:
        stores.append(result)
    return Instruction(
        operation.unit, operation.mnemonic, sources, tuple(stores) or (Special("nowrite"),), flush
    )


def _source(
    plan: Plan, source: Source, bank: str, row: int, operands: Sequence[PeOperand], target: Target
) -> Operand:
    what = source.row
    if bank in target.forwards.values():
        return Forward(bank, source.negate)
    if isinstance(what, Input):
        found = operands[what.number]
        at = plan.inputs.get((bank, what.number))
        if at is not None:
            found = found._replace(memory=bank, offsets=tuple(at + o for o in found.offsets))
    elif isinstance(what, Constant):
        found = _constant(bank, plan.constants[bank, what], target)
    else:
        found = _register(plan, bank, what.index, row, target)
    wanted = source.negate, source.word, source.extend
    if wanted == (found.negate, found.word, found.extend):
        return found
    return found._replace(negate=source.negate, word=source.word, extend=source.extend)


def _constant(bank: str, at: int, target: Target) -> PeOperand:
    """Return the words of a constant: one for all cycles, but the T register has one for each."""
    if bank == "t":
        width = target.words(bank) // target.cycles
        return PeOperand(bank, tuple(width * c for c in range(target.cycles)))
    return PeOperand(bank, (at,) * target.cycles)


def _register(plan: Plan, bank: str, index: int, row: int, target: Target) -> PeOperand:
    """Return the registers of a result's row; the T register has one 128-bit entry per cycle."""
    place = plan.places[bank, index]
    cycles = range(target.cycles)
    if bank == "t":
        width = target.words(bank) // target.cycles
        return PeOperand(bank, tuple(width * c for c in cycles))
    unit = target.cycles
    base = place.base * unit if bank == target.masks["memory"] else place.base
    return PeOperand(bank, tuple(base + row % place.copies * unit + c for c in cycles))
