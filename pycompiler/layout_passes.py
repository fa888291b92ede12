"""The passes from an imported graph to one with layouts and time slices, and plans that are kept.

These passes take most of a compile. Compiles of one model that differ only in what follows them,
such as the scheduler, share what they make: a `LayoutPlans` keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial

from .emit.fragment_cache import Fragments
from .emit.line_table import spans
from .emit.segments import MERGED, emit_segments
from .errors import PycompilerError
from .frontend.import_onnx import ImportedModel
from .graph.graph import MNGraph, Side
from .graph.rewrite import Row, rewritten
from .graph.text import print_graph
from .graph.verify import STRUCTURE, verify
from .layers.operators import RULES
from .machine import Target
from .options import Options
from .planners.dtype import plan_dtypes
from .planners.equal_parts import repeats, shortened
from .planners.given import Given
from .planners.layout import LayoutFacts
from .planners.location import check_room, plan_locations
from .planners.lpz.known import Known, Weights
from .planners.lpz.planner import CHEAP
from .planners.overrides import Overrides, check_overrides
from .planners.rewrites import IMPORTED, REWRITES, SIDED, SLICED, TYPED, facts_of
from .planners.side import plan_sides
from .planners.time_slices.batch_parts import part_of_batch
from .planners.time_slices.passes import SlicedLayouts
from .planners.time_slices.sliced_graph import Like
from .report.codegen_dir import DUMPS, REWRITE
from .report.report import Report
from .scheduler.address_planner import plan_addresses
from .scheduler.schedulers import SCHEDULERS
from .simulation.sequence import Estimates
from .warn import report_fallback, warn_of_fallback, warn_of_specs


@dataclass(frozen=True, eq=False)
class _Fired:
    """A rewrite that changed the graph: how often, and the dump behind it."""

    row: Row
    count: int
    dump: bytes


@dataclass(frozen=True, eq=False)
class _Step:
    """What a pass made: its row in the report, its dump, and the facts of the layout planner."""

    name: str
    graph: MNGraph
    dump: bytes
    facts: LayoutFacts | None
    rewrites: tuple[_Fired, ...]


class LayoutPlans:
    """The plans of one model on one machine, by the options that decide them.

    They take the memory of their graphs for as long as this object lives.
    """

    def __init__(self) -> None:
        self.estimates = Estimates()
        self._kept: dict[str, tuple[_Step, ...]] = {}
        self._fragments: Fragments | None = None
        #: The cheapest float dtype and the cycles of all, of `halves_or_singles.py`, by options.
        self.verdicts: dict[str, tuple[str, dict[str, int]]] = {}

    def fragments(self, target: Target) -> Fragments:
        """Return the code of nodes of these plans, made once for all programs."""
        self._fragments = self._fragments or Fragments(target)
        return self._fragments

    def graph_of(
        self,
        imported: ImportedModel,
        target: Target,
        options: Options,
        overrides: Overrides,
        report: Report,
        known: Known,
    ) -> MNGraph:
        """Return the graph with layouts and slices, planned now or by an earlier compile.

        ``known`` has what earlier plans of this compile have found out. The report has the same
        rows for both; those of an earlier compile say `kept`. Warns
        (HostFallbackWarning) if nodes run on the host. Raises the diagnostics of the passes.
        """
        given = given_of(options, overrides)
        on_host = sorted(n.name for n in imported.graph.nodes if n.side is Side.HOST)
        key = repr((given, on_host, imported.parts))
        report.expect(PASSES)
        if (kept := self._kept.get(key)) is not None:
            for step in kept:
                with report.running(step.name) as row:
                    row |= {**_counts(step.graph), "kept": True}
                _tell(step, report)
            return kept[-1].graph
        steps = []
        judge = partial(_cycles, renewed=imported.updates, fragments=self.fragments(target))
        for step in _steps(imported, target, given, report, known, judge):
            _tell(step, report)
            steps.append(step)
        self._kept[key] = tuple(steps)
        return steps[-1].graph


def _tell(step: _Step, report: Report) -> None:
    """Add to a report what a pass made, beside its row."""
    report.files[f"{DUMPS}{step.name}.txt"] = step.dump
    for fired in step.rewrites:
        number = f"{REWRITES.index(fired.row) + 1:02}"
        report.files[f"{REWRITE}{number}.{fired.row.name}.txt"] = fired.dump
    if step.rewrites:
        counts = {fired.row.name: fired.count for fired in step.rewrites}
        report.data["passes"][-1]["rewrites"] = counts
    if step.name == "side":
        report_fallback(step.graph, report)
        warn_of_fallback(report)
    elif step.name == "layout" and (facts := step.facts) is not None:
        report.data["layout_spec_unused"] = facts.unused
        warn_of_specs(report)
        if facts.estimates:
            estimates = {name: asdict(found) for name, found in facts.estimates.items()}
            found = {"search": facts.search, "family": facts.family, "values": facts.family_values}
            report.data["passes"][-1] |= {"estimated_steps": estimates, "layouts": found}


#: Returns the cycles of the program of planned layouts.
_Judge = Callable[[SlicedLayouts], int]
#: How many passes there are.
PASSES = 6


def given_of(options: Options, overrides: Overrides) -> Given:
    """Return what these passes read of the options of a compile, which has ``overrides``."""
    read = {one.name for one in fields(Given)} - {"overrides"}
    return Given(overrides=overrides, **{name: getattr(options, name) for name in read})


def _steps(
    imported: ImportedModel,
    target: Target,
    given: Given,
    report: Report,
    known: Known,
    judge: _Judge,
) -> Iterator[_Step]:
    """Run the passes in order, with the verifier after each."""
    overrides = given.overrides
    sliced = SlicedLayouts(target, given, known)

    facts = facts_of(target, given, imported.registered, imported.constants)
    rules = (*STRUCTURE, *RULES)
    fired: list[_Fired] = []

    def by(rows: tuple[Row, ...], graph: MNGraph) -> MNGraph:
        def tell(row: Row, count: int, made: MNGraph) -> None:
            fired.append(_Fired(row, count, print_graph(made).encode()))

        return rewritten(graph, rows, facts, rules, tell)

    def dtypes(graph: MNGraph) -> MNGraph:
        return by(TYPED, plan_dtypes(by(SIDED, graph), target, given, imported.registered))

    def locations(graph: MNGraph) -> MNGraph:
        return check_room(plan_locations(graph, overrides), target)

    def layouts(graph: MNGraph) -> MNGraph:
        nonlocal sliced
        sliced, made = _laid_out(graph, target, given, known, judge, imported.parts)
        return made

    passes = (
        ("side", lambda graph: plan_sides(by(IMPORTED, graph), strict=given.strict)),
        ("dtype", dtypes),
        ("location", locations),
        ("layout", layouts),
        ("time_slice", lambda graph: sliced.plan(graph)),
        ("slices", lambda _: by(SLICED, sliced.cut())),
    )
    assert len(passes) == PASSES
    graph = verify(imported.graph, target, rules)
    check_overrides(graph, overrides)
    for name, run in passes:
        with report.running(name) as row:
            graph = verify(run(graph), target, rules)
            row |= _counts(graph)
        rewrites, fired = tuple(fired), []
        yield _Step(name, graph, print_graph(graph).encode(), sliced.facts, rewrites)


def _laid_out(
    graph: MNGraph, target: Target, given: Given, known: Known, judge: _Judge, parts: int = 1
) -> tuple[SlicedLayouts, MNGraph]:
    """Return the layouts of a graph, and what cuts it into slices; ``parts`` are those of a batch.

    Raises the diagnostics of the pass `layout`.
    """
    if given.layout_planner == "lpz" and not given.overrides and not given.layout_specs:
        like = _of_one_part(graph, target, given, known, judge, parts) if parts > 1 else None
        like = like or _of_one_layer(graph, target, given, known, judge)
        if like is not None:
            return like, like.lay_out(graph)
    sliced = SlicedLayouts(target, given, known)
    made = sliced.lay_out(graph)
    with suppress(PycompilerError):  # those of the pass `time_slice` come there
        sliced.plan(made)
        if given.layout_planner == "lpz" and known.work < CHEAP and not known.large:
            other = SlicedLayouts(target, given, replace(known, apart=True, work=0, choice={}))
            other.plan(laid := other.lay_out(graph))
            if judge(other) < judge(sliced):
                sliced, made = other, laid
    return sliced, made


def _of_one_part(
    graph: MNGraph, target: Target, given: Given, known: Known, judge: _Judge, parts: int
) -> SlicedLayouts | None:
    """Plan a part of the batch of a graph; return what plans the graph like it.

    None if the batch cannot be cut so, or if a part does not fit.
    """
    if given.time_slice != "auto" or (found := part_of_batch(graph, target, parts)) is None:
        return None
    part, like = found
    with suppress(PycompilerError):
        sliced, made = _laid_out(part, target, given, known, judge)
        sliced.plan(made)
        sizes = {**like.sizes, **sliced.sizes({}, part.values)}
        return sliced.again(given, replace(like, sizes=sizes))
    return None


#: guess: with these weights, the plans of a layer are tried; the one of the fewest cycles is taken.
_WEIGHTS = (Weights(), Weights(far=0.6, moves=0.4), Weights(far=1.5, moves=0.4))


def _of_one_layer(
    graph: MNGraph, target: Target, given: Given, known: Known, judge: _Judge
) -> SlicedLayouts | None:
    """Plan one of the equal layers of a graph; return what plans the graph like it.

    None if it has none, or if no plan of a layer fits.
    """
    if (short := shortened(graph, {})) is None:
        return None
    known.large = True
    tried: list[tuple[int, SlicedLayouts]] = []

    def plan(one: SlicedLayouts) -> None:
        with suppress(PycompilerError):  # it does not fit
            one.plan(one.lay_out(short.graph))
            tried.append((judge(one), one))

    fit = replace(given, time_slice="fit") if given.time_slice == "auto" else given
    for weights in _WEIGHTS:
        seen = replace(known, weights=weights, choice={}, times=short.times)
        plan(SlicedLayouts(target, fit, seen))
        if seen.work > CHEAP:
            break
    if tried and fit != given:
        plan(min(tried, key=lambda one: one[0])[1].again(given))
    if not tried:
        return None
    best = min(tried, key=lambda one: one[0])[1]
    like = Like(best.sizes(short.stands, graph.values))
    kept = replace(best.known, choice=best.choice(), times={})
    return SlicedLayouts(target, given, kept, like)


def _cycles(sliced: SlicedLayouts, renewed: Mapping[str, str], fragments: Fragments) -> int:
    """Return the cycles of planned layouts, those of a node as often as the graph has it.

    They are scheduled by one scheduler, whichever may follow. Then all schedulers get the same
    layouts, and results have the same bits.
    """
    target, given, overrides = sliced.target, sliced.given, sliced.given.overrides
    facts = facts_of(target, given, (), {})
    graph = rewritten(sliced.cut(), SLICED, facts, (*STRUCTURE, *RULES))
    graph = SCHEDULERS["spill_opt"](graph, target, given.sram_budget, overrides, renewed)
    graph = plan_addresses(graph, target, overrides, renewed)
    times = repeats(graph, sliced.known.times)
    codes = (one.code for one in emit_segments(graph, fragments, MERGED))
    return sum(
        (span.stop - span.start) * times[code.nodes[span.node].node]
        for code in codes
        if code is not None
        for span in spans(code.runs, code.cycles)
    )


def _counts(graph: MNGraph) -> dict[str, int]:
    return {"nodes": len(graph.nodes), "values": len(graph.values)}
