"""Nodes that keep what only they need in other words do the same, and wait less for each other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st
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
from pycompiler.emit.concat import concatenate
from pycompiler.emit.merge import merge
from pycompiler.emit.node_order import Urgency
from pycompiler.emit.other_words import OtherWords
from pycompiler.emit.timeline import Timeline
from pycompiler.emit.units import Kind, prepare
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
    last = target.words("grf0") - 1
    lines = (
        single_step("alu", "lpassa", (PeOperand("lm0", (0,) * 4),), PeOperand("grf0", (last,) * 4)),
        single_step("alu", "ipassa", (PeOperand("grf0", (last,) * 4),), mask_register(1, target)),
    )
    made = prepare([Fragment(lines)] * 2, {}, target, [Kind.OTHER] * 2)
    assert made is not None
    timeline = Timeline(target)
    other = OtherWords(target, 1 << 32)
    assert other.of(made.lines[0], timeline.steps) == ()
    for unit in made.units[:2]:
        timeline.place_lines(unit.lines, 0)
    found = dict(other.of(made.lines[1], timeline.steps))
    assert found["grf0"] < 0 <= last + found["grf0"]
    assert found[target.masks["memory"]] == target.cycles


def test_urgent_nodes_come_first_and_conflicting_ones_keep_their_order() -> None:
    """On drawn nodes: all orders that LM and DRAM forbid are absent; the end of a chain is last."""
    target = load_target("mini")

    def copy(source: int, goal: int) -> Fragment:
        one, other = (PeOperand("lm0", (at,) * target.cycles) for at in (source, goal))
        return Fragment((single_step("alu", "lpassa", (one,), other),))

    for seed in range(tried(20)):
        draw = np.random.default_rng(seed)
        pairs = [tuple(map(int, draw.integers(6, size=2))) for _ in range(12)]
        made = prepare([copy(*pair) for pair in pairs], {}, target, [Kind.OTHER] * len(pairs))
        assert made is not None
        urgency = Urgency.of(made.lines, target)
        assert urgency is not None
        for order in (urgency.order(), urgency.order(0.5)):
            assert sorted(order) == list(range(len(pairs)))
            place = {node: at for at, node in enumerate(order)}
            for one, (source, goal) in enumerate(pairs):
                for later in range(one + 1, len(pairs)):
                    reads, writes = pairs[later]
                    if goal in (reads, writes) or source == writes:
                        assert place[one] < place[later], (seed, pairs)
    # Nodes 0 and 1 are free; only node 1 has others behind it.
    chain = [copy(0, 1), copy(2, 3), copy(3, 4), copy(4, 5)]
    made = prepare(chain, {}, target, [Kind.OTHER] * len(chain))
    assert made is not None
    urgency = Urgency.of(made.lines, target)
    assert urgency is not None
    assert urgency.order() == [1, 0, 2, 3]
