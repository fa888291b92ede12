"""Units in order: all regions of one shape take the larger parts of an axis on outer units.

Which units have which part of an axis makes no difference inside of a stage of a network. So parts
of a network may agree about an order of units that no other part has, and everything between them
crosses L2Bs. No single region can leave that order, because its neighbours have it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ...graph.digits import Part, primes
from ...graph.graph import MNValue
from ...graph.layout import UNIT_LEVELS, Layout, Level, SubAxis
from ...layers.default_layout import built
from ...machine import Target
from .growth import MOST, Seed
from .pools import Pools

#: The name of what comes of it, beside those of families.
NAME = "in_order"
#: For how many shapes of values units are put in order.
_SHAPES = 4
#: Levels whose units change places, outer levels first.
_LEVELS: list[Level] = [level for level in UNIT_LEVELS if level is not Level.PE]


def add_in_order(pools: Pools, chosen: Sequence[int]) -> Iterator[list[Seed]]:
    """Add what regions have chosen with their units in order, one shape after the other.

    Yields the seeds of all regions of a shape, a few shapes, the largest ones first.
    """
    shapes = _shapes(pools, chosen)
    for shape in sorted(shapes, key=lambda shape: -prod(shape) * len(shapes[shape]))[:_SHAPES]:
        seeds = _added(pools, shapes[shape])
        if seeds:
            yield seeds


_Found = list[tuple[int, MNValue, Layout]]


def _shapes(pools: Pools, chosen: Sequence[int]) -> dict[tuple[int, ...], _Found]:
    """Return by shape the regions whose units are not in order, with their largest values."""
    values = pools.graph.values
    shapes: dict[tuple[int, ...], _Found] = {}
    for number, variable in enumerate(pools.variables):
        if variable.region is None or variable.fixed or not variable.values:
            continue
        value = max((values[name] for name in variable.values), key=lambda one: prod(one.shape))
        now = variable.pool[chosen[number]][value.name]
        layout = in_order(now, value, pools.target)
        if layout is not None:
            shapes.setdefault(value.shape, []).append((number, value, layout))
    return shapes


def _added(pools: Pools, found: _Found) -> list[Seed]:
    """Add a candidate to each region; return those that could be added."""
    variables = pools.variables
    seeds: list[Seed] = []
    for number, value, layout in found:
        seed = pools.seeded(variables[number], (value, layout, None))
        if seed is not None and variables[number].add(seed, MOST):
            seeds.append(Seed(NAME, number, seed))
    return seeds


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
