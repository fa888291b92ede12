"""One compilation with its folder: makes a function of a model and writes the files."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from .app.writer import app_content
from .cache import CompileCache, cache_key, cache_states
from .errors import HostFallbackWarning, PycompilerError, error, internal, located
from .executors import Workers
from .files import read_input, write_file
from .graph.graph import TensorType
from .halves_or_singles import compile_cheapest
from .options import ANNEALED, OFF, parse_options, with_preset
from .pfvm.held import array_of, copied, data_held, files_of, hold, holding, with_data
from .pfvm.lower import lower
from .pfvm.names import keys
from .pfvm.optimise import optimise
from .pfvm.prepare import prepare, static_types
from .pfvm.random_numbers import with_random_numbers
from .pfvm.registered import registered, updates
from .pfvm.settle import settled
from .pfvm.sizes import Sizes
from .pfvm.well_formed import check_model
from .pipeline import Artifacts
from .presets.read import environment_facts
from .profile.compile_trace import traced
from .report.codegen_dir import (
    LOG_JSON,
    LOG_TEXT,
    MODEL_APP,
    MODEL_ONNX,
    MODEL_VSM,
    REPORT,
    clear_failure,
    read_file,
    write_failure,
    write_folder,
)
from .report.progress import progress_bar
from .report.report import Report
from .request import Request
from .runtime.app_file import function_of
from .runtime.device import Board
from .runtime.executable import DeviceFunction, Function, HostFunction
from .runtime.io_spec import IOSpec, check_constraints, wanted_layouts
from .runtime.registered_values import Registry
from .summary.log import log_json, log_text
from .tuning.candidates import Candidates
from .tuning.search import INTERRUPTED, Search
from .warn import folded_warnings, warn_of_fallback, warn_of_options, warn_of_shapes, warn_of_specs

_KEEP_SECONDS = 10.0  # between two reports of a compile that still runs: large ones take a second


def build(
    make_model: Callable[[], onnx.ModelProto],
    device: str,
    board: Board | None,
    options: Mapping[str, Any] | None,
    folder: Path,
    ineffective: Sequence[str] = (),
    cache: CompileCache | None = None,
    registry: Registry | None = None,
    io_specs: Mapping[str, IOSpec] | None = None,
    progress: bool = False,
    backprop: bool = False,
) -> Function:
    """Compile the model that ``make_model`` returns, and write ``folder``.

    ``board`` None stands for the host. ``ineffective`` names arguments of the caller that change
    nothing. ``registry`` holds the registered values that the function shares. ``io_specs`` are
    constraints on its inputs and outputs. ``progress`` shows the passes of a long compile on a
    terminal. ``backprop`` tells that ``make_model`` adds the backward pass; without it, the option
    of that name is refused (P0703).

    On any exception, and on an interrupt, an older ``folder`` is untouched, and the report and the
    log of what was done are in ``<folder>.failed``. A long compile writes them there from time to
    time, so that they are there too if the process is killed.
    """
    if not isinstance(options, Mapping | None):
        raise error("P0704", name="options", value=repr(options), legal="a dict or None")
    report, wanted = Report(device, options or {}), io_specs or {}
    report.data["cache"] = cache_states("off")
    report.expect(2 + (cache is not None))
    report.after = _kept_at_times(folder, report)
    shown = progress_bar(report, shown=progress), folded_warnings((HostFallbackWarning,))
    with _left_on_failure(folder, report), traced(options or {}), holding(), shown[0], shown[1]:
        checked = replace(parse_options(options), io_layouts=wanted_layouts(wanted))
        searches = "tune" not in with_preset(dict(options or {}))
        anneals = checked.scheduler == ANNEALED
        report.data["environment"] = environment_facts(
            checked.envs, checked.option_json is not None, searches, anneals
        )
        if checked.backprop and not backprop:
            reason = "an ONNX model names no optimizers"
            remedy = "use Context.compile(optimizers=...)"
            raise error("P0703", name="backprop=True", reason=reason, remedy=remedy)
        warn_of_options(report, (*checked.ineffective, *ineffective), checked.renamed)
        with report.running("export"):
            model = make_model()
        check_model(model)
        model = hold(model)
        with report.running("pfvm") as facts:
            model = with_random_numbers(optimise(model))
            facts |= {"nodes": len(model.graph.node), "constants": len(model.graph.initializer)}
        files = files_of(model, MODEL_ONNX)
        if checked.out_onnx is not None:
            lowered = lower(model, None if board is None else board.target)
            for name, content in files_of(lowered, checked.out_onnx.name).items():
                write_file(checked.out_onnx.with_name(name), content)
        try:
            if board is None:
                function: Function = host_function(copied(model), registry)
            else:
                asked = Request(model, board.target, checked, report)
                made = _artifacts(asked, cache, options or {})
                report.progress("app")
                files[MODEL_VSM] = made.vsm.encode()
                files[MODEL_APP] = app_content(made.app)
                files |= made.files
                report.progress("load")
                function = DeviceFunction(made.app, board, registry)
            check_constraints(wanted, function)
        except PycompilerError:
            raise
        except Exception as problem:
            raise internal(problem) from problem
        report.data["host_runtimes"] = list(function.host_runtimes)
        report.finished()
        files |= {REPORT: report.json().encode(), **_logs(report)}
        write_folder(folder, files)
        return function


@contextlib.contextmanager
def _left_on_failure(folder: Path, report: Report) -> Iterator[None]:
    """Leave report and log beside ``folder`` if what runs inside fails, else take them away."""
    try:
        yield
    except BaseException as problem:
        report.failed(problem)
        write_failure(folder, report.json(), {**report.files, **_logs(report)})
        raise
    clear_failure(folder)


def _logs(report: Report) -> dict[str, bytes]:
    return {LOG_TEXT: log_text(report).encode(), LOG_JSON: log_json(report).encode()}


def _kept_at_times(folder: Path, report: Report) -> Callable[[], None]:
    """Return what keeps the report and the log, but not more often than every few seconds."""
    last = time.monotonic()

    def keep() -> None:
        nonlocal last
        if time.monotonic() - last >= _KEEP_SECONDS:
            write_failure(folder, report.json(), _logs(report))
            last = time.monotonic()

    return keep


def _artifacts(request: Request, cache: CompileCache | None, given: Mapping[str, Any]) -> Artifacts:
    """Compile a model, or take the entry of the cache; ``given`` are the options before checks."""
    key, report = "", request.report
    if cache is not None:
        with report.running("cache"):
            key = cache_key(request.model, request.target, request.options)
            kept = cache.load(key, report)
        report.data["cache"] = cache_states("miss" if kept is None else "hit")
        if kept is not None:
            warn_of_fallback(report)
            warn_of_specs(report)
            return kept
    made = None if request.options.tune == OFF else _tuned(request, given)
    made = made or compile_cheapest(request)
    # An interrupted search is no result that others should get.
    if cache is not None and report.data["tuning"].get("stopped") != INTERRUPTED:
        cache.store(key, made, report)
    return made


def _tuned(request: Request, given: Mapping[str, Any]) -> Artifacts | None:
    """Return what the best options make; None if no options can be compiled."""
    model, options, report = request.model, request.options, request.report
    candidates = Candidates(
        with_preset(dict(given)), given.keys(), options, training=bool(updates(model))
    )
    device = report.data["device"]
    with report.running("tune") as facts, Workers(options.executor) as workers:
        key = cache_key(model, request.target, options)
        facts_of_model = (key, model, data_held(model)), request.target.source, device
        search = Search(facts_of_model, workers, request.budget, report.progress)
        try:
            best = search.run(candidates, options.tune)
        finally:
            report.data["tuning"] = search.facts()
            facts["tried"] = len(search.rows)
    if best is None:
        return None
    report.take(best.report)
    if search.stopped == INTERRUPTED:
        report.note("interrupted: the best options so far count")
    warn_of_fallback(report)
    warn_of_specs(report)
    return best


def host_function(model: onnx.ModelProto, registry: Registry | None = None) -> HostFunction:
    """Return a function that runs the whole model on the host."""
    registry = Registry() if registry is None else registry
    check_model(model)
    prepared = prepare(model)
    types = static_types(prepared)
    inputs, outputs = keys(prepared)
    initializers = {tensor.name for tensor in prepared.graph.initializer}
    ports = [port.name for port in prepared.graph.input if port.name not in initializers]

    def typed(names: Sequence[str], values: Sequence[str]) -> dict[str, TensorType]:
        return {key: types[value] for key, value in zip(names, values, strict=True)}

    results = [port.name for port in prepared.graph.output]
    changed = updates(prepared)
    renewed = {key: changed[v] for key, v in zip(outputs, results, strict=True) if v in changed}
    results = [value for value in results if value not in changed]
    outputs = [key for key in outputs if key not in renewed]
    defaults = {t.name: array_of(t) for t in prepared.graph.initializer}
    state = {
        value: registry.share(name, types[value], defaults[value])
        for value, name in registered(prepared).items()
    }
    given, made = typed(inputs, ports), typed(outputs, results)
    return HostFunction(model, given, made, state, renewed)


def load_function(folder: Path, board: Board | None, registry: Registry | None = None) -> Function:
    """Return the function that an earlier compile left in ``folder``. P0002, P0004, P0501 to P0503.

    ``folder`` may also be the file of an app, with a name that ends in `.app`.
    """
    if board is None:
        path = folder / MODEL_ONNX
        with holding():
            model = _with_data(parse_model(read_file(folder, MODEL_ONNX), path), path)
            return host_function(model, registry)
    if folder.suffix == ".app" and folder.is_file():
        return function_of(read_input(folder), str(folder), board, registry)
    path = folder / MODEL_APP
    return function_of(read_file(folder, MODEL_APP), str(path), board, registry)


def load_model(
    path: Path, sizes: Sizes | None = None, reads: Callable[[Path], object] = Path.exists
) -> onnx.ModelProto:
    """Return the model of a file, with ``sizes``; its external data lies beside it.

    ``reads`` gets each file of external data. P0001, P0002, and those of :func:`settled_model`,
    with the file as their place.
    """
    model = parse_model(read_input(path), path)
    inside = (one.t for node in model.graph.node for one in node.attribute)
    facts = [fact for one in (*model.graph.initializer, *inside) for fact in one.external_data]
    for name in {fact.value for fact in facts if fact.key == "location"}:
        reads(path.parent / name)
    with located(path, PycompilerError):
        return settled_model(_with_data(model, path), sizes)


def settled_model(model: onnx.ModelProto, sizes: Sizes | None = None) -> onnx.ModelProto:
    """Return a model of any origin with ``sizes``, ready to be compiled.

    Warns (ShapeWarning) of declared shapes that are not those that follow from the inputs. P0108,
    P0112, P0120, P0139, P0704.
    """
    made, false_hints = settled(model, sizes or Sizes())
    warn_of_shapes(false_hints)
    return made


def _with_data(model: onnx.ModelProto, path: Path) -> onnx.ModelProto:
    """Return the model with its external data, which lies beside the file ``path``. P0002."""
    try:
        return with_data(model, path.parent)
    except Exception as problem:
        reason = f"its external data cannot be read ({problem})"
        raise error("P0002", path=path, reason=reason) from problem


def parse_model(data: bytes, path: Path) -> onnx.ModelProto:
    """Return the ONNX model in ``data``, which came from ``path``. P0002."""
    if not data:
        raise error("P0002", path=path, reason="it is empty")
    try:
        model = onnx.load_from_string(data)
    except Exception as problem:
        raise error("P0002", path=path, reason="it is no protobuf message") from problem
    if not model.HasField("graph"):
        raise error("P0002", path=path, reason="it has no graph")
    return model
