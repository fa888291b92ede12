"""Blocks of a memory by start time, each at the lowest address that is free for its whole life.

The crate ``packing`` places them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from emu2 import _core


@dataclass(frozen=True)
class Block:
    """A block of ``words`` that lives from time ``start`` to ``stop``, both included.

    ``on`` names a block whose address this block must take. ``at`` is an address that the user
    gives. ``value`` is the name by which the user knows the value in the block, if it is not
    ``name``: a copy has the name of the value that was copied.
    """

    name: str
    words: int
    start: int
    stop: int
    on: str | None = None
    at: int | None = None
    value: str | None = None

    def meets(self, other: Block) -> bool:
        """Whether there is a time at which both blocks live."""
        return self.start <= other.stop and other.start <= self.stop


class Chains:
    """Blocks in chains that share an address: each takes over the words of the one before it.

    A block may be larger than the one whose address it takes, so a chain takes the words of its
    largest for the lives of all. ``starts`` has the first moment of each chain.
    """

    def __init__(self, blocks: Sequence[Block]):
        chains: dict[str, list[Block]] = {block.name: [block] for block in blocks if not block.on}
        first = {name: name for name in chains}
        # A block begins after the one that it takes over.
        for block in sorted((b for b in blocks if b.on), key=lambda b: b.start):
            first[block.name] = first[block.on or ""]
            chains[first[block.name]].append(block)
        self.all = list(chains.values())
        self.starts = [min(block.start for block in chain) for chain in self.all]
        self.ends = [1 + max(block.stop for block in chain) for chain in self.all]
        self.words = [max(block.words for block in chain) for chain in self.all]
        self.given = [next((b.at for b in chain if b.at is not None), None) for chain in self.all]

    def packed(self, starts: Sequence[int]) -> tuple[list[int], int]:
        """Return the addresses of the chains, and the number of words up to the highest end.

        ``starts`` are first moments in the place of the own ones. Of chains that begin together,
        the one with the largest first block is placed first.
        """
        rows = [
            (start, end, words, 1)
            for start, end, words in zip(starts, self.ends, self.words, strict=True)
        ]

        order = sorted(range(len(rows)), key=lambda n: (starts[n], -self.all[n][0].words))
        offsets = _core.fit_offsets(rows, self.given, order, False)
        return offsets, max((at + row[2] for at, row in zip(offsets, rows, strict=True)), default=0)

    def of_blocks(self, addresses: Sequence[int]) -> dict[str, int]:
        """Return the addresses of all blocks, from those of the chains."""
        pairs = zip(self.all, addresses, strict=True)
        return {block.name: address for chain, address in pairs for block in chain}
