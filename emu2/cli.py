"""The `emu2` command: run and check assembly, print manual pages.

Exit codes: 0 done, 1 the user's file, 2 usage, 3 a fault of emu2 itself. Diagnostics go to stderr.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click

import emu2

EXIT_FILE = 1
EXIT_OURS = 3

spec_option = click.option(
    "--spec",
    "spec_name",
    default="mncore2",
    show_default=True,
    help="Built-in spec, folder of TOML files, or TOML file.",
)
strict_option = click.option("--strict", is_flag=True, help="Make every hazard an error.")


def fail(text: str) -> NoReturn:
    """Print one diagnostic and leave with the exit code of a faulty file."""
    click.echo(text.rstrip(), err=True)
    sys.exit(EXIT_FILE)


def diagnostic(code: str, message: str, remedy: str) -> str:
    """Return the text of a diagnostic that has no place in a source."""
    return f"error[{code}]: {message}\n  help: {remedy}"


def assemble_file(path: str, spec: emu2.Spec, policy: Any) -> emu2.Program:
    """Read and assemble the file at `path`; warnings go to stderr."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        fail(diagnostic("F0001", f"{path}: {reason}", "check the path and its permissions"))
    program = emu2.assemble(text, spec, filename=path, policy=policy)
    if program.warnings:
        click.echo(program.render_warnings().rstrip(), err=True)
    return program


def cannot_write(path: str, error: OSError) -> NoReturn:
    """Fail with the diagnostic of a file that cannot be written."""
    reason = error.strerror or str(error)
    fail(diagnostic("F0005", f"{path}: {reason}", "check the folder and its permissions"))


def write_text(path: str, text: str) -> None:
    """Write `text` to `path`, or fail with a diagnostic."""
    try:
        Path(path).write_text(text)
    except OSError as error:
        fail(
            diagnostic("F0005", f"{path}: {error.strerror}", "check the folder and its permissions")
        )


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="emu2")
def cli() -> None:
    """Bit-exact emulator and assembler of the MN-Core 2 accelerator."""


@cli.command()
@click.argument("file")
@click.option("-d", "--dump", "dump_path", help="Write dump lines here instead of to stdout.")
@spec_option
@click.option("--report", "report_path", help="Write steps, cycles and counters as JSON.")
@click.option("-c", "--load-memory-file", "load_path", help="JSON of regions to load first.")
@click.option("--save-memory-file", "save_path", help="JSON of regions to save afterwards.")
@strict_option
def run(
    file: str,
    dump_path: str | None,
    spec_name: str,
    report_path: str | None,
    load_path: str | None,
    save_path: str | None,
    strict: bool,
) -> None:
    """Assemble FILE (.vsm) and run it on a machine whose memories are zero."""
    spec = emu2.Spec.load(spec_name)
    program = assemble_file(file, spec, "strict" if strict else "run")
    tags = program.report()["host_tags"]
    if tags and strict:
        shown = ", ".join(f"{tag:02x}" for tag in tags)
        remedy = "tag the MV, or run without --strict"
        fail(diagnostic("R0008", f"{file}: waits for tags that no MV carries: {shown}", remedy))
    machine = emu2.Machine(spec)
    if load_path is not None:
        machine.load_memory_file(load_path)
    if dump_path is None:
        report = machine.run(program, dump=sys.stdout)
        sys.stdout.flush()
    else:
        with open_dump(dump_path) as sink:
            report = machine.run(program, dump=sink)
    if save_path is not None:
        machine.save_memory_file(save_path)
    if report_path is not None:
        write_text(report_path, json.dumps(report.counters, indent=2) + "\n")


def open_dump(path: str) -> TextIO:
    """Open the dump file, or fail with a diagnostic."""
    try:
        return open(path, "w")
    except OSError as error:
        fail(
            diagnostic("F0005", f"{path}: {error.strerror}", "check the folder and its permissions")
        )


@cli.command()
@click.argument("file")
@spec_option
@strict_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print diagnostics; JSON goes to stdout.",
)
def check(file: str, spec_name: str, strict: bool, form: str) -> None:
    """Check FILE (.vsm) without running it."""
    spec = emu2.Spec.load(spec_name)
    policy = "strict" if strict else "check"
    if form == "text":
        assemble_file(file, spec, policy)
        return
    try:
        text = Path(file).read_bytes()
        found = emu2.assemble(text, spec, filename=file, policy=policy).warnings  # type: ignore[arg-type]
    except OSError as error:
        reason = error.strerror or str(error)
        fail(diagnostic("F0001", f"{file}: {reason}", "check the path and its permissions"))
    except emu2.AssembleError as error:
        click.echo(json.dumps(error.diagnostics, indent=2))
        sys.exit(EXIT_FILE)
    click.echo(json.dumps(found, indent=2))


@cli.command("spec")
@click.argument("name", required=False)
@spec_option
def spec_page(name: str | None, spec_name: str) -> None:
    """Print the manual page of instruction NAME, or the list of instructions."""
    spec = emu2.Spec.load(spec_name)
    if name is None:
        click.echo(spec.list().rstrip())
        return
    page = spec.page(name)
    if page is None:
        remedy = "`emu2 spec` lists the instructions"
        fail(diagnostic("S0005", f"`{spec.name}` has no instruction `{name}`", remedy))
    click.echo(page.rstrip())


def main() -> NoReturn:
    """Entry point of the console script."""
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except emu2.Emu2Error as error:
        fail(str(error))
    except BrokenPipeError:
        sys.exit(EXIT_FILE)
    except Exception as error:  # the last line of defence: a fault of ours is said, not traced
        text = f"{type(error).__name__}: {error}"
        click.echo(diagnostic("B0001", f"a fault of emu2: {text}", "please report it"), err=True)
        sys.exit(EXIT_OURS)
    sys.exit(0)


if __name__ == "__main__":
    main()
