"""The plan of a layout switch: the passes and their order.

A pass settles one level. Digits that must not stay on the level move to Addr, digits that belong on
it come from Addr, and copies are made. A search for the shortest path over the layouts in between
finds the order of the levels. A pass costs the steps of its code. Digits that the two layouts cut
at different weights must all be in Addr at one time, because addresses can be cut anywhere. The
crate ``switches`` searches, since networks need thousands of plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from ..errors import error
from ..graph.graph import MNValue, TensorType
from ..graph.layout import Layout, Level
from ..layers.base import digits
from ..layers.default_layout import whole_layout
from ..layers.switch.pass_moves import LayoutChange
from ..layers.switch.pass_search import Pass, cheapest_passes, pass_steps
from ..machine import Target
from .lpz.proposals import NEAR, unfolded


@lru_cache(maxsize=4096)
def plan_switch(
    change: LayoutChange, target: Target, literal: bool = False, most: int | None = None
) -> tuple[Pass, ...]:
    """Return the cheapest passes that change a layout.

    P0305 if LM is too small, or if the passes take more than ``most`` steps.

    Layouts that differ only in digits that no index uses need no pass. With ``literal`` they get
    one, because operators that work on several values compare all digits.
    """
    found = cheapest_passes(change, target, most)
    if found is None and most is None:
        found = _through_another(change, target)
    if found is None:
        raise error("P0305", source=str(change.source), result=str(change.result))
    if literal and not found and not same_digits(change.source, change.result):
        steps = pass_steps(change, Level.PE, target)
        return (Pass(Level.PE, change.result, steps),)
    return found


def _through_another(change: LayoutChange, target: Target) -> tuple[Pass, ...] | None:
    """Return passes through a layout that spreads all axes, the cheapest; None if there are none.

    A search looks at few of the layouts in between. From a layout that leaves most of LM free, and
    to it, ways are short. Copies may be made last, on units that have parts of an axis until then.
    """
    ends = (change.source, change.result)
    if any(one.num_lw(target.cycles) > target.words("lm0") for one in ends):
        return None
    shape, dtype = change.shape, change.dtype
    spread = [whole_layout(shape, dtype, target, padded=padded) for padded in (False, True)]
    value = MNValue("", TensorType("", shape), dtype)
    apart = [one for at in NEAR for one in unfolded(change.result, value, target, at)]
    return _through(change, target, spread) or _through(change, target, apart, spread)


def _through(
    change: LayoutChange, target: Target, between: Sequence[Layout], *more: Sequence[Layout]
) -> tuple[Pass, ...] | None:
    """Return the cheapest passes through a layout of ``between``, and one of each of ``more``."""
    ways = []
    for layout in between:
        back = cheapest_passes(replace(change, source=layout), target)
        begin = replace(change, result=layout)
        there = cheapest_passes(begin, target) if back else None
        there = _through(begin, target, *more) if back and more and not there else there
        if back and there:
            ways.append((*there, *back))
    return min(ways, key=lambda found: sum(one.steps for one in found), default=None)


def same_digits(source: Layout, result: Layout) -> bool:
    """Whether the axes of both layouts have the same digits."""
    ours, theirs = ([digits(axis) for axis in layout.axes] for layout in (source, result))
    return ours == theirs
