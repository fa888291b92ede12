"""The digits of axes that a copying operator changes, and of those that it keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, prod

from ..graph.digits import Part, primes
from ..graph.layout import UNIT_LEVELS, Level
from ..machine import Target


def shared_out(
    kept: Mapping[int, list[Part]], blocks: Mapping[int, int], target: Target
) -> dict[int, list[Part]]:
    """Give unused unit digits to unchanged axes, where they divide a part in Addr."""
    out = {axis: list(found) for axis, found in kept.items()}
    used = [part for found in kept.values() for part in found if part.level is not Level.ADDR]
    for level in reversed(UNIT_LEVELS):
        for stride, size in primes(target.level_range[level.value]):
            # The uppermost part of an axis may be shorter than the machine's digits.
            if any(meets(part, level, stride, size) for part in used):
                continue
            takers = [
                (part.size, axis, part)
                for axis, found in out.items()
                if axis not in blocks
                for part in found
                if part.level is Level.ADDR and part.size % size == 0
            ]
            if takers:
                _, axis, part = max(takers, key=lambda taker: taker[:2])
                rest = part.size // size
                out[axis].remove(part)
                out[axis] += [Part(part.lo, rest, Level.ADDR, 0)] if rest > 1 else []
                out[axis].append(Part(part.lo * rest, size, level, stride))
    return out


def below(found: Sequence[Part], block: int) -> list[Part]:
    """Return the parts with weights below ``block``, as far as their sizes divide it."""
    out: list[Part] = []
    weight = 1
    for part in sorted(found):
        if part.lo != weight or block % weight:
            break
        size = gcd(part.size, block // weight)
        if size > 1:
            out.append(Part(weight, size, part.level, part.stride))
        if size != part.size:
            break
        weight *= size
    return out


def meets(part: Part, level: Level, stride: int, size: int) -> bool:
    """Whether a part uses some of the units of a digit."""
    return part.level is level and part.stride < stride * size and stride < part.stride * part.size


def filled(kept: Sequence[Part], size: int, changes: bool) -> list[Part]:
    """Return the parts of an axis; the rest of a changed axis is one run in Addr."""
    if not changes:
        return list(kept)
    weight = prod(part.size for part in kept)
    return [*kept, Part(weight, -(-size // weight), Level.ADDR, 0)]


def on_units(found: Sequence[Part]) -> list[Part]:
    """Return the parts that are not in Addr."""
    return sorted(part for part in found if part.level is not Level.ADDR)


def levels(found: Sequence[Part]) -> list[tuple[int, int, Level, int]]:
    """Return the parts without their strides in Addr."""
    return [
        (p.lo, p.size, p.level, 0 if p.level is Level.ADDR else p.stride) for p in sorted(found)
    ]
