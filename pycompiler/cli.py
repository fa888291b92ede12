"""The command ``pycompiler``. What needs torch loads with the command that is called."""

from __future__ import annotations

import os
import sys

import click
from click.shell_completion import shell_complete

from emu2.explain import explain, listing
from emu2.lazy_group import AskingGroup
from emu2.streams import leave, open_closed_streams, tell

from .console import outcome, show_any_text, show_warnings_plainly
from .errors import USAGE_EXIT
from .errors.explain import entries
from .loading import loading


def _heavy() -> click.Group:
    """Return the commands that take seconds to load."""
    with loading():
        from .model_commands import commands
    return commands


#: The variable by which a shell asks for completions.
_COMPLETE = "_PYCOMPILER_COMPLETE"


class _Commands(AskingGroup):
    """The commands of this file and the heavy ones, which load when one of them is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted([*super().list_commands(ctx), *_heavy().list_commands(ctx)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name."""
        return super().get_command(ctx, cmd_name) or _heavy().get_command(ctx, cmd_name)


@click.group(cls=_Commands)
@click.version_option(package_name="emu2")
def commands() -> None:
    """PyTorch and ONNX models to MN-Core 2 assembly, run on the emulator."""


@commands.command("explain")
@click.argument("code", required=False)
def explain_code(code: str | None) -> None:
    """Print what CODE of a diagnostic means, why it comes and what helps; or list all codes."""
    known = entries()
    text, found = (listing(known), True) if code is None else explain(known, code, "pycompiler")
    if found:
        click.echo(text)
    else:
        tell(text)
        sys.exit(USAGE_EXIT)


def main() -> None:
    """Entry point; exit codes 1 (the user's file), 2 (usage), 3 (our bug), 130 (interrupted)."""
    open_closed_streams()
    show_warnings_plainly()
    show_any_text()
    leave(outcome(_called))


def _called() -> int:
    """Run the command line; the exit code that it asks for."""
    if asked := os.environ.get(_COMPLETE):
        return shell_complete(commands, {}, "pycompiler", _COMPLETE, asked)
    try:
        # Not commands(): click prints a line of its own when it is interrupted.
        with commands.make_context("pycompiler", sys.argv[1:]) as context:
            commands.invoke(context)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    return 0
