"""The DRAM of a board: blocks do not overlap, and what is given back joins its neighbours."""

from __future__ import annotations

import random

import pytest

from pycompiler.errors import PycompilerError
from pycompiler.machine import load_target
from pycompiler.runtime.device import Board, DramBlock


@pytest.mark.parametrize("seed", range(4))
def test_blocks_of_drawn_sizes(seed: int) -> None:
    """A block is refused only if no gap between the others has room; its words are multiples."""
    rng, target = random.Random(seed), load_target("mini")
    board, capacity, unit = Board(target), target.words("dram"), target.mv_unit
    alive: list[DramBlock] = []
    refused = 0
    for _ in range(400):
        while alive and rng.random() < 0.45:
            alive.pop(rng.randrange(len(alive)))
        words = rng.randint(1, capacity // rng.choice([4, 40]))
        taken = sorted((block.addr, block.addr + block.words) for block in alive)
        ends, starts = [0, *(end for _, end in taken)], [*(at for at, _ in taken), capacity]
        gaps = [start - end for end, start in zip(ends, starts, strict=True)]
        assert min(gaps) >= 0, f"seed {seed}: blocks overlap"
        size = -(-words // unit) * unit
        if max(gaps) < size:
            refused += 1
            with pytest.raises(PycompilerError) as caught:
                board.allocate(words)
            assert caught.value.code == "P0302"
        else:
            alive.append(board.allocate(words))
            assert alive[-1].words == size, f"seed {seed}"
    assert refused
    alive.clear()
    assert board.allocate(capacity // unit * unit).addr == 0


def test_blocks_of_many_sizes_one_after_the_other() -> None:
    """What is not alive takes no memory, whatever sizes there were."""
    target = load_target("mini")
    board, capacity = Board(target), target.words("dram")
    for number in range(200):
        assert board.allocate(capacity // 50 + number * target.mv_unit).addr == 0
