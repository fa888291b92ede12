"""Groups of commands: one that asks about unknown names, one that loads what is called."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click


class AskingGroup(click.Group):
    """A group that asks about the name of a command that it does not have."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return name, command and arguments. UsageError for an unknown name."""
        name = args[0]
        known = name.startswith("-") or ctx.resilient_parsing
        if not known and self.get_command(ctx, name) is None:
            near = get_close_matches(name, self.list_commands(ctx), 1)
            question = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"No such command '{name}'.{question}")
        return super().resolve_command(ctx, args)


class LazyGroup(AskingGroup):
    """Commands of its own, and `later`: the module and the name of others by command.

    `emu2 run` must not wait for modules of tools that it does not use.
    """

    def __init__(self, *arguments: Any, later: Mapping[str, tuple[str, str]], **facts: Any) -> None:
        """Remember the commands that load later."""
        super().__init__(*arguments, **facts)
        self._later = later

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*super().list_commands(ctx), *self._later})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, and load it if it must be."""
        if cmd_name in self._later:
            module, name = self._later[cmd_name]
            command: click.Command = getattr(import_module(module), name)
            return command
        return super().get_command(ctx, cmd_name)
