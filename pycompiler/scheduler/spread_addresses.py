"""Moves values in LM apart, so that merging is free to change the order of nodes.

Best fit takes the lowest free words, which have often just been read. The node that writes them
must then stay behind the one that read them, although neither needs the other. So values move to
words that nothing else uses for as long as possible before and behind their life.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emu2 import _core

from ..graph.disjoint_sets import DisjointSets
from .best_fit import Block

#: Distances of more nodes than this are all alike. With few nodes the last ones that conflict stay
#: near; with many, all move far away from values that no order brings near.
WINDOW = 256


def chains_of(blocks: Sequence[Block]) -> list[list[Block]]:
    """Return the blocks in groups that share an address, because they take over each other's."""
    sharing = DisjointSets[str]()
    for block in blocks:
        if block.on is not None:
            sharing.join(block.name, block.on)
    chains: dict[str, list[Block]] = {}
    for block in blocks:
        chains.setdefault(sharing.root(block.name), []).append(block)
    return list(chains.values())


def spread(
    blocks: Sequence[Block], addresses: Mapping[str, int], capacity: int, unit: int
) -> dict[str, int]:
    """Return addresses further apart in time; those that the user gave stay.

    ``addresses`` and ``capacity`` are multiples of ``unit``, as are the words that a block takes.
    """
    chains = [chain for chain in chains_of(blocks) if max(block.words for block in chain)]
    rows = [
        (
            min(block.start for block in chain),
            1 + max(block.stop for block in chain),
            -(-max(block.words for block in chain) // unit),
            1,
        )
        for chain in chains
    ]
    offsets = [addresses[chain[0].name] // unit for chain in chains]
    fixed = [any(block.at is not None for block in chain) for chain in chains]
    found = _core.spread_offsets(rows, offsets, fixed, capacity // unit, WINDOW)
    moved = {b.name: at * unit for chain, at in zip(chains, found, strict=True) for b in chain}
    return {**addresses, **moved}
