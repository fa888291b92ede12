"""The schedulers by the value of the option ``scheduler``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ..graph.graph import MNGraph
from ..machine import Target
from ..planners.overrides import Overrides
from .always_from_dram import schedule_from_dram
from .schedule_in_lm import schedule_in_lm

#: A function that takes a graph with layouts, the machine, the fraction of LM that may be used, the
#: overrides, and the registered values whose new values are outputs, by the output's key. It
#: returns the graph with every move between DRAM and LM. It raises NoRoomError (P0301, P0304) if LM
#: is too small, and P0306 for an override that cannot be followed.
Scheduler = Callable[[MNGraph, Target, float, Overrides, Mapping[str, str]], MNGraph]

SCHEDULERS: Mapping[str, Scheduler] = {
    "always_from_dram": schedule_from_dram,
    "reuse_consecutive": partial(schedule_in_lm, consecutive=True),
    "spill_opt": partial(schedule_in_lm, consecutive=False),
}
