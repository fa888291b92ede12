"""The command `pycompiler rewrites`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import onnx
from rich.table import Table

from ..build import load_model
from ..command_files import READ, claim_data
from ..console import table_console
from ..machine import Target, load_target
from ..options import Options, parse_options
from ..pfvm.optimise import optimise
from ..pfvm.random_numbers import with_random_numbers
from ..pfvm.sizes import Sizes
from ..pipeline import plan_onnx
from ..planners.rewrites import REWRITES
from ..report.codegen_dir import MODEL_ONNX
from ..report.progress import progress_bar
from ..report.report import Report
from ..request import Request
from ..size_options import takes_sizes
from ..sweep.command import read_options


@click.command("rewrites")
@click.argument("model", type=READ, required=False)
@click.option("--machine", default="mncore2", show_default=True, help="the machine to plan for")
@click.option("-O", "--option", "given", multiple=True, metavar="KEY=VALUE", help="as in `compile`")
@takes_sizes
def rewrites(model: Path | None, machine: str, given: Sequence[str], sizes: Sizes) -> None:
    """List the rewrites of a graph in their order, or what each is worth for MODEL.

    MODEL is an ONNX file or a codegen_dir. It is planned once as it is, and once without each
    rewrite that changes its graph. `saved` are the cycles by which the estimate of the program
    then grows. Nothing runs on the emulator.
    """
    if model is None:
        for row in REWRITES:
            click.echo(f"{row.name}: {row.text().partition(chr(10))[0]}")
        return
    options, target = parse_options(read_options(given)), load_target(machine)
    source = load_model(model / MODEL_ONNX if model.is_dir() else model, sizes, claim_data)
    plain = with_random_numbers(optimise(source))
    table = Table(title=f"{model.name} on {machine}", title_justify="left")
    for column in ("rewrite", "times", "saved", "rounding"):
        table.add_column(column, justify="right" if column in ("times", "saved") else "left")
    with progress_bar(report := Report(machine, {}), shown=True):
        for cells in _rows(plain, target, options, report):
            table.add_row(*cells)
    table_console().print(table)


def _rows(
    model: onnx.ModelProto, target: Target, options: Options, report: Report
) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each rewrite that changes the graph of a model."""
    report.progress("all rewrites")
    counts, whole = planned(model, target, options)
    for row in REWRITES:
        if row.name not in counts or row.needed:
            continue
        report.progress(f"without {row.name}")
        less = replace(options, skip_rewrites=frozenset({*options.skip_rewrites, row.name}))
        _, without = planned(model, target, less)
        saved = f"{without - whole:,}"
        yield row.name, str(counts[row.name]), saved, row.rounding or "same bits"


def planned(model: onnx.ModelProto, target: Target, options: Options) -> tuple[dict[str, int], int]:
    """Return how often each rewrite changes a model's graph, and the program's estimated cycles."""
    report = Report(target.name, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cycles = plan_onnx(Request(model, target, options, report)).estimated
    counts: dict[str, int] = {}
    for one in report.data["passes"]:
        found: dict[str, Any] = one.get("rewrites", {})
        counts |= {name: counts.get(name, 0) + count for name, count in found.items()}
    return counts, cycles
