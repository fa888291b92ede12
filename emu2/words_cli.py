"""Machine words on the command line: `emu2 asm`, `emu2 disasm`, and the vendor's two tools.

`assemble3` and `gpfn3_package_main` take those tools' flags, so that Makefiles and judges work with
a symlink. Where no machine word of a step is known, `assemble3` writes the line `s <statement>`,
which `gpfn3_package_main` takes, so that what assembles also runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NoReturn

import click

import emu2
from emu2.console import (
    Form,
    Output,
    cannot_write,
    form_option,
    guarded,
    read_bytes,
    reporting,
    warned,
)
from emu2.file_roles import READ, WRITTEN, claim, spec_option
from emu2.streams import tell

Policy = Literal["run", "check", "strict"]

CONTAINER_MAGIC = b"\x7fEMU2"
CONTAINER_SUFFIX = ".idma.dat"

inferred_option = click.option(
    "--allow-inferred",
    is_flag=True,
    help="Also write words whose positions or values are inferred, not seen.",
)


def memory_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of memory files: `config`, `load` and `save`."""
    options = (
        click.option("-c", "config", help="JSON of regions to load first and to save afterwards."),
        click.option(
            "--load-memory-file",
            "load",
            help="JSON of regions to load first; or the data of those in -c without `file`.",
        ),
        click.option(
            "--save-memory-file",
            "save",
            help="JSON of regions to save afterwards; or where those in -c without `file` go.",
        ),
        click.option(
            "--save-outside",
            is_flag=True,
            help="Let a JSON save to files outside its own folder.",
        ),
        click.option(
            "--offchip-memory-init",
            type=click.Choice(["zero"]),
            expose_value=False,
            help="DRAM and PDM begin with zeros. Here they always do.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def memory_files(
    spec: emu2.Spec, config: str | None, load: str | None, save: str | None, *, outside: bool
) -> emu2.MemoryFiles:
    """Return the memory files of a command. F0008 if it writes one that it reads."""
    files = emu2.MemoryFiles(spec, config=config, load=load, save=save, outside=outside)
    if config or load or save:
        for path in files.inputs:
            claim(path, "a memory file", written=False)
        for path in files.outputs:
            claim(path, "a saved region", written=True)
    return files


def assembled(data: bytes, name: str, spec: emu2.Spec) -> emu2.Program:
    """Return the program of assembled text or of a container."""
    if data.startswith(CONTAINER_MAGIC):
        return emu2.assemble(emu2.unpack(data), spec, filename=name, policy="run")
    return emu2.read_asm(data, spec, filename=name)


def load_program(path: str, spec: emu2.Spec, policy: Policy) -> emu2.Program:
    """Return the program of a source (.vsm), of assembled text (.asm), or of a container.

    `policy` decides which findings in a source are errors.
    """
    data = read_bytes(path)
    if Path(path).suffix == ".asm" or data.startswith(CONTAINER_MAGIC):
        return assembled(data, path, spec)
    return emu2.assemble(data, spec, filename=path, policy=policy)


@click.command()
@click.argument("file", type=READ)
@click.option("-o", "--output-file", "out", type=WRITTEN, help="Write here instead of to stdout.")
@inferred_option
@spec_option
@form_option
def asm(file: str, out: str | None, allow_inferred: bool, spec_name: str, form: Form) -> None:
    """Write the machine words of FILE (.vsm), one line per step.

    Statements of which no machine word is known are refused.
    """
    spec = emu2.Spec.load(spec_name)
    with reporting(form):
        program = emu2.assemble(read_bytes(file), spec, filename=file, policy="check")
        warned(program, form)
        with Output(out, sys.stdout) as sink:
            emu2.write_asm(program, sink, form="words", allow_inferred=allow_inferred)


@click.command()
@click.argument("file", type=READ)
@click.option("-o", "--output-file", "out", type=WRITTEN, help="Write here instead of to stdout.")
@spec_option
def disasm(file: str, out: str | None, spec_name: str) -> None:
    """Write the assembly of FILE (.asm, or a container of `assemble3 --loader`)."""
    text = emu2.to_text(warned(assembled(read_bytes(file), file, emu2.Spec.load(spec_name))))
    with Output(out, sys.stdout) as sink:
        sink.write(text)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", required=False, type=READ)
@click.option("-o", "--output-file", "out", help="Write here instead of to stdout.")
@click.option(
    "--loader",
    is_flag=True,
    help=f"Write a container named OUT{CONTAINER_SUFFIX} instead. It is emu2's own.",
)
@click.option(
    "--instruction-mode",
    "mode",
    type=click.Choice(["flat"]),
    help="One `j` line per step and one `m` line per MV instead of `i` lines.",
)
@inferred_option
@spec_option
def assemble3(
    file: str | None,
    out: str | None,
    loader: bool,
    mode: str | None,
    allow_inferred: bool,
    spec_name: str,
) -> None:
    """Assemble FILE (.vsm), or stdin.

    Machine words become `i` lines; statements of which no word is known become `s` lines.
    """
    if loader and out is None:
        raise click.UsageError("--loader needs --output-file.")
    path = f"{out}{CONTAINER_SUFFIX}" if loader else out
    if path is not None:
        claim(path, "--output-file", written=True)
    spec = emu2.Spec.load(spec_name)
    source = read_bytes(file)
    program = warned(emu2.assemble(source, spec, filename=file or "<stdin>", policy="check"))
    if loader:
        path = f"{out}{CONTAINER_SUFFIX}"
        try:
            Path(path).write_bytes(emu2.pack(program))
        except OSError as error:
            cannot_write(path, error)
        tell(f"note: {path} is a container of emu2; boards do not read it")
        return
    form: Literal["mixed", "flat"] = "mixed" if mode is None else "flat"
    with Output(out, sys.stdout) as sink:
        emu2.write_asm(program, sink, form=form, allow_inferred=allow_inferred)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-i", "source", type=READ, help="Assembled text, or a container; stdin without it.")
@click.option("-d", "dump", type=WRITTEN, help="Write dump lines here instead of to stderr.")
@memory_options
@click.option("--dirty", is_flag=True, help="Taken for compatibility; memories begin with zeros.")
@spec_option
def gpfn3_package_main(
    source: str | None,
    dump: str | None,
    config: str | None,
    load: str | None,
    save: str | None,
    save_outside: bool,
    dirty: bool,
    spec_name: str,
) -> None:
    """Run assembled text on a machine whose memories are zero."""
    spec = emu2.Spec.load(spec_name)
    program = warned(assembled(read_bytes(source), source or "<stdin>", spec))
    if dirty:
        tell("note: --dirty changes nothing here: all memories begin with zeros")
    files = memory_files(spec, config, load, save, outside=save_outside)
    machine = emu2.Machine(spec)
    files.load(machine)
    with Output(dump, sys.stderr) as sink:
        # After an error half way the file holds the lines before it, if there are none too.
        sink.open()
        report = machine.run(program, dump=sink)
    for line in report.host:
        click.echo(line)
    files.save(machine)


def run_assemble3(arguments: list[str] | None = None) -> NoReturn:
    """Entry point under the name `assemble3`."""
    guarded(assemble3, "assemble3", arguments)


def run_gpfn3_package_main(arguments: list[str] | None = None) -> NoReturn:
    """Entry point under the name `gpfn3_package_main`."""
    guarded(gpfn3_package_main, "gpfn3_package_main", arguments)


TOOLS: dict[str, Callable[..., Any]] = {
    "assemble3": run_assemble3,
    "gpfn3_package_main": run_gpfn3_package_main,
}
"""The vendor's tools by the name under which they are called."""


def called_as(argv0: str) -> Callable[..., Any] | None:
    """Return the entry point of the vendor's tool that `argv0` names, if it names one."""
    return TOOLS.get(Path(argv0).name)
