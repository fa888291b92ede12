"""A group of commands whose modules load when a command of theirs is called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
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
