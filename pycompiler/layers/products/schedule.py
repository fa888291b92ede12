"""What a schedule of products is: a way to compute them, which a plan names with its numbers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from ...code.nest import Nest
from ...graph.graph import Location, MNGraph, MNNode
from ...graph.layout import Layouts
from ...graph.plan import Laid, Plan
from ...machine import Target


@dataclass(frozen=True)
class Schedule:
    """A way to compute the products whose plan is a ``plan``.

    ``wanted`` returns the layouts that operands must have beside the result, or why there are none.
    ``counted`` returns what decides the number of lines. ``code`` returns the lines, and those that
    come behind all of them and wait for MVs. ``ways`` yields layouts of all operands that fit LM,
    with their plans. The result and a bias lie in ``beside``. Lines of other nodes may come between
    those of a ``scattered`` schedule.
    """

    plan: type[Plan]
    wanted: Callable[[MNNode, MNGraph, Target], Layouts | str]
    counted: Callable[[MNNode, MNGraph, Target], Hashable]
    code: Callable[[MNNode, MNGraph, Target], tuple[Nest, Nest]]
    ways: Callable[[MNNode, MNGraph, Target], Iterator[Laid]] = lambda *_: iter(())
    beside: Location = Location.LM1
    scattered: bool = False
