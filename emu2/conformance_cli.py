"""The command `emu2 conformance`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

import emu2
from emu2.console import EXIT_FILE, Output, diagnostic, fail
from emu2.file_roles import WRITTEN, claim, spec_option

if TYPE_CHECKING:
    from emu2.conformance import Result


@click.command("conformance")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--other", required=True, metavar="COMMAND", help="The other emulator; it takes -i and -d."
)
@click.option(
    "--assembler", metavar="COMMAND", help="Assembles sources; it takes a file and -o. Else emu2."
)
@spec_option
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.01),
    default=60.0,
    show_default=True,
    help="Most time for a program on the other emulator.",
)
@click.option(
    "--json", "json_path", type=WRITTEN, help="Write what became of each program as JSON."
)
def conformance(
    folder: Path,
    other: str,
    assembler: str | None,
    spec_name: str,
    seconds: float,
    json_path: str | None,
) -> None:
    """Run the programs (.vsm, .asm) below FOLDER, or one, here and on another emulator.

    Both get the same assembled text. The first difference of each program is shown: memory, unit,
    address and both values. Exit code 1 if there is one.
    """
    from emu2.conformance import Conformance, programs

    try:
        judge = Conformance(emu2.Spec.load(spec_name), other, assembler, seconds)
    except ValueError as problem:
        raise click.UsageError(f"--other, --assembler: {problem}") from problem
    paths = programs(folder)
    if not paths:
        remedy = "name a .vsm or .asm file, or a folder that has some"
        fail(diagnostic("F0001", f"{folder}: no program is there", remedy))
    for path in paths:
        claim(path, "a program", written=False)
        claim(path.with_suffix(".json"), "the memory file of a program", written=False)
    results = []
    for path in paths:
        found = judge.compare(path, str(path.relative_to(folder)) if path != folder else path.name)
        results.append(found)
        if not found.good and json_path != "-":
            click.echo("\n".join(_lines(found)))
    equal = sum(one.status == "equal" for one in results)
    refused = sum(one.status == "both refuse" for one in results)
    words = sum(one.words for one in results if one.status == "equal")
    rest = len(results) - equal - refused
    if json_path != "-":
        click.echo(
            f"{len(results)} programs: {equal} equal ({words} words), {refused} refused by both, "
            f"{rest} differ"
        )
    if json_path is not None:
        with Output(json_path, sys.stdout) as sink:
            sink.write(json.dumps([one.json() for one in results], indent=2) + "\n")
    if rest:
        sys.exit(EXIT_FILE)


def _lines(found: Result) -> list[str]:
    head = f"{found.program}: {found.status}"
    if found.status == "differs":
        place = f"{found.unit} address {found.address}" if found.unit else f"line {found.address}"
        head += f" at {found.memory} {place}, after {found.words} equal words"
    return [head, f"  emu2:  {found.ours}", f"  other: {found.other}"]
