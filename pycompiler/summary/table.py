"""The report of a compile as a readable table of nodes; ``report.json`` has the same data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from ..report.cycle_shares import cycles_by_kind

_RIGHT = ("cycles", "steps", "DRAM words")
_COLUMNS = ("node", "op", "output", "layout", "location", *_RIGHT, "utilisation")


#: What stands below the table of a compile: the bound in words.
_BOUND = (
    "the bound counts multiply-adds at the peak of the MAU, each long word that crosses DRAM once, "
    "at the full rate of every DRAM, and functions of elements at the rate of the ALU and the MAU",
    "it leaves out the latency of the first load, sums of values, layout switches, and words that "
    "several groups read",
)
#: The times of the bound by their names in the report.
_TIMES = {"mau": "products", "dram": "DRAM", "vector": "vectors"}


def summary_table(facts: Mapping[str, Any], title: str, top: int | None = None) -> Table:
    """Return a row per device node of the report ``facts``, in execution order.

    With ``top``, only so many nodes have rows, those with the most cycles first. Utilisation is the
    share of a node's steps in which its busiest issue slot has an instruction.
    """
    rows = facts["nodes"]
    if top is not None:
        rows = sorted(rows, key=lambda row: -row["cycles"])[:top]
    table = Table(title=title, title_justify="left")
    for column in _COLUMNS:
        side = "right" if column in _RIGHT else "left"
        table.add_column(column, justify=side, overflow="fold")  # type: ignore[arg-type]
    if len(rows) < len(facts["nodes"]):
        table.caption = f"{len(facts['nodes']) - len(rows)} more rows (--top)"
    for row in rows:
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
            *map(str, (row["cycles"], row["steps"], words)),
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
    return [*lines, *cost_lines(facts), *_bound_in_words(facts)]


def _bound_in_words(facts: Mapping[str, Any]) -> list[str]:
    """Return what the bound counts, what it leaves out, and what stands above it."""
    if facts["bound"].get("factor") is None:
        return []
    kinds = sorted(cycles_by_kind(facts["nodes"]).items(), key=lambda kind: -kind[1])
    most = " and ".join(f"{kind} ({cycles})" for kind, cycles in kinds[:2])
    above = facts["cycles"] - facts["bound"]["cycles"]
    lines = [*_BOUND, f"{above} cycles stand above it; {most} take the most cycles of the program"]
    if facts.get("waits"):
        waits = ", ".join(f"{kind} {cycles}" for kind, cycles in facts["waits"].items())
        lines.append(f"cycles of waits: {waits}")
    return lines


def cost_lines(facts: Mapping[str, Any]) -> list[str]:
    """Return the bound of the model, and where the cycles go; nothing without a program.

    A line each, in cycles and in shares of the cycles.
    """
    lines = []
    bound = facts["bound"]
    if bound:
        lines.append(f"bound: {_bound_text(bound)}")
    kinds = ", ".join(f"{kind} {percent(part)}" for kind, part in facts["cycle_shares"].items())
    if kinds:
        lines.append(f"shares of the cycles: {kinds}")
    return lines


def _bound_text(bound: Mapping[str, Any]) -> str:
    if bound["cycles"] is None:
        return f"none, because {bound['reason']}"
    times = ((key, f"{name} {bound[key]}") for key, name in _TIMES.items())
    shown = ", ".join(f"{text} binds" if key == bound["binds"] else text for key, text in times)
    text = f"{bound['cycles']} cycles ({shown}); "
    if bound["factor"] is None:
        return f"{text}not compared, because {bound['reason']}"
    return f"{text}the program takes {bound['factor']:.1f} times as long"


def percent(fraction: float) -> str:
    """Return a share as text."""
    return f"{100 * fraction:.0f} %"
