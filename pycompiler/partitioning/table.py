"""The tables that show a partition: its pieces, and what stays on the host."""

from __future__ import annotations

from collections import Counter

from rich.table import Table

from ..console import table_console
from .driver import Partition
from .support import known_rows

_SHOWN = 6  # kinds of operators that a row names


def print_partition(found: Partition) -> None:
    """Print a row for each piece, and one for each reason why operators run on the host."""
    console = table_console()
    table = Table("piece", "nodes", "operators", "moved bytes", "host us", "device us", "moving us")
    for column in (1, 3, 4, 5, 6):
        table.columns[column].justify = "right"
    for piece in found.pieces:
        kinds = Counter(unit.name for unit in piece.units)
        shown = [f"{count} {kind}" for kind, count in kinds.most_common(_SHOWN)]
        shown += ["..."] * (len(kinds) > _SHOWN)
        cost = found.costs.get(piece.numbers) if piece.on_device else None
        numbers = ["", "", "", ""]
        if cost is not None:
            times = (cost.host, cost.device, cost.transfer)
            numbers = [f"{cost.bytes_moved:,}", *(f"{time * 1e6:.3g}" for time in times)]
        table.add_row(piece.name, str(len(piece.numbers)), ", ".join(shown), *numbers)
    console.print(table)
    if found.note:
        console.print(found.note, soft_wrap=True)
    reasons = Counter((unit.name, reason) for unit, reason in found.reasons.items())
    if reasons:
        table = Table("on the host", "nodes", "reason")
        for (name, reason), count in reasons.most_common():
            table.add_row(name, str(count), reason)
        console.print(table)


def print_support() -> None:
    """Print what the layers of the compiler take: the table of the device's support."""
    table = Table("operator", "dtypes", "attributes", "restrictions")
    for row in known_rows():
        table.add_row(*row)
    table_console().print(table)
