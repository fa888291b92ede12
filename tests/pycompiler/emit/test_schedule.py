"""The list scheduler against the same lines in sequence: all memories must agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from random_lines import Lines, final

import emu2
from pycompiler.code.lines import Fragment, Instruction, PeOperand, Step
from pycompiler.emit.program import concatenate
from pycompiler.machine import load_target


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(50, 1200))
def test_packed_lines_do_what_the_lines_do(seed: int) -> None:
    target = load_target("mini")
    lines = Lines(seed, target).some(60)
    fragment = Fragment(tuple(lines), packed=True)
    plain = concatenate([("n", "n", fragment)], {}, target)
    packed = concatenate([("n", "n", replace(fragment, packed=False))], {}, target)
    wanted, slow = final(plain.text, seed, target)
    found, fast = final(packed.text, seed, target)
    assert fast <= slow
    for memory, words in wanted.items():
        assert np.array_equal(found[memory], words), memory


def test_independent_instructions_share_a_line() -> None:
    target = load_target("mini")

    def at(memory: str, first: int) -> PeOperand:
        return PeOperand(memory, tuple(range(first, first + target.cycles)))

    lines = (
        Step((Instruction("alu", "linc", (at("lm0", 0),), (at("grf0", 0),)),)),
        Step((Instruction("mau", "fvpassa", (at("lm1", 0),), (at("grf1", 0),)),)),
        Step((Instruction("alu", "linc", (at("grf0", 0),), (at("lm0", 0),)),)),
        Step((Instruction("alu", "linc", (at("lm1", 4),), (at("grf0", 8),)),)),
    )
    code = concatenate([("n", "n", Fragment(lines))], {}, target)
    assert [line.count(";") for line in code.lines[1:]] == [1, 0, 0]
    assert emu2.assemble(code.text, target.spec, policy="strict").report()["steps"] == 3


def test_each_lm_has_a_port_of_its_own() -> None:
    """A read of LM1 may come in the step after a write to LM0; once it waited for two steps."""
    target = load_target("mini")

    def at(memory: str, first: int) -> PeOperand:
        return PeOperand(memory, tuple(range(first, first + target.cycles)))

    def read(first: int) -> Step:
        return Step((Instruction("mau", "fvpassa", (at("lm1", first),), (at("grf1", first),)),))

    write = Step((Instruction("alu", "linc", (at("grf0", 0),), (at("lm0", 0),)),))
    code = concatenate([("n", "n", Fragment((read(0), read(4), read(8), write)))], {}, target)
    assert [line.count(";") for line in code.lines[1:]] == [1, 0, 0]
    emu2.assemble(code.text, target.spec, policy="strict")


def test_nodes_that_share_lines_are_packed_apart() -> None:
    target = load_target("mini")
    places = [tuple(range(first, first + target.cycles)) for first in (0, 16)]
    lines = tuple(
        Step((Instruction(slot, name, (PeOperand(memory, at),), (PeOperand(result, at),)),))
        for slot, name, memory, result, at in (
            ("alu", "linc", "lm0", "grf0", places[0]),
            ("mau", "fvpassa", "lm1", "grf1", places[1]),
        )
    )
    fragment = Fragment(lines, names={"v0": "x"})
    packed = replace(fragment, packed=True)
    nodes = [("n", "n", fragment), ("m", "m", packed), ("o", "o", fragment)]
    code = concatenate(nodes, {"x": 0}, target)
    assert [row.steps for row in code.nodes] == [1, 2, 1]
