"""The plan of a layout switch: the passes and their order.

A pass settles one level. Digits that must not stay on the level move to Addr, digits that belong on
it come from Addr, and copies are made. A search for the shortest path over the layouts in between
finds the order of the levels. A pass costs the steps of its code. Digits that the two layouts cut
at different weights must all be in Addr at one time, because addresses can be cut anywhere. The
crate ``switches`` searches, since networks need thousands of plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..errors import error
from ..graph.layout import Layout, Level
from ..layers.base import digits
from ..layers.switch.pass_moves import LayoutChange
from ..layers.switch.pass_search import cheapest_passes, pass_steps
from ..machine import Target


@dataclass(frozen=True)
class Pass:
    """One pass over ``level``, after which the value has ``layout``."""

    level: Level
    layout: Layout
    steps: int


@lru_cache(maxsize=4096)
def plan_switch(
    change: LayoutChange, target: Target, literal: bool = False, most: int | None = None
) -> tuple[Pass, ...]:
    """Return the cheapest passes that change a layout.

    P0305 if LM is too small, or if the passes take more than ``most`` steps.

    Layouts that differ only in digits that no index uses need no pass. With ``literal`` they get
    one, because operators that work on several values compare all digits.
    """
    rows = cheapest_passes(change, target, most)
    if rows is None:
        raise error("P0305", source=str(change.source), result=str(change.result))
    found = tuple(Pass(*row) for row in rows)
    if literal and not found and not same_digits(change.source, change.result):
        steps = pass_steps(change, Level.PE, target)
        return (Pass(Level.PE, change.result, steps),)
    return found


def same_digits(source: Layout, result: Layout) -> bool:
    """Whether the axes of both layouts have the same digits."""
    ours, theirs = ([digits(axis) for axis in layout.axes] for layout in (source, result))
    return ours == theirs
