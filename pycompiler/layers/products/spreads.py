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
    free = [one for one in machine_digits(target, 1) if one.level is not Level.PE]
    batch: list[list[SubAxis]] = [[] for _ in roles.batch]
    n, m, k = list[SubAxis](), list[SubAxis](), list[SubAxis]()

    def rest(size: int, digits: list[SubAxis]) -> int:
        return -(-size // prod(d.size for d in digits if d.level is not Level.ADDR))

    def take(into: list[SubAxis], size: int, wanted: Sequence[SubAxis], least: int) -> None:
        for digit in wanted:
            if digit in free and rest(size, into) > least and _add(into, digit):
                free.remove(digit)

    def keep(into: list[SubAxis], size: int, wanted: Sequence[SubAxis], least: int) -> None:
        between = any(digit.level is Level.ADDR for digit in wanted)
        for digit in wanted:
            if digit in free and rest(size, into) > least:
                into.append(digit)
                free.remove(digit)
            elif between:
                into.append(SubAxis(digit.size, Level.ADDR, 0))

    if rule.contracted or rule.grouped:
        packed = kind.packed
        own = [digit for digit in free if digit.level is Level.L1B and rule.contracted]
        own += [digit for digit in free if is_of_groups(digit, target) and rule.grouped]
        if roles.k % (packed * prod(digit.size for digit in own)) == 0:
            k = own
            free = [digit for digit in free if digit not in own]
    blocks = -(-roles.n // kind.rows)
    groups = [digit for digit in free if is_of_groups(digit, target) and rule.outermost]
    free = [digit for digit in free if digit not in groups]
    # Groups that lie above all others share the blocks first.
    own_blocks = -(-blocks // prod(digit.size for digit in groups))
    if rule.l1bs:
        outer = [digit for digit in free if digit.level is Level.L1B][: rule.l1bs]
        over = prod(digit.size for digit in outer)
        take(n, -(-blocks // over), [d for d in free if d.level is Level.MAB], 1)
        take(n, blocks, outer, 1)
    # A tap is an offset of the address, so windows leave their axes in Addr.
    whole = {axis for axis, window in roles.windows.items() if not window.trivial}
    for axis, size in enumerate(roles.batch if kept is not None else ()):
        assert kept is not None
        if axis not in whole:
            keep(batch[axis], size, kept.batch[axis], 1)
    if kept is not None:
        # Rows of all axes along which the matrix is the same meet it together.
        others = prod(rest(roles.batch[axis], batch[axis]) for axis in _rows(roles))
        keep(m, roles.m, kept.m, -(-target.cycles // others))
    narrow = bool(k) or rule.rows_first or rule.columns is not None
    least = -(-blocks // rule.columns) if rule.columns is not None else 1
    if not rule.l1bs:
        own = [digit for digit in free if not narrow or digit.level is Level.MAB]
        take(n, own_blocks, own, least)
    if groups:
        n += [SubAxis(rest(blocks, [*n, *groups]), Level.ADDR, 0), *groups]
    if rule.l2bs:
        outer = [digit for digit in reversed(free) if digit.level is Level.L2B]
        take(n, blocks, outer[: rule.l2bs], 1)
    # Neighbours in an image exchange halos, which costs least between MABs. All others take the
    # digits that are left from the outermost level inwards, outer axes first: views join axes so.
    apart = [axis for axis in range(len(roles.batch)) if axis not in whole]
    for axis in (axis for axis in apart if axis not in roles.windows):
        before = len(batch[axis])
        take(batch[axis], roles.batch[axis], list(reversed(free)), 1)
        taken = batch[axis][before:]
        if len({digit.level for digit in taken}) > 1:
            # Outer levels hold higher digits: an inner level can then leave its digits to Addr.
            batch[axis][before:] = taken[::-1]
    for axis in (axis for axis in reversed(apart) if axis in roles.windows):
        take(batch[axis], roles.batch[axis], list(free), 1)
    take(m, roles.m, list(reversed(free)), target.cycles)
    if rule.rows_first:
        # Outer L2Bs first: then a group's DRAM has only the part of the matrix that it needs.
        inner = [digit for digit in free if digit.level is not Level.L2B]
        outer = [digit for digit in reversed(free) if digit.level is Level.L2B]
        take(n, blocks, inner + outer, 1)
    return Spread(tuple(map(tuple, batch)), tuple(n), tuple(m), tuple(k))


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
