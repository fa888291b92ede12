"""A cache of the planner: costs of layouts, and candidates that layers propose.

The entries depend only on shapes, dtypes and layouts. So graphs that differ only in their cuts
share most entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...graph.dtypes import MNDtype
from ...graph.layout import Layout, Layouts
from ...graph.plan import Plan
from ...layers.switch.pass_search import Guesses

#: Layouts of the operands of a node, and the plan that they go with.
Offer = tuple[tuple[Layout, ...], Plan | None]


@dataclass(frozen=True)
class Weights:
    """By what the costs of passes over L2Bs, and of MVs and lines of transfers, are multiplied.

    Some of them are hidden by other nodes, more in one program than in another.
    """

    far: float = 1.0
    moves: float = 1.0
    lines: float = 1.0


@dataclass(eq=False)
class Known:
    """Costs of nodes, transfers and switches, guesses and candidates, by all that they depend on.

    It is for one machine. Costs of transfers and switches have ``weights``. With ``apart``,
    searches try one family for all regions last, not first. ``large``: a graph is one in which a
    layer stands for others; ``times`` says how often the whole graph has its nodes. ``work`` counts
    the costs of variables and pairs that searches have taken in. ``choice`` has what searches chose
    for variables that are alike. ``kinds`` numbers nodes that differ only in names and layouts.
    """

    weights: Weights = Weights()
    apart: bool = False
    large: bool = False
    times: Mapping[str, int] = field(default_factory=dict)
    work: int = 0
    choice: dict[object, tuple[Layouts, Plan | None]] = field(default_factory=dict)
    kinds: dict[object, int] = field(default_factory=dict)
    nodes: dict[object, int] = field(default_factory=dict)
    transfers: dict[tuple[Layout, MNDtype], tuple[int, int, int]] = field(default_factory=dict)
    switches: dict[object, int] = field(default_factory=dict)
    guesses: dict[tuple[tuple[int, ...], MNDtype], Guesses] = field(default_factory=dict)
    candidates: dict[object, list[Offer]] = field(default_factory=dict)
    proposals: dict[object, list[Layout]] = field(default_factory=dict)
