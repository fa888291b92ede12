"""Downloads in front of a node that begins before all its words are there."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from compiling import compiled, model_of, run

from pycompiler.code.lines import (
    BlockOperand,
    Fragment,
    PeOperand,
    Special,
    Step,
    alu_step,
    mask_register,
)
from pycompiler.emit.addressed_lines import Lines, Shelf
from pycompiler.emit.download_order import by_first_read, downloads_before
from pycompiler.emit.fragment_cache import Fragments
from pycompiler.emit.merge import merge
from pycompiler.emit.units import Kind
from pycompiler.layers.dram_transfer import DOWNLOAD
from pycompiler.machine import load_target

TARGET = load_target("mini")


def at(memory: str, first: int, **more: Any) -> PeOperand:
    return PeOperand(memory, tuple(range(first, first + TARGET.cycles)), **more)


def lines(*steps: Step) -> Lines:
    return Shelf({}, TARGET).of(Fragment(steps, packed=True))


def writes(memory: str, first: int, **more: Any) -> Step:
    return alu_step("linc", (at("grf0", 0),), at(memory, first, **more))


def reads(memory: str, first: int) -> Step:
    return alu_step("linc", (at(memory, first),), Special("nowrite"))


@pytest.mark.parametrize("seed", range(20))
def test_chunks_come_in_the_order_in_which_their_words_are_read(seed: int) -> None:
    draw = random.Random(seed)
    places = [(memory, TARGET.cycles * n) for memory in ("lm0", "lm1") for n in range(8)]
    order = draw.sample(places, draw.randint(1, len(places)))
    reader = lines(*(reads(*place) for place in order))
    chunks, names = [], []
    for memory in ("lm0", "lm1"):
        own = [place for place in places if place[0] == memory]
        names.append([own[n : n + 2] for n in range(0, len(own), 2)])
        chunks.append([lines(*(writes(*place) for place in one)).lines for one in names[-1]])
    found = by_first_read(chunks, reader, TARGET)
    assert sorted(found) == [(d, n) for d, own in enumerate(chunks) for n in range(len(own))]
    latest = [-1, -1]
    keys = []
    for download, number in found:
        first = min(
            order.index(place) if place in order else len(order)
            for place in names[download][number]
        )
        # A chunk comes behind the chunks of its own download, whenever it is read.
        latest[download] = max(latest[download], first)
        keys.append(latest[download])
    assert keys == sorted(keys)
    for download in range(2):
        own_order = [number for one, number in found if one == download]
        assert own_order == sorted(own_order)


def test_downloads_that_share_words_or_masks_stay_in_order() -> None:
    plain = lines(writes("lm0", 0))
    other = lines(writes("lm1", 0))
    same = lines(writes("lm0", 0))
    masked = lines(writes("lm1", 8, mask=mask_register(1, TARGET)))
    another = lines(writes("lm1", 16, mask=mask_register(1, TARGET)))
    reader = lines(reads("lm0", 0))

    def run_of(*before: Lines) -> int:
        nodes = [*before, reader]
        return len(downloads_before(len(before), [True] * len(before) + [False], nodes))

    # Words of a register file are no words of LM, but the writers here read one: they may not move.
    with pytest.MonkeyPatch.context() as patch:
        own = frozenset({"lm0", "lm1", "grf0"})
        patch.setattr("pycompiler.emit.download_order._OWN", own)
        assert run_of(plain, other) == 2
        assert run_of(plain, same) == 1
        assert run_of(plain, masked) == 2
        assert run_of(masked, another) == 1
        assert run_of(masked, plain, another) == 2
    assert run_of(plain, other) == 1


def product() -> tuple[Any, dict[str, Any]]:
    """Return a product whose vectors stream, and its operands."""
    shapes = {"a": (121, 208), "b": (208, 125)}
    draw = np.random.default_rng(3)
    model = model_of([("MatMul", ["a", "b"], "y")], shapes, ["y"])
    return model, {n: draw.standard_normal(s).astype(np.float32) for n, s in shapes.items()}


def test_a_streamed_product_begins_before_its_operands_are_there() -> None:
    """Half of the product or of the downloads is hidden, and every bit stays."""
    model, inputs = product()
    plain, before = compiled(model, emit="concat", float_dtype="mixed")
    merged, after = compiled(model, emit="l1merge", float_dtype="mixed")
    assert np.array_equal(run(plain, inputs)["y"], run(merged, inputs)["y"])
    rows = {row["op"]: row["cycles"] for row in before["nodes"]}
    downloads = before["cycles"] - rows["MatMul"] - rows["MNCoreUpload"]
    hidden = before["cycles"] - after["cycles"]
    assert hidden > 0.5 * min(rows["MatMul"], downloads)


def test_words_of_l2bm_that_a_streamed_product_uses_are_left_to_it() -> None:
    graph = compiled(product()[0], float_dtype="mixed")[0].graph
    made = Fragments(TARGET)
    fragments = [(node.name, node.name, made.of(node, graph)) for node in graph.nodes]
    (streamed,) = [fragment for _, _, fragment in fragments if fragment.loose]
    blocks = [
        operand
        for line in streamed.lines
        if isinstance(line, Step)
        for one in line.instructions
        for operand in (*one.sources, *one.destinations)
        if isinstance(operand, BlockOperand) and operand.memory == "l2bm"
    ]
    limit = min(block.offset for block in blocks)
    assert 0 < limit < TARGET.words("l2bm")
    addresses = {name: v.addr for name, v in graph.values.items() if v.addr is not None}
    kinds = [Kind.DOWNLOAD if node.op == DOWNLOAD else Kind.OTHER for node in graph.nodes]
    code = merge(fragments, addresses, TARGET, kinds)
    assert code is not None
    moves = [re.match(r"mv\w+/n(\d+)i\w+ \$d\d+ \$lc(\d+)", line) for line in code.lines]
    ends = [int(found[1]) + int(found[2]) for found in moves if found is not None]
    assert len(ends) >= 2
    assert max(ends) <= limit
