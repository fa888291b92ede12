"""The passes ``layout``, ``time_slice`` and ``slices``; each needs the one before it.

The time-slice planner lays out the graph again for every cut that it tries, so it gets the layout
planner as a function. A graph that cannot be laid out whole is cut in the first pass.
"""

from __future__ import annotations

from ...errors import NoSwitchError
from ...graph.graph import MNGraph
from ...machine import Target
from ..given import Given
from ..layout import LayoutFacts, WithSwitches, plan_layouts
from ..location import plan_locations
from ..lpz.known import Known
from ..overrides import Overrides, untimed
from .expand import cut_into_slices
from .planner import plan_time_slices
from .sliced_graph import TimeSlices


class SlicedLayouts:
    """The three passes over one graph, to be called in order: `lay_out`, `plan`, `cut`.

    ``known`` has what plans of the same model have found out.
    """

    def __init__(self, target: Target, given: Given, known: Known):
        self.target, self.given = target, given
        #: The facts of the layout planner; None if it could not lay out the whole graph.
        self.facts: LayoutFacts | None = None
        #: Plans by planner, overrides and the types of all values. The search for slices asks for
        #: some of them several times.
        self._plans: dict[object, WithSwitches] = {}
        self._known = known
        self._plain: MNGraph | None = None
        self._found: TimeSlices | None = None

    def lay_out(self, graph: MNGraph) -> MNGraph:
        """Set layouts, and keep the graph without layouts for the next pass.

        If values are so large that their layouts cannot be switched, slices are planned at once.
        """
        self._plain = graph
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
            self._plans[key] = plan_layouts(
                graph, self.target, overrides, planner, self.given.layout_specs, facts, self._known
            )
        return self._plans[key]

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
        )
        return self._found

    def cut(self) -> MNGraph:
        """Make nodes and values for every slice, and place them."""
        assert self._found is not None
        return plan_locations(cut_into_slices(self._found), self.given.overrides)
