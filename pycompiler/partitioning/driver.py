"""Cuts a model into pieces for the device and pieces for the host."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from ..app.model import App
from ..app.writer import app_content
from ..build import load_model, settled_model
from ..errors import PycompilerError, error
from ..files import write_file
from ..halves_or_singles import compile_cheapest
from ..machine import Target
from ..options import parse_options
from ..pfvm.sizes import Sizes
from ..report.bound import bodies, bound_of
from ..report.codegen_dir import TRACE
from ..report.progress import progress_bar
from ..report.report import Report
from ..request import Request
from ..runtime.device import find_device
from ..runtime.places import with_places
from ..summary.performance import Performance, in_turn
from ..warn import folded_warnings
from .costs import Costs, PieceCost, cost_of
from .functions import model_of_functions
from .linked_app import linked_app
from .pattern_table import PATTERNS
from .patterns import Pattern, composites
from .pieces import Piece, in_order, pieces_of
from .source import Source, Unit, read_source
from .support import CompilerSupport, Support


@dataclass(eq=False, repr=False)
class Partition:
    """A model in pieces that run one after the other.

    ``reasons`` has why a unit runs on the host. ``costs`` has the cost of each piece that was tried
    on the device, by its nodes. ``threshold`` is that of :func:`partition`.
    """

    source: Source
    units: list[Unit]
    reasons: dict[Unit, str]
    pieces: list[Piece]
    costs: dict[tuple[int, ...], PieceCost]
    threshold: float
    _compiler: _Compiler
    _model: onnx.ModelProto | None = field(default=None)

    def __repr__(self) -> str:
        shown = ", ".join(f"{piece.name}: {len(piece.numbers)} nodes" for piece in self.pieces)
        return f"Partition({shown or 'no nodes'}){f': {self.note}' if self.note else ''}"

    @property
    def note(self) -> str:
        """Why no piece runs on the device, and what changes that; empty if one does."""
        if not self.pieces or any(piece.on_device for piece in self.pieces):
            return ""
        if not self.costs:
            return "all nodes stay on the host: the device takes or compiles none, see the reasons"
        gains = [cost for cost in self.costs.values() if cost.gain > 0]
        why = "the device gains no time on any piece"
        if gains:
            best = min(gains, key=PieceCost.ratio)
            why = f"moving the best piece takes {best.ratio():.3g} times what the device gains"
        return (
            f"all nodes stay on the host: {why}, and the threshold is {self.threshold:g}. "
            "threshold=inf (--threshold inf) keeps every piece"
        )

    @property
    def model(self) -> onnx.ModelProto:
        """The model with a function for each piece; any ONNX runtime runs it."""
        if self._model is None:
            self._model = model_of_functions(self.source, self.pieces)
        return self._model

    def piece_model(self, piece: Piece) -> onnx.ModelProto:
        """Return a model of one piece, with its constants: what a code generator needs."""
        return self.source.part(piece.numbers, piece.name)

    @property
    def report(self) -> Performance:
        """How fast the pieces on the device are, one after the other. P0803."""
        parts = []
        for piece in self.pieces:
            if piece.on_device:
                self._app(piece)
                facts, trace = self._compiler.made[piece.numbers]
                parts.append(Performance(piece.name, facts, partial(bytes, trace)))
        hosted = sum(len(piece.numbers) for piece in self.pieces if not piece.on_device)
        unknown = [f"the time of {hosted} nodes on the host, but for the estimates in `costs`"]
        name, device = self.source.model.graph.name or "model", self._compiler.target.name
        return in_turn(name, device, parts, unknown if hosted else ())

    def _app(self, piece: Piece) -> App:
        try:
            return self._compiler.app(piece.numbers)
        except PycompilerError as problem:
            reason = f"{problem.code}: {problem.message}"
            raise error("P0803", piece=piece.name, reason=reason) from problem

    def app(self) -> App:
        """Return the app of all pieces. P0803 if a piece of the device does not compile."""
        apps = {piece.name: self._app(piece) for piece in self.pieces if piece.on_device}
        app = linked_app(self.source, self.pieces, apps, self._compiler.target)
        return with_places(app, self._compiler.target)

    def export(self, path: Path | str) -> None:
        """Write the app to a file, which runs without torch. P0003, P0803."""
        write_file(Path(path), app_content(self.app()))


class _Compiler:
    """Compiles pieces, each once."""

    def __init__(
        self, source: Source, target: Target, options: Mapping[str, Any] | None, whole: Report
    ):
        self.source, self.target, self._whole = source, target, whole
        self.options = {**(options or {}), "strict": True}
        self.parsed = parse_options(self.options)
        self._made: dict[tuple[int, ...], App | PycompilerError] = {}
        #: By piece: its report, and the text of its ``trace.json``.
        self.made: dict[tuple[int, ...], tuple[dict[str, Any], bytes]] = {}

    def app(self, numbers: tuple[int, ...]) -> App:
        """Return the app of a piece; raises the diagnostic of its compile."""
        if numbers not in self._made:
            report = Report(self.target.name, self.options)
            model = self.source.part(numbers, "piece")
            self._whole.progress(f"trial {len(self._made) + 1}, {len(numbers)} operators")
            try:
                with progress_bar(report, shown=False):
                    made = compile_cheapest(Request(model, self.target, self.parsed, report))
                self._made[numbers] = made.app
                self.made[numbers] = report.data, made.files.get(TRACE, b"")
            except PycompilerError as problem:
                self._made[numbers] = problem
        found = self._made[numbers]
        if isinstance(found, PycompilerError):
            raise found
        return found

    def seconds(self, numbers: tuple[int, ...], simulate: bool) -> float:
        """Return the time of a piece on the device: of its programs, or at least."""
        if simulate:
            cycles = sum(getattr(part, "cycles", 0) for part in self.app(numbers).segments)
        else:
            model = self.source.part(numbers, "piece")
            rates = self.parsed.precisions
            cycles = bound_of(model, self.target, rates).cycles if bodies(model) is None else 0
        return cycles / (self.target.spec.clock_mhz * 1e6)


def partition(
    model: onnx.ModelProto | Path | str,
    device: str = "emu2",
    *,
    support: Support | None = None,
    patterns: Sequence[Pattern] = (),
    threshold: float = 1.0,
    costs: Costs | None = None,
    simulate: bool = True,
    options: Mapping[str, Any] | None = None,
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Partition:
    """Cut a model into alternating pieces for host and device.

    ``support`` says what the device takes; None asks the compiler for ``device``. ``patterns`` are
    looked for before those of the table. A piece is dropped if its transfer takes more than
    ``threshold`` times what the device gains (see :class:`Costs`); ``inf`` keeps every piece. The
    time on the device is that of the compiled programs, or with ``simulate`` false the least that
    the machine needs; then nothing is compiled until the app is asked for. ``options`` are those of
    a compile. ``model`` may be the path of one. Its inputs must have sizes: ``dims`` has those of
    dimensions that the model names, ``shapes`` those of inputs. P0001, P0002, P0103, P0108, P0139,
    P0601, P0701, P0702, P0704, P0801.
    """
    sizes = Sizes(dims or {}, shapes or {})
    if isinstance(model, Path | str):
        model, sizes = load_model(Path(model), sizes), Sizes()
    _check_arguments(model, support, patterns)
    if not isinstance(threshold, int | float) or not threshold >= 0:
        raise error("P0704", name="threshold", value=repr(threshold), legal="a number from 0 on")
    found = find_device(device)
    if found.machine is None:
        raise error("P0801", reason=f"{device} is the host itself")
    source = read_source(settled_model(model, sizes))
    report = Report(found.target.name, options or {})
    with progress_bar(report, shown=True), folded_warnings():
        compiler = _Compiler(source, found.target, options, report)
        asked = CompilerSupport(found.target) if support is None else support
        units, reasons = _annotated(source, (*patterns, *PATTERNS), asked)
        tried: dict[tuple[int, ...], PieceCost] = {}
        while True:
            pieces = pieces_of(units, reasons, source)
            on_device = [piece for piece in pieces if piece.on_device]
            refused = _refused(on_device, compiler) if simulate else {}
            if refused:
                reasons |= refused
                continue
            for piece in on_device:
                seconds = compiler.seconds(piece.numbers, simulate)
                tried[piece.numbers] = cost_of(source, piece.numbers, seconds, costs or Costs())
            worst = max(on_device, key=lambda piece: tried[piece.numbers].ratio(), default=None)
            if worst is None or tried[worst.numbers].ratio() <= threshold:
                return Partition(source, units, reasons, pieces, tried, threshold, compiler)
            reasons |= dict.fromkeys(worst.units, _dropped(tried[worst.numbers]))


def _check_arguments(model: object, support: object, patterns: Sequence[object]) -> None:
    if not isinstance(model, onnx.ModelProto):
        legal = "an onnx.ModelProto or the path of one"
        raise error("P0704", name="model", value=f"a {type(model).__name__}", legal=legal)
    if support is not None and not callable(getattr(support, "reason", None)):
        legal = "a SupportTable, or anything with a method `reason(unit)`"
        raise error("P0704", name="support", value=f"a {type(support).__name__}", legal=legal)
    for own in patterns:
        if not isinstance(own, Pattern):
            legal = "what `@pattern(name)` makes of a function"
            raise error("P0704", name="a pattern", value=f"a {type(own).__name__}", legal=legal)


def _annotated(
    source: Source, patterns: Sequence[Pattern], support: Support
) -> tuple[list[Unit], dict[Unit, str]]:
    """Return all units in order, and why some of them run on the host.

    A composite that the device refuses is taken apart: its operators are asked one by one.
    """
    units = [unit for unit in composites(source, patterns) if support.reason(unit) is None]
    inside = {number for unit in units for number in unit.numbers}
    reasons: dict[Unit, str] = {}
    for number, node in enumerate(source.nodes):
        if number not in inside:
            unit = Unit(node.op_type, (number,), source)
            reason = support.reason(unit)
            if reason is not None:
                reasons[unit] = reason
            units.append(unit)
    return in_order(units, source), reasons


def _refused(pieces: Collection[Piece], compiler: _Compiler) -> dict[Unit, str]:
    """Return the units to blame for the first piece that does not compile, with the reason."""
    for piece in pieces:
        try:
            compiler.app(piece.numbers)
        except PycompilerError as problem:
            reason = f"{problem.code}: {problem.message}"
            return dict.fromkeys(_to_blame(piece, problem), reason)
    return {}


def _to_blame(piece: Piece, problem: PycompilerError) -> Sequence[Unit]:
    """Return the units whose node a diagnostic names; all of the piece if it names none."""
    text = str(problem.fields.get("node", ""))
    named = [
        unit
        for unit in piece.units
        if any(text == node.name or text.startswith(f"{node.name}.") for node in unit.nodes)
    ]
    return named or piece.units


def _dropped(cost: PieceCost) -> str:
    if cost.gain <= 0:
        return f"its piece takes {_time(cost.device)} there, {_time(cost.host)} on the host"
    return f"moving its piece takes {_time(cost.transfer)}, the device gains {_time(cost.gain)}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} us"
