"""The order of the passes, from an ONNX model to an app, with the verifier between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

from .app.make_app import make_app, program_text
from .app.model import App
from .errors import NoRoomError, NoSwitchError
from .frontend.import_onnx import ImportedModel, import_onnx
from .garbage import without_collection
from .graph.graph import MNGraph
from .graph.text import print_graph
from .graph.verify import STRUCTURE, verify
from .layers.operators import RULES
from .layers.store import written_whole
from .pfvm.batch_parts import parts_of
from .planners.lpz.known import Known
from .planners.no_room import on_the_host
from .planners.overrides import with_io_layouts
from .report.bound import record_bound
from .report.codegen_dir import DUMPS, L3IR, STRIPPED, TRACE
from .report.node_trace import node_trace
from .report.programs import record_programs
from .report.stripped import stripped
from .request import Request
from .scheduler.address_planner import plan_addresses
from .scheduler.schedulers import SCHEDULERS
from .search_passes import Searches


@dataclass(frozen=True, eq=False)
class Artifacts:
    """The results of a compilation: the app, its assembly text, and the further files by name."""

    app: App
    vsm: str
    #: the graph after each planner and at the end, and its time line
    files: Mapping[str, bytes]


@dataclass(frozen=True, eq=False)
class Compiled(Artifacts):
    """The results of a compilation of this process, with the final graph."""

    graph: MNGraph

    @property
    def dumps(self) -> Mapping[str, str]:
        """The texts of the graph after each planner, by file name."""
        return {n: text.decode() for n, text in self.files.items() if n.startswith(DUMPS)}


#: The most nodes that are moved to the host for lack of room, each after a compile that failed.
_MOST_ON_HOST = 16
_RULES = (*STRUCTURE, *RULES)
#: The pass that leaves the graph as it is.
SIMULATED = "simulation"


@dataclass(frozen=True, eq=False)
class Planned:
    """A model of which everything is decided: its graph has all but code.

    ``searches`` knows what else the graph may become. ``estimated`` are the cycles of its program,
    before there is one.
    """

    request: Request
    imported: ImportedModel
    graph: MNGraph
    searches: Searches
    addressed: Callable[[MNGraph], MNGraph]
    estimated: int

    @property
    def cycles(self) -> int:
        """The cycles of the program."""
        return sum(getattr(part, "cycles", 0) for part in self.program.app.segments)

    @cached_property
    def program(self) -> Compiled:
        """The program that was planned."""
        graph, imported, request = self.graph, self.imported, self.request
        target, options, report = request.target, request.options, request.report
        files = report.files
        report.data["estimated_cycles"] = self.estimated
        with without_collection():
            with report.running("emit") as facts:
                graph, segments = self.searches.emit(graph, self.addressed)
                if graph is not self.graph:
                    files |= _texts(verify(graph, target, _RULES))
                facts["lines"] = sum(len(s.code.lines) for s in segments if s.code is not None)
            with report.running("time_line"):
                text = node_trace(graph, segments, target)
                files[TRACE] = text.encode(errors="backslashreplace")
            with report.running("assemble") as facts:
                made = make_app(graph, imported, segments, target)
                facts |= {"segments": len(segments), "dram_words": made.app.dram_words}
                record_programs(report, graph, segments, made.programs, options.scheduler, target)
            with report.running("bound"):
                record_bound(report, request.model, target, options.precisions)
            found = {name: text.encode() for name, text in self.searches.dumps.items()}
            return Compiled(made.app, program_text(made.app), {**files, **found}, graph)


def compile_onnx(request: Request) -> Compiled:
    """Compile a model, see :func:`plan_onnx`."""
    return plan_onnx(request).program


def plan_onnx(request: Request) -> Planned:
    """Decide all of a program.

    Warns (HostFallbackWarning) if nodes must run on the host. A node whose tensors do not fit local
    memory even in slices runs there too. Raises the diagnostics of the passes.
    """
    with without_collection():
        options = request.options
        with request.report.running("import") as facts:
            imported = import_onnx(
                request.model, request.target, options.update, _parts_of_batch(request)
            )
            facts |= {"nodes": len(imported.graph.nodes), "batch_parts": imported.parts}
        _note_whole(request, imported, imported.written_whole)
        learnt = Known()
        for _ in range(_MOST_ON_HOST):
            try:
                return _planned(request, imported, learnt)
            except (NoRoomError, NoSwitchError) as problem:
                graph = on_the_host(imported.graph, problem)
                if graph is None or options.strict or options.time_slice == "off":
                    raise
                imported = replace(imported, graph=graph)
        return _planned(request, imported, learnt)


def _parts_of_batch(request: Request) -> int:
    """Return in how many parts the batch goes through the model; layouts of a part are searched."""
    options = request.options
    given = options.overrides or options.layout_specs
    if given or (options.layout_planner, options.time_slice) != ("lpz", "auto"):
        return 1
    return parts_of(request.model, request.target, halves="half" in options.precisions)


def _note_whole(request: Request, imported: ImportedModel, reasons: Mapping[str, str]) -> None:
    for name, reason in reasons.items():
        whole = f"`{imported.registered[name][0] or name}` is written as a whole"
        request.report.note(f"{whole}, not its new row alone: {reason}")


def _planned(request: Request, imported: ImportedModel, learnt: Known) -> Planned:
    """Plan an imported model; ``learnt`` has what attempts before this one have found out."""
    target, options, report = request.target, request.options, request.report
    overrides = with_io_layouts(
        options.overrides, options.io_layouts, imported.graph, imported.registered
    )
    plain, part, renewed = SCHEDULERS.get(options.scheduler), options.sram_budget, imported.updates
    searches = Searches(request, renewed)
    addressed = partial(plan_addresses, target=target, overrides=overrides, renewed=renewed)

    def schedule(graph: MNGraph) -> MNGraph:
        if plain is None:
            return searches.schedule(graph)
        return plain(graph, target, part, overrides, renewed)

    passes: list[tuple[str, Callable[[MNGraph], MNGraph]]]
    passes = [(SIMULATED, searches.simulate)] if searches.simulates else []
    passes += [(options.scheduler, schedule), ("address", addressed)]
    report.expect(len(passes) + 7)
    graph = request.plans.graph_of(imported, target, options, overrides, report, learnt)
    for name, run in passes:
        with report.running(name) as facts:
            graph = verify(run(graph), target, _RULES)
            facts |= {"nodes": len(graph.nodes), "values": len(graph.values)}
        if name != SIMULATED:
            report.files[f"{DUMPS}{name}.txt"] = print_graph(graph).encode()
    _note_whole(request, imported, written_whole(graph, target))
    with report.running("dump"):
        report.files |= _texts(graph)
    with report.running("estimate"):
        cycles = request.plans.estimates.cycles(graph, target)
    return Planned(request, imported, graph, searches, addressed, cycles)


def _texts(graph: MNGraph) -> dict[str, bytes]:
    return {L3IR: print_graph(graph).encode(), STRIPPED: stripped(graph)}
