"""Long MVs become short ones that do the same."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from compiling import tried
from hypothesis import given, settings
from hypothesis import strategies as st

from pycompiler.code.lines import BlockOperand, Fragment, Move
from pycompiler.code.move_costs import move_cost
from pycompiler.emit.program import concatenate
from pycompiler.emit.short_moves import _PARTS, short_moves
from pycompiler.machine import Target, load_target


def some_move(rng: random.Random, target: Target) -> Move:
    """Return an MV between L2BM and PDM of some length."""
    unit, group = target.mv_unit, rng.randrange(target.groups)
    kind = rng.choice(("mvp", "mvb", "mvrffadd"))
    room = min(target.words("pdm"), target.words("l2bm")) // 2
    words = unit * rng.randint(1, room // unit)
    l2b = rng.randrange(target.l2bs_per_group) if kind == "mvp" else None
    above = BlockOperand("pdm", unit * rng.randrange(8), words, group=group)
    at = unit * rng.randrange(8)
    below = BlockOperand("l2bm", at, words, l2b=l2b, group=group if kind == "mvp" else None)
    up = kind == "mvrffadd" or (kind == "mvp" and rng.random() < 0.5)
    return Move(kind, words, *((below, above) if up else (above, below)))


@pytest.mark.parametrize(("machine", "examples"), [("mini", 30), ("mncore2", 6)])
def test_short_mvs_do_what_the_long_one_does(machine: str, examples: int) -> None:
    target = load_target(machine)
    cut = 0

    @given(st.integers(0, 2**32 - 1))
    @settings(max_examples=tried(examples))
    def moved(seed: int) -> None:
        nonlocal cut
        rng = random.Random(seed)
        move = some_move(rng, target)
        whole = Fragment((move,))
        short = Fragment(short_moves(whole.lines, target))
        for piece in short.lines:
            assert isinstance(piece, Move)
            cost = move_cost(piece, target)
            assert cost.holds * _PARTS <= cost.latency or len(short.lines) == 1
        cut += len(short.lines) > 1
        results = []
        for fragment in (whole, short):
            ran = target.new_machine()
            numbers = np.random.default_rng(seed % 1000)
            for memory in ("l2bm", "pdm"):
                before = ran.read(memory)
                bits = numbers.standard_normal((*before.shape, 2), dtype=np.float32)
                ran.write(memory, bits.view(np.uint64).reshape(before.shape))
            text = concatenate([("n", "moves", fragment)], {}, target).text
            ran.run(target.assemble(text, "moves.vsm"))
            results.append({memory: ran.read(memory) for memory in ("l2bm", "pdm")})
        for memory, words in results[0].items():
            assert np.array_equal(results[1][memory], words), (memory, move)

    moved()
    assert cut > 1


def test_mvs_of_dram_stay() -> None:
    target = load_target("mncore2")
    words = 16 * target.mv_unit
    down = BlockOperand("l2bm", 0, words)
    dram = Move("mvb2", words, BlockOperand("dram", 0, words, "x"), down)
    long = Move("mvb", words, BlockOperand("pdm", 0, words, group=0), down)
    lines = (dram,)
    assert short_moves(lines, target) is lines
    assert len(short_moves((long,), target)) > 1


def test_a_machine_whose_mvs_have_no_latency(tmp_path: Path) -> None:
    path = tmp_path / "soon.toml"
    head = 'extends = "mini"\n[machine]\nname = "soon"\ndoc = "MVs end as they pass."\n'
    path.write_text(f"{head}[timing]\nmv_latency = 0\n")
    target = load_target(str(path))
    words = 4 * target.mv_unit
    above = BlockOperand("pdm", 0, words, group=0)
    below = BlockOperand("l2bm", 0, words, l2b=0, group=0)
    short = short_moves((Move("mvp", words, above, below),), target)
    moved = [line.words for line in short if isinstance(line, Move)]
    assert len(moved) == len(short) > 1
    assert sum(moved) == words
