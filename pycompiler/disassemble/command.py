"""The command `pycompiler disassemble`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table

from ..app.model import App
from ..app.reader import read_app
from ..console import table_console
from ..errors import error
from ..files import write_file
from ..graph.text import parse_graph
from ..report.codegen_dir import L3IR, MODEL_APP, MODEL_VSM, read_file
from ..report.summary import percent
from ..runtime.device import Board, find_device
from .bench import Bench, Timing, timings
from .instructions import Instruction, instructions


@click.command("disassemble")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--bench", type=click.IntRange(1), metavar="N", help="run each node N times")
@click.option(
    "--top", type=click.IntRange(1), default=20, show_default=True, help="rows of --bench"
)
@click.option("--device", help="the machine, if it is not found by the name in the folder")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="write it as JSON too")
def disassemble(
    folder: Path, bench: int | None, top: int, device: str | None, json_path: Path | None
) -> None:
    """Print the function in FOLDER as one list of instructions, forward and backward.

    Each has its operation, outputs <- inputs, the outputs that are saved for the backward pass, and
    the value that it overwrites. With --bench, each node runs N times on the emulator, with inputs
    of 0; its time and share of the time follow, and those of each operation.
    """
    app = read_app(read_file(folder, MODEL_APP), str(folder / MODEL_APP))
    graph = parse_graph(read_file(folder, L3IR).decode())
    listed = instructions(graph, frozenset(port.value for port in app.updates))
    console = table_console()
    found: dict[str, object] = {"instructions": [one.json() for one in listed]}
    console.print(_listing(listed))
    if bench is not None:
        measured, note = _measured(folder, app, device, bench)
        kinds = {one.node: one.operation for one in listed}
        by_node = timings(measured)
        by_kind = timings(measured, lambda node: kinds.get(node, node))
        console.print(_times("node", by_node, top, kinds))
        console.print(_times("operation", by_kind, top))
        console.print(note, soft_wrap=True)
        found["nodes"] = [vars(row) for row in by_node]
        found["operations"] = [vars(row) for row in by_kind]
    if json_path is not None:
        write_file(json_path, (json.dumps(found, indent=1) + "\n").encode())


def _measured(
    folder: Path, app: App, device: str | None, count: int
) -> tuple[dict[str, float], str]:
    machine = find_device(device or f"emu2:{app.target}")
    if machine.machine is None or machine.target.name != app.target:
        raise error("P0503", path=folder, found=app.target, device=device)
    code = read_file(folder, MODEL_VSM).decode()
    runner = Bench(folder, app, code, Board(machine.target), {})
    measured = runner.run(count)
    start, pieces = runner.overhead(count)
    note = (
        f"median of {count} runs; the program runs in {pieces} pieces, and starting one takes "
        f"{1e6 * start:.0f} us, which is in the times"
    )
    return measured, note


def _listing(listed: Sequence[Instruction]) -> Table:
    table = Table("#", "pass", "operation", "outputs <- inputs", "type", "saved for backward",
                  "in place of", "line")  # fmt: skip
    for column in table.columns[2:]:
        column.overflow = "fold"
    table.columns[0].justify = "right"
    for number, one in enumerate(listed):
        turn = number and listed[number - 1].phase != one.phase
        if turn:
            table.add_section()
        table.add_row(
            *(str(one.number), one.phase, f"{one.operation}{' (host)' if one.host else ''}"),
            *(one.text, ", ".join(one.types), ", ".join(one.saved)),
            *(one.in_place or "", (one.source or "").rpartition("/")[2]),
        )
    return table


def _times(
    title: str, rows: Sequence[Timing], top: int, kinds: dict[str, str] | None = None
) -> Table:
    table = Table(title, "operation" if kinds is not None else "nodes", "ms", "share")
    for column in table.columns[2:]:
        column.justify = "right"
    for row in rows[:top]:
        second = kinds.get(row.name, "") if kinds is not None else str(row.nodes)
        table.add_row(row.name, second, f"{1000 * row.seconds:.3f}", percent(row.share))
    if len(rows) > top:
        table.caption = f"{len(rows) - top} more rows (--top)"
    return table
