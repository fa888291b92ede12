"""The passes ``layout``, ``time_slice`` and ``slices``; each needs the one before it.

The time-slice planner lays out the graph again for every cut that it tries, so it gets the layout
planner as a function. A graph that cannot be laid out whole is cut in the first pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from ...errors import NoSwitchError
from ...graph.graph import MNGraph, TensorType
from ...graph.layout import Layouts
from ...graph.plan import Plan
from ...machine import Target
from ..given import Given
from ..layout import LayoutFacts, WithSwitches, plan_layouts
from ..location import plan_locations
from ..lpz.known import Known
from ..overrides import Overrides, untimed
from .cut_classes import Axis
from .expand import cut_into_slices
from .planner import plan_time_slices
from .sliced_graph import Like, TimeSlices

_PlanKey = tuple[str, object, tuple[tuple[str, TensorType], ...]]
_Choice = dict[object, tuple[Layouts, Plan | None]]


class SlicedLayouts:
    """The three passes over one graph, to be called in order: `lay_out`, `plan`, `cut`.

    ``known`` has what plans of the same model have found out. ``like`` has the cuts of a graph that
    was planned before.
    """

    def __init__(self, target: Target, given: Given, known: Known, like: Like | None = None):
        self.target, self.given, self._like = target, given, like
        #: The facts of the layout planner; None if it could not lay out the whole graph.
        self.facts: LayoutFacts | None = None
        #: Plans by planner, overrides and the types of all values. The search for slices asks for
        #: some of them several times. With each, what the planner had chosen until then.
        self._plans: dict[_PlanKey, tuple[WithSwitches, _Choice]] = {}
        self.known = known
        self._plain: MNGraph | None = None
        self._found: TimeSlices | None = None

    def again(self, given: Given, like: Like | None = None) -> SlicedLayouts:
        """Return the passes with other cuts, with the plans of this graph so far."""
        other = SlicedLayouts(self.target, given, self.known, like)
        other._plans = self._plans
        return other

    def lay_out(self, graph: MNGraph) -> MNGraph:
        """Set layouts, and keep the graph without layouts for the next pass.

        If values are so large that their layouts cannot be switched, slices are planned at once.
        """
        self._plain = graph
        if self._like is not None:
            with suppress(NoSwitchError):
                return self._planned(None).annotated()
        facts = LayoutFacts()
        try:
            made = self._laid_out(graph, untimed(self.given.overrides), facts)
        except NoSwitchError as problem:
            if self.given.time_slice == "off":
                raise
            try:
                return self._planned(None).annotated()
            except NoSwitchError:
                raise problem from None
        self.facts = facts
        return made

    def _laid_out(
        self,
        graph: MNGraph,
        overrides: Overrides,
        facts: LayoutFacts | None = None,
        *,
        resolve: bool = True,
        last: bool = False,
    ) -> MNGraph:
        if last and self._like is not None:
            self.facts = facts = self.facts or LayoutFacts()
        # The search for slices lays out many graphs, so it uses the fast planner.
        planner = self.given.layout_planner if last or facts is not None else "first_arrival"
        plan = self._plan_of(graph, overrides, planner, facts)
        found = plan.resolved(self.target) if resolve else plan.rough()
        return plan_locations(found, overrides)

    def _plan_of(
        self, graph: MNGraph, overrides: Overrides, planner: str, facts: LayoutFacts | None
    ) -> WithSwitches:
        """Return a plan of the layouts of ``graph``, which differs from others only in its cuts."""
        given = tuple((name, tuple(entries.items())) for name, entries in overrides.items())
        key = planner, given, tuple((name, value.type) for name, value in graph.values.items())
        if key not in self._plans:
            plan = plan_layouts(
                graph, self.target, overrides, planner, self.given.layout_specs, facts, self.known
            )
            self._plans[key] = plan, dict(self.known.choice)
        return self._plans[key][0]

    def plan(self, graph: MNGraph) -> MNGraph:
        """Give Time digits to the values that are cut into slices."""
        return (self._found or self._planned(graph)).annotated()

    def _planned(self, graph: MNGraph | None) -> TimeSlices:
        assert self._plain is not None
        self._found = plan_time_slices(
            self._plain,
            graph,
            self.target,
            self._laid_out,
            mode=self.given.time_slice,
            fraction=self.given.sram_budget,
            overrides=self.given.overrides,
            like=self._like,
        )
        return self._found

    def choice(self) -> _Choice:
        """Return what the layout planner chose for the slices that were planned."""
        found = self.found().graph.values
        for (planner, _, types), (_, choice) in reversed(self._plans.items()):
            own = planner == self.given.layout_planner
            if own and all(found[name].type == type for name, type in types if name in found):
                return choice
        return {}

    def sizes(self, stands: Mapping[str, str], names: Iterable[str]) -> dict[Axis, int]:
        """Return the sizes of slices by the axes of ``names``, for which others may stand."""
        found = self.found()
        return {
            (name, number): found.sizes[cut]
            for name in names
            for number, cut in found.cut_axes(stands.get(name, name))
        }

    def found(self) -> TimeSlices:
        """Return the slices that were planned."""
        assert self._found is not None
        return self._found

    def cut(self) -> MNGraph:
        """Make nodes and values for every slice, and place them."""
        return plan_locations(cut_into_slices(self.found()), self.given.overrides)
