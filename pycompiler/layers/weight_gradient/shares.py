"""How units share the sums of all of them: each keeps some elements, none gets the others.

The partial sums of the MABs go up through the networks of MABs and of L1Bs to L2BM, as in any
reduction. From there one MV adds up all L2Bs, and leaves a part of the words in the DRAM of every
group. Each group brings its part to its own L2Bs, and distributing instructions bring a part of
that to every PE. So no word crosses more often than it must, and the result lies on all units, as
the update of a weight likes it. Small results stay the same on all L2Bs: then a PDM adds up, and
gives to all. A PDM takes a fourth of the words in a cycle that the DRAMs take together.

A *piece* is what one instruction of the network above L1BM moves: the same long words of all PEs of
a MAB, as many as fill it. Each DRAM gets an equal part of every piece; so the L1Bs that would get
the other parts get those of other pieces. The distributing instructions give the words of such a
row to the L1Bs and to the lowest MABs, and the rows to the other MABs and to addresses.

Or an L2B *gathers* all parts of its pieces, each from another DRAM. Then any digits may lie on
L2Bs, also a 3, and the parts of a piece come to different MABs. No more words pass than before.

Where DRAMs do not take equal parts of a piece, each group brings whole pieces to its own PDM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from operator import itemgetter

import numpy as np

from ...graph.digits import PrimeDigit, primes
from ...graph.dtypes import MNDtype
from ...graph.layout import Broadcast, Layout, Level, SubAxis
from ...graph.plan import SharedSums
from ...machine import Target
from ..dram_transfer_instructions import members
from ..reduce_kinds import SUMS
from ..switch.network_joins import Network, network_of
from .share_pieces import Piece, Shares, addresses_at_once, lane_mabs, words_of_piece

#: The kinds of places that digits of pieces get.
_L2B, _L1B, _MAB, _ADDR = Level.L2B, Level.L1B, Level.MAB, Level.ADDR


@lru_cache(maxsize=1024)
def shares_of(
    partial: Layout, over: tuple[SubAxis, ...], dtype: MNDtype, target: Target
) -> tuple[Shares, ...]:
    """Return how units may share the sums over the unit digits ``over``; nothing if they cannot.

    ``partial`` is the layout of the partial sums, in which the digits ``over`` hold copies.
    """
    found = _pieces_of(partial, over, dtype, target)
    if found is None or len(found.high) > _MOST_DIGITS:
        return ()
    out: list[Shares] = []
    parts = _parts_in_dram(found.words, target)
    if parts > 1:
        # The parts of a piece come to MABs.
        room = target.counts["mab"] // lane_mabs(target) % parts == 0
        for gathered in (False, True) if room else (False,):
            out += _offered(found, SharedSums(parts, gathered=gathered), target)
    out = out or [*_offered(found, SharedSums(1), target)]
    return (*out, *_offered(found, SharedSums(1, everywhere=True), target))


@lru_cache(maxsize=1024)
def shares_by(
    plan: SharedSums, partial: Layout, over: tuple[SubAxis, ...], dtype: MNDtype, target: Target
) -> Shares | None:
    """Return how units share the sums by a plan; None if they cannot."""
    found = _pieces_of(partial, over, dtype, target)
    if found is None or len(found.high) != len(plan.places):
        return None
    low = _low_digits(found, plan, target)
    return None if low is None else _placed(found, plan, low, target)


@dataclass(frozen=True)
class _Sums:
    """Partial sums: the network that joins them in pieces of ``words`` long words of a PE.

    ``high`` are the digits of the pieces.
    """

    partial: Layout
    network: Network
    words: int
    high: Sequence[SubAxis]


def _pieces_of(
    partial: Layout, over: tuple[SubAxis, ...], dtype: MNDtype, target: Target
) -> _Sums | None:
    """Return the pieces of sums over the unit digits ``over``; None if there are none."""
    units = frozenset(
        (sub.level, PrimeDigit(sub.stride * stride, size))
        for sub in over
        for stride, size in primes(sub.size)
    )
    operation = SUMS[dtype].network if dtype in SUMS else None
    found = None if operation is None else network_of(operation, units, target)
    if found is None or found[1] != units:
        return None
    network = found[0]
    words = words_of_piece(network, target)
    if not network.l2bs or words is None:
        return None
    others = [sub for sub in partial.subaxes if sub.size > 1]
    if any(sub.level in (Level.L2B, Level.MAB, Level.TIME) for sub in others):
        return None
    high = sorted(_high_digits(partial, words), key=lambda one: (one.level.value, one.stride))
    whole = all(one.level is Level.L1B or one.stride % words == 0 for one in high)
    return _Sums(partial, network, words, high) if whole else None


#: More digits of pieces are not tried: every digit multiplies the ways to place them.
_MOST_DIGITS = 8


def _parts_in_dram(words: int, target: Target) -> int:
    """Return how many DRAMs get an equal part of a piece; 1 if pieces cannot be parted so."""
    piece, parts = words * target.counts["pe"], target.groups
    equal = piece == parts * target.mv_block and words % parts == 0
    return parts if equal and words // parts % lane_mabs(target) == 0 else 1


def _low_digits(
    sums: _Sums, plan: SharedSums, target: Target
) -> dict[int, tuple[Level, int]] | None:
    """Return level and stride of the digits inside of pieces, by their stride in Addr."""
    below, words, part = lane_mabs(target), sums.words, sums.words // plan.parts
    ends = {below, part, words}
    out: dict[int, tuple[Level, int]] = {}
    reached = 1
    for stride, size in sorted(_addresses(sums.partial)):
        if stride >= words:
            break
        if stride != reached:
            return None
        if stride < below:
            out[stride] = Level.MAB, stride
        elif stride < part:
            out[stride] = Level.L1B, stride // below
        elif plan.gathered:
            # The strides of other digits on MABs come below these.
            out[stride] = Level.MAB, stride // part * below
        else:
            out[stride] = Level.L2B, stride // part * target.l2bs_per_group
        reached *= size
        ends.discard(reached)
    return out if not ends - {1} and reached == words else None


def _high_digits(partial: Layout, words: int) -> Iterator[SubAxis]:
    for stride, size in _addresses(partial):
        if stride >= words:
            yield SubAxis(size, Level.ADDR, stride)
    for sub in partial.on(Level.L1B):
        for stride, size in primes(sub.size):
            yield SubAxis(size, Level.L1B, stride * sub.stride)


def _addresses(layout: Layout) -> list[tuple[int, int]]:
    """Return stride and size of the prime digits of Addr."""
    return [
        (stride * sub.stride, size)
        for sub in layout.on(Level.ADDR)
        for stride, size in primes(sub.size)
    ]


#: Ways to place digits that are offered, how many of them may have the same digits on L2Bs, and how
#: many more addresses they may need.
_WAYS, _ALIKE, _MORE = 64, 6, 1.5


def _offered(sums: _Sums, plan: SharedSums, target: Target) -> Iterator[Shares]:
    """Give the digits of pieces their places: first those with as few addresses as possible.

    The update of the weight, or what reads it, may want other digits on L2Bs and L1Bs.
    """
    low = _low_digits(sums, plan, target)
    if low is None:
        return
    ways = _ways(sums, plan, target)
    offered, alike = 0, Counter[tuple[bool, ...]]()
    for rank, places in ways:
        if rank[0] > _MORE * ways[0][0][0] or offered == _WAYS:
            break
        on_l2bs = tuple(at is _L2B for at in places)
        if alike[on_l2bs] == _ALIKE:
            continue
        alike[on_l2bs] += 1
        offered += 1
        made = _placed(sums, replace(plan, places=places), low, target)
        if addresses_at_once(made, target) > 0:
            yield made


def _ways(
    sums: _Sums, plan: SharedSums, target: Target
) -> list[tuple[tuple[int, int], tuple[Level, ...]]]:
    """Return the places with the fewest addresses for all digits on L2Bs and L1Bs, and the rank."""
    apart = plan.parts > 1 and not plan.gathered
    l2bs = target.l2bs_per_group if apart else target.level_range[Level.L2B.value]
    mabs = target.counts["mab"] // lane_mabs(target)
    rooms = {
        _L2B: 1 if plan.everywhere else l2bs,
        _L1B: plan.parts,
        _MAB: mabs // plan.parts if plan.gathered else mabs,
    }
    best: dict[tuple[Level | None, ...], tuple[tuple[int, int], tuple[Level, ...]]] = {}
    for places in _placings([one.size for one in sums.high], rooms):
        sizes = {
            level: prod(one.size for one, at in zip(sums.high, places, strict=True) if at is level)
            for level in (_L2B, _L1B, _ADDR)
        }
        # A row has a part of as many pieces as there are parts; a PDM has two pieces at least.
        several = plan.everywhere or apart or sizes[_L2B] > 1
        if sizes[_L1B] == plan.parts and several:
            way = (sizes[_ADDR], -sizes[_L2B]), places
            key = tuple(at if at in (_L2B, _L1B) else None for at in places)
            best[key] = min(best.get(key, way), way, key=itemgetter(0))
    return sorted(best.values(), key=itemgetter(0))


def _placings(sizes: Sequence[int], rooms: Mapping[Level, int]) -> Iterator[tuple[Level, ...]]:
    """Yield the levels that digits of ``sizes`` may get, where each level has room for some."""
    if not sizes:
        yield ()
        return
    for level in (_L2B, _L1B, _MAB, _ADDR):
        if level is _ADDR or sizes[0] <= rooms[level]:
            left = {**rooms, level: rooms.get(level, 0) // sizes[0]}
            for others in _placings(sizes[1:], left):
                yield level, *others


def _placed(
    sums: _Sums, plan: SharedSums, low: dict[int, tuple[Level, int]], target: Target
) -> Shares:
    """Return the shares with each digit of the pieces in its place."""
    below, part = lane_mabs(target), sums.words // plan.parts
    first = {_L2B: 1, _L1B: part // below, _MAB: below, _ADDR: 1}
    strides = dict(first)
    placed: dict[SubAxis, SubAxis] = {}
    # Digits of L2Bs lie as in regions: a size that is no power of two comes last.
    order = sorted(
        zip(sums.high, plan.places, strict=True), key=lambda at: (at[1] is _L2B) * at[0].size
    )
    for one, level in order:
        placed[one] = SubAxis(one.size, level, strides[level])
        strides[level] *= one.size
    if plan.gathered:
        others = strides[_MAB] // below
        low = {
            at: (level, own * others if level is _MAB and at >= part else own)
            for at, (level, own) in low.items()
        }
    axes = tuple(
        tuple(new for sub in axis for new in _moved(sub, sums.words, low, placed))
        for axis in sums.partial.axes
    )
    copies = (Broadcast(Level.L2B),) if plan.everywhere else ()
    pieces = _pieces(sums.network, placed, first)
    return Shares(sums.network, Layout(axes, copies), sums.words, pieces, plan)


def _moved(
    sub: SubAxis, words: int, low: dict[int, tuple[Level, int]], placed: dict[SubAxis, SubAxis]
) -> list[SubAxis]:
    """Return the digits that take the place of one of the partial sums, major first."""
    if sub.size == 1 or sub.level not in (Level.ADDR, Level.L1B):
        return [sub]
    out: list[SubAxis] = []
    for stride, size in primes(sub.size):
        at = stride * sub.stride
        if sub.level is Level.ADDR and at < words:
            level, own = low[at]
            new = SubAxis(size, level, own)
        else:
            new = placed[SubAxis(size, sub.level, at)]
        if out and out[-1].level is new.level and out[-1].stride * out[-1].size == new.stride:
            out[-1] = out[-1]._replace(size=out[-1].size * size)
        else:
            out.append(new)
    return out[::-1]


def _pieces(
    network: Network, placed: dict[SubAxis, SubAxis], first: Mapping[Level, int]
) -> tuple[tuple[tuple[Piece, ...], ...], ...]:
    """Return the pieces by address, L2B and place on MABs; those of a row are neighbours."""
    axes = {_ADDR: 1, _L2B: 1, _MAB: 1, _L1B: 1}
    for sub in placed.values():
        axes[sub.level] *= sub.size
    word = np.zeros(tuple(axes.values()), dtype=np.int64)
    unit = np.zeros_like(word)
    index = dict(zip(axes, np.indices(word.shape), strict=True))
    for one, sub in placed.items():
        digit = index[sub.level] // (sub.stride // first[sub.level]) % sub.size * one.stride
        if one.level is Level.ADDR:
            word += digit
        else:
            unit += digit
    sets = {number: one for one in network.l1bs for number in members(one)}
    suffixes = {
        number: "" if len(network.l1bs) == 1 else "@" + ",".join(map(str, members(one)))
        for number, one in sets.items()
    }
    rows = np.stack([word, unit], axis=-1).reshape(axes[_ADDR], axes[_L2B], -1, 2).tolist()
    return tuple(
        tuple(tuple(Piece(at, suffixes[number]) for at, number in own) for own in address)
        for address in rows
    )
