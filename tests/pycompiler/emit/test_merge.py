"""Merged streams against the same streams in sequence: all memories must agree."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from compiling import compiled, model_of, run, tried
from hypothesis import given, settings
from hypothesis import strategies as st
from merge_bound import bound_of
from merging import addresses_in, merge
from random_lines import Lines, final
from random_models import random_model

import emu2
from pycompiler.app.model import DeviceSegment
from pycompiler.code.lines import (
    BlockOperand,
    Forward,
    Fragment,
    Instruction,
    Line,
    Move,
    PeOperand,
    Special,
    Step,
    mask_register,
)
from pycompiler.emit.fragment_cache import Fragments
from pycompiler.emit.program import Code, Kind, concatenate
from pycompiler.errors import PycompilerError
from pycompiler.layers.dram_transfer import DOWNLOAD
from pycompiler.machine import Target, load_target


def nodes(streams: Sequence[Sequence[Line]]) -> list[tuple[str, str, Fragment]]:
    return [
        (f"n{at}", f"n{at}", Fragment(tuple(own), packed=True)) for at, own in enumerate(streams)
    ]


def both(
    streams: Sequence[Sequence[Line]], target: Target, kind: Kind = Kind.FIXED
) -> tuple[Code, Code | None]:
    """Return the streams one after the other, and merged."""
    made = nodes(streams)
    return concatenate(made, {}, target), merge(made, {}, target, [kind] * len(made))


def check(code: Code, target: Target) -> None:
    """The assembler finds no hazard, not even a guessed one, and agrees with the cycles."""
    assert target.assemble(code.text, "x.vsm").report()["cycles"] == code.cycles


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=tried(40, 800))
def test_merged_streams_do_what_the_streams_do(seed: int) -> None:
    target = load_target("mini")
    streams = [Lines(seed + at, target).some(14) for at in range(3)]
    plain, merged = both(streams, target, Kind.FIXED)
    check(plain, target)
    wanted, _ = final(plain.text, seed, target)
    if merged is None:
        return
    check(merged, target)
    found, _ = final(merged.text, seed, target)
    for memory, words in wanted.items():
        assert np.array_equal(found[memory], words), memory


def interleavings(one: Sequence[Line], other: Sequence[Line]) -> list[list[Line]]:
    """Return all orders of two streams that keep the order of each."""
    out = []
    for places in combinations(range(len(one) + len(other)), len(one)):
        mine, theirs = iter(one), iter(other)
        out.append([next(mine if at in places else theirs) for at in range(len(one) + len(other))])
    return out


def test_merging_finds_the_best_of_all_orders() -> None:
    """Brute force: the emulator says which orders of two small streams give the right state."""
    target = load_target("mini")
    merged_cycles = best_cycles = plain_cycles = 0
    for seed in range(tried(6)):
        streams = [Lines(100 * seed + at, target).some(3) for at in range(2)]
        plain, merged = both(streams, target)
        if merged is None:
            continue
        wanted, _ = final(plain.text, seed, target)
        found, _ = final(merged.text, seed, target)
        assert all(np.array_equal(found[memory], words) for memory, words in wanted.items())
        right = []
        for order in interleavings(*streams):
            code = concatenate(nodes([order]), {}, target)
            try:
                state, _ = final(code.text, seed, target)
            except PycompilerError:
                continue  # a forwarding path is read that the order has cut
            if all(np.array_equal(state[memory], words) for memory, words in wanted.items()):
                right.append(code.cycles)
        least = bound_of(nodes(streams), {}, target, [Kind.OTHER] * len(streams))
        assert least is not None
        assert 0 < least.path <= least.cycles <= min(right), seed
        merged_cycles += merged.cycles
        best_cycles += min(right)
        plain_cycles += plain.cycles
    assert merged_cycles <= best_cycles < plain_cycles


@pytest.mark.parametrize("seed", [128, *range(7)])
def test_drawn_networks_keep_their_bits_and_take_no_more_cycles(seed: int) -> None:
    """Seed 128: two downloads use one mask register; their order was once lost."""
    model, inputs = random_model(random.Random(seed))
    options: dict[str, Any] = {
        "float_dtype": ("float", "mixed")[seed % 2],
        "scheduler": ("spill_opt", "reuse_consecutive", "always_from_dram")[seed % 3],
    }
    plain, before = compiled(model, emit="concat", **options)
    merged, after = compiled(model, emit="l1merge", **options)
    wanted, found = run(plain, inputs), run(merged, inputs)
    assert wanted.keys() == found.keys()
    for name, array in wanted.items():
        assert np.array_equal(array, found[name], equal_nan=True), name
    assert after["cycles"] <= before["cycles"]
    assert after["dram_words"] == before["dram_words"]
    assert sum(row["cycles"] for row in after["nodes"]) == after["cycles"]
    for segment in merged.app.segments:
        if isinstance(segment, DeviceSegment):
            emu2.assemble(segment.code, load_target("mini").spec, policy="strict")


def chain(width: int, layers: int, rows: int) -> Any:
    """Return a model of dense layers, and an input."""
    draw = np.random.default_rng(0)
    arrays = {f"w{n}": draw.standard_normal((width, width)) / width for n in range(layers)}
    made, value = [], "x"
    for number in range(layers):
        made += [
            ("MatMul", [value, f"w{number}"], f"p{number}"),
            ("Relu", [f"p{number}"], f"r{number}"),
        ]
        value = f"r{number}"
    weights = {name: array.astype(np.float32) for name, array in arrays.items()}
    model = model_of(made, {"x": (rows, width)}, [value], weights)
    return model, {"x": draw.standard_normal((rows, width)).astype(np.float32)}


def test_downloads_hide_behind_other_nodes() -> None:
    model, inputs = chain(40, 4, 9)
    options = {"scheduler": "spill_opt", "float_dtype": "mixed"}
    plain, before = compiled(model, emit="concat", **options)
    merged, after = compiled(model, emit="l1merge", **options)
    assert after["cycles"] < 0.9 * before["cycles"]
    wanted, found = run(plain, inputs), run(merged, inputs)
    assert all(np.array_equal(found[name], array) for name, array in wanted.items())


def pe(memory: str, first: int, **more: Any) -> PeOperand:
    return PeOperand(memory, tuple(range(first, first + 4)), **more)


def test_lines_that_wait_for_an_mv_among_them_are_not_merged() -> None:
    """The second line reads by forwarding and needs the MV that stands before it."""
    target = load_target("mini")
    words = target.transfer("l2bmd", "up")
    send = Instruction("alu", "linc", (pe("lm0", 0),), (Special("nowrite"),))
    take = Instruction("alu", "linc", (Forward("alu"),), (pe("lm1", 0),))
    into = BlockOperand("l2bm", 0, words.destination_words)
    up = Instruction("l2bm", "l2bmd", (BlockOperand("l1bm", 0, words.source_words),), (into,))
    move = Move("mvp", 64, BlockOperand("dram", 0, 64), BlockOperand("l2bm", 0, 64, l2b=0))
    stream = [Step((send,)), move, Step((take, up))]
    plain, merged = both([stream], target)
    assert merged is None
    check(plain, target)
    # Without the transfer nothing waits, and the MV may stand behind both lines.
    plain, merged = both([[Step((send,)), move, Step((take,))]], target)
    assert merged is not None
    check(merged, target)


def test_masks_of_two_lengths_do_not_share_a_line() -> None:
    target = load_target("mini")
    mask = mask_register(1, target)
    narrow = pe("lm0", 0, mask=mask)
    wide = PeOperand("lm1", (0, 2, 4, 6), words=4, mask=mask)
    find = target.transfer("l1bmm", "to_pe_2").source_words
    one = Instruction("alu", "linc", (pe("grf0", 0),), (narrow,))
    block = BlockOperand("l1bm", 0, find, wide=True)
    other = Instruction("l1bm", "l1bmm", (block,), (wide,))
    _, merged = both([[Step((one,))], [Step((other,))]], target)
    assert merged is not None
    check(merged, target)
    assert sum(";" in line for line in merged.lines) == 0
    # With one length they do.
    short = Instruction("alu", "linc", (pe("grf0", 0),), (pe("lm0", 0),))
    _, merged = both([[Step((short,))], [Step((other,))]], target)
    assert merged is not None
    assert sum(";" in line for line in merged.lines) == 1


@pytest.mark.parametrize(("memory", "apart"), [("lm0", False), ("lm1", True)])
def test_a_write_only_bars_reads_of_the_same_memory(memory: str, apart: bool) -> None:
    """LM0 and LM1 have one port each, so reads of LM1 leave room for a write to LM0."""
    target = load_target("mini")
    reads = [
        Step((Instruction("alu", "linc", (pe("lm1", 4 * at),), (pe("grf0", 4 * at),)),))
        for at in range(6)
    ]
    block = BlockOperand("l1bm", 0, target.transfer("l1bmd", "to_pe").source_words)
    write = Step((Instruction("l1bm", "l1bmd", (block,), (pe(memory, 128),)),))
    _, merged = both([reads, [write]], target)
    assert merged is not None
    check(merged, target)
    # Behind the last read there is always room.
    at = next(at for at, line in enumerate(merged.lines) if "l1bmd" in line)
    assert (at < len(reads) - 1) is not apart


def downloads(machine: str) -> list[tuple[Fragment, dict[str, int]]]:
    """Return the downloads of a small network at their addresses."""
    target = load_target(machine)
    model, _ = chain(70, 1, 20)
    graph = compiled(model, machine, emit="concat")[0].graph
    addresses = {n: v.addr for n, v in graph.values.items() if v.addr is not None}
    made = Fragments(target)
    return [(made.of(n, graph), addresses) for n in graph.nodes if n.op == DOWNLOAD]


def blocks(fragment: Fragment, addresses: dict[str, int], target: Target) -> set[int]:
    """Return the addresses in L1BM of a download by itself."""
    code = merge([("n", "n", fragment)], addresses, target, [Kind.DOWNLOAD])
    assert code is not None
    return set(addresses_in(code.text, "b"))


@pytest.mark.parametrize("machine", ["mini", "mncore2"])
def test_downloads_in_stream_form_use_the_end_of_l1bm(machine: str) -> None:
    target = load_target(machine)
    words = target.words("l1bm")
    streamed = [blocks(fragment, addresses, target) for fragment, addresses in downloads(machine)]
    assert any(min(found) >= words - words // 8 for found in streamed)
    assert all(min(found) >= words - words // 8 or min(found) == 0 for found in streamed)
    assert all(max(found) < words for found in streamed)


def test_a_bias_does_not_hold_up_a_matrix() -> None:
    """They use different words of L1BM, so a matrix can pass a bias that has to wait."""
    target = load_target("mncore2")
    found = [blocks(fragment, addresses, target) for fragment, addresses in downloads("mncore2")]
    small, large = min(found, key=len), max(found, key=len)
    assert small
    assert len(small) < len(large)
    assert not small & large


def test_a_block_larger_than_the_ring_stays_where_it_is() -> None:
    target = load_target("mini")
    words = target.words("l1bm")
    fill = BlockOperand("l1bm", 0, words // 4)
    line = Step((Instruction("l2bm", "l2bmb", (BlockOperand("l2bm", 0, 64),), (fill,)),))
    read = Step((Instruction("l1bm", "l1bmd", (fill,), (pe("lm0", 0),)),))
    assert blocks(Fragment((line, read)), {}, target) == {0}


@pytest.mark.parametrize(("read", "stays"), [(0, False), (128, True)])
def test_a_chunk_stays_where_its_lines_read_other_words(read: int, stays: bool) -> None:
    """Words of L2BM that the MVs of the chunk did not bring cannot lie elsewhere."""
    target = load_target("mini")
    found = target.transfer("l2bmb", "down")

    def chunk(read: int) -> Fragment:
        move = Move("mvp", 64, BlockOperand("dram", 0, 64), BlockOperand("l2bm", 0, 64, l2b=0))
        block = BlockOperand("l2bm", read, found.source_words)
        into = BlockOperand("l1bm", 0, found.destination_words)
        line = Step((Instruction("l2bm", "l2bmb", (block,), (into,)),))
        return Fragment((move, line), packed=True)

    made = [("one", "", chunk(0)), ("other", "", chunk(read))]
    code = merge(made, {}, target, [Kind.DOWNLOAD] * 2)
    assert code is not None
    moves = [addresses_in(line, "c")[0] for line in code.lines if line.startswith("mv")]
    assert (moves[1] == 0) is stays
