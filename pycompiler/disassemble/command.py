"""The command `pycompiler disassemble`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from emu2.streams import tell

from ..app.model import App
from ..command_files import READ, WRITTEN
from ..console import table_console
from ..files import write_file
from ..graph.graph import MNGraph
from ..graph.text import parse_graph
from ..pfvm.session import Array
from ..report.codegen_dir import L3IR, read_file
from ..runtime.app_file import app_of, target_of
from ..runtime.device import Board
from ..runtime.executable import types_of
from ..runtime.inputs_file import read_arrays
from ..summary.table import percent
from .bench import Bench, Timing, timings
from .checks import Failed
from .instructions import Instruction, instructions
from .node_runs import Log, NodeRuns, Safety, numbers


@click.command("disassemble")
@click.argument("folder", type=READ)
@click.option("--bench", type=click.IntRange(1), metavar="N", help="run each node N times")
@click.option(
    "--top", type=click.IntRange(1), default=20, show_default=True, help="rows of --bench"
)
@click.option("-i", "--inputs", type=READ, help=".npz file of the inputs")
@click.option("--log", type=WRITTEN, help="arguments and results of nodes: text, or .npz")
@click.option(
    "--safety",
    type=click.IntRange(min(Safety), max(Safety)),
    default=int(Safety.NEVER),
    show_default=True,
    help="check the nodes at every run (1), at the first (2), never (3)",
)
@click.option("--device", help="the machine, if it is not found by the name in the folder")
@click.option("--json", "json_path", type=WRITTEN, help="write it as JSON too")
def disassemble(
    folder: Path,
    bench: int | None,
    top: int,
    inputs: Path | None,
    log: Path | None,
    safety: int,
    device: str | None,
    json_path: Path | None,
) -> None:
    """Print the function in FOLDER as one list of instructions, forward and backward.

    Each has its operation, outputs <- inputs, the outputs that are saved for the backward pass, and
    the value that it overwrites. With --bench, each node runs N times on the emulator; its time and
    share of the time follow, and those of each operation. With --log or --safety, the function also
    runs node by node, once or N times. Inputs that are not given are 0.
    """
    app = app_of(folder)
    graph = parse_graph(read_file(folder, L3IR).decode())
    listed = instructions(graph, frozenset(port.value for port in app.updates))
    console = table_console()
    found: dict[str, object] = {"instructions": [one.json() for one in listed]}
    console.print(_listing(listed))
    given: dict[str, Array] = {}
    if inputs is not None:
        given = read_arrays(inputs, types_of(app, app.inputs))
    if bench is not None:
        measured, note = _measured(folder, app, device, bench, given)
        kinds = {one.node: one.operation for one in listed}
        by_node = timings(measured)
        by_kind = timings(measured, lambda node: kinds.get(node, node))
        console.print(_times("node", by_node, top, kinds))
        console.print(_times("operation", by_kind, top))
        console.print(note, soft_wrap=True)
        found["nodes"] = [vars(row) for row in by_node]
        found["operations"] = [vars(row) for row in by_kind]
    clean = True
    if log is not None or safety != Safety.NEVER:
        runner = NodeRuns(folder, app, graph, Board(target_of(app, folder, device)), given)
        records = _records(runner, graph, bench or 1, Safety(safety), log, top)
        clean = not any(row["failed"] for row in records)
        found |= {"function": folder.name, "checks": records}
    if json_path is not None:
        write_file(json_path, (json.dumps(found, indent=1) + "\n").encode())
    if not clean:
        raise click.exceptions.Exit(1)


def _records(
    runner: NodeRuns, graph: MNGraph, count: int, safety: Safety, log: Path | None, top: int
) -> list[dict[str, Any]]:
    """Run the nodes ``count`` times, write the log, print what failed; return what they made."""
    written = None if log is None else Log(log)
    failed: list[Failed] = []
    rows: list[dict[str, Any]] = []
    for number in range(count):
        for record in runner.run(number, safety):
            failed += record.failed
            rows += numbers(record, checked=safety.checks(number))
            if written is not None:
                written.add(record)
    if written is not None:
        written.write()
        click.echo(f"wrote {log}")
    for one in failed[:top]:
        tell(str(one.diagnostic))
    if safety is not Safety.NEVER:
        runs = count if safety is Safety.EVERY_RUN else 1
        lacking = len(runner.checks.not_compared)
        note = f"{len(graph.nodes)} nodes checked in {runs} of {count} runs, {len(failed)} failed"
        if lacking:
            note += f"; {lacking} were not compared, because the host has no such operator"
        click.echo(note)
    return rows


def _measured(
    folder: Path, app: App, device: str | None, count: int, inputs: dict[str, Array]
) -> tuple[dict[str, float], str]:
    runner = Bench(folder, app, Board(target_of(app, folder, device)), inputs)
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
