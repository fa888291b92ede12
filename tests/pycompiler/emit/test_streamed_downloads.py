"""Downloads in front of a node that begins before all its words are there."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from compiling import compiled, model_of, run
from merging import merge

from pycompiler.code.lines import BlockOperand, Step
from pycompiler.emit.fragment_cache import Fragments
from pycompiler.emit.program import Kind, Program
from pycompiler.layers.dram_transfer import DOWNLOAD
from pycompiler.machine import load_target

TARGET = load_target("mini")


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


def test_downloads_come_in_the_order_in_which_their_words_are_read() -> None:
    """Both operands arrive side by side, also where a part of the program could end there."""
    graph = compiled(product()[0], float_dtype="mixed")[0].graph
    made = Fragments(TARGET)
    addresses = {name: v.addr for name, v in graph.values.items() if v.addr is not None}
    for window in (None, max(len(made.of(node, graph).lines) for node in graph.nodes)):
        program = Program(addresses, TARGET, merged=True, window=window)
        for node in graph.nodes:
            kind = Kind.DOWNLOAD if node.op == DOWNLOAD else Kind.OTHER
            program.add(node.name, node.name, made.of(node, graph), kind)
        moves = [re.match(r"mv\w+/\w+ \$d(\d+) \$lc", line) for line in program.finish().lines]
        starts = [int(found[1]) for found in moves if found]
        firsts = [addresses[name] for name in ("a", "b")]
        owners = [int(start >= max(firsts)) for start in starts]
        assert sorted(owners) != owners
        assert sorted(owners, reverse=True) != owners
        for owner in (0, 1):
            own = [start for start, of in zip(starts, owners, strict=True) if of == owner]
            assert own == sorted(own)
