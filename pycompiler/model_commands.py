"""The commands that need torch: compile an ONNX file, run what came out, print an app."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import click
import numpy as np

from emu2.console import EXIT_FILE, reading_stdin, stdin_lines
from emu2.debug.command import show
from emu2.debug.commands import Commands, read_commands
from emu2.debug.dap import serve
from emu2.streams import tell

from .app.dump import dump_app
from .app.reader import read_app
from .app.writer import app_content
from .build import build, load_function, load_model
from .command_files import NEW_FOLDER, READ, WRITTEN, claim_data
from .console import table_console
from .dashboard.command import dashboard
from .debug.model import open_model
from .disassemble.command import disassemble
from .errors import error, located
from .files import read_input, write_file
from .gap.command import gap
from .memory.command import memory
from .options import OPTIONS
from .partitioning.command import partition_command
from .pfvm.sizes import Sizes
from .profile.command import profile
from .profile.compile_trace import PICTURE, TABLE
from .report.codegen_dir import MODEL_APP, REPORT, read_file
from .rewriting.command import rewrites
from .runtime.app_file import app_of, placed_app, target_of
from .runtime.device import Board, find_device
from .runtime.executable import types_of
from .runtime.held_tensor import Source
from .runtime.inputs_file import read_arrays, wrong_inputs
from .runtime.sanitized import findings_text, undefined_outputs
from .size_options import takes_sizes
from .summary.table import closing_lines, summary_table, tuning_table
from .sweep.command import read_options, sweep

commands = click.Group()
commands.add_command(dashboard)
commands.add_command(disassemble)
commands.add_command(gap)
commands.add_command(memory)
commands.add_command(partition_command)
commands.add_command(profile)
commands.add_command(rewrites)
commands.add_command(sweep)


def _board(device: str) -> Board | None:
    found = find_device(device)
    return None if found.machine is None else Board(found.target)


def _option_help() -> str:
    """Return the options for `compile --help`, a paragraph each."""
    shown = ["Options for -O:"]
    for key, known in OPTIONS.items():
        default = "" if known.optional else f", default {known.default!r}"
        shown.append(f"{key} ({known.legal}{default}): {known.doc}.")
    return "\n\n".join(shown)


@commands.command("compile", epilog=_option_help())
@click.argument("model", type=READ)
@click.option("-o", "--out", type=NEW_FOLDER, required=True, help="codegen_dir")
@click.option("--device", default="emu2", show_default=True, help="what to compile for")
@click.option(
    "-O", "--option", "settings", multiple=True, metavar="KEY=VALUE", help="an option, see below"
)
@click.option("--top", type=click.IntRange(1), help="show only the nodes with the most cycles")
@click.option("--trace-compile", type=NEW_FOLDER, help="folder for what the compile takes")
@takes_sizes
def compile_command(
    model: Path,
    out: Path,
    device: str,
    settings: tuple[str, ...],
    top: int | None,
    trace_compile: Path | None,
    sizes: Sizes,
) -> None:
    """Compile an ONNX MODEL into a codegen_dir."""
    options = read_options(settings)
    if trace_compile is not None:
        options["trace_compile"] = trace_compile
    with located(model):
        made = partial(load_model, model, sizes, claim_data)
        build(made, device, _board(device), options, out, progress=True)
    facts = json.loads(read_file(out, REPORT))
    console = table_console()
    if facts["tuning"]:
        console.print(tuning_table(facts["tuning"]))
    if facts["nodes"]:
        console.print(summary_table(facts, f"{model.name} for {device}", top))
    console.print("\n".join(closing_lines(facts, f"; files in {out}")), soft_wrap=True)
    if trace_compile is not None:
        click.echo(f"wrote {trace_compile / TABLE} and {PICTURE}")


@commands.command()
@click.argument("folder", type=READ)
@click.option("-i", "--inputs", type=READ, help=".npz file of the inputs")
@click.option("-o", "--outputs", type=WRITTEN, help=".npz file to write")
@click.option("--device", default="emu2", show_default=True, help="where to run")
@click.option("--sanitize", is_flag=True, help="look for undefined values and timing, slower")
def run(
    folder: Path, inputs: Path | None, outputs: Path | None, device: str, sanitize: bool
) -> None:
    """Run the model of a codegen_dir FOLDER, or an app, on inputs from an .npz file."""
    board = _board(device)
    if sanitize:
        if board is None:
            raise click.UsageError(f"--sanitize: {device} has no program to look at")
        board.findings = []
    function = load_function(folder, board)
    given = {} if inputs is None else read_arrays(inputs, function.inputs)
    for name in function.inputs:
        if name not in given:
            raise wrong_inputs(f"`{name}` is missing", function.inputs)
    held = function.run(given)
    results = {name: output.values() for name, output in held.items()}
    clean = board is None or not sanitize or _show_findings(board, held)
    if outputs is not None:
        if not outputs.absolute().parent.is_dir():
            raise error("P0003", path=outputs, reason="there is no such folder")
        written = io.BytesIO()
        np.savez(written, **results)  # type: ignore[arg-type]
        write_file(outputs, written.getvalue())
    else:
        for name, array in results.items():
            click.echo(f"{name}: {array.dtype} {array.shape}\n{array}")
    if not clean:
        raise click.exceptions.Exit(1)


def _show_findings(board: Board, results: Mapping[str, Source]) -> bool:
    """Print what a sanitized run has found to stderr; return whether it is nothing."""
    found = [text for text in (findings_text(board), *undefined_outputs(results)) if str(text)]
    for text in found:
        tell(str(text))
    return not found


@commands.command()
@click.argument("folder", type=READ)
@click.option("-i", "--inputs", type=READ, help=".npz file of the inputs")
@click.option("--device", help="the machine, if it is not found by the name in the folder")
@click.option("--batch", is_flag=True, help="read commands from stdin instead of opening a screen")
@click.option("--dap", is_flag=True, help="speak the Debug Adapter Protocol on stdin and stdout")
def debug(folder: Path, inputs: Path | None, device: str | None, batch: bool, dap: bool) -> None:
    """Step through the model of a codegen_dir FOLDER, forwards and backwards.

    Node, operator and line of the Python source stand beside the assembly. `value NAME [3, 7]`
    names an element of a value of the graph in `print` and `watch`. Inputs that are not given
    are 0.
    """
    app = app_of(folder)
    board = Board(target_of(app, folder, device))
    given = {} if inputs is None else read_arrays(inputs, types_of(app, app.inputs))
    session = open_model(folder, app, board, given)
    if dap:
        with reading_stdin():
            serve(sys.stdin.buffer, sys.stdout.buffer, lambda _: session)
        return
    commands = Commands(session, app.target)
    if not batch and sys.stdin.isatty():
        show(commands)
    elif not read_commands(commands, stdin_lines()):
        sys.exit(EXIT_FILE)


@commands.command()
@click.argument("path", type=READ)
@click.option("--code", is_flag=True, help="print the assembly text too")
def dump(path: Path, code: bool) -> None:
    """Print an app: a model.app, or the one of a codegen_dir."""
    data = read_file(path, MODEL_APP) if path.is_dir() else read_input(path)
    click.echo(dump_app(read_app(data, str(path)), code=code), nl=False)


@commands.command("app")
@click.argument("path", type=READ)
@click.option("-o", "--out", type=WRITTEN, required=True, help="file to write")
@click.option("--device", help="the machine, if it is not found by the name in the app")
def app_command(path: Path, out: Path, device: str | None) -> None:
    """Write an app as `emu2 app run` wants it: with the places of its values.

    PATH is a model.app, or a codegen_dir that has one.
    """
    data = read_file(path, MODEL_APP) if path.is_dir() else read_input(path)
    write_file(out, app_content(placed_app(data, str(path), device)))
    click.echo(f"wrote {out}")
