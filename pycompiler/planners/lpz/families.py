"""Families: layouts of a whole network in which one order of axes takes the units.

The search finds the best choice among the candidates, and growth finds candidates near a choice.
Neither leaves a plan in which all neighbours agree, such as tokens on L2Bs, for another one, such
as pictures on L2Bs: every single change costs a switch. So each family gives the largest region a
layout of one kind, which goes through the whole graph as chosen layouts do when pools grow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ...graph.digits import Part, all_ranges, primes
from ...graph.dtypes import MNDtype
from ...graph.graph import MNGraph, MNValue
from ...graph.layout import UNIT_LEVELS, Broadcast, Layout, Layouts, Level
from ...layers.default_layout import built
from ...machine import Target
from ..first_arrival import FirstArrival
from .growth import MOST, Seed
from .pools import Pools


@dataclass(frozen=True)
class Family:
    """Which axes take the units.

    The last axis has words and PEs, and the units of the levels ``inner`` before the other axes do.
    Of the others, outer axes take outer units; with ``reverse`` they take inner ones. Units of
    levels that are not in ``levels`` hold copies.
    """

    inner: tuple[Level, ...]
    reverse: bool
    levels: tuple[Level, ...] = (Level.L2B, Level.L1B, Level.MAB)


_INNER = {"rows": (), "columns_on_mabs": (Level.MAB,), "columns_on_l1bs": (Level.MAB, Level.L1B)}
#: The families by name.
FAMILIES: Mapping[str, Family] = {
    name + suffix: Family(inner, reverse)
    for name, inner in _INNER.items()
    for suffix, reverse in (("", False), ("_reversed", True))
} | {"inside_l1bs": Family((), False, (Level.MAB,))}
#: The families that all regions get together.
EVERYWHERE = "rows", "columns_on_mabs"
#: How many regions give families.
LARGEST = 2

#: A level, a stride and a size.
_Digit = tuple[Level, int, int]
_Takers = Mapping[Level, Sequence[int]]


def add_families(
    pools: Pools, names: Sequence[str] = tuple(FAMILIES), most: int | None = LARGEST
) -> Iterator[list[Seed]]:
    """Add the candidates of one family after the other, for the ``most`` largest regions.

    Yields the candidate of each region that has one in the family, the largest region's first.
    """
    for number in _regions(pools)[:most]:
        inner = _inner_axis(pools, number)
        for name in names:
            seed = _seed(pools, number, name, inner)
            if seed is not None:
                yield [seed]


def add_everywhere(pools: Pools) -> Iterator[list[Seed]]:
    """Add the candidates of one family after the other, for all regions together.

    Yields the candidates of the regions that have one in the family.
    """
    for name in EVERYWHERE:
        made = [
            _seed(pools, number, name, _inner_axis(pools, number), everywhere=True)
            for number in _regions(pools)
        ]
        seeds = [seed for seed in made if seed is not None]
        if seeds:
            yield seeds


def _regions(pools: Pools) -> list[int]:
    """Return the numbers of the regions that may choose, the one with most elements first."""
    sizes = {
        number: sum(prod(pools.graph.values[name].shape) for name in one.values)
        for number, one in enumerate(pools.variables)
        if one.region is not None and not one.fixed and one.values
    }
    return sorted(sizes, key=lambda number: -sizes[number])


def _largest(pools: Pools, number: int) -> MNValue:
    values = (pools.graph.values[name] for name in pools.variables[number].values)
    return max(values, key=lambda value: prod(value.shape))


def _seed(
    pools: Pools, number: int, name: str, inner: int, *, everywhere: bool = False
) -> Seed | None:
    """Add the candidate of a family to a region; None if it has none, or had it before.

    One for all regions ``everywhere`` may have been there before.
    """
    variable, value = pools.variables[number], _largest(pools, number)
    layout = family_layout(
        value, FAMILIES[name], pools.target, packed=everywhere, spread=everywhere, inner=inner
    )
    add = pools.seeded if everywhere else pools.region_candidate
    found = layout and add(variable, (value, layout, None))
    return Seed(name, number, found) if found and variable.add(found, MOST) else None


def _inner_axis(pools: Pools, number: int) -> int:
    """Return the axis that most candidates put on words: columns of products, or channels."""
    variable, value = pools.variables[number], _largest(pools, number)
    found = Counter(
        axis
        for candidate in variable.pool
        for axis, subs in enumerate(candidate[value.name].axes)
        if any(sub.level is Level.W for sub in subs)
    )
    return max(range(len(value.shape)), key=lambda axis: (found[axis], axis))


def input_families(graph: MNGraph, target: Target, wanted: Layouts) -> Iterator[Layouts]:
    """Yield first-arrival layouts of the graph whose largest input has the layout of a family.

    All that the input reaches then begins beside it. Inputs in ``wanted`` have their layouts.
    """
    inputs = [name for name in graph.inputs if name in graph.device_values().difference(wanted)]
    if not inputs:
        return
    value = max((graph.values[name] for name in inputs), key=lambda value: prod(value.shape))
    given = (
        family_layout(value, family, target, packed=packed)
        for packed in (True, False)
        for family in FAMILIES.values()
    )
    for layout in dict.fromkeys(one for one in given if one is not None):
        if layout.num_lw(target.cycles) <= target.words("lm0"):
            yield FirstArrival(graph, target, wanted).run((value.name, layout))


def family_layout(
    value: MNValue,
    family: Family,
    target: Target,
    *,
    packed: bool = False,
    spread: bool = False,
    inner: int | None = None,
) -> Layout | None:
    """Return the layout of a value in a family.

    Outer levels are assigned first, and within a level the digits with larger strides. A digit goes
    to the first axis that it divides, or that has elements left beside it. None if there is only
    one axis, or if the layout is not legal. ``inner`` takes the part of the last axis.

    With ``packed`` the last axis is laid out as products lay out their columns: singles that become
    one long word of halves stay in their PE, and an odd number of addresses lies above the units.
    With ``spread`` the last axis takes the units that the others have no elements for.
    """
    shape = value.shape
    last = len(shape) - 1 if inner is None else inner
    order = [axis for axis in range(len(shape)) if shape[axis] > 1 and axis != last]
    if not order:
        return None
    if family.reverse:
        order.reverse()
    ranges = all_ranges(target.level_range, value.dtype)
    halves = MNDtype.HALF.words_per_long // value.dtype.words_per_long if packed else 1
    rest, placed = list(shape), dict[int, list[Part]]()
    below, rest[last] = _inner_digits(shape[last], ranges, halves)
    others = [*order, last] if spread else order
    takers = {level: [last] if level in family.inner else others for level in family.levels}
    above = _outer_digits(rest, takers, ranges, target.cycles)
    stride = prod(size for level, _, size in below if level is Level.ADDR)
    for axis in sorted(range(len(shape)), key=lambda axis: (axis != last, -axis)):
        own = below if axis == last else []
        addresses = [(Level.ADDR, stride, rest[axis])] if rest[axis] > 1 else []
        stride *= rest[axis]
        odd = packed and axis == last and rest[axis] & (rest[axis] - 1)
        outer = [*above[axis], *addresses] if odd else [*addresses, *above[axis]]
        placed[axis] = _stacked((*own, *outer))
    like = Layout((), tuple(map(Broadcast, UNIT_LEVELS)))
    return built(shape, placed, like, value.dtype, target)


def _stacked(digits: Iterable[_Digit]) -> list[Part]:
    """Return the parts of an axis that has these digits, minor first."""
    found: list[Part] = []
    for level, stride, size in digits:
        found.append(Part(prod(part.size for part in found), size, level, stride))
    return found


def _inner_digits(size: int, ranges: Mapping[Level, int], halves: int) -> tuple[list[_Digit], int]:
    """Return the digits of an axis in words and PEs, and how many elements are left beside them.

    If it can, each PE holds ``halves`` long words that become one.
    """
    found: list[_Digit] = []
    for level in (Level.W, Level.PE):
        if level is Level.PE and halves > 1 and size % halves == 0:
            found.append((Level.ADDR, 1, halves))
            size //= halves
        for digit in primes(ranges[level]):
            if size > 1 or level is Level.W:
                found.append((level, digit.stride, digit.size))
                size = -(-size // digit.size)
    return found, size


def _outer_digits(
    rest: list[int], takers: _Takers, ranges: Mapping[Level, int], vector: int
) -> list[list[_Digit]]:
    """Give the units of each level to the axes that take them, and return the digits of each axis.

    ``rest`` is left with how many elements each axis has beside them: if no digit divides these,
    at least a ``vector``.
    """
    found: list[list[_Digit]] = [[] for _ in rest]
    for level, axes in takers.items():
        for digit in reversed(primes(ranges[level])):
            for axis in axes:
                long = rest[axis] > vector * digit.size
                if rest[axis] > 1 and (rest[axis] % digit.size == 0 or long):
                    found[axis].insert(0, (level, digit.stride, digit.size))
                    rest[axis] = -(-rest[axis] // digit.size)
                    break
    return found
