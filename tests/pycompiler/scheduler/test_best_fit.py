"""Best fit: blocks that live at the same time are apart, unless one takes over another."""

from __future__ import annotations

import random

import pytest

from pycompiler.scheduler.best_fit import Block, Chains


def packed(blocks: list[Block]) -> tuple[dict[str, int], int]:
    chains = Chains(blocks)
    found, needed = chains.packed(chains.starts)
    return chains.of_blocks(found), needed


def drawn(seed: int) -> list[Block]:
    """Draw blocks; some take over the address of one that dies as they are born."""
    rng = random.Random(seed)
    blocks: list[Block] = []
    for number in range(rng.randint(2, 14)):
        ending = [block for block in blocks if all(other.on != block.name for other in blocks)]
        on = rng.choice(ending) if ending and rng.random() < 0.4 else None
        start = on.stop if on is not None else rng.randint(0, 12)
        name = f"b{number}"
        blocks.append(
            Block(
                name, rng.randint(1, 9), start, start + rng.randint(1, 8), on.name if on else None
            )
        )
    return blocks


def root(block: Block, named: dict[str, Block]) -> str:
    while block.on is not None:
        block = named[block.on]
    return block.name


@pytest.mark.parametrize("seed", range(150))
def test_blocks_that_live_together_are_apart(seed: int) -> None:
    blocks = drawn(seed)
    where, needed = packed(blocks)
    named = {block.name: block for block in blocks}
    assert needed >= max(where[block.name] + block.words for block in blocks)
    for one in blocks:
        if one.on is not None:
            assert where[one.name] == where[one.on]
        for other in blocks:
            if root(one, named) != root(other, named) and one.meets(other):
                first, second = sorted((one, other), key=lambda block: where[block.name])
                assert where[first.name] + first.words <= where[second.name], (one, other)


def test_a_block_may_be_larger_than_the_one_it_takes_over() -> None:
    blocks = [Block("a", 4, 0, 2), Block("c", 4, 1, 6), Block("b", 8, 2, 5, on="a")]
    assert packed(blocks) == ({"a": 0, "c": 8, "b": 0}, 12)


def test_of_blocks_that_begin_together_the_largest_comes_first() -> None:
    blocks = [Block("small", 2, 0, 1), Block("large", 4, 0, 3)]
    assert packed(blocks) == ({"large": 0, "small": 4}, 6)
    assert packed([]) == ({}, 0)
