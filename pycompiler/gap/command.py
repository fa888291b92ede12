"""The command `pycompiler gap`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ..build import load_model
from ..command_files import READ, WRITTEN, claim_data
from ..console import table_console
from ..errors import error
from ..files import write_file
from ..halves_or_singles import compile_cheapest
from ..machine import load_target
from ..options import parse_options
from ..pfvm.held import hold, holding
from ..pfvm.optimise import optimise
from ..pfvm.random_numbers import with_random_numbers
from ..pfvm.sizes import Sizes
from ..profile.nodes import View, name_of
from ..report.codegen_dir import MODEL_ONNX, REPORT, read_file
from ..report.report import Report
from ..request import Request
from ..runtime.device import find_device
from ..size_options import takes_sizes
from ..summary.table import cost_lines, percent
from ..sweep.command import read_options
from .measure import STEPS, Gap, gap_of
from .picture import picture
from .switches import Kind, kinds

#: Options that write files.
_WRITES = ("out_onnx", "trace_compile")
#: How rows are named.
_VIEWS = ("module", "node", "operator", "source")


@click.command("gap")
@click.argument("model", type=READ)
@click.option("--machine", help="the machine to compile for (default: that of the folder, mncore2)")
@click.option("-O", "--option", "given", multiple=True, metavar="KEY=VALUE", help="as in `compile`")
@click.option("--by", type=click.Choice(_VIEWS), default="module", show_default=True)
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="rows to show")
@click.option("--switches", is_flag=True, help="show layout switches beside their least steps")
@click.option("--draw", type=WRITTEN, help="write a picture (SVG) to this file")
@click.option("--json", "json_path", type=WRITTEN, help="write all figures to this file")
@takes_sizes
def gap(
    model: Path,
    machine: str | None,
    given: Sequence[str],
    by: View,
    top: int,
    switches: bool,
    draw: Path | None,
    json_path: Path | None,
    sizes: Sizes,
) -> None:
    """Show what stands between the bound of MODEL and the cycles of its program.

    MODEL is an ONNX file or a codegen_dir, whose options count too. Its program is placed again
    without one rule of the machine after the other. The steps add up to the cycles above the bound.
    """
    source = load_model(model / MODEL_ONNX if model.is_dir() else model, sizes, claim_data)
    device, before = _compiled(model) if model.is_dir() else ("mncore2", {})
    machine = machine or device
    target, options = load_target(machine), parse_options({**before, **read_options(given)})
    report = Report(machine, {})
    with holding():
        optimised = with_random_numbers(optimise(hold(source)))
        compiled = compile_cheapest(Request(optimised, target, options, report))
    found = gap_of(compiled.graph, target, options.emit, report.data["bound"]["cycles"] or 0)
    rows = _grouped(found, by)
    title = f"{model.name} on {machine}"
    console = table_console()
    for line in cost_lines(report.data):
        console.print(line, soft_wrap=True)
    console.print(_whole(found, title))
    console.print(_guesses(found), soft_wrap=True)
    console.print(_parts(rows, by, top))
    moved = kinds(compiled.graph, target) if switches else []
    if switches:
        console.print(_switches(moved, top))
    if json_path is not None:
        facts = {"model": str(model), "machine": machine, **found.json(), "by": by, "rows": rows}
        facts |= {"switches": [kind.json() for kind in moved]} if switches else {}
        write_file(json_path, (json.dumps(facts, indent=1) + "\n").encode())
    if draw is not None:
        whole = {"name": "all", "cycles": found.cycles, "bound": found.bound, **found.totals}
        write_file(draw, picture([whole, *rows[:top]], title).encode())
        click.echo(f"wrote {draw}")


def _compiled(folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the machine and the options of the compile that made a folder. P0004."""
    try:
        facts = json.loads(read_file(folder, REPORT))
        device, options = facts["device"], dict(facts["options"])
    except (ValueError, RecursionError, KeyError, TypeError) as problem:
        reason = "its report is damaged, or of another version"
        raise error("P0004", path=folder, reason=reason, wanted=REPORT) from problem
    kept = {key: value for key, value in options.items() if key not in _WRITES}
    return find_device(device).machine or "mncore2", kept


def _grouped(found: Gap, by: View) -> list[dict[str, Any]]:
    """Return a row for each group of nodes, the most cycles first: cycles, bound and steps."""
    rows: dict[str, dict[str, Any]] = {}
    for at, node in enumerate(found.nodes):
        facts = {"node": node.origin or node.name, "op": node.op, "source": node.source}
        name = name_of(facts, by)
        row = rows.setdefault(name, dict.fromkeys(("cycles", *STEPS), 0))
        row["cycles"] += found.rows[at]
        for step, cycles in found.steps.items():
            row[step] += cycles[at]
    made = []
    for name, row in rows.items():
        whole = int(row.pop("cycles"))
        steps = {step: round(float(own), 1) for step, own in row.items()}
        bound = round(float(whole - sum(row.values())), 1)
        made.append({"name": name, "cycles": whole, "bound": bound, **steps})
    return sorted(made, key=lambda row: (-row["cycles"], row["name"]))


def _whole(found: Gap, title: str) -> Table:
    table = Table("step", "cycles", "of all", "what it costs", title=title, title_justify="left")
    for column in table.columns[1:3]:
        column.justify = "right"
    whole = {"bound": (found.bound, "what the machine needs at least")}
    whole |= {name: (own, STEPS[name]) for name, own in found.totals.items()}
    whole["program"] = (found.cycles, "the sum")
    for name, (own, what) in whole.items():
        table.add_row(name, str(own), percent(own / (found.cycles or 1)), what)
    return table


def _guesses(found: Gap) -> str:
    rest = found.cycles - found.sure
    share = percent(rest / (found.cycles or 1))
    return (
        f"guesses of the cycle model: {rest} cycles ({share}) rest on them; with twice the latency "
        f"of MVs the program takes {found.slow}"
    )


def _parts(rows: Sequence[Mapping[str, Any]], by: View, top: int) -> Table:
    columns = ("cycles", "bound", *STEPS)
    table = Table(by, *columns)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows[:top]:
        table.add_row(row["name"], *(str(round(row[key])) for key in columns))
    if len(rows) > top:
        table.caption = f"{len(rows) - top} more rows (--top)"
    return table


def _switches(moved: Sequence[Kind], top: int) -> Table:
    columns = ("switches", "steps", "at least", "above")
    table = Table("passes and digits", *columns, "the worst")
    for column in table.columns[1:-1]:
        column.justify = "right"
    for kind in moved[:top]:
        numbers = kind.count, kind.steps, kind.least, kind.steps - kind.least
        table.add_row(kind.name, *map(str, numbers), kind.example)
    if len(moved) > top:
        table.caption = f"{len(moved) - top} more kinds (--top)"
    return table
