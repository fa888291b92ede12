"""The command `emu2 profile`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

import emu2
from emu2.console import Output
from emu2.file_roles import READ, WRITTEN, spec_option
from emu2.link.origins import MARK, placing
from emu2.profiling import VIEWS, Change, Profile, Row, View, changes, profile, with_places
from emu2.words_cli import load_program

_TEXT = 60  # characters of a line that are shown


@click.command("profile")
@click.argument("file", type=READ)
@spec_option
@click.option("--by", type=click.Choice(VIEWS), default="line", show_default=True)
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="Rows to show.")
@click.option(
    "--compare", type=READ, help="Another program: show what its instructions take more or less."
)
@click.option("--json", "json_path", type=WRITTEN, help="Write all rows and counters as JSON.")
def profile_command(
    file: str, spec_name: str, by: View, top: int, compare: str | None, json_path: str | None
) -> None:
    """Show where the cycles of FILE (.vsm, .asm) go. Nothing runs: the cycle model tells.

    A stall is a `wait` that holds up the program; its row names the MV. A line of several
    instructions counts for each of them in the view `instruction`.
    """
    spec = emu2.Spec.load(spec_name)
    found = _placed(profile(load_program(file, spec, "run")), file)
    other = None if compare is None else profile(load_program(compare, spec, "run"))
    if json_path is not None:
        with Output(json_path, sys.stdout) as sink:
            sink.write(json.dumps(found.json(), indent=2) + "\n")
        if json_path == "-":
            return
    click.echo("\n".join(_totals(found)))
    if other is not None:
        click.echo("\n".join(["", *_changed(changes(found, other), found, other, top)]))
        return
    rows = found.rows[by]
    click.echo("\n".join(["", *_table(rows, found.counters["cycles"], by, top)]))


def _placed(found: Profile, file: str) -> Profile:
    """Add the places of the source to the profile of a linked program."""
    text = "" if file == "-" else Path(file).read_text(encoding="utf-8", errors="replace")
    return with_places(found, placing(text, file)) if MARK in text else found


def shown(found: Profile, by: View, top: int) -> list[str]:
    """Return the totals of a profile and the rows of a view."""
    return [*_totals(found), *_table(found.rows[by], found.counters["cycles"], by, top)]


def _totals(found: Profile) -> list[str]:
    facts = found.counters
    cycles, steps = facts["cycles"], facts["steps"]
    stalls = facts["stall_cycles"]
    lines = [
        f"{found.name}: {steps} steps, {cycles} cycles, of which {stalls} stalls "
        f"({_share(stalls, cycles)})"
    ]
    busy = (f"{slot} {_share(count, steps)}" for slot, count in facts["busy_steps"].items())
    held = sorted(facts["port_cycles"].items(), key=lambda item: -item[1])[:4]
    ports = (f"{name} {_share(count, cycles)}" for name, count in held)
    words: dict[str, Any] = facts["words"]
    moved = (f"{name} {own['read']} + {own['written']}" for name, own in words.items())
    for title, parts in (
        ("steps with an instruction", busy),
        ("cycles that MVs hold a memory", ports),
        ("long words read + written", moved),
    ):
        shown = ", ".join(parts)
        lines += [f"{title}: {shown}"] if shown else []
    return lines


def _table(rows: list[Row], cycles: int, by: View, top: int) -> list[str]:
    shown = rows[:top]
    slots = {id(row): " ".join(row.slots) for row in shown}
    wide = max([*map(len, slots.values()), len("slots")])
    head = f"{'cycles':>10} {'share':>6} {'stalls':>9} {'steps':>8} {'dram':>9} {'pdm':>9}"
    lines = [f"{head}  {'slots':{wide}}  {by}"]
    for row in shown:
        own = row.cycles + row.stalls
        place = f"{row.line}: " if row.line else ""
        text = row.text if len(row.text) <= _TEXT else f"{row.text[: _TEXT - 3]}..."
        note = f"  # {row.note}" if row.note else ""
        lines.append(
            f"{own:>10} {_share(own, cycles):>6} {row.stalls:>9} {row.steps:>8}"
            f" {row.dram:>9} {row.pdm:>9}"
            f"  {slots[id(row)]:{wide}}  {place}{text}{note}"
        )
    if len(rows) > top:
        lines.append(f"... and {len(rows) - top} more rows (--top)")
    return lines


def _changed(made: list[Change], before: Profile, after: Profile, top: int) -> list[str]:
    old, new = before.counters["cycles"], after.counters["cycles"]
    lines = [f"{before.name} -> {after.name}: {old} -> {new} cycles ({new - old:+})"]
    lines.append(f"{'cycles':>10} {'before':>10} {'after':>10}  instruction")
    for change in made[:top]:
        ends = (
            0 if row is None else row.cycles + row.stalls for row in (change.before, change.after)
        )
        one, two = ends
        lines.append(f"{change.cycles:>+10} {one:>10} {two:>10}  {change.text}")
    return lines


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"
