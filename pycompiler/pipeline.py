"""From an ONNX model to an app: every pass in order, with the verifier between them."""

from __future__ import annotations

import gc
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import onnx

from . import __version__
from .app.model import App, AppValue, DeviceSegment, HostSegment, Port
from .emit.concat import Code, concatenate
from .errors import HostFallbackWarning, error
from .frontend.import_onnx import ImportedModel, import_onnx
from .graph.graph import Location, MNGraph, MNNode, Side
from .graph.text import print_graph
from .graph.verify import STRUCTURE, verify
from .layers.base import layout_of
from .layers.registry import LAYERS, RULES
from .layers.transfer_plan import plan_transfer
from .machine import Target
from .options import Options
from .planners.dtype import plan_dtypes
from .planners.layout import plan_layouts
from .planners.location import plan_locations
from .planners.overrides import Overrides, check_overrides
from .planners.side import plan_sides
from .report.report import Report
from .scheduler.address import plan_addresses
from .scheduler.always_from_dram import schedule
from .scheduler.resident import schedule_resident

_PACKAGE = str(Path(__file__).parent) + os.sep


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
        imported = import_onnx(model, target.name)
        facts["nodes"] = len(imported.graph.nodes)
    overrides = _with_io_layouts(options, imported)
    passes: Sequence[tuple[str, Callable[[MNGraph], MNGraph]]] = (
        ("side", lambda graph: plan_sides(graph, strict=options.strict)),
        (
            "dtype",
            lambda graph: plan_dtypes(
                graph,
                target,
                float_dtype=options.float_dtype,
                overrides=overrides,
                registered=imported.registered,
            ),
        ),
        ("location", lambda graph: plan_locations(graph, overrides)),
        (
            "layout",
            lambda graph: plan_locations(plan_layouts(graph, target, overrides), overrides),
        ),
        (options.scheduler, lambda graph: _schedule(graph, target, options, overrides)),
        ("address", lambda graph: plan_addresses(graph, target)),
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
            _report_fallback(graph, report)
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


def _schedule(graph: MNGraph, target: Target, options: Options, overrides: Overrides) -> MNGraph:
    if options.scheduler == "always_from_dram":
        return schedule(graph, target)
    consecutive = options.scheduler == "reuse_consecutive"
    return schedule_resident(
        graph,
        target,
        consecutive=consecutive,
        share=options.sram_budget,
        overrides=overrides,
    )


def _report_fallback(graph: MNGraph, report: Report) -> None:
    report.data["operators"] = len(graph.nodes)
    report.data["host_fallback"] = [
        {"node": node.name, "op": node.op, "reason": node.reason, "source": node.source}
        for node in graph.nodes
        if node.side is Side.HOST
    ]


def warn_of_fallback(report: Report) -> None:
    """Give the one warning about operators that run on the host, if there are any."""
    rows = report.data["host_fallback"]
    if rows:
        shown = "; ".join(
            f"{row['op']} ({row['reason']}{', ' + row['source'] if row['source'] else ''})"
            for row in rows
        )
        total = report.data["operators"]
        message = f"{len(rows)} of {total} operators run on the host: {shown}"
        warnings.warn(message, HostFallbackWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """Find the ``stacklevel`` at which a warning points at the code that called pycompiler."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


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
    fragments = []
    for node in nodes:
        operands = f"({', '.join(node.inputs)}) -> ({', '.join(node.outputs)})"
        comment = json.dumps(f"{node.op} {node.name}: {operands}")[1:-1]
        fragments.append((node.name, comment, LAYERS[node.op].emit(node, graph, target)))
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
            yield (value.addr or 0) + plan_transfer(layout_of(value), target).dram_words


def _app_value(name: str, graph: MNGraph, target: Target) -> AppValue:
    value = graph.values[name]
    elem, shape, dtype = value.type.elem, value.shape, value.dtype.value
    if value.addr is None:
        return AppValue(name, elem, shape, dtype)
    layout = layout_of(value)
    words = plan_transfer(layout, target).dram_words
    return AppValue(name, elem, shape, dtype, str(layout), value.addr, words)


def _node_rows(
    nodes: Sequence[MNNode], graph: MNGraph, code: Code, segment: int
) -> list[Mapping[str, object]]:
    rows: list[Mapping[str, object]] = []
    for node, found in zip(nodes, code.nodes, strict=True):
        out = graph.values[node.outputs[0]]
        rows.append(
            {
                "node": node.name,
                "op": node.op,
                "segment": segment,
                "output": out.name,
                "shape": list(out.shape),
                "layout": str(out.layout),
                "num_lw": out.num_lw,
                "location": out.location.value,
                "steps": found.steps,
                "dram_words": {"read": found.dram_read, "written": found.dram_written},
                "busy_steps": dict(sorted(found.busy.items())),
                "utilisation": round(max(found.busy.values(), default=0) / (found.steps or 1), 4),
                "source": node.source,
            }
        )
    return rows


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
