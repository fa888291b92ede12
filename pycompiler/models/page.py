"""The table of models, on the terminal and as a page."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.table import Table

from ..report.cycle_shares import KINDS
from ..summary.table import percent
from ..tolerance import NETWORKS
from .catalogue import CATALOGUE
from .door_column import DOOR_COMMAND, with_column
from .names import LIBRARIES
from .row import DOOR, MODES, Row

#: The command whose result is the page.
COMMAND = "python -m pycompiler.models --mode both --markdown docs/models.md"

_COLUMNS = ("model", "batch", "result", "host operators", "error", "steps", "cycles", "x bound",
            "compile s", "run s")  # fmt: skip
_RIGHT = ("batch", *_COLUMNS[4:])
_CYCLES = ("model", "batch", "MAU bound", "DRAM bound", "vector bound", "cycles", "x bound", *KINDS)

#: Rows may come in another order: those of an earlier run that are kept come first.
_ORDER = {name: place for place, name in enumerate(CATALOGUE)}

_CYCLES_TITLE = "Where the cycles go"

#: What stands before the tables, with the meanings of their columns.
_TEXT = Path(__file__).with_suffix(".txt")


def table(rows: Sequence[Row]) -> Table:
    """Return the rows as a table for the terminal."""
    return _table("Models", _COLUMNS, rows, _cells)


def cycle_table(rows: Sequence[Row]) -> Table:
    """Return bounds and shares of the cycles of each model with a program, for the terminal."""
    return _table(_CYCLES_TITLE, _CYCLES, _with_cycles(rows), _cycle_cells)


def _table(
    title: str, columns: Sequence[str], rows: Sequence[Row], cells: Callable[[Row], Sequence[str]]
) -> Table:
    out, several = Table(title=title, title_justify="left"), len({row.mode for row in rows}) > 1
    for column in columns:
        right = column in _RIGHT or column in _CYCLES[1:]
        out.add_column(column, justify="right" if right else "left", overflow="fold")
    for row in rows:
        out.add_row(f"{row.name} {row.mode}" if several else row.name, *cells(row))
    return out


def reason_lines(rows: Sequence[Row]) -> list[str]:
    """Return a line for each model that did not compile or match."""
    return [f"{row.title}: {row.result}: {row.reason}" for row in rows if row.reason]


def page(rows: Sequence[Row], versions: Mapping[str, str]) -> str:
    """Return the page of the rows, in the order of the catalogue; other models come last."""
    rows = sorted(rows, key=lambda row: (_ORDER.get(row.name, len(_ORDER)), row.name, row.batch))
    shown = ", ".join(f"{name} {version}" for name, version in versions.items())
    head = _TEXT.read_text(encoding="utf-8").format(
        command=COMMAND,
        door=DOOR_COMMAND,
        summary=_summary(rows),
        versions=shown,
        host=host(),
        networks=NETWORKS,
        kinds=", ".join(KINDS),
        column=DOOR,
    )
    parts = [head, *(_section(mode, rows) for mode in MODES)]
    parts += [_cycle_section(mode, rows) for mode in MODES]
    parts.append(_failures(rows))
    return with_column("\n".join(part for part in parts if part), rows)


def library_versions() -> dict[str, str]:
    """Return the versions of torch and of the libraries; none is loaded."""
    found = {}
    for name in ("torch", *LIBRARIES[1:]):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def host() -> str:
    """Return the cores, the processor and the Python of this computer."""
    kind = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = (line for line in info.read_text().splitlines() if line.startswith("model name"))
        kind = next(lines, f": {kind}").partition(":")[2].strip()
    return f"{os.cpu_count()} cores ({kind}), Python {platform.python_version()}"


def _summary(rows: Sequence[Row]) -> str:
    """Return a sentence for each mode and batch, and a list of the models that are not there."""
    lines = []
    for mode in MODES:
        for batch in sorted({row.batch for row in rows if row.mode == mode}):
            found = [row for row in rows if (row.mode, row.batch) == (mode, batch)]
            compiled = [row for row in found if not row.code]
            whole = sum(not row.host for row in compiled)
            matched = sum(row.matched for row in compiled)
            lines.append(
                f"* In `{mode}` with batch {batch}, {len(compiled)} of {len(found)} models "
                f"compile, {whole} of them wholly for the device, and {matched} match torch."
            )
            names = {row.name for row in found}
            missing = [
                f"`{entry.name}`"
                for entry in CATALOGUE.values()
                if batch in entry.batches and entry.name not in names
            ]
            if missing:
                lines.append(f"  Not run: {', '.join(missing)}.")
    return "\n".join(lines)


def _section(mode: str, rows: Sequence[Row]) -> str:
    found = [row for row in rows if row.mode == mode]
    if not found:
        return ""
    lines = [f"## Models in `{mode}`", ""]
    for library in sorted({row.name.partition(":")[0] for row in found}, key=_rank):
        lines += [f"**{library}**", ""]
        head = ("model", "changed", *_COLUMNS[1:])
        lines += [_line(head), _line(["---:" if c in _RIGHT else "---" for c in head])]
        for row in found:
            own, _, model = row.name.partition(":")
            if own == library:
                known = CATALOGUE.get(row.name)
                note = "" if known is None else known.note
                lines.append(_line([model, note, *_cells(row)]))
        lines.append("")
    return "\n".join(lines)


def _cycle_section(mode: str, rows: Sequence[Row]) -> str:
    found = [row for row in _with_cycles(rows) if row.mode == mode]
    if not found:
        return ""
    lines = [f"## {_CYCLES_TITLE} in `{mode}`", "", _line(_CYCLES)]
    lines.append(_line(["---" if column == "model" else "---:" for column in _CYCLES]))
    lines += [_line((row.name, *_cycle_cells(row))) for row in found]
    return "\n".join([*lines, ""])


def _with_cycles(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.shares and not row.code]


def _rank(library: str) -> tuple[int, str]:
    return (LIBRARIES.index(library) if library in LIBRARIES else len(LIBRARIES), library)


def _failures(rows: Sequence[Row]) -> str:
    lines = ["## Models that did not compile or match", ""]
    found = [row for row in rows if row.mode in MODES and (row.code or not row.matched)]
    if not found:
        return "\n".join([*lines, "None.", ""])
    columns = ("model", "batch", "mode", "result", "reason")
    lines += [_line(columns), _line(["---:" if c in _RIGHT else "---" for c in columns])]
    for row in found:
        reason = row.reason or f"the error is {row.error:.2g}"
        reason = reason.replace("|", "\\|")
        lines.append(_line((row.name, str(row.batch), row.mode, row.result, reason)))
    return "\n".join([*lines, ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row behind its name."""
    if row.code:
        return (str(row.batch), row.code, *("-",) * 5, f"{row.seconds:.1f}", "-")
    kinds = ", ".join(f"{count} {kind}" for kind, count in _frequent(row.host)) or "0"
    return (
        str(row.batch),
        row.result,
        kinds,
        f"{row.error:.1g}",
        str(row.steps),
        str(row.cycles),
        _times(row),
        f"{row.seconds:.1f}",
        f"{row.emulated:.1f}",
    )


def _cycle_cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row of bounds and shares behind its name."""
    return (
        *map(str, (row.batch, row.mau, row.dram, row.vector, row.cycles)),
        _times(row),
        *(percent(row.shares[kind]) for kind in KINDS),
    )


def _times(row: Row) -> str:
    return f"{row.times:.1f}" if row.bound and not row.host else "-"


def _frequent(host: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    yield from sorted(host.items(), key=lambda kind: (-kind[1], kind[0]))
