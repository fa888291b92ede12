"""The screen of `emu2 debug`, with Textual. Only this file imports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Footer, Header, Input, RichLog, Static

import emu2
from emu2.debug.commands import Commands, register_sizes

_WORD = 17
_NAME = 6
_DIGITS = 6
_VIEWED = 64
_MARGIN = 3


class Source(Static):
    """The lines around the statement that comes next, with breakpoints and notes."""


class Registers(Static):
    """The registers of the chosen unit."""


class Watches(Static):
    """The watches and the breakpoints."""


class Terminal(App[None]):
    """Source on the left; registers, watches and what was printed on the right; commands below."""

    TITLE = "emu2 debug"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #left { width: 3fr; }
    #right { width: 2fr; }
    Source { height: 1fr; border: round $primary; padding: 0 1; text-wrap: nowrap; }
    #scroll { height: 2fr; border: round $primary; padding: 0 1; }
    Registers { height: auto; text-wrap: nowrap; }
    Watches { height: 1fr; border: round $primary; padding: 0 1; }
    RichLog { height: 12; border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f10", "move('line')", "line"),
        Binding("f11", "move('step')", "step"),
        Binding("f12", "move('region')", "region"),
        Binding("f9", "move('back')", "back"),
        Binding("f5", "move('run')", "run"),
        Binding("f6", "move('reverse')", "reverse"),
        Binding("f7", "breakpoint", "breakpoint"),
        Binding("escape", "pause", "pause"),
        Binding("ctrl+q", "quit", "quit"),
    ]

    def __init__(self, commands: Commands) -> None:
        """Remember the session and choose the first PE."""
        super().__init__()
        self.commands = commands
        self.session = commands.session
        self.sub_title = self.session.path
        self.unit = "".join(f"{letter}0" for _, letter in self.session.run.levels)
        self._view = ""
        self._busy = False
        self._before: dict[str, list[int]] = {}

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield Header()
        with Horizontal():
            with Vertical(id="left"):
                yield Source(id="source")
                yield RichLog(id="log", wrap=True, markup=False)
            with Vertical(id="right"):
                with VerticalScroll(id="scroll"):
                    yield Registers(id="registers")
                yield Watches(id="watches")
        yield Input(
            placeholder="a command, help, unit n0c0b0m1p0, or view lm0[64:80]",
            id="command",
        )
        yield Footer()

    def on_mount(self) -> None:
        """Show where the program stands."""
        self.query_one("#source").border_title = "source"
        self.query_one("#log").border_title = "output"
        self.query_one("#watches").border_title = "watches and breakpoints"
        self.query_one(Input).focus()
        self.show()

    def on_resize(self) -> None:
        """Show as many lines as there is room for."""
        self.show()

    def show(self) -> None:
        """Show the state as it is now."""
        if not self._busy:
            self.query_one("#source", Source).update(self._source())
            self.query_one("#registers", Registers).update(self._registers())
            self.query_one("#watches", Watches).update(self._watches())

    def _source(self) -> Text:
        run, session = self.session.run, self.session
        here = run.line
        height = max(self.query_one("#source").size.height, 2 * _MARGIN + 1)
        first = max(1, min(here - height // 2, len(session.lines) - height + 1))
        stops = {found["line"] for found in run.breakpoints}
        shown = Text(no_wrap=True, overflow="ellipsis")
        for line in range(first, min(first + height, len(session.lines) + 1)):
            mark = "●" if line in stops else " "
            arrow = "▶" if line == here else " "
            style = "reverse" if line == here and not session.at_end else ""
            shown.append(mark, "red")
            shown.append(arrow + " " * (_DIGITS - len(str(line))))
            shown.append(f"{line} ", "bold" if line == here else "dim")
            shown.append(session.line_text(line), style)
            note = session.note(line)
            if note and note != session.note(line - 1):
                shown.append(f"   {note}", "cyan")
            shown.append("\n")
        where = "end of the program" if session.at_end else f"line {here}"
        title = f"{where}, step {run.steps}, cycle {run.cycles}"
        self.query_one("#source").border_title = title
        return shown

    def _registers(self) -> Text:
        shown = Text(no_wrap=True, overflow="ellipsis")
        run = self.session.run
        now: dict[str, list[int]] = {}
        room = self.query_one("#scroll").scrollable_content_region.width - _NAME
        per_row = max(1, room // _WORD)
        for name, size in register_sizes(run.spec).items():
            words = run.evaluate(f"{name}[0:{size}] of {self.unit}", most=size)
            now[name] = [word["word"] for word in words]
            before = self._before.get(name, now[name])
            for at in range(0, size, per_row):
                shown.append(f"{name if at == 0 else '':{_NAME}}", "bold")
                for k in range(at, min(at + per_row, size)):
                    changed = before[k] != now[name][k]
                    style = "yellow" if changed else "" if now[name][k] else "dim"
                    shown.append(f" {now[name][k]:016x}", style)
                shown.append("\n")
        if self._view:
            shown.append(f"{self._view}\n", "bold")
            for word in self.session.evaluate(self._view, most=_VIEWED).words:
                shown.append(f"{word['unit']}[{word['addr']}] {word['text']}\n")
        self._before = now
        self.query_one("#scroll").border_title = f"registers of {self.unit}"
        return shown

    def _watches(self) -> Text:
        shown = Text()
        for expression, value in self.session.watched():
            shown.append(f"{expression} = ", "bold")
            shown.append(f"{value}\n")
        for found in self.session.run.breakpoints:
            shown.append("● ", "red")
            shown.append(f"{found['id']}: {found['text']}\n")
        return shown

    def _say(self, text: str) -> None:
        if text:
            self.query_one(RichLog).write(text)

    def _work(self, work: Callable[[], str]) -> None:
        """Do work that may be long in a thread, and show what it says."""
        if self._busy:
            self._say("the program runs; Escape pauses it")
            return
        self._busy = True

        def in_thread() -> None:
            try:
                text = work()
            except emu2.Emu2Error as error:
                text = str(error)
            self.call_from_thread(self._finish, text)

        self.run_worker(in_thread, thread=True)

    def _finish(self, text: str) -> None:
        self._busy = False
        self._say(text)
        if self.commands.done:
            self.exit()
        self.show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do a command."""
        text = event.value.strip()
        event.input.value = ""
        word, _, rest = text.partition(" ")
        if word == "unit":
            self._work(lambda: self._choose(rest.strip()))
        elif word == "view":
            self._work(lambda: self._look(rest.strip()))
        elif text:
            self._work(lambda: self.commands.do(text))

    def _choose(self, unit: str) -> str:
        first = next(iter(self.session.spec.forwards))
        words = self.session.run.evaluate(f"{first}[0] of {unit}", most=1)
        self.unit, self._before = words[0]["unit"], {}
        return f"unit {self.unit}"

    def _look(self, place: str) -> str:
        if place:
            self.session.evaluate(place, most=1)
        self._view = place
        return f"view {place}"

    def action_move(self, kind: str) -> None:
        """Move the program."""
        self._work(lambda: self.commands.do(kind))

    def action_breakpoint(self) -> None:
        """Set or remove a breakpoint at the line that comes next."""
        run = self.session.run
        line = run.line
        found = [one["id"] for one in run.breakpoints if one["line"] == line]
        text = f"delete {found[0]}" if found else f"break line {line}"
        self._work(lambda: self.commands.do(text))

    def action_pause(self) -> None:
        """Stop a run."""
        self.session.run.pause()


def open_screen(commands: Commands) -> None:
    """Open the screen and return when it is closed."""
    Terminal(commands).run()
