"""``python -m pycompiler.models``: compiles, emulates and compares models of libraries."""

from __future__ import annotations

import argparse
import json
import math
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from emu2.streams import leave, open_closed_streams, tell

from ..command_files import check_written
from ..console import outcome, table_console
from ..errors import PycompilerError, error
from ..files import read_input, write_file
from ..runtime.device import find_device
from .catalogue import CATALOGUE
from .door_column import with_column
from .names import LIBRARIES, USAGE, check_module, choose
from .page import cycle_table, library_versions, page, reason_lines, table
from .processes import Settings, Task, memory_is_known, run_all
from .row import DOOR, MODES, Row, exit_code

_BOTH = "both"


class _Parser(argparse.ArgumentParser):
    """A parser whose diagnostics look like all others: argparse would print its usage first."""

    def error(self, message: str) -> NoReturn:
        raise error("P0007", problem=message, usage=USAGE)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is no whole number from 1 on")
    return int(text)


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"`{text}` is no number above 0")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m pycompiler.models",
        description="Compile models of torchvision, timm and transformers with random weights, run "
        "them on the emulator and compare them with torch. Nothing is downloaded.",
        epilog="The exit code is 0 if all models compiled and matched, 1 if not, 2 if the command "
        "line is wrong, 3 if the compiler has an internal error.",
    )
    add = parser.add_argument
    add(
        "models",
        nargs="*",
        metavar="MODEL",
        help="LIBRARY:MODEL, such as torchvision:resnet18; @SIZE sets the side of its pictures in "
        "pixels (64); MODULE:FUNCTION names a function that returns a module and its inputs: a "
        "dict by parameter, a tuple or a tensor. Without MODEL, the whole catalogue runs",
    )
    add("--list", action="store_true", help="print the catalogue and end")
    add("--only", metavar="PATTERN", help="only models with this in their name; * fits anything")
    add(
        "--mode",
        choices=(*MODES, _BOTH, DOOR),
        default=MODES[0],
        help="option float_dtype (%(default)s); torch.compile runs models through its back end, "
        "and --markdown then changes the column of a page that exists",
    )
    add(
        "--batch",
        type=_count,
        metavar="N",
        help="pictures or texts (1; some models of the catalogue run with 1 and with 3)",
    )
    add("--jobs", type=_count, default=1, metavar="N", help="models at once (%(default)s)")
    add(
        "--time-limit",
        type=_amount,
        default=600.0,
        metavar="SECONDS",
        help="for one model in one mode (%(default)g)",
    )
    add("--memory-limit", type=_amount, metavar="GB", help="for one model (none)")
    add("--device", default="emu2", help="what to compile for (%(default)s)")
    add("--json", type=Path, metavar="FILE", help="write the rows to FILE, each as it is finished")
    add("--keep", action="store_true", help="keep rows of --json, from a run with these options")
    add("--markdown", type=Path, metavar="FILE", help="write a page")
    return parser  # fmt: skip


def _check(given: argparse.Namespace) -> None:
    if find_device(given.device).machine is None:
        raise error("P0007", problem=f"`{given.device}` runs no programs", usage=USAGE)
    if given.memory_limit is not None and not memory_is_known():
        raise error("P0007", problem="--memory-limit needs /proc", usage=USAGE)
    check_written([("--json", given.json), ("--markdown", given.markdown)])
    if given.keep and given.json is None:
        raise error("P0007", problem="--keep needs --json FILE", usage=USAGE)


def _check_models(tasks: Sequence[Task]) -> None:
    """Refuse names of models that do not exist before the first model runs. P0007, P0008.

    What the catalogue has needs no look: libraries take seconds to load.
    """
    others = {entry.name: entry for entry, _, _ in tasks if entry.name not in CATALOGUE}
    for entry in others.values():
        check_module(entry)
    if any(entry.library in LIBRARIES for entry in others.values()):
        from .libraries import check_name  # it loads torch

        for entry in others.values():
            check_name(entry)


def _kept(path: Path) -> list[Row]:
    """Return the rows of a file that an earlier run wrote; none if there is no file.

    P0001 if it cannot be read, P0009 if it holds anything but rows: it may be a file of the user's
    that the new rows would overwrite.
    """
    try:
        text = read_input(path)
    except PycompilerError as problem:
        if isinstance(problem.__cause__, FileNotFoundError):
            return []
        raise
    try:
        found = json.loads(text)
    except RecursionError as problem:
        raise error("P0009", path=path, reason="it is nested too deeply") from problem
    except ValueError as problem:
        raise error("P0009", path=path, reason=f"it is no JSON ({problem})") from problem
    if not isinstance(found, list):
        raise error("P0009", path=path, reason="it is no list")
    rows = []
    for number, data in enumerate(found, 1):
        try:
            rows.append(Row.read(data))
        except ValueError as problem:
            raise error("P0009", path=path, reason=f"entry {number} {problem}") from problem
    return rows


def _write(path: Path, rows: Sequence[Row]) -> None:
    write_file(path, (json.dumps([row.data() for row in rows], indent=1) + "\n").encode())


def run(given: argparse.Namespace) -> int:
    """Run the models of a parsed command line and print their table; the exit code."""
    if given.list:
        for entry in CATALOGUE.values():
            print(f"{entry.name:60} {entry.note}".rstrip())
        return 0
    _check(given)
    modes = MODES if given.mode == _BOTH else (given.mode,)
    wanted = [
        (entry, batch)
        for entry in choose(given.models, given.only)
        for batch in (entry.batches if given.batch is None else (given.batch,))
    ]
    rows = {row.key: row for row in (_kept(given.json) if given.keep else ())}
    left = [
        (entry, batch, missing)
        for entry, batch in wanted
        if (missing := [mode for mode in modes if (entry.name, batch, mode) not in rows])
    ]
    _check_models(left)

    def finished(row: Row) -> None:
        rows[row.key] = row
        tell(f"{row.title}: {row.result}{f': {row.reason}' if row.reason else ''}")
        if given.json is not None:
            _write(given.json, list(rows.values()))

    limits = given.time_limit, given.memory_limit
    run_all(left, Settings(given.device, given.jobs, *limits), finished)
    shown = [rows[entry.name, batch, mode] for entry, batch in wanted for mode in modes]
    console = table_console()
    console.print(table(shown))
    cycles = cycle_table(shown)
    if cycles.row_count:
        console.print(cycles)
    for line in reason_lines(shown):
        print(line)
    if given.markdown is not None:
        write_file(given.markdown, _page(given, shown).encode())
    return exit_code(shown)


def _page(given: argparse.Namespace, rows: Sequence[Row]) -> str:
    """Return a page of the rows, or the old page with another column of `torch.compile`."""
    if given.mode == DOOR:
        return with_column(read_input(given.markdown).decode(errors="replace"), rows)
    return page(rows, library_versions())


def _terminate(*_: object) -> None:
    """End as on an interrupt, which also ends the processes of the models."""
    raise SystemExit(128 + signal.SIGTERM)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; the exit code."""
    open_closed_streams()
    signal.signal(signal.SIGTERM, _terminate)
    return outcome(lambda: run(_parser().parse_args(arguments)))


if __name__ == "__main__":
    leave(main())
