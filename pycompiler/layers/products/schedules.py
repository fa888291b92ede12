"""The schedules of products, by the types of their plans."""

from __future__ import annotations

from ...graph.graph import MNNode
from .resident import RESIDENT
from .schedule import Schedule
from .streamed_code import STREAMED

_ALL = (
    RESIDENT,
    STREAMED,
)
SCHEDULES = {one.plan: one for one in _ALL}


def schedule_of(node: MNNode) -> Schedule:
    """Return the schedule of a product. Before it has a plan, that is the one that needs none."""
    return RESIDENT if node.plan is None else SCHEDULES[type(node.plan)]
