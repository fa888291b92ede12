"""Rows as text."""

from __future__ import annotations

from collections.abc import Iterable

from emu2.bench.measure import Row

_HEAD = (
    "kernel",
    "threads",
    "steps/s",
    "PE-ops/s",
    "value",
    "limit",
    "ratio",
    "numpy",
    "target",
    "met",
)


def short(value: float | None, unit: str = "") -> str:
    """Return the value with three digits and a unit."""
    if value is None:
        return "-"
    for scale, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= scale:
            return f"{value / scale:#.3g}{letter}{unit}".replace(". ", " ")
    text = f"{value:#.3g}".rstrip(".")
    return f"{text} {unit}".rstrip()


def cells(row: Row) -> list[str]:
    """Return a row of the table."""
    limit = "-"
    if row.limit is not None:
        limit = f"{row.limit_name} {short(row.limit)}"
    speed = f"{row.value / row.numpy:#.3g}x" if row.value and row.numpy else "-"
    target = "-"
    if row.target is not None:
        sign, unit = "<=" if row.at_most else ">=", "" if row.ratio is not None else f" {row.unit}"
        target = f"{sign} {row.target:g}{unit}"
    return [
        f"{row.kernel} {row.case}".strip(),
        str(row.threads),
        short(row.steps_per_second),
        short(row.pe_ops_per_second),
        "-" if row.value is None else f"{short(row.value)} {row.unit}",
        limit,
        "-" if row.ratio is None else f"{row.ratio:.3f}",
        speed,
        target,
        {None: "", True: "met", False: "not met"}[row.met],
    ]


def clone_lines(choices: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line per level, with the kernels whose fastest clone has this level.

    ``choices`` are pairs of a kernel and a level; empty if ``EMU2_LEVEL`` forces a level.
    """
    by_level: dict[str, list[str]] = {}
    for kernel, level in choices:
        by_level.setdefault(level, []).append(kernel)
    if not by_level:
        return []
    lines = [f"  {level}: {', '.join(names)}" for level, names in sorted(by_level.items())]
    return ["fastest clone of each kernel, timed at its first calls:", *lines]


class Table:
    """Formats the lines of a table that is printed row by row."""

    def __init__(self, names: Iterable[str]) -> None:
        """Set the width of the first column by its longest name."""
        self.widths = [max(map(len, names), default=0), 7, 8, 8, 16, 21, 6, 6, 19, 7]

    def line(self, parts: Iterable[str]) -> str:
        """Return one line."""
        padded = []
        for at, (part, width) in enumerate(zip(parts, self.widths, strict=True)):
            padded.append(part.ljust(width) if at in (0, 8, 9) else part.rjust(width))
        return "  ".join(padded).rstrip()

    def head(self) -> str:
        """Return the names of the columns."""
        return self.line(_HEAD)
