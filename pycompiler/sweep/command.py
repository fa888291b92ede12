"""The command `pycompiler sweep`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ..build import load_model
from ..command_files import READ, WRITTEN, claim, claim_data
from ..console import table_console
from ..executors import EXECUTORS, PROCESSES, Workers
from ..files import write_file
from ..machine import load_target
from ..options import OPTIONS, parse_options
from ..pfvm.optimise import optimise
from ..pfvm.random_numbers import with_random_numbers
from ..pfvm.sizes import Sizes
from ..report.codegen_dir import MODEL_ONNX
from ..report.progress import progress_bar
from ..report.report import Report
from ..size_options import takes_sizes
from .measure import rows
from .picture import picture
from .values import VALUES, parse_axis, points


def _help() -> str:
    """Return the values for `sweep --help`."""
    shown = ["Values for --set:"]
    shown += [f"{name}: {value.doc}." for name, value in VALUES.items()]
    shown.append(
        "SECTION.KEY and SECTION.NAME.KEY: any other number of the description, such as "
        "timing.mv_latency or memory.pdm.words."
    )
    return "\n\n".join(shown)


@click.command("sweep", epilog=_help())
@click.argument("model", type=READ)
@click.option("--machine", default="mncore2", show_default=True, help="the machine to start from")
@click.option(
    "--set",
    "settings",
    multiple=True,
    required=True,
    metavar="NAME=NUMBER,...",
    help="numbers of a value; 2x means twice that of the machine",
)
@click.option("-O", "--option", "given", multiple=True, metavar="KEY=VALUE", help="as in `compile`")
@click.option("--draw", type=WRITTEN, help="write a picture (SVG) to this file")
@click.option("--json", "table", type=WRITTEN, help="write the rows to this file")
@click.option("--jobs", type=click.IntRange(1), help="machines at a time (default: one per core)")
@click.option("--executor", type=click.Choice(EXECUTORS), default=PROCESSES, show_default=True)
@takes_sizes
def sweep(
    model: Path,
    machine: str,
    settings: Sequence[str],
    given: Sequence[str],
    draw: Path | None,
    table: Path | None,
    jobs: int | None,
    executor: str,
    sizes: Sizes,
) -> None:
    """Compile MODEL for machines that differ in a few numbers, and compare what it costs there.

    MODEL is an ONNX file or a codegen_dir. Each `--set` is an axis of the grid of machines. A
    machine that is not possible has a row with the reason.
    """
    base = load_target(machine)
    axes = [parse_axis(setting, base) for setting in settings]
    grid = points(base, axes)
    options = parse_options(read_options(given))
    source = load_model(model / MODEL_ONNX if model.is_dir() else model, sizes, claim_data)
    data = with_random_numbers(optimise(source)).SerializeToString()
    console = table_console()
    found: list[dict[str, Any]] = [{} for _ in grid]
    report = Report(machine, {})
    report.progress(f"machine 0 of {len(grid)}")
    with Workers(executor, jobs) as workers, progress_bar(report, shown=True):
        for number, row in rows(data, grid, options, workers):
            found[number] = row
            report.progress(f"machine {sum(map(bool, found))} of {len(grid)}")
    console.print(_table(found, f"{model.name} on {machine}"))
    if table is not None:
        facts = {"model": str(model), "machine": machine, "rows": found}
        write_file(table, (json.dumps(facts, indent=1) + "\n").encode())
    if draw is not None:
        named = [(axis.name, axis.numbers) for axis in axes]
        write_file(draw, picture(found, named, f"{model.name} on {machine}").encode())
        click.echo(f"wrote {draw}")
    if not any(row["status"] == "ok" for row in found):
        raise click.exceptions.Exit(1)


def read_options(settings: Sequence[str]) -> dict[str, Any]:
    """Return the options of `-O KEY=VALUE`."""
    options: dict[str, Any] = {}
    for setting in settings:
        key, found, value = setting.partition("=")
        if not found:
            raise click.UsageError(f"--option {setting}: write it as KEY=VALUE")
        try:
            options[key] = json.loads(value)
        except (ValueError, RecursionError):
            options[key] = value
        if key in OPTIONS and OPTIONS[key].legal == "a path":
            claim(str(options[key]), f"-O {key}", written=key in ("out_onnx", "trace_compile"))
    return options


def _table(found: Sequence[dict[str, Any]], title: str) -> Table:
    levels = list(dict.fromkeys(level for row in found for level in row.get("words", {})))
    names = *found[0]["values"], "cycles", "x bound", *(f"{level} moved" for level in levels)
    table = Table(title=title, title_justify="left")
    for column in names:
        table.add_column(column, justify="right")
    table.add_column("result", overflow="fold")
    for row in found:
        numbers = row.get("cycles"), row.get("factor"), *map(row.get("words", {}).get, levels)
        shown = ["-" if number is None else str(number) for number in numbers]
        table.add_row(*map(str, row["values"].values()), *shown, row["status"])
    return table
