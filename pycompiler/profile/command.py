"""The command `pycompiler profile`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ..command_files import READ, WRITTEN
from ..console import table_console
from ..errors import error
from ..files import write_file
from ..report.codegen_dir import REPORT, read_file
from ..runtime.app_file import app_of
from ..runtime.device import find_device
from ..summary.table import cost_lines, percent, totals
from .nodes import VIEWS, Group, View, changes, grouped, lines
from .roofline import roofline

#: What is read of a report, and of each of its nodes.
_NEEDED = {"device", "nodes", "steps", "cycles", "dram_words", "bound", "cycle_shares"}
_OF_A_NODE = {"node", "op", "source", "steps", "cycles", "wait_cycles", "dram_words", "busy_steps"}


@click.command("profile")
@click.argument("folder", type=READ)
@click.option("--by", type=click.Choice(VIEWS), default="node", show_default=True)
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="rows to show")
@click.option("--compare", type=READ, help="another codegen_dir: what changes")
@click.option("--draw", type=WRITTEN, help="write a roofline picture (SVG) to this file")
@click.option("--json", "json_path", type=WRITTEN, help="write all rows as JSON")
def profile(
    folder: Path,
    by: View,
    top: int,
    compare: Path | None,
    draw: Path | None,
    json_path: Path | None,
) -> None:
    """Show where the cycles of the compiled function in FOLDER go.

    The rows with the most cycles come first. Waits are cycles in which the program waits for MVs.
    Slots are the shares of the steps that have an instruction there.
    """
    facts = _report(folder)
    other = None if compare is None else _report(compare)
    console = table_console()
    console.print(totals(facts), soft_wrap=True)
    for line in cost_lines(facts):
        console.print(line, soft_wrap=True)
    groups = _groups(folder, facts, by)
    if other is not None:
        console.print(totals(other), soft_wrap=True)
        console.print(_changed(groups, _groups(compare or folder, other, by), by, top))
    else:
        console.print(_table(groups, facts["cycles"], by, top))
    if json_path is not None:
        rows = json.dumps([group.json() for group in groups], indent=1) + "\n"
        write_file(json_path, rows.encode())
        click.echo(f"wrote {json_path}")
    if draw is not None:
        machine = find_device(facts["device"])
        write_file(draw, roofline(facts["nodes"], machine.target, folder.name).encode())
        click.echo(f"wrote {draw}")


def _groups(folder: Path, facts: dict[str, Any], by: View) -> list[Group]:
    if by != "line":
        return grouped(facts["nodes"], by)
    return lines(app_of(folder), find_device(facts["device"]).target)


def _report(folder: Path) -> dict[str, Any]:
    """Return the report of a finished compile for the device. P0004."""
    try:
        found: dict[str, Any] = json.loads(read_file(folder, REPORT))
        whole = found.keys() >= _NEEDED and all(row.keys() >= _OF_A_NODE for row in found["nodes"])
    except (ValueError, RecursionError, AttributeError, TypeError):
        whole = False
    reason = "its report is damaged, or of another version"
    if whole and not found["nodes"]:
        reason = "its report has no program: the compile failed, or was for the host"
    if not whole or not found["nodes"]:
        raise error("P0004", path=folder, reason=reason, wanted=REPORT)
    return found


def _table(groups: list[Group], cycles: int, by: View, top: int) -> Table:
    counts = "cycles", "share", "waits", "steps", "DRAM words", "multiply-adds", "slots"
    first = (by, "node", "times") if by == "line" else (by, "nodes")
    table = Table(*first, *counts)
    for column in table.columns[len(first) - 1 : -1]:
        column.justify = "right"
    for group in groups[:top]:
        table.add_row(
            group.name,
            *([" + ".join(group.owners)] if by == "line" else []),
            *(str(group.nodes), str(group.cycles), percent(group.cycles / cycles)),
            *(str(group.waits), str(group.steps), str(group.words), str(group.multiply_adds)),
            ", ".join(f"{slot} {percent(used)}" for slot, used in group.slots) or "-",
        )
    if len(groups) > top:
        table.caption = f"{len(groups) - top} more rows (--top)"
    return table


def _changed(before: list[Group], after: list[Group], by: View, top: int) -> Table:
    table = Table(by, "cycles", "before", "after")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, old, new in changes(before, after)[:top]:
        ends = [0 if group is None else group.cycles for group in (old, new)]
        shown = ["-" if group is None else str(group.cycles) for group in (old, new)]
        table.add_row(name, f"{ends[1] - ends[0]:+}", *shown)
    return table
