"""The `emu2` command: run and check assembly, print manual pages.

Exit codes: 0 done, 1 the user's file, 2 usage, 3 a fault of emu2 itself. Diagnostics go to stderr.
"""

from __future__ import annotations

import json
import sys
from typing import NoReturn

import click

import emu2
from emu2.console import (
    EXIT_FILE,
    EXIT_USAGE,
    Form,
    Output,
    diagnostic,
    fail,
    form_option,
    guarded,
    reporting,
    warned,
)
from emu2.file_roles import READ, WRITTEN, spec_option
from emu2.lazy_group import LazyGroup
from emu2.sanitizing import is_clean, sanitize_option, show_findings, show_undefined
from emu2.streams import tell
from emu2.words_cli import (
    Policy,
    asm,
    called_as,
    disasm,
    load_program,
    memory_files,
    memory_options,
)

strict_option = click.option("--strict", is_flag=True, help="Make every hazard an error.")


#: The module and the name of commands that load when they are called.
_LATER = {
    "app": ("emu2.app_cli", "app_commands"),
    "bench": ("emu2.bench.command", "bench"),
    "cc": ("emu2.sdk.command", "cc"),
    "conformance": ("emu2.conformance_cli", "conformance"),
    "dap": ("emu2.debug.command", "dap"),
    "debug": ("emu2.debug.command", "debug"),
    "link": ("emu2.link.command", "link"),
    "lsp": ("emu2.lsp.command", "lsp"),
    "new": ("emu2.new.command", "new"),
    "profile": ("emu2.profile_cli", "profile_command"),
    "sdk": ("emu2.sdk.command", "sdk"),
    "trace": ("emu2.sdk.trace", "trace"),
}


@click.group(cls=LazyGroup, later=_LATER, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(emu2.__version__)
def cli() -> None:
    """Bit-exact emulator and assembler of the MN-Core 2 accelerator."""


@cli.command()
@click.argument("file", type=READ)
@click.option(
    "-d", "--dump", "dump_path", type=WRITTEN, help="Write dump lines here instead of to stdout."
)
@spec_option
@click.option(
    "--report", "report_path", type=WRITTEN, help="Write steps, cycles and counters as JSON."
)
@click.option(
    "--trace", "trace_path", type=WRITTEN, help="Write the time line as JSON that Perfetto opens."
)
@click.option(
    "--fidelity",
    "show_fidelity",
    is_flag=True,
    help="Say on stderr, and in the JSON of --report, how the executed instructions are known.",
)
@memory_options
@click.option("--load-state", type=READ, help="Begin with the memories that this file keeps.")
@click.option("--save-state", type=WRITTEN, help="Keep the contents of all memories in a file.")
@strict_option
@sanitize_option
@form_option
def run(
    file: str,
    dump_path: str | None,
    spec_name: str,
    report_path: str | None,
    trace_path: str | None,
    show_fidelity: bool,
    config: str | None,
    load: str | None,
    save: str | None,
    save_outside: bool,
    load_state: str | None,
    save_state: str | None,
    strict: bool,
    sanitize: bool,
    form: Form,
) -> None:
    """Assemble FILE (.vsm), or load it (.asm), and run it on a machine whose memories are zero.

    With `--load-state` they are those of a state that `--save-state`, a host program with
    EMU2_STATE or `Machine.save_state` has written, for the same machine.
    """
    spec = emu2.Spec.load(spec_name)
    with reporting(form):
        program = warned(load_program(file, spec, "strict" if strict else "run"), form)
    tags = program.report()["host_tags"]
    if tags and strict:
        shown = ", ".join(f"{tag:02x}" for tag in tags)
        remedy = "tag the MV, or run without --strict"
        fail(diagnostic("R0008", f"{file}: waits for tags that no MV carries: {shown}", remedy))
    files = memory_files(spec, config, load, save, outside=save_outside)
    machine = emu2.Machine(spec)
    if load_state is not None:
        machine.load_state(load_state)
    files.load(machine)
    with Output(dump_path, sys.stdout) as sink:
        # After an error half way the file holds the lines before it, if there are none too.
        sink.open()
        report = machine.run(program, dump=sink, sanitize=sanitize)
    for line in report.host:
        click.echo(line)
    found = report.findings
    if sanitize:
        show_findings(report, form)
        found += show_undefined(machine, files.saved, form)
    files.save(machine)
    if save_state is not None:
        machine.save_state(save_state)
    counters: dict[str, object] = {**report.counters}
    if show_fidelity:
        from emu2.fidelity import fidelity

        known = fidelity(program)
        counters["fidelity"] = known.counted()
        for row in known.rows():
            click.echo(row, err=True)
    if report_path is not None:
        with Output(report_path, sys.stdout) as sink:
            sink.write(json.dumps(counters, indent=2) + "\n")
    if trace_path is not None:
        with Output(trace_path, sys.stdout) as sink:
            program.trace(sink)
    if sanitize and not is_clean(program, found):
        sys.exit(EXIT_FILE)


@cli.command()
@click.argument("file", type=READ)
@spec_option
@strict_option
@form_option
def check(file: str, spec_name: str, strict: bool, form: Form) -> None:
    """Check FILE (.vsm, .asm) without running it; JSON goes to stdout."""
    spec = emu2.Spec.load(spec_name)
    policy: Policy = "strict" if strict else "check"
    if form == "text":
        warned(load_program(file, spec, policy))
        return
    try:
        found = load_program(file, spec, policy).warnings
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


@cli.command("explain")
@click.argument("code", required=False)
def explain_code(code: str | None) -> None:
    """Print what CODE of a diagnostic means, why it comes and what helps; or list all codes."""
    from emu2.explain import entries, explain, listing

    known = entries()
    text, found = (listing(known), True) if code is None else explain(known, code, "emu2")
    if found:
        click.echo(text)
    else:
        tell(text)
        sys.exit(EXIT_USAGE)


cli.add_command(asm)
cli.add_command(disasm)


def main() -> NoReturn:
    """Entry point of the console script; called as a vendor tool it takes that tool's flags."""
    tool = called_as(sys.argv[0])
    if tool is not None:
        tool()
    guarded(cli, "emu2")


if __name__ == "__main__":
    main()
