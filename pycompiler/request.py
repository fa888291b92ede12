"""What a compile is asked for: it travels from the doors to the passes."""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx

from .layout_passes import LayoutPlans
from .machine import Target
from .options import Options
from .report.report import Report
from .search_budget import SearchBudget


@dataclass(frozen=True, eq=False)
class Request:
    """A model with static shapes, for a machine, with options.

    ``report`` gets what the compile does. ``plans`` has what earlier compiles of this model for
    this machine decided, and gets what this compile decides. ``budget`` is the time of its
    searches.
    """

    model: onnx.ModelProto
    target: Target
    options: Options
    report: Report
    plans: LayoutPlans = field(default_factory=LayoutPlans)
    budget: SearchBudget = field(default=None)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.budget is None:
            budget = SearchBudget(self.options.search_seconds, self.report.data["search"])
            object.__setattr__(self, "budget", budget)
