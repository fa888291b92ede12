"""The command ``pycompiler``. What needs torch loads with the command that is called."""

from __future__ import annotations

import sys

import click

from emu2.explain import explain, listing

from .console import (
    interrupted,
    report_lost_output,
    report_problem,
    show_any_text,
    show_warnings_plainly,
)
from .errors import USAGE_EXIT, PycompilerError, internal
from .errors.explain import entries
from .loading import loading


def _heavy() -> click.Group:
    """Return the commands that take seconds to load."""
    with loading():
        from .model_commands import commands
    return commands


class _Commands(click.Group):
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
    click.echo(text, err=not found)
    if not found:
        sys.exit(USAGE_EXIT)


def main() -> None:
    """Entry point; exit codes 1 (the user's file), 2 (usage), 3 (our bug), 130 (interrupted)."""
    show_warnings_plainly()
    show_any_text()
    try:
        # Not commands(): click prints a line of its own when it is interrupted.
        with commands.make_context("pycompiler", sys.argv[1:]) as context:
            commands.invoke(context)
        sys.stdout.flush()
    except PycompilerError as problem:
        sys.exit(report_problem(problem))
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except (KeyboardInterrupt, click.Abort) as problem:
        sys.exit(interrupted(problem))
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except OSError as problem:
        if problem.filename is not None:
            sys.exit(report_problem(internal(problem)))
        sys.exit(report_lost_output(problem))
    except Exception as problem:
        sys.exit(report_problem(internal(problem)))
    sys.exit(0)


if __name__ == "__main__":
    main()
