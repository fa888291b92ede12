"""Place blocks by start time or by size, each at the lowest address free for its whole lifetime."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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


def pack(blocks: list[Block]) -> tuple[dict[str, int], int]:
    """Return addresses for ``blocks``, and the number of words up to the highest end.

    A block may be larger than the one whose address it takes. So all blocks that share an address
    reserve the words of the largest.
    """
    room = _rooms(blocks)
    alive: list[tuple[Block, int]] = []
    given = [block for block in blocks if block.at is not None]
    where: dict[str, int] = {}
    needed = 0
    for block in sorted(blocks, key=lambda b: (b.start, -b.words)):
        # Blocks come in order of birth, so a block that is dead by now meets none of the rest.
        alive = [(other, at) for other, at in alive if other.stop >= block.start]
        address = 0
        if block.on is not None:
            address = where[block.on]
        elif block.at is not None:
            address = block.at
        else:
            later = [(other, other.at or 0) for other in given if other.meets(block)]
            taken = {(at, at + room[other.name]) for other, at in (*alive, *later)}
            for low, high in sorted(taken):
                if address + room[block.name] <= low:
                    break
                address = max(address, high)
        alive.append((block, address))
        where[block.name] = address
        needed = max(needed, address + room[block.name])
    return where, needed


def pack_by_size(blocks: list[Block]) -> tuple[dict[str, int], int]:
    """Return what :func:`pack` does, but place large blocks first.

    So small blocks that live for a short time cut no large room in two. No block may have a given
    address.
    """
    room, chains, first = _rooms(blocks), dict[str, list[Block]](), dict[str, str]()
    for block in sorted(blocks, key=lambda b: (b.start, -b.words)):
        root = first[block.name] = block.name if block.on is None else first[block.on]
        chains.setdefault(root, []).append(block)
    lives = {
        root: (min(block.start for block in chain), max(block.stop for block in chain))
        for root, chain in chains.items()
    }
    starts, stops, lows, highs = np.zeros((4, len(chains)), dtype=np.int64)
    where: dict[str, int] = {}
    order = sorted(chains, key=lambda root: (-room[root], lives[root]))
    for count, root in enumerate(order):
        start, stop = lives[root]
        meets = (starts[:count] <= stop) & (stops[:count] >= start)
        taken = zip(lows[:count][meets].tolist(), highs[:count][meets].tolist(), strict=True)
        address = 0
        for low, high in sorted(taken):
            if address + room[root] <= low:
                break
            address = max(address, high)
        starts[count], stops[count] = start, stop
        lows[count], highs[count] = address, address + room[root]
        where |= dict.fromkeys((block.name for block in chains[root]), address)
    return where, int(highs.max(initial=0))


def _rooms(blocks: list[Block]) -> dict[str, int]:
    """Return for each block the words of the largest one at its address."""
    first: dict[str, str] = {}
    largest: dict[str, int] = {}
    for block in sorted(blocks, key=lambda b: (b.start, -b.words)):
        root = first[block.name] = block.name if block.on is None else first[block.on]
        largest[root] = max(largest.get(root, 0), block.words)
    return {name: largest[root] for name, root in first.items()}
