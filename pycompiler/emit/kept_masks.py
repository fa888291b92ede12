"""Masks that stay in their registers from node to node, so that each is made once.

A node makes the masks that it needs: its units compare their numbers with a literal. The next node
often needs the same masks. In one program they may stay in the mask registers, which nodes use in
parts only. So a mask is made where no register holds it, and the lines that would make it again go
away. That saves steps of the ALU. It also matters where a download runs beside a product: a product
keeps the ALU busy, so a download that had to make its masks there would wait until it ends.

Only lines of which all sources are the same in every run count: literals, numbers of units, and
words of register files that such lines wrote in the same node.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..code.lines import (
    Forward,
    Fragment,
    Instruction,
    Line,
    Literal,
    Operand,
    PeOperand,
    Special,
    Step,
    mask_register,
)
from ..layers.switch.unit_masks import NUMBERS
from ..machine import REGISTER_FILES, WORDS_PER_LONG, Target

#: Operands without an address that are the same in every run.
_NUMBERS = frozenset(NUMBERS.values())

Word = tuple[str, int]
#: An instruction: the number of its line, and its index there.
Place = tuple[int, int]


@dataclass
class _Made:
    """A mask that a node makes at ``place`` in ``register``; line ``last`` is its last reader.

    ``key`` says what it is; None if it depends on data.
    """

    place: Place
    register: int
    key: Hashable | None
    last: int = -1


@dataclass
class _Facts:
    """The masks of a node in their order, and for each line the mask that a register holds.

    ``constant`` are the instructions that do the same in every run; ``outside`` the words of
    register files that the node reads but has not written.
    """

    masks: list[_Made] = field(default_factory=list)
    read: list[dict[int, int]] = field(default_factory=list)
    constant: set[Place] = field(default_factory=set)
    outside: set[Word] = field(default_factory=set)

    @property
    def fixed(self) -> set[int]:
        """The registers of masks that depend on data; these masks keep their registers."""
        return {mask.register for mask in self.masks if mask.key is None}


#: For each mask of a node: its register, and whether its lines stay.
_Choice = tuple[tuple[int, bool], ...]


def with_kept_masks(fragments: Sequence[Fragment], target: Target) -> list[Fragment]:
    """Return the fragments of a program, in their order, without masks that are there already.

    Fragments that shared their lines still do if the same masks are there.
    """
    known: dict[int, _Facts | None] = {}
    facts: list[_Facts] = []
    for fragment in fragments:
        if id(fragment.lines) not in known:
            known[id(fragment.lines)] = _facts_of(fragment.lines, target)
        found = known[id(fragment.lines)]
        if found is None:
            return list(fragments)
        facts.append(found)
    outside = {word for one in known.values() if one is not None for word in one.outside}
    made: dict[tuple[int, _Choice], tuple[Line, ...]] = {}
    out = []
    for fragment, found, choice in zip(fragments, facts, _choices(facts, target), strict=True):
        key = id(fragment.lines), choice
        if key not in made:
            made[key] = _rewritten(fragment.lines, found, choice, outside, target)
        out.append(replace(fragment, lines=made[key]))
    return out


# -- what a node does with masks ---------------------------------------------------------------


def _facts_of(lines: Sequence[Line], target: Target) -> _Facts | None:
    """Return what a node does with masks; None if it reads one that it has not made."""
    facts = _Facts()
    words: dict[Word, Hashable | None] = {}
    forwards: dict[str, Hashable | None] = {}
    current: dict[int, int] = {}
    masks = target.masks["memory"]
    for number, line in enumerate(lines):
        facts.read.append({})
        if not isinstance(line, Step):
            continue
        keys = [_key(one, words, forwards) for one in line.instructions]
        if any(_of(masks, one) for i in line.instructions for one in i.sources):
            return None
        for instruction in line.instructions:
            for mask_read in _masks_read(instruction):
                register = _entry(mask_read, target)
                if register not in current:
                    return None
                mask = current[register]
                facts.read[number][register] = mask
                facts.masks[mask].last = number
            facts.outside |= {word for word in _words_read(instruction) if word not in words}
        forwards = {}
        for index, (instruction, key) in enumerate(zip(line.instructions, keys, strict=True)):
            forwards[instruction.slot] = key
            if key is not None:
                facts.constant.add((number, index))
            for operand in instruction.destinations:
                _note(operand, key, words)
                if isinstance(operand, PeOperand) and operand.memory == masks:
                    register = _entry(operand, target)
                    if operand != mask_register(register, target):
                        return None
                    current[register] = len(facts.masks)
                    facts.masks.append(_Made((number, index), register, key))
    return facts


def _key(
    instruction: Instruction,
    words: Mapping[Word, Hashable | None],
    forwards: Mapping[str, Hashable | None],
) -> Hashable | None:
    """Return what an instruction computes, the same in all cycles; None if it depends on data."""
    if instruction.slot != "alu" or instruction.flush is not None:
        return None
    sources: list[Hashable] = []
    for operand in instruction.sources:
        key: Hashable | None = None
        if (isinstance(operand, Literal) and operand.value is None) or (
            isinstance(operand, Special) and operand.name in _NUMBERS
        ):
            key = operand
        elif isinstance(operand, Forward):
            found = forwards.get(operand.slot)
            key = None if found is None else (operand, found)
        elif isinstance(operand, PeOperand) and _plain(operand):
            held = {words.get((operand.memory, at)) for at in operand.offsets}
            if len(held) == 1 and None not in held:
                key = operand._replace(memory="", offsets=()), held.pop()
        if key is None:
            return None
        sources.append(key)
    return instruction.mnemonic, tuple(sources)


def _of(memory: str, operand: Operand) -> bool:
    return isinstance(operand, PeOperand) and operand.memory == memory


def _plain(operand: PeOperand) -> bool:
    """Whether an operand is one long word of a register file in each cycle."""
    return (
        operand.memory in REGISTER_FILES
        and operand.value is None
        and operand.words == WORDS_PER_LONG
        and not operand.indirect
    )


def _note(operand: Operand, key: Hashable | None, words: dict[Word, Hashable | None]) -> None:
    """Note what the words of a register file hold after a write."""
    if not isinstance(operand, PeOperand) or operand.memory not in REGISTER_FILES:
        return
    whole = _plain(operand) and operand.mask is None and operand.word is None
    for word in _words_of(operand):
        words[word] = key if whole else None


def _long_words(operand: PeOperand) -> int:
    return max(1, operand.words // WORDS_PER_LONG)


def _words_of(operand: Operand) -> Iterator[Word]:
    if isinstance(operand, PeOperand) and operand.memory in REGISTER_FILES:
        for at in operand.offsets:
            for word in range(at, at + _long_words(operand)):
                yield operand.memory, word


def _words_read(instruction: Instruction) -> Iterator[Word]:
    """Yield the words of register files that an instruction reads, or writes in part."""
    for operand in instruction.sources:
        yield from _words_of(operand)
    for operand in instruction.destinations:
        if isinstance(operand, PeOperand) and _partly(operand):
            yield from _words_of(operand)


def _partly(operand: PeOperand) -> bool:
    """Whether a write may leave a part of its long words as it was."""
    short = operand.words < WORDS_PER_LONG or operand.word is not None
    return operand.mask is not None or operand.indirect or short


def _masks_read(instruction: Instruction) -> Iterator[PeOperand]:
    """Yield the mask registers that an instruction reads."""
    if instruction.flush is not None:
        yield instruction.flush
    for operand in instruction.destinations:
        if isinstance(operand, PeOperand) and operand.mask is not None:
            yield operand.mask


def _entry(register: PeOperand, target: Target) -> int:
    return register.offsets[0] // int(target.cycles)


# -- which masks stay where --------------------------------------------------------------------


def _choices(nodes: Sequence[_Facts], target: Target) -> Iterator[_Choice]:
    """Yield for each node the registers of its masks, and which of them it makes."""
    wanted: dict[Hashable, list[int]] = {}
    for number, facts in enumerate(nodes):
        for mask in facts.masks:
            if mask.key is not None:
                wanted.setdefault(mask.key, []).append(number)
    fixed = {register for facts in nodes for register in facts.fixed}
    # Entry 0 is no register: it stands for no mask.
    entries = range(1, int(target.masks["entries"]))
    registers = sorted(entries, key=lambda register: (register in fixed, -register))
    held: dict[int, Hashable] = {}
    used: dict[int, int] = {}
    for number, facts in enumerate(nodes):
        found = _choice(facts, number, dict(held), registers, wanted, used)
        if found is None:
            choice = tuple((mask.register, True) for mask in facts.masks)
            for mask in facts.masks:
                held.pop(mask.register, None)
        else:
            choice, held = found
        yield choice


def _choice(
    facts: _Facts,
    number: int,
    held: dict[int, Hashable],
    registers: Sequence[int],
    wanted: Mapping[Hashable, Sequence[int]],
    used: dict[int, int],
) -> tuple[_Choice, dict[int, Hashable]] | None:
    """Return what node ``number`` does with its masks, and what registers hold behind it.

    ``wanted`` has the nodes that need a mask. A mask takes the register whose mask is needed again
    last; of several whose masks nobody needs, the one that was used longest ago, so that lines of
    the old mask and the new one need not wait for each other. ``used`` counts the uses for that.
    None if too many masks are needed at once.
    """

    def worth(register: int) -> tuple[float, int]:
        uses = wanted[held[register]] if register in held else ()
        at = bisect_right(uses, number)
        return uses[at] if at < len(uses) else float("inf"), -used.get(register, -1)

    fixed, busy = facts.fixed, dict[int, int]()
    choice: list[tuple[int, bool]] = []
    for mask in facts.masks:
        if mask.key is None:
            held.pop(mask.register, None)
            choice.append((mask.register, True))
            continue
        there = (r for r, key in held.items() if key == mask.key and r not in fixed)
        register = next(there, None)
        makes = register is None
        if register is None:
            line = mask.place[0]
            free = [r for r in registers if r not in fixed and busy.get(r, -1) <= line]
            if not free:
                return None
            register = max(free, key=worth)
            held[register] = mask.key
        busy[register] = max(busy.get(register, -1), mask.last)
        used[register] = max(used.values(), default=0) + 1
        choice.append((register, makes))
    return tuple(choice), held


# -- the lines that are left -------------------------------------------------------------------


def _rewritten(
    lines: tuple[Line, ...], facts: _Facts, choice: _Choice, outside: set[Word], target: Target
) -> tuple[Line, ...]:
    """Return the lines with other registers, without masks that are there and what led to them.

    ``outside`` are the words of register files that some node reads and has not written.
    """
    if all(
        makes and register == mask.register
        for mask, (register, makes) in zip(facts.masks, choice, strict=True)
    ):
        return lines
    gone = {mask.place for mask, (_, makes) in zip(facts.masks, choice, strict=True) if not makes}
    made = {mask.place: own for mask, (own, _) in zip(facts.masks, choice, strict=True)}
    out: list[Line] = []
    live, taken = set(outside), frozenset[str]()
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number]
        if not isinstance(line, Step):
            out.append(line)
            continue
        kept: list[tuple[int, Instruction]] = []
        for index, instruction in enumerate(line.instructions):
            place = number, index
            if (
                place in facts.constant
                and (place in gone or place not in made)
                and instruction.slot not in taken
                and _only_registers(instruction, target)
                and live.isdisjoint(w for one in instruction.destinations for w in _words_of(one))
            ):
                continue
            assert place not in gone
            kept.append((index, instruction))
        for _, instruction in kept:
            partly = set(_words_read(instruction))
            live -= {w for one in instruction.destinations for w in _words_of(one)} - partly
        for _, instruction in kept:
            live |= set(_words_read(instruction))
        taken = frozenset(
            one.slot for _, i in kept for one in i.sources if isinstance(one, Forward)
        )
        if kept or not line.instructions:
            registers = {old: choice[mask][0] for old, mask in facts.read[number].items()}
            renamed = (
                _renamed(one, registers, made.get((number, index)), target) for index, one in kept
            )
            out.append(Step(tuple(renamed)))
    return tuple(reversed(out))


def _only_registers(instruction: Instruction, target: Target) -> bool:
    """Whether an instruction writes only words of register files and mask registers."""
    memories = {*REGISTER_FILES, target.masks["memory"]}
    return all(
        one.memory in memories if isinstance(one, PeOperand) else isinstance(one, Special)
        for one in instruction.destinations
    )


def _renamed(
    instruction: Instruction, registers: Mapping[int, int], made: int | None, target: Target
) -> Instruction:
    """Return an instruction that reads other mask registers, and makes its mask in ``made``."""

    def moved(mask: PeOperand | None) -> PeOperand | None:
        return mask and mask_register(registers[_entry(mask, target)], target)

    def own(operand: Operand) -> Operand:
        if not isinstance(operand, PeOperand):
            return operand
        if operand.memory == target.masks["memory"]:
            assert made is not None
            return mask_register(made, target)
        return operand._replace(mask=moved(operand.mask)) if operand.mask else operand

    flush, destinations = instruction.flush, instruction.destinations
    changed = made is not None or any(isinstance(o, PeOperand) and o.mask for o in destinations)
    if flush is None and not changed:
        return instruction
    return instruction._replace(flush=moved(flush), destinations=tuple(map(own, destinations)))
