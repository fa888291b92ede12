"""The report of a compile as a readable table of nodes; ``report.json`` has the same data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

_RIGHT = ("steps", "DRAM words")
_COLUMNS = ("node", "op", "output", "layout", "location", *_RIGHT, "utilisation")


def summary_table(facts: Mapping[str, Any], title: str) -> Table:
    """Return a row per device node of the report ``facts``, in execution order.

    Utilisation is the share of a node's steps in which its busiest issue slot has an instruction.
    """
    table = Table(title=title, title_justify="left")
    for column in _COLUMNS:
        side = "right" if column in _RIGHT else "left"
        table.add_column(column, justify=side, overflow="fold")  # type: ignore[arg-type]
    for row in facts["nodes"]:
        words = row["dram_words"]["read"] + row["dram_words"]["written"]
        shape = "x".join(map(str, row["shape"])) or "scalar"
        busy: dict[str, int] = row["busy_steps"]
        slot = max(busy, key=lambda name: busy[name], default="")
        used = f"{percent(row['utilisation'])} {slot}" if slot else "-"
        table.add_row(
            row["node"],
            row["op"],
            shape,
            row["layout"],
            row["location"],
            str(row["steps"]),
            str(words),
            used,
        )
    return table


def tuning_table(tuning: Mapping[str, Any]) -> Table:
    """Return a row for each set of options that was tried, from the report's ``tuning``."""
    title = f"options tried: {tuning['stopped']} after {tuning['seconds']:.0f} s"
    table = Table(title=title, title_justify="left")
    for column in ("options", "cycles", "steps", "DRAM words", "s", "result"):
        left = column in ("options", "result")
        table.add_column(column, justify="left" if left else "right", overflow="fold")
    for row in tuning["tried"]:
        numbers = (row.get(key, "-") for key in ("cycles", "steps", "dram_words", "seconds"))
        result = "best" if row["name"] == tuning["best"] else row["status"]
        table.add_row(row["name"], *map(str, numbers), result)
    return table


def totals(facts: Mapping[str, Any]) -> str:
    """Return one line: steps, cycles, DRAM words, and the number of operators on the host.

    :func:`cost_lines` says more of the cycles.
    """
    moved = facts["dram_words"]
    line = (
        f"{facts['steps']} steps, {facts['cycles']} cycles, {moved['read']} long words of DRAM "
        f"read and {moved['written']} written"
    )
    hosted = len(facts["host_fallback"])
    return f"{line}, {hosted} operators on the host" if hosted else line


def closing_lines(facts: Mapping[str, Any], more: str = "") -> list[str]:
    """Return what stands below the table: totals with ``more`` behind them, and the costs."""
    lines = [totals(facts) + more]
    for row in facts.get("passes", ()):
        if row.get("taken"):
            cycles = row["cycles"]["mixed"]
            lines.append(f"computed in `{row['pass']}`: `mixed` would take {cycles} cycles")
    return lines + cost_lines(facts)


def cost_lines(facts: Mapping[str, Any]) -> list[str]:
    """Return the bound of the model, and where the cycles go; nothing without a program.

    A line each, in cycles and in shares of the cycles.
    """
    lines = []
    bound = facts["bound"]
    if bound:
        lines.append(f"bound: {_bound_text(bound)}")
    shares = ", ".join(f"{kind} {percent(own)}" for kind, own in facts["cycle_shares"].items())
    if shares:
        lines.append(f"shares of the cycles: {shares}")
    return lines


def _bound_text(bound: Mapping[str, Any]) -> str:
    if bound["cycles"] is None:
        return f"none, because {bound['reason']}"
    text = f"{bound['cycles']} cycles (MAU {bound['mau']}, DRAM {bound['dram']}); "
    if bound["factor"] is None:
        return f"{text}not compared, because {bound['reason']}"
    return f"{text}the program takes {bound['factor']:.1f} times as long"


def percent(share: float) -> str:
    """Return a share as text."""
    return f"{100 * share:.0f} %"
