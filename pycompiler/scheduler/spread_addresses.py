"""Moves values in LM apart, so that merging is free to change the order of nodes.

Best fit takes the lowest free words, which have often just been read. The node that writes them
must then stay behind the one that read them, although neither needs the other. So values move to
words that nothing else uses for as long as possible before and behind their life.
"""

from __future__ import annotations

from collections.abc import Sequence

from emu2 import _core

from .best_fit import Chains

#: Distances of more nodes than this are all alike. With few nodes the last ones that conflict stay
#: near; with many, all move far away from values that no order brings near.
WINDOW = 256


def spread(chains: Chains, addresses: Sequence[int], capacity: int, unit: int) -> list[int]:
    """Return the addresses of chains further apart in time; those that the user gave stay.

    ``addresses`` and ``capacity`` are multiples of ``unit``, as are the words that a block takes.
    """
    places = list(addresses)
    large = [number for number, words in enumerate(chains.words) if words]
    rows = [(chains.starts[n], chains.ends[n], -(-chains.words[n] // unit), 1) for n in large]
    offsets = [addresses[n] // unit for n in large]
    fixed = [chains.given[n] is not None for n in large]
    for number, at in zip(
        large, _core.spread_offsets(rows, offsets, fixed, capacity // unit, WINDOW), strict=True
    ):
        places[number] = at * unit
    return places
