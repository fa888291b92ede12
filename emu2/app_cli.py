"""The command `emu2 app`: compiled models without the compiler."""

from __future__ import annotations

import io
from pathlib import Path

import click
import numpy as np

from emu2._core import run_app
from emu2.console import diagnostic, fail
from emu2.file_roles import READ, WRITTEN


@click.group("app")
def app_commands() -> None:
    """Compiled models (model.app). Neither the compiler nor torch is needed."""


@app_commands.command("run")
@click.argument("app", type=READ)
@click.option("-i", "--inputs", type=READ, help=".npz file of the inputs")
@click.option("-o", "--outputs", type=WRITTEN, help=".npz file to write")
def run(app: str, inputs: str | None, outputs: str | None) -> None:
    """Run the model in the file APP on inputs from an .npz file."""
    made = run_app(app, inputs)
    if outputs is None:
        for name, array in np.load(io.BytesIO(made)).items():
            click.echo(f"{name}: {array.dtype} {array.shape}\n{array}")
        return
    try:
        Path(outputs).write_bytes(made)
    except OSError as problem:
        fail(diagnostic("F0005", f"{outputs}: {problem.strerror}", "check the folder"))
