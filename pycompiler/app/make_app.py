"""Makes an app of a compiled graph and its programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..emit.line_table import LineTable, Owner
from ..emit.segments import Segment
from ..errors import error
from ..frontend.import_onnx import ImportedModel
from ..graph.graph import Location, MNGraph
from ..layers.base import layout_of
from ..layers.dram_transfer_plan import dram_words
from ..machine import Target
from ..version import __version__
from .host_model import host_model
from .model import App, AppValue, DeviceSegment, HostSegment, Port


@dataclass(frozen=True, eq=False)
class MadeApp:
    """An app, and for each segment the assembler's report of its program (None on the host).

    A report also has ``stalls``: the cycles that lines stand still at a wait, by line (from 1).
    """

    app: App
    programs: tuple[dict[str, Any] | None, ...]


def make_app(
    graph: MNGraph, imported: ImportedModel, segments: Sequence[Segment], target: Target
) -> MadeApp:
    """Assemble the programs and put everything that a call needs into an app.

    P0401 if the assembler refuses a program. That is a bug of the compiler.
    """
    made: list[DeviceSegment | HostSegment] = []
    programs: list[dict[str, Any] | None] = []
    for number, segment in enumerate(segments):
        ends, code = (segment.inputs, segment.outputs), segment.code
        if code is None:
            made.append(HostSegment(*ends, host_model(segment, imported)))
            programs.append(None)
            continue
        program = target.assemble(code.text, f"segment{number}.vsm")
        facts = {**program.report(), "stalls": dict(program.stalls())}
        steps, cycles = int(facts["steps"]), int(facts["cycles"])
        owners = (Owner(node.name, node.op, node.source, node.origin) for node in segment.nodes)
        table = LineTable(tuple(owners), code.runs)
        made.append(DeviceSegment(*ends, code.text, code.relocations, steps, cycles, table))
        programs.append(facts)
    touched = {*graph.inputs, *graph.constants, *(name for _, name in graph.outputs)}
    for segment in segments:
        touched.update((*segment.inputs, *segment.outputs))
    app = App(
        f"pycompiler {__version__}",
        target.name,
        tuple(Port(name, name) for name in graph.inputs if name not in imported.registered),
        tuple(Port(key, name) for key, name in graph.outputs if key not in imported.updates),
        {name: _app_value(name, graph, target) for name in sorted(touched)},
        {**imported.constants, **{n: array for n, (_, array) in imported.registered.items()}},
        tuple(made),
        max(_dram_ends(graph, target), default=0),
        tuple(Port(key, name) for name, (key, _) in imported.registered.items()),
        tuple(
            Port(imported.updates[key], name)
            for key, name in graph.outputs
            if key in imported.updates
        ),
    )
    return MadeApp(app, tuple(programs))


def _dram_ends(graph: MNGraph, target: Target) -> Iterator[int]:
    """Yield the end of each DRAM value, in long words."""
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


def program_text(app: App) -> str:
    """Return ``model.vsm``: the code of all device segments."""
    parts: list[str] = []
    for number, segment in enumerate(app.segments):
        if isinstance(segment, DeviceSegment):
            parts.append(f"# segment {number}\n{segment.code}")
        else:
            parts.append(f"# segment {number} runs on the host\n")
    return "".join(parts) or "# no operators\n"


def programs_of(app: App, path: object) -> Iterator[tuple[int, DeviceSegment]]:
    """Yield the device segments, each with the lines of ``model.vsm`` before it.

    P0504 if an earlier version wrote the app, which has no table of lines; ``path`` names it.
    """
    before = 0
    for segment in app.segments:
        before += 1
        if isinstance(segment, DeviceSegment):
            if segment.code and not segment.lines.runs:
                raise error("P0504", path=path)
            yield before, segment
            before += segment.code.count("\n")
