"""Nodes that keep what only they need in other words do the same, and wait less for each other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
from merging import addresses_in, merge
from random_lines import MASK, Lines, final

from pycompiler.code.lines import (
    BlockOperand,
    Fragment,
    Instruction,
    Line,
    PeOperand,
    Step,
    mask_register,
    single_step,
)
from pycompiler.emit.program import Kind, concatenate
from pycompiler.graph.digits import PrimeDigit, primes
from pycompiler.graph.layout import Level
from pycompiler.layers.scratch import Scratch
from pycompiler.layers.switch.network_joins import across, down, network_of, up
from pycompiler.machine import Target, load_target


def defined(target: Target) -> Iterator[Line]:
    """Yield lines that write all words that drawn lines may read, but those of LM and DRAM."""
    for start in range(0, 32, target.cycles):
        at = tuple(range(start, start + target.cycles))
        for file in ("grf0", "grf1"):
            yield single_step("alu", "lpassa", (PeOperand("lm0", at),), PeOperand(file, at))
    yield Step((Instruction("alu", "ipassa", (PeOperand("lm0", (0, 1, 2, 3)),), (MASK,)),))
    rows, lifted = target.transfer("l1bmd", "from_pe"), target.transfer("l2bmd", "up")
    lowered = target.transfer("l2bmb", "down")
    sizes = rows.destination_words, lifted.source_words, lowered.destination_words
    for at in range(0, 4 * max(sizes), rows.destination_words):
        block = BlockOperand("l1bm", at, rows.destination_words)
        yield single_step("l1bm", "l1bmd", (PeOperand("lm1", (0, 1, 2, 3)),), block)
    end = max(64, 4 * lifted.destination_words, 4 * lowered.source_words)
    for at in range(0, end, lifted.destination_words):
        above = BlockOperand("l2bm", at, lifted.destination_words)
        yield single_step("l2bm", "l2bmd", (BlockOperand("l1bm", 0, sizes[1]),), above)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(30, 600))
def test_nodes_with_other_words_do_the_same(seed: int) -> None:
    """LM and DRAM are the same, whichever words drawn nodes get of all other memories."""
    target = load_target("mini")
    kind = (Kind.OTHER, Kind.TRANSFER)[seed % 2]
    streams = [(*defined(target), *Lines(seed + at, target).some(12)) for at in range(3)]
    made = [(f"n{at}", f"n{at}", Fragment(own, packed=True)) for at, own in enumerate(streams)]
    merged = merge(made, {}, target, [kind] * len(made))
    if merged is None:
        return
    wanted, _ = final(concatenate(made, {}, target).text, seed, target)
    found, _ = final(merged.text, seed, target)
    for memory in ("lm0", "lm1", "dram"):
        assert np.array_equal(found[memory], wanted[memory]), memory


def reduction(place: int, target: Target) -> Fragment:
    """Return the sum of a vector over all L2Bs and L1Bs, which comes to ``place`` of LM0."""
    over = frozenset(
        (level, PrimeDigit(*digit))
        for level in (Level.L1B, Level.L2B)
        for digit in primes(target.level_range[level.value])
    )
    found = network_of("ffadd", over, target)
    assert found is not None
    network, part = found[0], Scratch("grf0")
    words = tuple(range(target.cycles))
    goal = Scratch("lm0", place)
    load = single_step("alu", "lpassa", (PeOperand("lm1", words),), PeOperand("grf0", words))
    lines = (
        load,
        *up(network, part, len(words), 0, target),
        *across(network, network.vector, target),
        *down(network, goal, words, 0, target),
    )
    return Fragment(lines)


def test_two_sums_travel_at_the_same_time() -> None:
    """The second of two sums over the chip takes less than the time of one of its MVs."""
    target = load_target("mncore2")
    cycles = []
    for count in (1, 2):
        made = [(f"n{at}", "", reduction(8 * at, target)) for at in range(count)]
        code = merge(made, {}, target, [Kind.OTHER] * count)
        assert code is not None
        assert target.assemble(code.text, "x.vsm").report()["cycles"] == code.cycles
        cycles.append(code.cycles)
    trip = target.assemble("mvp/n64i01 $lc0@0.0 $p0@0\nnop; wait i01\n", "mv.vsm").report()
    assert cycles[1] - cycles[0] < trip["cycles"]


@pytest.mark.parametrize("machine", ["mini", "mncore2"])
def test_words_stay_inside_of_their_memories(machine: str) -> None:
    """A node that uses the last words goes down; one with the first mask register goes up."""
    target = load_target(machine)
    last, cycles = target.words("grf0") - 1, target.cycles
    at = PeOperand("grf0", (last,) * cycles)
    lines = (
        single_step("alu", "lpassa", (PeOperand("lm0", (0,) * cycles),), at),
        single_step("alu", "ipassa", (at,), mask_register(1, target)),
    )
    nodes = [(f"n{number}", "", Fragment(lines)) for number in range(3)]
    code = merge(nodes, {}, target, [Kind.OTHER] * 3)
    assert code is not None
    target.assemble(code.text, "x.vsm")
    words = {at // 2 for at in addresses_in(code.text, "r")}
    masks = set(addresses_in(code.text, target.masks["destination"]))
    assert max(words) == last
    assert len(words) == 3
    assert 1 <= min(masks) <= max(masks) < target.masks["entries"]


def copy_of(source: int, goal: int, target: Target) -> Fragment:
    """Return a copy of a word of LM0 to another one, through a register: LM0 has one port."""
    one, other = (PeOperand("lm0", (at,) * target.cycles) for at in (source, goal))
    register = PeOperand("grf0", (0,) * target.cycles)
    first = single_step("alu", "lpassa", (one,), register)
    return Fragment((first, single_step("alu", "lpassa", (register,), other)))


def test_nodes_that_touch_common_words_keep_their_order() -> None:
    """Drawn copies of words of LM leave the same words in every order of urgency."""
    target = load_target("mini")

    for seed in range(tried(20)):
        draw = np.random.default_rng(seed)
        pairs = [tuple(map(int, draw.integers(6, size=2))) for _ in range(12)]
        nodes = [(f"n{number}", "", copy_of(*pair, target)) for number, pair in enumerate(pairs)]
        code = merge(nodes, {}, target, [Kind.OTHER] * len(pairs))
        assert code is not None
        wanted, _ = final(concatenate(nodes, {}, target).text, seed, target)
        found, _ = final(code.text, seed, target)
        assert np.array_equal(found["lm0"], wanted["lm0"]), (seed, pairs)


def test_the_node_for_which_most_waits_comes_first() -> None:
    """Nodes 0 and 1 are free; only node 1 has others behind it."""
    target = load_target("mini")

    pairs = [(0, 1), (2, 3), (3, 4), (4, 5)]
    nodes = [(f"n{number}", "", copy_of(*pair, target)) for number, pair in enumerate(pairs)]
    code = merge(nodes, {}, target, [Kind.OTHER] * len(pairs))
    assert code is not None
    assert [run.nodes[0] for run in code.runs][:2] == [1, 0]
