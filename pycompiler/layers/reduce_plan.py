"""The work of a reduction: what each PE adds up, and how the units' results are joined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..graph.digits import PrimeDigit, primes
from ..graph.graph import MNValue
from ..graph.layout import UNIT_LEVELS, Layout, Level
from ..machine import Target
from .base import digits, layout_of, words_met
from .switch.mab_joins import Join, joins
from .switch.network_joins import Network, capacity, network_of, space, words_at_once
from .switch.pass_moves import Moves

#: Long words of the second register file that hold constants.
CONSTANTS = 1

_CHUNK = 64  # long words of the result that are computed at once


@dataclass(frozen=True)
class Plan:
    """The work of a reduction.

    ``meets``: the input long words of each output long word. ``terms``: their number. ``words``:
    whether the words of a long word are joined. ``mabs``: how the network joins MABs alone, and
    ``network``: how it joins L1Bs or L2Bs as well; None if it does not. ``units``: the other unit
    digits to reduce over. ``counts``: the units of each level. ``size``: output long words of a
    chunk.
    """

    meets: dict[int, list[int]]
    terms: int
    words: bool
    mabs: Join | None
    network: Network | None
    units: tuple[tuple[Level, PrimeDigit], ...]
    round: frozenset[tuple[Level, PrimeDigit]]
    counts: dict[Level, int]
    size: int

    @property
    def below(self) -> tuple[tuple[Level, PrimeDigit], ...]:
        """The unit digits that are reduced before the network joins; without a network all."""
        if self.network is None:
            return self.units
        return tuple(unit for unit in self.units if unit[0] in (Level.PE, Level.MAB))

    @property
    def above(self) -> tuple[tuple[Level, PrimeDigit], ...]:
        """The unit digits that are reduced behind the network."""
        return self.units[len(self.below) :]

    def turns(self, level: Level, digit: PrimeDigit) -> bool:
        """Whether the ALU turns results round the PEs, and joins them as they come."""
        return level is Level.PE and digit.size == 2 and (level, digit) in self.round

    def folds(self, outs: Sequence[int]) -> int:
        """Return how many cycles of a vector share the terms of each long word of ``outs``.

        A vector of few results would leave cycles without work. Each then adds up a part.
        """
        few = len(dict.fromkeys(outs))
        return max(
            f
            for f in range(1, len(outs) // few + 1)
            if f == 1 or (self.terms % f == 0 and self.terms // f > f)
        )

    def partners(self, level: Level, digit: PrimeDigit, turn: int, words: int) -> Moves:
        """Return the moves that bring every unit all words of a partner.

        The digit of the partner is ``turn`` higher, modulo the size of the digit.
        """
        (stride, size), count = digit, self.counts[level]
        unit = np.arange(count, dtype=np.int64)
        if (level, digit) in self.round:
            partner = (unit + turn * stride) % count
        else:
            partner = unit + ((unit // stride + turn) % size - unit // stride % size) * stride
        at = np.tile(np.arange(words, dtype=np.int64), count)
        return Moves(np.repeat(unit, words), at, np.repeat(partner, words), at)

    def batches(self, target: Target) -> Iterator[list[list[int]]]:
        """Yield chunks that go through the network together."""
        batch: list[list[int]] = []
        used = 0
        for chunk in self.chunks(target):
            alone, more = True, 0
            if self.network is not None and not self.above:
                more = space(self.network, len(chunk), target)
                alone = used + more > capacity(self.network, target)
            if batch and alone:
                yield batch
                batch, used = [], 0
            batch.append(chunk)
            used += more
        if batch:
            yield batch

    def chunks(self, target: Target) -> Iterator[list[int]]:
        """Yield chunks of output long words: whole vectors that fit the register files."""
        outs = sorted(self.meets)
        for start in range(0, len(outs), self.size):
            part = outs[start : start + self.size]
            yield part + [part[-1]] * (-len(part) % target.cycles)


def plan(
    source: MNValue,
    result: MNValue,
    axes: Sequence[int | None],
    reduced: Sequence[int],
    operation: str | None,
    target: Target,
) -> Plan:
    """Return the work of a reduction; ``axes`` are those of the source for axes of the result.

    ``operation`` is that of the network, None if it has none.
    """
    whole, own = layout_of(source), layout_of(result)
    kept = {axis: index for index, axis in enumerate(axes) if axis is not None}
    at, meets = words_met(whole, {axis: digits(own.axes[at]) for axis, at in kept.items()})
    found: dict[int, list[int]] = {}
    for word, out in zip(at.tolist(), meets.tolist(), strict=True):
        found.setdefault(out, []).append(word)
    units = tuple(_digits_of(whole, reduced))
    # The network joins MABs that differ in digits which are all reduced, and takes two steps.
    network, mabs, taken = None, None, frozenset[tuple[Level, PrimeDigit]]()
    if operation is not None:
        found_network = network_of(operation, frozenset(units), target)
        if found_network is not None:
            network, taken = found_network
        else:
            over = {digit for level, digit in units if level is Level.MAB}
            mabs = next((one for one in joins(operation, target) if one.digits <= over), None)
            taken = frozenset((Level.MAB, digit) for digit in (mabs.digits if mabs else ()))
    units = tuple(unit for unit in units if unit not in taken)
    packed = any(s.level is Level.W for axis in reduced for s in digits(whole.axes[axis]))
    counts = {level: target.level_range[level.value] for level in UNIT_LEVELS}
    # Chunks are whole vectors, and the partners' results fit beside the constants.
    most = max((size - 1 for _, (_, size) in units), default=1)
    room = (target.words("grf1") - 2 * target.cycles) // most
    size = max(target.cycles, min(_CHUNK, room // target.cycles * target.cycles))
    if network is not None:
        size = min(size, words_at_once(network, target))
    terms = len(next(iter(found.values())))
    turning = frozenset(_round(units, counts))
    return Plan(found, terms, packed, mabs, network, units, turning, counts, size)


def _digits_of(layout: Layout, reduced: Sequence[int]) -> Iterator[tuple[Level, PrimeDigit]]:
    """Return the unit digits of reduced axes, inner levels first, of each level from the top."""
    for level in reversed(UNIT_LEVELS):
        found = [
            PrimeDigit(sub.stride * stride, size)
            for axis in reduced
            for sub in digits(layout.axes[axis])
            if sub.level is level
            for stride, size in primes(sub.size)
        ]
        yield from ((level, digit) for digit in sorted(found, reverse=True))


def _round(
    units: Sequence[tuple[Level, PrimeDigit]], counts: Mapping[Level, int]
) -> Iterator[tuple[Level, PrimeDigit]]:
    """Yield the digits above which all digits of the level are reduced before.

    Units that differ only in higher digits then hold the same, so a turn of all units brings each
    of them what its partner has.
    """
    below = dict(counts)
    for level, digit in units:
        if digit.stride * digit.size == below[level]:
            below[level] = digit.stride
            yield level, digit
