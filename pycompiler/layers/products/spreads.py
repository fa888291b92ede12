"""How batch, rows and columns of a product share the units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from ...graph.digits import Part, machine_digits, parts, primes
from ...graph.graph import MNGraph, MNNode
from ...graph.layout import Layouts, Level, SubAxis
from ...machine import Target
from .roles import Precision, Roles


@dataclass(frozen=True)
class Spread:
    """Unit digits of batch axes, n and m, minor first.

    Without Addr digits, those that no unit has are a run below the units. Batch axes, n and m may
    have Addr digits of stride 0, which stand between and above the units.
    """

    batch: tuple[tuple[SubAxis, ...], ...]
    n: tuple[SubAxis, ...]
    m: tuple[SubAxis, ...]
    #: digits of the contracted axis: all L1Bs or none, then all groups or none
    k: tuple[SubAxis, ...] = ()


@dataclass(frozen=True)
class SpreadRule:
    """What a spread prefers; without a preference n takes all units that it can use."""

    #: k takes the L1Bs
    contracted: bool = False
    #: k takes the groups
    grouped: bool = False
    #: n takes the groups above all that no unit has, as the k of a product behind may lie
    outermost: bool = False
    #: n takes only MABs until m has enough digits
    rows_first: bool = False
    #: most units that n takes
    columns: int | None = None
    #: digits of L2Bs that n takes before the rows do, beside its MABs, if it takes no L1Bs
    l2bs: int = 0
    #: digits of L1Bs that n takes, and only the MABs that it needs beside them
    l1bs: int = 0


#: The units whose digits m keeps, and those that it keeps if there are few rows.
_UNITS_OF_ROWS = (Level.L2B, Level.L1B)
_UNITS_OF_FEW_ROWS = (*_UNITS_OF_ROWS, Level.MAB)


def kept_units(roles: Roles, node: MNNode, hints: Layouts, graph: MNGraph) -> Iterator[Spread]:
    """Yield the digits that the batch axes and m have in the first operand, then in the result.

    The result has the layout that is wanted for it.
    """
    (a_batch, a_m, _), (c_batch, c_m, _) = roles.a, roles.c
    yield from _units_of_rows(node.inputs[0], a_batch, a_m, hints, graph, roles)
    yield from _units_of_rows(node.outputs[0], c_batch, c_m, hints, graph, roles)


def kept_units_of_few_rows(
    roles: Roles, node: MNNode, hints: Layouts, graph: MNGraph, target: Target
) -> Iterator[Spread]:
    """Yield the digits of the first operand, those of MABs too, if few rows meet one matrix.

    So few that one L1B could take them all: a vector of rows for each MAB. Then the rows may stay
    in their MABs, where other products would spread the columns.
    """
    rows = roles.m * prod(roles.batch[axis] for axis in _rows(roles))
    if roles.windows or rows > target.counts["mab"] * target.cycles:
        return
    found = _units_of_rows(
        node.inputs[0], roles.a[0], roles.a[1], hints, graph, roles, _UNITS_OF_FEW_ROWS
    )
    yield from list(found)[-1:]


def _units_of_rows(
    name: str,
    batch: Sequence[int | None],
    m: int | None,
    hints: Layouts,
    graph: MNGraph,
    roles: Roles,
    of_m: Sequence[Level] = _UNITS_OF_ROWS,
) -> Iterator[Spread]:
    """Yield the units as uppermost digits, and, if they are not, at the places that they have."""
    if name not in hints:
        yield Spread(((),) * len(batch), (), ())
        return
    found = parts(hints[name], graph.values[name].shape)

    def digits(axis: int | None, levels: Sequence[Level]) -> list[SubAxis]:
        return [
            SubAxis(digit.size, part.level, part.stride * digit.stride)
            if part.level in levels
            else SubAxis(digit.size, Level.ADDR, 0)
            for part in (found[axis] if axis is not None else ())
            for digit in primes(_even(part))
        ]

    def spread(units: Callable[[list[SubAxis]], list[SubAxis]]) -> Spread:
        own = [units(digits(axis, (Level.L2B, Level.L1B, Level.MAB))) for axis in batch]
        return Spread(tuple(map(tuple, own)), (), tuple(units(digits(m, of_m))))

    plain = spread(lambda digits: [digit for digit in digits if digit.level is not Level.ADDR])
    yield plain
    # Windows leave their axes in Addr, and their neighbours exchange halos.
    there = plain if roles.windows else spread(placed)
    if there != plain:
        yield there


def placed(digits: list[SubAxis]) -> list[SubAxis]:
    """Leave out the Addr digits if they lie below all units."""
    units = [digit for digit in digits if digit.level is not Level.ADDR]
    return units if digits[len(digits) - len(units) :] == units else digits


def is_of_groups(digit: SubAxis, target: Target) -> bool:
    """Whether L2Bs that differ in a digit are those of other groups."""
    return digit.level is Level.L2B and digit.stride >= target.l2bs_per_group


def _rows(roles: Roles) -> list[int]:
    """Return the batch axes along which the matrix is the same, except those of a convolution."""
    return [axis for axis, own in enumerate(roles.b[0]) if own is None and not roles.windows]


def _even(part: Part) -> int:
    """Return the size of a part, rounded up to a power of two if the axis cuts it short."""
    size = 1
    while size < part.size:
        size *= 2
    return size


@lru_cache(maxsize=1 << 14)  # many proposals of a product keep the same digits
def spread_units(
    roles: Roles, kind: Precision, target: Target, kept: Spread | None, rule: SpreadRule
) -> Spread:
    """Give the digits of MABs, L1Bs and L2Bs to batch, n and m; those of ``kept`` first."""
    free = _Free([one for one in machine_digits(target, 1) if one.level is not Level.PE])
    n, m = list[SubAxis](), list[SubAxis]()
    k = free.on(Level.L1B) if rule.contracted else []
    k += free.of_groups(target) if rule.grouped else []
    if roles.k % (kind.packed * prod(digit.size for digit in k)):
        k = []
    free.leave(k)
    blocks = -(-roles.n // kind.rows)
    groups = free.of_groups(target) if rule.outermost else []
    free.leave(groups)
    if rule.l1bs:
        outer = free.on(Level.L1B)[: rule.l1bs]
        over = prod(digit.size for digit in outer)
        free.take(n, -(-blocks // over), free.on(Level.MAB), 1)
        free.take(n, blocks, outer, 1)
    # A tap is an offset of the address, so windows leave their axes in Addr.
    whole = {axis for axis, window in roles.windows.items() if not window.trivial}
    batch: list[list[SubAxis]] = [[] for _ in roles.batch]
    if kept is not None:
        for axis in (axis for axis in range(len(batch)) if axis not in whole):
            free.keep(batch[axis], roles.batch[axis], kept.batch[axis], 1)
        # Rows of all axes along which the matrix is the same meet it together.
        others = prod(_rest(roles.batch[axis], batch[axis]) for axis in _rows(roles))
        free.keep(m, roles.m, kept.m, -(-target.cycles // others))
    if not rule.l1bs:
        # Groups that lie above all others share the blocks first.
        own_blocks = -(-blocks // prod(digit.size for digit in groups))
        narrow = bool(k) or rule.rows_first or rule.columns is not None
        least = -(-blocks // rule.columns) if rule.columns is not None else 1
        free.take(n, own_blocks, free.on(Level.MAB) if narrow else list(free.digits), least)
    if groups:
        n += [SubAxis(_rest(blocks, [*n, *groups]), Level.ADDR, 0), *groups]
    free.take(n, blocks, free.on(Level.L2B)[::-1][: rule.l2bs], 1)
    _share_batch(free, batch, roles, [axis for axis in range(len(batch)) if axis not in whole])
    free.take(m, roles.m, free.digits[::-1], target.cycles)
    if rule.rows_first:
        # Outer L2Bs first: then a group's DRAM has only the part of the matrix that it needs.
        inner = [digit for digit in free.digits if digit.level is not Level.L2B]
        free.take(n, blocks, inner + free.on(Level.L2B)[::-1], 1)
    return Spread(tuple(map(tuple, batch)), tuple(n), tuple(m), tuple(k))


@dataclass
class _Free:
    """The digits of units that no axis has yet, inner ones first."""

    digits: list[SubAxis]

    def on(self, level: Level) -> list[SubAxis]:
        return [digit for digit in self.digits if digit.level is level]

    def of_groups(self, target: Target) -> list[SubAxis]:
        return [digit for digit in self.digits if is_of_groups(digit, target)]

    def leave(self, taken: Sequence[SubAxis]) -> None:
        self.digits = [digit for digit in self.digits if digit not in taken]

    def take(self, into: list[SubAxis], size: int, wanted: Sequence[SubAxis], least: int) -> None:
        """Give an axis digits until ``least`` of its ``size`` are left."""
        for digit in wanted:
            if digit in self.digits and _rest(size, into) > least and _add(into, digit):
                self.digits.remove(digit)

    def keep(self, into: list[SubAxis], size: int, wanted: Sequence[SubAxis], least: int) -> None:
        """Give an axis the digits of another spread, which keep their places above Addr."""
        between = any(digit.level is Level.ADDR for digit in wanted)
        for digit in wanted:
            if digit in self.digits and _rest(size, into) > least:
                into.append(digit)
                self.digits.remove(digit)
            elif between:
                into.append(SubAxis(digit.size, Level.ADDR, 0))


def _rest(size: int, digits: Sequence[SubAxis]) -> int:
    return -(-size // prod(digit.size for digit in digits if digit.level is not Level.ADDR))


def _share_batch(
    free: _Free, batch: list[list[SubAxis]], roles: Roles, axes: Sequence[int]
) -> None:
    """Give digits to axes of the batch.

    Neighbours in an image exchange halos, which costs least between MABs. All others take the
    digits that are left from the outermost level inwards, outer axes first: views join axes so.
    """
    for axis in (axis for axis in axes if axis not in roles.windows):
        before = len(batch[axis])
        free.take(batch[axis], roles.batch[axis], free.digits[::-1], 1)
        taken = batch[axis][before:]
        if len({digit.level for digit in taken}) > 1:
            # Outer levels hold higher digits: an inner level can then leave its digits to Addr.
            batch[axis][before:] = taken[::-1]
    for axis in (axis for axis in reversed(axes) if axis in roles.windows):
        free.take(batch[axis], roles.batch[axis], list(free.digits), 1)


def _add(into: list[SubAxis], digit: SubAxis) -> bool:
    """Add a unit digit above all others, or in place of the uppermost Addr digit of its size."""
    places = [place for place, own in enumerate(into) if own.level is Level.ADDR]
    if not places:
        into.append(digit)
        return True
    same = [place for place in places if into[place].size == digit.size]
    if same:
        into[same[-1]] = digit
    return bool(same)
