"""The command ``pycompiler``: compile an ONNX file, run what came out, print an app."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx

from emu2.explain import explain, listing

from .app.dump import dump_app
from .app.reader import read_app
from .build import build, load_function, parse_model
from .console import report_problem, show_warnings_plainly, table_console
from .errors import (
    USAGE_EXIT,
    ExportError,
    GraphError,
    Place,
    PlanError,
    PycompilerError,
    error,
    internal,
)
from .errors.explain import entries
from .graph.dtypes import numpy_dtype
from .pfvm.session import Array
from .report.codegen_dir import MODEL_APP, REPORT, read_file
from .report.summary import summary_table, totals
from .runtime.device import Board, find_device


@click.group()
@click.version_option(package_name="emu2")
def commands() -> None:
    """PyTorch and ONNX models to MN-Core 2 assembly, run on the emulator."""


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise error("P0001", path=path, reason=problem.strerror or str(problem)) from problem


def _load_model(path: Path) -> onnx.ModelProto:
    """Return the model of a file; its external data lies beside it."""
    model = parse_model(_read(path), path)
    try:
        onnx.load_external_data_for_model(model, str(path.parent))
    except Exception as problem:
        reason = f"its external data cannot be read ({problem})"
        raise error("P0002", path=path, reason=reason) from problem
    return model


def _options(settings: tuple[str, ...]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for setting in settings:
        key, found, value = setting.partition("=")
        if not found:
            raise click.UsageError(f"--option {setting}: write it as KEY=VALUE")
        try:
            options[key] = json.loads(value)
        except json.JSONDecodeError:
            options[key] = value
    return options


def _board(device: str) -> Board | None:
    found = find_device(device)
    return None if found.machine is None else Board(found.target)


@commands.command("compile")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="codegen_dir")
@click.option("--device", default="emu2", show_default=True, help="what to compile for")
@click.option("-O", "--option", "settings", multiple=True, metavar="KEY=VALUE")
def compile_command(model: Path, out: Path, device: str, settings: tuple[str, ...]) -> None:
    """Compile an ONNX MODEL with static shapes into a codegen_dir."""
    try:
        build(
            lambda: _load_model(model),
            device,
            _board(device),
            _options(settings),
            out,
            progress=True,
        )
    except (ExportError, GraphError, PlanError) as problem:
        problem.place = problem.place or Place(str(model))
        raise
    facts = json.loads(read_file(out, REPORT))
    console = table_console()
    if facts["nodes"]:
        console.print(summary_table(facts, f"{model.name} for {device}"))
    console.print(f"{totals(facts)}; files in {out}", soft_wrap=True)


@commands.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("-i", "--inputs", type=click.Path(path_type=Path), help=".npz file of the inputs")
@click.option("-o", "--outputs", type=click.Path(path_type=Path), help=".npz file to write")
@click.option("--device", default="emu2", show_default=True, help="where to run")
def run(folder: Path, inputs: Path | None, outputs: Path | None, device: str) -> None:
    """Run the model of a codegen_dir FOLDER on inputs from an .npz file."""
    function = load_function(folder, _board(device))
    given = {} if inputs is None else _arrays(inputs)
    signature = ", ".join(f"{name}: {type}" for name, type in function.inputs.items()) or "none"
    for name, type in function.inputs.items():
        if name not in given:
            raise error("P0603", problem=f"`{name}` is missing", signature=signature)
        if (numpy_dtype(type.elem), type.shape) != (given[name].dtype, given[name].shape):
            problem = f"`{name}` is {given[name].dtype} {given[name].shape}"
            raise error("P0603", problem=problem, signature=signature)
    for name in given:
        if name not in function.inputs:
            raise error("P0603", problem=f"`{name}` is no input", signature=signature)
    results = {name: output.values() for name, output in function.run(given).items()}
    if outputs is not None:
        try:
            with outputs.open("wb") as file:
                np.savez(file, **results)  # type: ignore[arg-type]
        except OSError as problem:
            reason = problem.strerror or str(problem)
            raise error("P0003", path=outputs, reason=reason) from problem
        return
    for name, array in results.items():
        click.echo(f"{name}: {array.dtype} {array.shape}\n{array}")


def _arrays(path: Path) -> dict[str, Array]:
    _read(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("it holds one array, not named ones")
            return {name: _native(file[name]) for name in file.files}
    except (ValueError, EOFError, zipfile.BadZipFile, TypeError) as problem:
        raise error("P0006", path=path, reason=str(problem)) from problem


def _native(array: Array) -> Array:
    """``array`` in this computer's byte order."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


@commands.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--code", is_flag=True, help="print the assembly text too")
def dump(path: Path, code: bool) -> None:
    """Print an app: a model.app, or the one of a codegen_dir."""
    data = read_file(path, MODEL_APP) if path.is_dir() else _read(path)
    click.echo(dump_app(read_app(data, str(path)), code=code), nl=False)


@commands.command("explain")
@click.argument("code", required=False)
def explain_code(code: str | None) -> None:
    """Print what CODE of a diagnostic means, why it comes and what helps; or list all codes."""
    known = entries()
    text, found = (listing(known), True) if code is None else explain(known, code, "pycompiler")
    click.echo(text, err=not found)
    if not found:
        sys.exit(USAGE_EXIT)


def main() -> None:
    """Entry point; exit codes 1 (the user's file), 2 (usage), 3 (our bug)."""
    show_warnings_plainly()
    try:
        code = commands(standalone_mode=False)
    except PycompilerError as problem:
        sys.exit(report_problem(problem))
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        sys.exit(130)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except Exception as problem:
        sys.exit(report_problem(internal(problem)))
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
