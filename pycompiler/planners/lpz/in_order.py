"""Units in order: all regions of one shape take the larger parts of an axis on outer units.

Which units have which part of an axis makes no difference inside of a stage of a network. So parts
of a network may agree about an order of units that no other part has, and everything between them
crosses L2Bs. No single region can leave that order, because its neighbours have it too.

The same holds for two axes of pixels. Tiles fetch a halo from their neighbours along each axis. On
one of the axes few neighbours are in another L1B or L2B, or less comes from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from math import prod

from ...graph.digits import Part, primes
from ...graph.graph import MNValue
from ...graph.layout import UNIT_LEVELS, Layout, Level, SubAxis
from ...layers.default_layout import built
from ...layers.tiling.axes import tiled_axes
from ...layers.tiling.layer import TILES
from ...machine import Target
from .costs import Costs
from .families import Seed
from .growth import MOST, carry
from .pools import Candidate, Pools

#: The name of what comes of it, beside those of families.
NAME = "in_order"
#: For how many shapes of values units are put in order.
_SHAPES = 4
#: Levels whose units change places, outer levels first.
_LEVELS: list[Level] = [level for level in UNIT_LEVELS if level is not Level.PE]


_Arranged = Callable[[Layout, MNValue], Layout | None]


def add_in_order(pools: Pools, chosen: Sequence[int], costs: Costs) -> Iterator[list[Seed]]:
    """Add what regions have chosen with their units in order, one shape after the other.

    Yields the seeds of all regions of a shape, a few shapes, the largest ones first.
    """

    def arranged(layout: Layout, value: MNValue) -> Layout | None:
        return in_order(layout, value, pools.target)

    shapes = _shapes(pools, chosen, arranged)
    for shape in sorted(shapes, key=lambda shape: -prod(shape) * len(shapes[shape]))[:_SHAPES]:
        seeds = _added(pools, shapes[shape], costs)
        if seeds:
            yield seeds


def add_exchanged(pools: Pools, chosen: Sequence[int], costs: Costs) -> Iterator[list[Seed]]:
    """Add what the regions of the largest tiled shape have chosen with two axes exchanged.

    One axis of pixels gives a digit of L1Bs or L2Bs to another, for one of MABs.
    """
    tiled: dict[tuple[int, ...], set[int]] = {}
    for node in pools.graph.device_nodes():
        if node.op == TILES:
            shape = pools.graph.values[node.inputs[0]].shape
            own = {
                axis.source for axis in tiled_axes(node, pools.graph) if axis.reach > axis.places
            }
            tiled.setdefault(shape, set()).update(own)
    if not tiled:
        return
    largest = max(tiled, key=prod)
    for outer, inner in permutations(sorted(tiled[largest]), 2):

        def arranged(
            layout: Layout, value: MNValue, outer: int = outer, inner: int = inner
        ) -> Layout | None:
            if value.shape != largest:
                return None
            return exchanged(layout, value, outer, inner, pools.target)

        found = _shapes(pools, chosen, arranged).get(largest, [])
        seeds = _added(pools, found, costs) if found else []
        if seeds:
            yield seeds


_Found = list[tuple[int, MNValue, Layout]]


def _shapes(
    pools: Pools, chosen: Sequence[int], arranged: _Arranged
) -> dict[tuple[int, ...], _Found]:
    """Return by shape the regions that may have another layout, with their largest values."""
    values = pools.graph.values
    shapes: dict[tuple[int, ...], _Found] = {}
    for number, variable in enumerate(pools.variables):
        if variable.region is None or variable.fixed or not variable.values:
            continue
        value = max((values[name] for name in variable.values), key=lambda one: prod(one.shape))
        layout = arranged(variable.pool[chosen[number]][value.name], value)
        if layout is not None:
            shapes.setdefault(value.shape, []).append((number, value, layout))
    return shapes


def _added(pools: Pools, found: _Found, costs: Costs) -> list[Seed]:
    """Add a candidate to each region, and carry them; return those that could be added."""
    variables = pools.variables
    seeds: list[Seed] = []
    carried: list[list[Candidate]] = [[] for _ in variables]
    for number, value, layout in found:
        pool = variables[number].pool
        seed = pools.region_candidate(variables[number], (value, layout, None)) or next(
            (one for one in pool if one[value.name] == layout), None
        )
        if seed is not None and variables[number].add(seed, MOST):
            carried[number].append(seed)
            seeds.append(Seed(NAME, number, seed))
    if seeds:
        carry(pools, carried, costs)
    return seeds


def exchanged(
    layout: Layout, value: MNValue, outer: int, inner: int, target: Target
) -> Layout | None:
    """Return the layout with a digit of outer units on axis ``outer``, which ``inner`` has.

    None if ``inner`` has none, or if ``outer`` has no digit of MABs of that size to give for it.
    """
    placed = {axis: list(_digits(subs)) for axis, subs in enumerate(layout.axes)}
    above = _LEVELS[: _LEVELS.index(Level.MAB)]
    for theirs, digit in reversed(list(enumerate(placed[inner]))):
        if digit.level not in above:
            continue
        for ours, own in reversed(list(enumerate(placed[outer]))):
            if (own.level, own.size) == (Level.MAB, digit.size):
                placed[inner][theirs] = digit._replace(level=own.level, stride=own.stride)
                placed[outer][ours] = own._replace(level=digit.level, stride=digit.stride)
                found = built(value.shape, placed, layout, value.dtype, target)
                return None if found is None else in_order(found, value, target) or found
    return None


def in_order(layout: Layout, value: MNValue, target: Target) -> Layout | None:
    """Return a layout whose units are in order on each axis; None if they are, or if none is legal.

    Digits of one size change places: outer levels and larger strides come first. An axis with
    padding stays as it is.
    """
    placed: dict[int, list[Part]] = {}
    changed = False
    for axis, (subs, size) in enumerate(zip(layout.axes, value.shape, strict=True)):
        placed[axis] = found = list(_digits(subs))
        if prod(part.size for part in found) != size:
            continue
        for prime in {part.size for part in found}:
            at = [n for n, part in enumerate(found) if part.size == prime and part.level in _LEVELS]
            # Minor digits stand first.
            units = sorted(
                (found[n] for n in at), key=lambda part: (-_LEVELS.index(part.level), part.stride)
            )
            for n, unit in zip(at, units, strict=True):
                changed |= (found[n].level, found[n].stride) != (unit.level, unit.stride)
                found[n] = found[n]._replace(level=unit.level, stride=unit.stride)
    return built(value.shape, placed, layout, value.dtype, target) if changed else None


def _digits(subs: Sequence[SubAxis]) -> Iterator[Part]:
    """Yield the digits of an axis, of prime sizes, the minor ones first."""
    lo = 1
    for sub in reversed(subs):
        for stride, size in primes(sub.size):
            yield Part(lo * stride, size, sub.level, sub.stride * stride)
        lo *= sub.size
