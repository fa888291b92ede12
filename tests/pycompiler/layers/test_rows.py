"""Pipelined random programs against the same programs run one instruction at a time."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from pycompiler.code.lines import Fragment, Line, PeOperand
from pycompiler.code.nest import Nest, expand, stages
from pycompiler.emit.program import concatenate
from pycompiler.layers.functions.modulo_schedule import plan_rows
from pycompiler.layers.functions.program import (
    ZERO,
    Constant,
    Flags,
    Input,
    Program,
    Result,
    Row,
    Source,
)
from pycompiler.layers.functions.reals import Reals
from pycompiler.layers.pipeline_code import Pipeline, best_pipeline, pipeline, pipeline_code
from pycompiler.machine import Target, load_target

WORDS = np.iinfo(np.uint64)
OPERATIONS = {
    "lxor": lambda a, b: a ^ b,
    "land": lambda a, b: a & b,
    "lor": lambda a, b: a | b,
    "ladd": lambda a, b: a + b,
    "lsub": lambda a, b: a - b,
}


def random_program(rng: random.Random, inputs: int, length: int) -> Program:
    """Return random ALU instructions on 64-bit integers; they read any earlier result or flag."""
    program = Program()
    rows: list[Row] = [Input(number) for number in range(inputs)]
    rows += [Constant(rng.getrandbits(64)) for _ in range(3)]
    flags: list[Flags] = []
    for _ in range(length):
        kind = rng.random()
        if kind < 0.15:
            flags.append(program.flags("lxor", rng.choice(rows), rng.choice(rows)))
        elif kind < 0.3 and flags:
            rows.append(program.keep(rng.choice(flags), rng.choice(rows[-8:])))
        else:
            name = rng.choice(sorted(OPERATIONS))
            rows.append(program.alu(name, rng.choice(rows[-8:]), rng.choice(rows)))
    return program.finish(rows[-1])


def read(program: Program, inputs: list[np.ndarray]) -> np.ndarray:
    made: list[np.ndarray] = []
    flags: list[np.ndarray] = []

    def value(source: Source) -> np.ndarray:
        row = source.row
        if isinstance(row, Input):
            return inputs[row.number]
        if isinstance(row, Result):
            return made[row.index]
        return np.full_like(inputs[0], np.uint64(row.bits))

    for operation in program.operations:
        sources = [value(source) for source in operation.sources]
        if operation.mnemonic == "lpassa":
            found = sources[0]
        else:
            found = OPERATIONS[operation.mnemonic](*sources)
        flags.append(found == 0)
        if operation.flush is not None:
            found = np.where(flags[operation.flush.index], found, np.uint64(0))
        made.append(found)
    assert program.result is not None
    return made[program.result.index]


def lines_of(found: Pipeline, values: Sequence[Sequence[PeOperand]], target: Target) -> list[Line]:
    """Return the lines of a pipeline; ``values`` are the rows of the operands and of the result.

    They are counted without making all of them, too.
    """
    *operands, result = (rows.__getitem__ for rows in values)

    def nest() -> Nest:
        return pipeline_code(found, operands, result, len(values[-1]), target)

    lines = list(expand(nest()))
    assert stages(nest(), target) == stages(lines, target)
    return lines


def outcome(
    steps: Sequence[Line],
    addresses: Mapping[str, int],
    homes: Sequence[str],
    given: Sequence[np.ndarray],
    words: int,
) -> np.ndarray:
    """Run lines on one PE whose values lie at ``addresses``, inputs first; return the last one."""
    target, place = load_target("mini"), {"group": 0, "l2b": 0, "l1b": 0, "mab": 0, "pe": 0}
    code = concatenate([("n", "n", Fragment(tuple(steps)))], addresses, target)
    machine = target.new_machine()
    for at, home, values in zip(addresses.values(), homes, given, strict=False):
        machine.write(home, values, addr=at, **place)
    machine.run(target.assemble(code.text, "rows.vsm"))
    found = machine.read(homes[-1], addr=addresses["out"], count=words, **place)
    return np.asarray(found).reshape(-1)


@pytest.mark.parametrize("homes", [("lm0", "lm1", "lm0"), ("lm1", "lm1", "lm1"), ("lm0",) * 3])
@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed: int, homes: tuple[str, ...]) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    program = random_program(rng, 2, rng.choice([1, 2, 5, 12, 30]))
    target = load_target("mini")
    rows = rng.choice([1, 2, 7, 40])
    words = rows * target.cycles
    names = ("a", "b", "out")
    addresses = {"a": 0, "b": words, "out": 2 * words}
    operands = [
        [
            PeOperand(home, tuple(range(at, at + target.cycles)), name)
            for at in range(0, words, target.cycles)
        ]
        for name, home in zip(names, homes, strict=True)
    ]
    found = pipeline(program, homes[:2], homes[2], target)
    assert found is not None
    steps = lines_of(found, operands, target)
    data = np.random.default_rng(seed)
    near = data.integers(0, 4, (2, words), dtype=np.uint64)
    given = np.where(
        data.random((2, words)) < 0.5,
        near,
        data.integers(0, WORDS.max, (2, words), dtype=np.uint64),
    )
    got = outcome(steps, addresses, homes, list(given), words)
    with np.errstate(over="ignore"):
        assert np.array_equal(got, read(program, list(given)))


@pytest.mark.parametrize("homes", [("lm0", "lm1", "lm0"), ("lm0", "lm0", "lm1"), ("lm1",) * 3])
@pytest.mark.parametrize("seed", range(8))
def test_operands_of_few_words_in_registers(seed: int, homes: tuple[str, ...]) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    program = random_program(rng, 2, rng.choice([1, 2, 5, 12]))
    target = load_target("mini")
    rows, few = rng.choice([7, 40]), rng.choice([1, 2, 3, 4, 8])
    words = rows * target.cycles
    addresses = {"a": 0, "b": words, "out": words + 8}
    meets = [rng.randrange(few) for _ in range(words)]
    starts = range(0, words, target.cycles)
    a, b, out = (
        [PeOperand(home, tuple(at[s : s + target.cycles]), name) for s in starts]
        for name, home, at in zip(
            addresses, homes, (range(words), meets, range(words)), strict=True
        )
    )
    found = pipeline(program, homes[:2], homes[2], target, (0, few))
    assert found is not None
    steps = lines_of(found, [a, b, out], target)
    data = np.random.default_rng(seed)
    given = [data.integers(0, 4, count, dtype=np.uint64) for count in (words, few)]
    got = outcome(steps, addresses, homes, given, words)
    with np.errstate(over="ignore"):
        assert np.array_equal(got, read(program, [given[0], given[1][meets]]))


def test_a_held_operand_leaves_the_port_to_the_other() -> None:
    target = load_target("mini")
    program = Program()
    program.finish(Reals(program, wide=False).fma(Input(0), Input(1), Input(2)))
    homes = ("lm0", "lm0", "lm0")
    _, plain = best_pipeline(program, homes, "lm1", target, 40, (160, 160, 160))
    held, steps = best_pipeline(program, homes, "lm1", target, 40, (160, 2, 2))
    assert plain >= 3 * 40
    assert held.held == (0, 2, 2)
    assert steps == 40 + 2


def test_a_constant_beside_two_held_operands_lies_in_the_t_register() -> None:
    target = load_target("mini")
    program = Program()
    total = Reals(program, wide=False).fma(Input(0), Input(1), Input(2))
    program.finish(program.alu("fmax", ZERO, total))
    homes = ("lm0", "lm0", "lm0")
    found, _ = best_pipeline(program, homes, "lm1", target, 40, (160, 2, 2))
    assert ("t", ZERO) in found.plan.constants
    assert found.plan.interval == 1


def test_a_long_chain_issues_one_instruction_per_step() -> None:
    program = Program()
    row: Row = Input(0)
    for coefficient in range(9):
        row = Reals(program, wide=False).fma(row, Input(0), float(coefficient))
    plan = plan_rows(program.finish(row), ("lm0",), "lm1", load_target("mini"), 20)
    assert plan is not None
    assert plan.interval == 9


def test_two_units_work_at_once() -> None:
    program = Program()
    row: Row = Input(0)
    for _ in range(6):
        row = program.alu("ixor", Reals(program, wide=False).add(row, 1.0), 3)
    plan = plan_rows(program.finish(row), ("lm0",), "lm1", load_target("mini"), 20)
    assert plan is not None
    assert plan.interval < 9
