"""The commands of the debugger in an editor's console."""

from __future__ import annotations

from emu2.debug.commands import COMMANDS, SHORT, Commands
from emu2.debug.session import Stop, bad_command

_MOVES = ("line", "step", "region", "back", "run", "reverse", "to")


def _name(text: str) -> str:
    word = text.split(maxsplit=1)[0] if text.strip() else ""
    return SHORT.get(word, word)


def is_command(text: str) -> bool:
    """Whether a line of the console is a command, and no place or condition."""
    return _name(text) in COMMANDS


def is_move(text: str) -> bool:
    """Whether a command moves the program, so that the editor hears where it stops."""
    return _name(text) in _MOVES


class Console(Commands):
    """Does commands; those that move give the stop to the editor instead of printing it."""

    stays = True
    _stop: Stop | None = None

    def stopped(self, stop: Stop) -> str:
        """Keep the stop."""
        self._stop = stop
        return ""

    def move(self, text: str) -> Stop:
        """Do a command that moves. Raises EmulatorError for one that is wrong."""
        self.do(text)
        if self._stop is None:
            raise bad_command(f"`{text}` does not move the program", "`help` lists the commands")
        return self._stop
