"""The cost room: times of MVs are those of the emulator's clock, on machines with other numbers."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest
from compiling import with_seeds

from pycompiler.code.lines import BlockOperand, Move
from pycompiler.code.move_costs import move_cost, move_text
from pycompiler.code.nest import stages
from pycompiler.cost.moves import (
    chip_dram_rate,
    dram_rate,
    latency,
    latency_steps,
    rate,
)
from pycompiler.cost.sequence import waiting_steps
from pycompiler.machine import Target, load_target

MACHINES = ("mncore2", "mini", "what_if/odd", "what_if/wide_dram")


@dataclass(frozen=True)
class Form:
    """A form of MVs: its name in the spec, the unit of its size, and its operands."""

    mnemonic: str
    form: str
    unit: str
    source: str
    destination: str


#: The sizes of MVs are multiples of these, as the manual has them.
FORMS = (
    Form("mvp", "dram_to_l2bm_parallel", "mv_unit", "dram", "l2bm@.q"),
    Form("mvp", "l2bm_to_dram_parallel", "mv_unit", "l2bm@.q", "dram"),
    Form("mvb2", "dram_to_l2bm", "mv_unit", "dram", "l2bm"),
    Form("mvrliadd", "l2bm_to_pdm", "mv_unit", "l2bm", "pdm@g"),
)


def operand(text: str, group: int, l2b: int) -> BlockOperand:
    memory, _, at = text.partition("@")
    return BlockOperand(
        memory, 0, 1, group=group if at == "g" else None, l2b=l2b if at == ".q" else None
    )


def selectors(form: Form, group: int, l2b: int) -> dict[str, int]:
    found = {}
    for side, text in (("src", form.source), ("dst", form.destination)):
        found |= {f"{side}_l2b": l2b} if text.endswith("@.q") else {}
        found |= {f"{side}_group": group} if text.endswith("@g") else {}
    return found


@pytest.mark.parametrize("machine", MACHINES)
def test_rates_are_those_of_the_clock(machine: str) -> None:
    target = load_target(machine)

    def check(seed: int) -> None:
        rng = random.Random(seed)
        form = rng.choice(FORMS)
        group, l2b = rng.randrange(target.groups), rng.randrange(target.l2bs_per_group)
        words = target.mv_unit * rng.randint(1, target.words("l2bm") // target.mv_unit)
        source, goal = (operand(side, group, l2b) for side in (form.source, form.destination))
        found = move_cost(Move(form.mnemonic, words, source, goal), target)
        pace = rate(target, form.mnemonic, form.form, **selectors(form, group, l2b))
        assert (found.holds, found.latency) == (ceil(words / pace), latency(target)), seed

    with_seeds(check, 12, 200)


@pytest.mark.parametrize("machine", MACHINES)
def test_waits_are_those_of_the_clock(machine: str) -> None:
    """MVs to PDMs, a wait, MVs back, a wait: each MV is issued in a step of its own."""
    target = load_target(machine)

    def check(seed: int) -> None:
        rng = random.Random(seed)
        text, moves = "", Counter[Move]()
        for memories in (("l2bm", "pdm"), ("pdm", "l2bm")):
            tags = target.mv_tags[: rng.randint(1, 3)]
            for tag in tags:
                words = target.mv_unit * rng.randint(1, 16)
                group, l2b = rng.randrange(target.groups), rng.randrange(target.l2bs_per_group)
                sides = {
                    "pdm": BlockOperand("pdm", 0, words, group=group),
                    "l2bm": BlockOperand("l2bm", 0, words, group=group, l2b=l2b),
                }
                source, goal = (sides[memory] for memory in memories)
                move = Move("mvp", words, source, goal)
                text += f"{move_text(move, tag, target)}\n"
                moves[move] += 1
            text += "".join(f"nop; wait {target.tag(tag)}\n" for tag in tags)
        cycles = target.assemble(text, "waits.vsm").report()["cycles"]
        issued = (
            2 * moves.total() + 1
        )  # one step for each MV and each wait, and what divisions lose
        # The MVs of each of two stages go at once.
        made = (line for move, count in moves.items() for line in [move] * count)
        counted = target.cycles * waiting_steps(stages(made, target), target)
        assert 0 <= cycles - counted <= issued * target.cycles, seed

    with_seeds(check, 12, 200)


def other_timing(folder: Path, **timing: int) -> Target:
    path = folder / "other.toml"
    rows = "".join(f"{key} = {number}\n" for key, number in timing.items())
    path.write_text(f'extends = "mncore2"\n[machine]\nname = "other"\n[timing]\n{rows}')
    return load_target(str(path))


def test_numbers_of_mncore2() -> None:
    """As the manual and the cycle model's page give them."""
    target = load_target("mncore2")
    assert (latency(target), latency_steps(target)) == (256, 64)
    assert (dram_rate(target), chip_dram_rate(target)) == (16, 64)
    across = rate(target, "mvp", "l2bm_to_pdm", src_group=1, src_l2b=0, dst_group=0)
    assert across == Fraction(8)


def test_numbers_follow_the_spec(tmp_path: Path) -> None:
    target = other_timing(tmp_path, mv_latency=4096, mv_throughput=64)
    assert (latency(target), latency_steps(target)) == (4096, 1024)
    # Reductions have a rate of their own.
    joins = rate(target, "mvrliadd", "l2bm_to_pdm", dst_group=0)
    assert (dram_rate(target), joins) == (64, 8)
