"""The command that shows how much memory a function needs for what it keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
import onnx
from rich.table import Table

from ..build import load_model
from ..command_files import READ, WRITTEN
from ..console import table_console
from ..errors import error
from ..files import write_file
from ..pfvm.prepare import prepare
from ..pfvm.registered import attach, detach, updates
from ..pfvm.sizes import Sizes
from ..pfvm.update_order import IMMEDIATE, ordered
from ..report.codegen_dir import MODEL_ONNX, read_file
from ..size_options import takes_sizes
from .picture import picture
from .plan import training_tensors
from .tensors import KINDS, Tensor, tensors_of
from .uses import Use, lower_bound, uses

_LARGEST = 5  # tensors shown of those that live at the peak


@click.command("memory")
@click.argument("path", type=READ)
@click.option("--half", is_flag=True, help="count two bytes for each float32")
@click.option("--training", is_flag=True, help="plan the training of a model that does not train")
@click.option("--draw", type=click.Path(path_type=Path), help="folder for diagrams, one a strategy")
@click.option("--json", "json_path", type=WRITTEN, help="write tensors and strategies to this file")
@click.option("--seconds", default=10.0, show_default=True, help="limit of each exact search")
@takes_sizes
def memory(
    path: Path,
    half: bool,
    training: bool,
    draw: Path | None,
    json_path: Path | None,
    seconds: float,
    sizes: Sizes,
) -> None:
    """Show the memory of a function between its operators: a codegen_dir or an ONNX file.

    Activations, their gradients and weight gradients are counted, each for as long as something
    reads it. Parameters and the state of optimizers are not.
    """
    if path.is_dir():
        read_file(path, MODEL_ONNX)  # P0004 for any other folder
        path /= MODEL_ONNX
    model = _prepared(load_model(path, sizes))
    if training:
        tensors = training_tensors(model, half=half)
    else:
        tensors = tensors_of(ordered(model, IMMEDIATE), half=half)
    ways = uses(tensors, seconds)
    if not training and not updates(model):
        ways = [ways[0], ways[-1]]  # the others differ in gradients only
    _print(tensors, ways)
    if json_path is not None:
        facts = {
            "model": path.parent.name if path.name == MODEL_ONNX else path.name,
            "lower_bound": lower_bound(tensors),
            "tensors": [asdict(tensor) for tensor in tensors],
            "strategies": [asdict(way) for way in ways],
        }
        write_file(json_path, (json.dumps(facts, indent=1) + "\n").encode())
    if draw is not None:
        _draw(tensors, ways, path.name, draw)


def _prepared(model: onnx.ModelProto) -> onnx.ModelProto:
    plain, tensors = detach(model)
    return attach(prepare(plain), tensors)


def _print(tensors: Sequence[Tensor], ways: Sequence[Use]) -> None:
    least = lower_bound(tensors)
    table = Table("strategy", "bytes", "MiB", "of the lower bound")
    for column in table.columns[1:]:
        column.justify = "right"
    for way in ways:
        share = f"{way.size / least:.3f}" if least else "-"
        table.add_row(way.name, f"{way.size:,}", f"{way.size / 2**20:.2f}", share)
    table.add_row("lower bound by life times", f"{least:,}", f"{least / 2**20:.2f}", "")
    console = table_console()
    console.print(table)
    for kind in KINDS:
        own = [tensor for tensor in tensors if tensor.kind == kind]
        if own:
            console.print(f"{kind}: {len(own)} tensors, {sum(t.size for t in own):,} bytes")
    alive = _peak(tensors)
    if alive:
        time = max(tensor.start for tensor in alive)
        console.print(f"most is alive at time {time}: {len(alive)} tensors, the largest:")
    for tensor in sorted(alive, key=lambda t: -t.size)[:_LARGEST]:
        facts = f"{tensor.kind}, {tensor.size:,} bytes, time {tensor.start} to {tensor.end}"
        console.print(f"  {tensor.name}: {facts}", soft_wrap=True)


def _peak(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors that live when most bytes do."""
    most: list[Tensor] = []
    for time in sorted({tensor.start for tensor in tensors}):
        alive = [tensor for tensor in tensors if tensor.start <= time < tensor.end]
        most = max(most, alive, key=lambda own: sum(tensor.size for tensor in own))
    return most


def _draw(tensors: Sequence[Tensor], ways: Sequence[Use], title: str, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise error("P0003", path=folder, reason=problem.strerror) from problem
    for way in ways:
        name = re.sub(r"\W+", "_", way.name) + ".svg"
        write_file(folder / name, picture(tensors, way, title).encode())
        click.echo(f"wrote {folder / name}")
