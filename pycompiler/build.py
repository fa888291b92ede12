"""One compilation with its folder: from a model to a function, success or failure on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from .app.reader import read_app
from .app.writer import write_app
from .errors import PycompilerError, error, internal
from .graph.graph import TensorType
from .options import parse_options
from .pfvm.names import keys
from .pfvm.prepare import prepare, static_types
from .pipeline import compile_onnx
from .report.codegen_dir import (
    L3IR,
    MODEL_APP,
    MODEL_ONNX,
    MODEL_VSM,
    REPORT,
    clear_failure,
    read_file,
    write_failure,
    write_folder,
)
from .report.report import Report
from .runtime.device import Board
from .runtime.function import DeviceFunction, Function, HostFunction


def build(
    make_model: Callable[[], onnx.ModelProto],
    device: str,
    board: Board | None,
    options: Mapping[str, Any] | None,
    folder: Path,
    notes: Sequence[str] = (),
) -> Function:
    """Compiles what ``make_model`` gives and writes ``folder``; ``board`` None is the host.

    On any exception an older ``folder`` is untouched and the report is in ``<folder>.failed``.
    """
    report = Report(device, options or {})
    for note in notes:
        report.note(note)
    try:
        checked = parse_options(options)
        for note in checked.notes:
            report.note(note)
        with report.running("export"):
            model = make_model()
        files = {MODEL_ONNX: model.SerializeToString()}
        try:
            if board is None:
                function: Function = host_function(model)
            else:
                compiled = compile_onnx(model, board.target, checked, report)
                files[MODEL_VSM] = compiled.vsm.encode()
                files[MODEL_APP] = write_app(compiled.app)
                files[L3IR] = compiled.l3ir.encode()
                function = DeviceFunction(compiled.app, board)
        except PycompilerError:
            raise
        except Exception as problem:
            raise internal(problem) from problem
        report.finished()
        files[REPORT] = report.json().encode()
        write_folder(folder, files)
    except BaseException as problem:
        report.failed(problem)
        write_failure(folder, report.json())
        raise
    clear_failure(folder)
    return function


def host_function(model: onnx.ModelProto) -> HostFunction:
    """Return the whole model on the host runtime."""
    prepared = prepare(model)
    types = static_types(prepared)
    inputs, outputs = keys(prepared)
    initializers = {tensor.name for tensor in prepared.graph.initializer}
    ports = [port.name for port in prepared.graph.input if port.name not in initializers]

    def typed(names: Sequence[str], values: Sequence[str]) -> dict[str, TensorType]:
        return {key: types[value] for key, value in zip(names, values, strict=True)}

    results = [port.name for port in prepared.graph.output]
    return HostFunction(model.SerializeToString(), typed(inputs, ports), typed(outputs, results))


def load_function(folder: Path, board: Board | None) -> Function:
    """Return the function that an earlier compile left in ``folder``. P0004, P0501, P0502."""
    if board is None:
        return host_function(parse_model(read_file(folder, MODEL_ONNX), folder / MODEL_ONNX))
    app = read_app(read_file(folder, MODEL_APP), str(folder / MODEL_APP))
    if app.target != board.target.name:
        reason = f"it is compiled for {app.target}, the device is {board.target.name}"
        raise error("P0004", path=folder, reason=reason, wanted=MODEL_APP)
    return DeviceFunction(app, board)


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
