"""The command `emu2 app`: compiled models without the compiler."""

from __future__ import annotations

import io
from pathlib import Path

import click
import numpy as np

from emu2._core import run_app
from emu2.console import diagnostic, fail


@click.group("app")
def app_commands() -> None:
    """Compiled models (model.app). Neither the compiler nor torch is needed."""


@app_commands.command("run")
@click.argument("app", type=click.Path(path_type=Path))
@click.option("-i", "--inputs", type=click.Path(path_type=Path), help=".npz file of the inputs")
@click.option("-o", "--outputs", type=click.Path(path_type=Path), help=".npz file to write")
def run(app: Path, inputs: Path | None, outputs: Path | None) -> None:
    """Run the model in the file APP on inputs from an .npz file."""
    made = run_app(app, inputs)
    if outputs is None:
        for name, array in np.load(io.BytesIO(made)).items():
            click.echo(f"{name}: {array.dtype} {array.shape}\n{array}")
        return
    try:
        outputs.write_bytes(made)
    except OSError as problem:
        fail(diagnostic("F0005", f"{outputs}: {problem.strerror}", "check the folder"))
