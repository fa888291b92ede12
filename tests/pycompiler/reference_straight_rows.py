"""Rows that go straight to other L1Bs, in Python: the reference of the crate ``switches``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from pycompiler.layers.switch.l1b_passes import _Block, _blocks
from pycompiler.layers.switch.pass_moves import Moves
from pycompiler.layers.switch.rows import Origin, origins_of, rows_of_l1b
from pycompiler.layers.switch.straight_rows import Sent
from pycompiler.machine import Target

#: The most steps that make a mask, when the number of the unit is at hand.
MASK_STEPS = 3
_Origins = Mapping[int, Sequence[Origin | None]]


@dataclass(frozen=True)
class Sending:
    """One way in which `l2bmi` serves the L1Bs: each takes from L1B ``origins[unit]``."""

    mnemonic: str
    origins: tuple[int | None, ...]

    def serves(self, wanted: Mapping[int, int]) -> frozenset[int]:
        """Return the units that it gives what they want: a map from unit to origin."""
        return frozenset(unit for unit, origin in wanted.items() if self.origins[unit] == origin)


@cache
def sendings(target: Target) -> tuple[Sending, ...]:
    """Return all ways in which `l2bmi` serves L1Bs, those with few senders first."""
    count = target.counts["l1b"]
    bits = (count - 1).bit_length()
    out: list[Sending] = []
    # If all bits must agree, each L1B would send to itself: the assembler refuses that.
    for free in range((1 << bits) - 1):
        for first in range(count):
            if first & free:
                continue
            found = target.transfer("l2bmi", "between", l1bs_first=first, l1bs_free=free)
            sides = found.destination["l1b"].tolist(), found.source["l1b"].tolist()
            origins = dict(zip(*sides, strict=True))
            suffix = f"@{first}/{free}" if free else f"@{first}"
            out.append(Sending(f"l2bmi{suffix}", tuple(map(origins.get, range(count)))))
    return tuple(out)


def straight(origins: _Origins, target: Target) -> list[Sent] | None:
    """Return how rows go straight.

    None if the machine sends other pieces than single rows, or if L1BM has no room for the vectors
    of a result row, one for each L1B at most.
    """
    room = rows_of_l1b(target)
    if room.block > 1 or room.half < target.counts["l1b"]:
        return None
    out: list[Sent] = []
    known: dict[frozenset[tuple[int, int]], list[tuple[str, frozenset[int]]] | None] = {}
    for at, units in origins.items():
        wanted: dict[int, dict[int, int]] = defaultdict(dict)
        for unit, origin in enumerate(units):
            if origin is not None:
                wanted[origin[1]][unit] = origin[0]
        ways: list[tuple[int, str, frozenset[int]]] = []
        for row, those in sorted(wanted.items()):
            key = frozenset(those.items())
            if key not in known:
                known[key] = _cover(those, target)
            found = known[key]
            if found is None:
                return None
            ways += [(row, mnemonic, taken) for mnemonic, taken in found]
        # The one that most units take writes everywhere, before the others.
        ways.sort(key=lambda way: -len(way[2]))
        for index, (row, mnemonic, taken) in enumerate(ways):
            bits = sum(1 << unit for unit in taken)
            out.append(Sent(at, row, mnemonic, bits if index else None))
    return out


def _cover(wanted: Mapping[int, int], target: Target) -> list[tuple[str, frozenset[int]]] | None:
    """Return ways that together serve all units of ``wanted``, and the units of each."""
    left = dict(wanted)
    out: list[tuple[str, frozenset[int]]] = []
    while left:
        best = max(sendings(target), key=lambda sending: len(sending.serves(left)), default=None)
        taken = frozenset[int]() if best is None else best.serves(left)
        if best is None or not taken:
            return None
        out.append((best.mnemonic, taken))
        left = {unit: origin for unit, origin in left.items() if unit not in taken}
    return out


def count_straight(sent: Sequence[Sent], target: Target, times: int = 1) -> int:
    """Count the steps of :func:`straight_steps`, if all is sent ``times`` times."""
    room = rows_of_l1b(target)
    sizes: dict[int | None, int] = defaultdict(int)
    for one in sent:
        sizes[one.units] += 1
    vectors = [len({one.row for one in sent}), *sizes.values()]
    masks = MASK_STEPS * sum(units is not None for units in sizes)
    wide = max(1, room.row // room.l2bm_words)
    down = sum(-(-size * times // room.vector) for size in vectors)
    return wide * len(sent) * times + down + masks


def straight_rows(found: Moves, target: Target) -> list[Sent] | None:
    """Return how rows go straight, None if the way through L2BM takes fewer steps."""
    origins = origins_of(found, target.counts["l1b"])
    return _straight(origins, _blocks(origins, rows_of_l1b(target).block), target)


def _straight(
    origins: dict[int, tuple[Origin | None, ...]], blocks: Sequence[_Block], target: Target
) -> list[Sent] | None:
    """Return how the rows go straight, None if the way through L2BM takes fewer steps."""
    sent = straight(origins, target)
    if sent is None:
        return None
    room = rows_of_l1b(target)
    those = [{origin for origin in block.origins if origin is not None} for block in blocks]
    wide = max(1, room.row // room.l2bm_words)
    vectors = -(-len(blocks) * room.block // room.vector)
    through = wide * (len(set().union(*those)) + sum(map(len, those))) + 2 * vectors
    return sent if count_straight(sent, target) <= through else None
