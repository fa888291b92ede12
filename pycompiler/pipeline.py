"""From an ONNX model to an app: every pass in order, with the verifier between them."""

from __future__ import annotations

import gc
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import onnx

from . import __version__
from .app.model import App, AppValue, DeviceSegment, HostSegment, Port
from .emit.concat import Code, concatenate
from .emit.fragment_cache import Fragments
from .errors import PycompilerError, error
from .frontend.import_onnx import ImportedModel, import_onnx
from .graph.graph import Location, MNGraph, MNNode, Side
from .graph.text import print_graph
from .graph.verify import STRUCTURE, verify
from .layers.base import layout_of
from .layers.dram_transfer_plan import dram_words
from .layers.operators import RULES
from .machine import Target
from .options import Options
from .planners.dtype import plan_dtypes
from .planners.layout import LayoutFacts, plan_layouts
from .planners.location import plan_locations
from .planners.overrides import Overrides, check_overrides, untimed
from .planners.side import plan_sides
from .planners.time_slices.expand import cut_into_slices
from .planners.time_slices.planner import plan_time_slices
from .planners.time_slices.sliced_graph import TimeSlices
from .report.report import Report
from .report.schedule import schedule_facts
from .scheduler.address_planner import plan_addresses
from .scheduler.always_from_dram import schedule
from .scheduler.keep_in_lm import schedule_resident
from .warn import report_fallback, warn_of_fallback, warn_of_specs


@dataclass(frozen=True, eq=False)
class Compiled:
    """What a compilation makes: the app, its assembly text, and the final graph."""

    app: App
    vsm: str
    graph: MNGraph
    #: the graph after each planner, by file name
    dumps: Mapping[str, str]

    @property
    def l3ir(self) -> str:
        """The text of the final graph."""
        return print_graph(self.graph)


def compile_onnx(
    model: onnx.ModelProto, target: Target, options: Options, report: Report
) -> Compiled:
    """Compiles a model with static shapes for ``target``.

    Warns once (HostFallbackWarning) if nodes must run on the host. Raises the diagnostics of the
    passes.
    """
    with report.running("import") as facts:
        imported = import_onnx(model, target)
        facts["nodes"] = len(imported.graph.nodes)
    overrides = _with_io_layouts(options, imported)
    slicing = _Slicing(target, options, overrides, report)
    passes: Sequence[tuple[str, Callable[[MNGraph], MNGraph]]] = (
        ("side", lambda graph: plan_sides(graph, strict=options.strict)),
        (
            "dtype",
            lambda graph: plan_dtypes(
                graph,
                target,
                float_dtype=options.float_dtype,
                gemm_precision=options.gemm_precision,
                overrides=overrides,
                registered=imported.registered,
            ),
        ),
        ("location", lambda graph: plan_locations(graph, overrides)),
        ("layout", slicing.lay_out),
        ("time_slice", slicing.plan),
        ("slices", slicing.cut),
        (options.scheduler, lambda graph: _schedule(graph, target, options, overrides)),
        ("address", lambda graph: plan_addresses(graph, target, overrides)),
    )
    report.expect(len(passes) + 3)
    rules = (*STRUCTURE, *RULES)
    graph = verify(imported.graph, target, rules)
    dumps: dict[str, str] = {}
    check_overrides(graph, overrides)
    for name, planner in passes:
        with report.running(name):
            graph = verify(planner(graph), target, rules)
        dumps[f"layout.{name}.txt"] = print_graph(graph)
        if name == "side":
            report_fallback(graph, report)
            warn_of_fallback(report)
    with report.running("emit"):
        segments = [
            (list(nodes), side)
            for (_, side), nodes in groupby(graph.nodes, lambda n: (n.segment, n.side))
        ]
        with _without_collection():
            codes = [
                _emit(nodes, graph, target) if side is Side.DEVICE else None
                for nodes, side in segments
            ]
    with report.running("assemble"):
        app = _make_app(graph, imported, segments, codes, target, report)
        report.data["schedule"] = schedule_facts(
            options.scheduler, graph, report.data["nodes"], report.data["steps"]
        )
    vsm = _program_text(app)
    return Compiled(app, vsm, graph, dumps)


def _with_io_layouts(options: Options, imported: ImportedModel) -> Overrides:
    """Return the overrides, with those that ``io_spec_constraints`` asks for. P0705."""
    graph = imported.graph
    overrides = {name: dict(facts) for name, facts in options.overrides.items()}
    given = set(graph.inputs) - set(imported.registered)
    for key, layout in options.io_layouts.items():
        names = [value for output, value in graph.outputs if output == key]
        names += [key] if key in given else []
        if not names:
            raise error("P0705", name=key, reason="the function has no such input or output")
        for name in names:
            other = overrides.setdefault(name, {}).setdefault("layout", layout)
            if other != layout:
                raise error("P0705", name=key, reason=f"`{name}` must have layout {other} too")
    return overrides


class _Slicing:
    """Layouts, time slices, and the graph of slices: three passes that know of each other."""

    def __init__(self, target: Target, options: Options, overrides: Overrides, report: Report):
        self.target, self.options, self.overrides = target, options, overrides
        self.report = report
        self.plain: MNGraph | None = None
        self.found: TimeSlices | None = None

    def lay_out(self, graph: MNGraph) -> MNGraph:
        """Set layouts; the graph without them is kept for the next pass.

        Where values are so large that layouts cannot be switched, slices are planned at once.
        """
        self.plain = graph
        try:
            facts = LayoutFacts()
            made = self._laid_out(graph, untimed(self.overrides), facts)
            self.report.data["layout_spec_unused"] = facts.unused
            warn_of_specs(self.report)
            if facts.estimates:
                self.report.data["passes"][-1]["estimated_steps"] = facts.estimates
            return made
        except PycompilerError as problem:
            if problem.code != "P0305" or self.options.time_slice == "off":
                raise
            return self._planned(None).annotated()

    def _laid_out(
        self,
        graph: MNGraph,
        overrides: Overrides,
        facts: LayoutFacts | None = None,
        *,
        resolve: bool = True,
        last: bool = False,
    ) -> MNGraph:
        # Looking for slices lays many graphs out: there the first arrival has to do.
        chosen = last or facts is not None
        planner = self.options.layout_planner if chosen else "first_arrival"
        specs = self.options.layout_specs
        found = plan_layouts(graph, self.target, overrides, planner, specs, facts, resolve=resolve)
        return plan_locations(found, overrides)

    def plan(self, graph: MNGraph) -> MNGraph:
        """Give values that are too large Time digits."""
        return (self.found or self._planned(graph)).annotated()

    def _planned(self, graph: MNGraph | None) -> TimeSlices:
        assert self.plain is not None
        options = self.options
        self.found = plan_time_slices(
            self.plain,
            graph,
            self.target,
            self._laid_out,
            mode=options.time_slice,
            share=options.sram_budget,
            overrides=self.overrides,
        )
        return self.found

    def cut(self, graph: MNGraph) -> MNGraph:
        """Make nodes and values for every slice, and place them."""
        assert self.found is not None
        return plan_locations(cut_into_slices(self.found), self.overrides)


def _schedule(graph: MNGraph, target: Target, options: Options, overrides: Overrides) -> MNGraph:
    if options.scheduler == "always_from_dram":
        return schedule(graph, target, overrides)
    consecutive = options.scheduler == "reuse_consecutive"
    return schedule_resident(
        graph,
        target,
        consecutive=consecutive,
        share=options.sram_budget,
        overrides=overrides,
    )


@contextmanager
def _without_collection() -> Iterator[None]:
    """Hold the garbage collector: code is many small objects without cycles, half the time is its.

    It goes on as before afterwards.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _emit(nodes: Sequence[MNNode], graph: MNGraph, target: Target) -> Code:
    """Return the program of one device segment."""
    addresses = {n: v.addr for n, v in graph.values.items() if v.addr is not None}
    made = Fragments(target)
    fragments = []
    for node in nodes:
        operands = f"({', '.join(node.inputs)}) -> ({', '.join(node.outputs)})"
        comment = json.dumps(f"{node.op} {node.name}: {operands}")[1:-1]
        fragments.append((node.name, comment, made.of(node, graph)))
    return concatenate(fragments, addresses, target)


def _boundary(nodes: Sequence[MNNode], graph: MNGraph) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Values a segment takes from outside, constants apart, and values others take from it."""
    made = {out for node in nodes for out in node.outputs if out}
    read = dict.fromkeys(name for node in nodes for name in node.inputs if name)
    inputs = [name for name in read if name not in made and name not in graph.constants]
    own = {node.name for node in nodes}
    wanted = {name for _, name in graph.outputs}
    wanted |= {n for node in graph.nodes if node.name not in own for n in node.inputs}
    outputs = [out for node in nodes for out in node.outputs if out and out in wanted]
    return tuple(inputs), tuple(outputs)


def _make_app(
    graph: MNGraph,
    imported: ImportedModel,
    segments: Sequence[tuple[list[MNNode], Side]],
    codes: Sequence[Code | None],
    target: Target,
    report: Report,
) -> App:
    made: list[DeviceSegment | HostSegment] = []
    for (nodes, _), code in zip(segments, codes, strict=True):
        inputs, outputs = _boundary(nodes, graph)
        if code is None:
            made.append(HostSegment(inputs, outputs, _host_model(nodes, inputs, outputs, imported)))
            continue
        program = target.assemble(code.text, f"segment{len(made)}.vsm")
        facts = program.report()
        report.data["steps"] += facts["steps"]
        report.data["cycles"] += facts["cycles"]
        for key in ("read", "written"):
            report.data["dram_words"][key] += facts["dram_words"][key]
        report.data["nodes"] += _node_rows(nodes, graph, code, len(made))
        steps, cycles = int(facts["steps"]), int(facts["cycles"])
        made.append(DeviceSegment(inputs, outputs, code.text, code.relocations, steps, cycles))
    touched = {*graph.inputs, *graph.constants, *(name for _, name in graph.outputs)}
    for segment in made:
        touched.update((*segment.inputs, *segment.outputs))
    values = {name: _app_value(name, graph, target) for name in sorted(touched)}
    return App(
        f"pycompiler {__version__}",
        target.name,
        tuple(Port(name, name) for name in graph.inputs if name not in imported.registered),
        tuple(Port(key, name) for key, name in graph.outputs),
        values,
        {**imported.constants, **{n: array for n, (_, array) in imported.registered.items()}},
        tuple(made),
        max(_dram_ends(graph, target), default=0),
        tuple(Port(key, name) for name, (key, _) in imported.registered.items()),
    )


def _dram_ends(graph: MNGraph, target: Target) -> Iterator[int]:
    """Where each DRAM value ends."""
    for value in graph.values.values():
        if value.location is Location.DRAM:
            yield (value.addr or 0) + dram_words(layout_of(value), target)


def _app_value(name: str, graph: MNGraph, target: Target) -> AppValue:
    value = graph.values[name]
    elem, shape, dtype = value.type.elem, value.shape, value.dtype.value
    if value.addr is None:
        return AppValue(name, elem, shape, dtype)
    layout = layout_of(value)
    words = dram_words(layout, target)
    return AppValue(name, elem, shape, dtype, str(layout), value.addr, words)


#: What tells the nodes and values of time slices apart.
_SLICE = re.compile(r"(?<=\.)(t|join|part|sum)\d+(?=\.|__|\Z)")


def _node_rows(
    nodes: Sequence[MNNode], graph: MNGraph, code: Code, segment: int
) -> list[dict[str, Any]]:
    """Return a row per node; the slices of a node share one, with the shape of the first."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for node, found in zip(nodes, code.nodes, strict=True):
        out = graph.values[node.outputs[0]]
        sliced = node.slice is not None
        name, output = (_SLICE.sub(r"\1", n) if sliced else n for n in (node.name, out.name))
        row = rows.setdefault(
            (node.op, name),
            {
                "node": name,
                "op": node.op,
                "segment": segment,
                "output": output,
                "shape": list(out.shape),
                "layout": str(out.layout),
                "num_lw": out.num_lw,
                "location": out.location.value,
                "slices": 0,
                "steps": 0,
                "dram_words": {"read": 0, "written": 0},
                "busy_steps": Counter(),
                "source": node.source,
            },
        )
        row["slices"] += 1
        row["steps"] += found.steps
        row["dram_words"]["read"] += found.dram_read
        row["dram_words"]["written"] += found.dram_written
        row["busy_steps"].update(found.busy)
    for row in rows.values():
        row["busy_steps"] = busy = dict(sorted(row["busy_steps"].items()))
        row["utilisation"] = round(max(busy.values(), default=0) / (row["steps"] or 1), 4)
    return list(rows.values())


def _host_model(
    nodes: Sequence[MNNode],
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    imported: ImportedModel,
) -> bytes:
    """Return the ONNX model of a host segment."""
    values = imported.graph.values

    def info(name: str) -> onnx.ValueInfoProto:
        type = values[name].type
        elem = onnx.TensorProto.DataType.Value(type.elem.upper())
        return onnx.helper.make_tensor_value_info(name, elem, type.shape)

    data = {**imported.parameters, **imported.constants}
    protos = [imported.protos[node.name] for node in nodes]
    constants = dict.fromkeys(name for proto in protos for name in proto.input if name in data)
    # Bodies of control flow read outer values too.
    constants |= dict.fromkeys(n for node in nodes for n in node.inputs if n in data)
    graph = onnx.helper.make_graph(
        protos,
        "host",
        [info(name) for name in inputs],
        [info(name) for name in outputs],
        [onnx.numpy_helper.from_array(data[name], name) for name in constants],
    )
    model = onnx.helper.make_model(graph, opset_imports=imported.opsets)
    model.ir_version = imported.ir_version
    return bytes(model.SerializeToString())


def _program_text(app: App) -> str:
    """``model.vsm``: the code of all device segments."""
    parts: list[str] = []
    for number, segment in enumerate(app.segments):
        if isinstance(segment, DeviceSegment):
            parts.append(f"# segment {number}\n{segment.code}")
        else:
            parts.append(f"# segment {number} runs on the host\n")
    return "".join(parts) or "# no operators\n"
