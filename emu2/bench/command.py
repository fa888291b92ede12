"""`emu2 bench`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import click

import emu2
from emu2 import _core
from emu2.bench import programs
from emu2.bench.kernels import Chip, Kernel, chosen, kernels
from emu2.bench.measure import (
    QUICK,
    USUAL,
    Pace,
    Row,
    WrongBitsError,
    host_limits,
    kernel_rows,
    scaling_rows,
    settle_allocator,
)
from emu2.bench.table import Table, cells, clone_lines, short
from emu2.console import EXIT_OURS, diagnostic, fail
from emu2.streams import tell

Section = tuple[str, Callable[[Pace, list[int]], Iterator[Row]]]
"""The name that patterns see, and what makes the rows."""

SCALING = "two threads over one"
SCALED = ("long integer ALU op", "fvfma", "dvfma", "hmfma")


def sections(chip: Chip) -> list[Section]:
    """Return all sections, in the order of the table of targets."""

    def of_kernel(kernel: Kernel) -> Section:
        return kernel.name, lambda pace, threads: kernel_rows(chip, kernel, pace, threads)

    def scaling(kernel: Kernel) -> Section:
        return f"{SCALING} {kernel.kernel}", lambda pace, _: scaling_rows(chip, [kernel], pace)

    table = kernels(chip)
    return [
        *map(of_kernel, table),
        (programs.N_BODY, lambda pace, _: programs.n_body_rows(chip, pace)),
        *(scaling(kernel) for kernel in table if kernel.kernel in SCALED),
        (programs.ASSEMBLER, lambda pace, _: programs.assembler_rows(chip, pace)),
        (programs.FIRST_STEP, lambda pace, _: programs.first_step_rows(chip, pace)),
    ]


def thread_counts(context: click.Context, option: click.Parameter, text: str) -> list[int]:
    """Return the thread counts in `1,2,...`."""
    parts = text.split(",")
    if not all(part.isdecimal() and 0 < int(part) <= 1024 for part in parts):
        raise click.BadParameter("write counts such as 1,2,4", context, option)
    return [int(part) for part in parts]


@click.command()
@click.option(
    "--spec", "spec_name", default="mncore2", show_default=True, help="The machine to emulate."
)
@click.option("--json", "as_json", is_flag=True, help="Print one array, a row per criterion.")
@click.option(
    "--threads",
    callback=thread_counts,
    default="1",
    show_default=True,
    help="Further thread counts for every kernel, such as 1,2,4.",
)
@click.option("--only", metavar="PATTERN", help="Kernels whose name has or matches (`*`) this.")
@click.option("--quick", is_flag=True, help="Measure shortly: a look, no figures to quote.")
def bench(spec_name: str, as_json: bool, threads: list[int], only: str | None, quick: bool) -> None:
    """Measure the emulator, and compare it with the host's limits and with numpy.

    A ratio is value over limit, both of this run. All results are compared with numpy's, bit by
    bit, before anything is timed.
    """
    chip = Chip(emu2.Spec.load(spec_name))
    pace = QUICK if quick else USUAL
    every = sections(chip)
    wanted = [section for section in every if chosen(section[0], only)]
    if not wanted:
        known = ", ".join(dict.fromkeys(name for name, _ in every))
        fail(diagnostic("R0009", f"no kernel matches `{only}`", f"use a part of one of {known}"))
    table = Table([*(name for name, _ in every), "x" * 50])
    start = time.monotonic()
    settle_allocator()
    if not as_json:
        click.echo(f"{chip.spec.name}, kernels for {_core.level()}; one run, best of many\n")
        for name, value, unit in host_limits(chip, pace):
            click.echo(f"{name:34} {short(value):>6} {unit}")
        click.echo("\n" + table.head())
    rows = []
    for _, make in wanted:
        for row in _checked(make(pace, threads)):
            rows.append(row)
            if not as_json:
                click.echo(table.line(cells(row)))
    if as_json:
        click.echo(json.dumps([row.record() for row in rows], indent=2))
        return
    if lines := clone_lines(_core.choices()):
        click.echo("\n" + "\n".join(lines))
    asked = [row.met for row in rows if row.met is not None]
    took = time.monotonic() - start
    click.echo(f"\n{sum(asked)} of {len(asked)} targets met; {took:.0f} s")


def _checked(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows; exit if the emulator and numpy disagree."""
    try:
        yield from rows
    except WrongBitsError as error:
        remedy = "please report it"
        text = diagnostic("B0001", f"{error}: the emulator and numpy differ", remedy)
        tell(text)
        raise click.exceptions.Exit(EXIT_OURS) from error
