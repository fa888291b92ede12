"""Sums, maxima and minima over L1Bs and L2Bs, by the reduction networks above L1BM.

Partial results go up: through the network of the MABs or one row per MAB, then through the network
of the L1Bs to L2BM, and, if all L2Bs are joined, by one MV to a PDM. Another MV and two broadcasts
bring the results down again. L1Bs that are not joined with each other form sets, which go up one
after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...code.lines import BlockOperand, Line, Move, single_step
from ...graph.digits import PrimeDigit, primes
from ...graph.layout import Level
from ...machine import Target
from ..dram_transfer_instructions import legal_set, members
from ..scratch import Words, vector
from .l1bm_vectors import l1bm_room
from .mab_joins import Join, joins


@dataclass(frozen=True)
class Network:
    """How partial results are joined above the PEs.

    ``mabs`` joins MABs on the way to L1BM; without it each MAB keeps a row of its own. ``l1bs`` are
    the sets of L1Bs that are joined (bit u is unit u). ``l2bs`` says that all L2Bs are joined.
    ``vector`` are the long words that a vector of all PEs takes in L1BM.
    """

    operation: str
    mabs: Join | None
    l1bs: tuple[int, ...]
    l2bs: bool
    vector: int


@lru_cache(maxsize=1024)
def network_of(
    operation: str, over: frozenset[tuple[Level, PrimeDigit]], target: Target
) -> tuple[Network, frozenset[tuple[Level, PrimeDigit]]] | None:
    """Return the network that joins digits, and those that it joins; None if there is none.

    ``over`` are the digits of units that are reduced.
    """
    found: dict[Level, frozenset[PrimeDigit]] = {
        level: frozenset(digit for where, digit in over if where is level)
        for level in (Level.MAB, Level.L1B, Level.L2B)
    }
    every = frozenset(primes(target.level_range[Level.L2B.value]))
    l2bs = bool(every) and found[Level.L2B] == every
    sets = _sets(found[Level.L1B], target)
    if not (found[Level.L1B] or l2bs) or sets is None:
        return None
    mabs = next((one for one in joins(operation, target) if one.digits <= found[Level.MAB]), None)
    words = mabs.words if mabs is not None else l1bm_room(target).words
    network = Network(operation, mabs, sets, l2bs, words)
    if not words_at_once(network, target):
        return None
    taken = {(Level.L1B, digit) for digit in found[Level.L1B]}
    if l2bs:
        taken |= {(Level.L2B, digit) for digit in every}
    if mabs is not None:
        taken |= {(Level.MAB, digit) for digit in mabs.digits}
    return network, frozenset(taken)


def _sets(over: Collection[PrimeDigit], target: Target) -> tuple[int, ...] | None:
    """Return the sets of L1Bs that differ in these digits; None if no instruction names them."""
    sets: dict[int, int] = {}
    for unit in range(target.counts["l1b"]):
        first = unit - sum(unit // digit.stride % digit.size * digit.stride for digit in over)
        sets[first] = sets.get(first, 0) | 1 << unit
    if len(sets) > 1 and not all(legal_set(one, target) for one in sets.values()):
        return None
    return tuple(sets.values())


def space(network: Network, words: int, target: Target) -> int:
    """Return the long words of L2BM that ``words`` long words of each PE take."""
    return len(network.l1bs) * _whole(network, words, target)


def capacity(network: Network, target: Target) -> int:
    """Return the long words of L2BM that can be joined at once."""
    half, unit = target.half("l2bm"), target.mv_unit
    return min(half, target.words("pdm") // unit * unit) if network.l2bs else half


def words_at_once(network: Network, target: Target) -> int:
    """Return how many long words of each PE fit half of L1BM and of L2BM, in whole vectors.

    Each set of L1Bs has words of its own in L2BM. 0 if not even one vector fits.
    """
    piece = _piece(network, target)
    each = capacity(network, target) // len(network.l1bs) // piece * piece
    below = target.half("l1bm") // piece * piece
    return min(each, below) // network.vector * target.cycles


def up(network: Network, part: Words, words: int, place: int, target: Target) -> Iterator[Line]:
    """Yield the lines that bring long words 0 to ``words`` of ``part`` to L2BM, joined.

    They lie in L2BM from ``place`` on. At most :func:`words_at_once` fit.
    """
    cycles = target.cycles
    name = "l1bmd" if network.mabs is None else network.mabs.up
    for start in range(0, words, cycles):
        here = vector(part, tuple(range(start, start + cycles)))
        above = BlockOperand("l1bm", start // cycles * network.vector, network.vector)
        yield single_step("l1bm", name, (here,), above)
    for suffix, lower, upper, size in _pieces(network, words, place, target):
        source, goal = BlockOperand("l1bm", lower, size), BlockOperand("l2bm", upper, size)
        yield single_step("l2bm", f"l2bmr{network.operation}{suffix}", (source,), goal)


def across(network: Network, words: int, target: Target) -> Iterator[Line]:
    """Yield the MVs that join the first ``words`` long words of all L2BMs."""
    if not network.l2bs:
        return
    words = -(-words // target.mv_unit) * target.mv_unit
    there = BlockOperand("pdm", 0, words, group=0)
    yield Move(f"mvr{network.operation}", words, BlockOperand("l2bm", 0, words), there)
    yield Move("mvb", words, there, BlockOperand("l2bm", _begin(network, target), words))


def down(
    network: Network, goal: Words, at: Sequence[int], place: int, target: Target
) -> Iterator[Line]:
    """Yield the lines that bring joined long words to ``at`` of ``goal``.

    They went up to ``place`` of L2BM.
    """
    cycles = target.cycles
    base, begin = target.half("l1bm"), _begin(network, target)
    for suffix, lower, upper, size in _pieces(network, len(at), place, target):
        source = BlockOperand("l2bm", begin + upper, size)
        below = BlockOperand("l1bm", base + lower, size)
        yield single_step("l2bm", f"l2bmb{suffix}", (source,), below)
    name = "l1bmd" if network.mabs is None else network.mabs.down
    for index in range(0, len(at), cycles):
        here = BlockOperand("l1bm", base + index // cycles * network.vector, network.vector)
        yield single_step("l1bm", name, (here,), vector(goal, tuple(at[index : index + cycles])))


def _begin(network: Network, target: Target) -> int:
    """Return where in L2BM the joined words begin: behind an MV they lie in the other half."""
    return target.half("l2bm") if network.l2bs else 0


def _pieces(
    network: Network, words: int, place: int, target: Target
) -> Iterator[tuple[str, int, int, int]]:
    """Yield suffix, long words of L1BM and of L2BM, and size of each instruction between them."""
    size, whole = _piece(network, target), _whole(network, words, target)
    for number, one in enumerate(network.l1bs):
        suffix = "" if len(network.l1bs) == 1 else "@" + ",".join(map(str, members(one)))
        for at in range(0, whole, size):
            yield suffix, at, place + number * whole + at, size


def _piece(network: Network, target: Target) -> int:
    """Return the long words that one instruction of the network above L1BM moves."""
    return target.transfer(f"l2bmr{network.operation}", "up").source_words


def _whole(network: Network, words: int, target: Target) -> int:
    """Return the long words of L1BM that ``words`` long words of each PE take, in whole pieces."""
    rows, size = words // target.cycles * network.vector, _piece(network, target)
    return -(-rows // size) * size
