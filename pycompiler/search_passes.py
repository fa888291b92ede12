"""The passes that search: node simulation, and the scheduler ``auto_recompute_sa``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from .emit.segments import Segment, emit_segments
from .errors import PycompilerError
from .graph.graph import MNGraph
from .report.codegen_dir import SIMULATION
from .request import Request
from .scheduler.annealing.scheduler import NAME, Annealing
from .simulation.graph_costs import Simulation, simulate_graph
from .simulation.run import executor_of
from .simulation.settings import DEFAULT

Addressed = Callable[[MNGraph], MNGraph]


@dataclass(eq=False)
class Searches:
    """What the searching passes of one compile know.

    ``renewed`` maps the key of an output to the registered value whose new value it is.
    """

    _request: Request
    _renewed: Mapping[str, str]
    _simulation: Simulation | None = None
    _annealing: Annealing | None = None

    @property
    def simulates(self) -> bool:
        """Whether nodes are simulated: if the options say so, or if the scheduler searches."""
        options = self._request.options
        return options.simulation_mode is not None or options.scheduler == NAME

    @property
    def dumps(self) -> dict[str, str]:
        """The files of these passes, by name."""
        if self._simulation is None:
            return {}
        return {SIMULATION: json.dumps(self._simulation.json(), indent=1) + "\n"}

    def simulate(self, graph: MNGraph) -> MNGraph:
        """Simulate the nodes of a graph with layouts, which stays as it is. P0703."""
        options, report, target = self._request.options, self._request.report, self._request.target

        def progress(ended: int, expected: int) -> None:
            report.progress(f"simulation {ended}/{expected}")

        with executor_of(options.executor, options.num_threads or 1) as executor:
            mode = options.simulation_mode or DEFAULT
            found = simulate_graph(graph, target, mode, executor, progress)
        self._simulation = found
        report.data["passes"][-1] |= {"simulated": len(found.outcomes)}
        for remark in found.remarks:
            report.note(f"simulation: {remark}")
        return graph

    def schedule(self, graph: MNGraph) -> MNGraph:
        """Run the scheduler that searches."""
        simulation, options, report = self._simulation, self._request.options, self._request.report
        assert simulation is not None

        def progress(tried: int, steps: int) -> None:
            report.progress(f"{NAME} {tried}/{steps}")

        limits = options.sa_expected_run_iters, options.sa_seed, self._request.budget
        annealing = self._annealing = Annealing(simulation, self._renewed, *limits, progress)
        fraction, overrides = options.sram_budget, options.overrides
        found = annealing.schedule(graph, self._request.target, fraction, overrides)
        if annealing.facts:
            report.data["passes"][-1] |= {"search": annealing.facts}
        for remark in annealing.remarks:
            report.note(remark)
        return found

    def emit(self, graph: MNGraph, addressed: Addressed) -> tuple[MNGraph, list[Segment]]:
        """Return the graph with its code."""
        found = self._scheduled(graph, addressed)
        return found.graph, found.segments

    def _scheduled(self, graph: MNGraph, addressed: Addressed) -> _Way:
        """Return the graph, or that of ``spill_opt`` if it is better in any way.

        If values are computed again, a search without that has the second try. ``addressed`` gives
        addresses to the values of a graph.
        """
        annealing, report, found = self._annealing, self._request.report, _Way(graph, self._request)
        if annealing is None or annealing.plain is None:
            return found
        try:
            other = replace(found, graph=addressed(annealing.plain))
        except PycompilerError:  # it needs more DRAM than there is: nothing to compare with
            return found
        tried = report.data["passes"][-1]
        tried["spill_opt"] = theirs = other.counts
        for name in (NAME, f"{NAME}, nothing twice"):
            tried[name] = ours = found.counts
            if all(own <= theirs[key] for key, own in ours.items()):
                return found
            second = annealing.second() if name == NAME else None
            if second is None:
                break
            found = replace(found, graph=addressed(second))
        report.note(
            f"{NAME}: its program has {ours['cycles']} cycles and {ours['dram_words']} words of "
            f"DRAM, that of spill_opt {theirs['cycles']} and {theirs['dram_words']}, so the latter "
            "is taken"
        )
        return other


@dataclass(frozen=True, eq=False)
class _Way:
    """A scheduled graph, and its code as soon as somebody asks for it."""

    graph: MNGraph
    request: Request

    @cached_property
    def segments(self) -> list[Segment]:
        fragments = self.request.plans.fragments(self.request.target)
        return emit_segments(self.graph, fragments, self.request.options.emit)

    @property
    def counts(self) -> dict[str, int]:
        """The cycles and the words of DRAM of the program."""
        codes = [segment.code for segment in self.segments if segment.code is not None]
        rows = [row for code in codes for row in code.nodes]
        words = sum(row.dram_read + row.dram_written for row in rows)
        return {"cycles": sum(code.cycles for code in codes), "dram_words": words}
