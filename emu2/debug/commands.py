"""The command language of the debugger, as the terminal and a pipe read it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TextIO

import emu2
from emu2.debug.session import Session, Stop, bad_command, open_session, unit_numbers

UNITS = ("line", "step", "region")
_AROUND = 5
_LISTED = 16


@dataclass(frozen=True)
class Command:
    """A command: how it is written, what it does, and the function that does it."""

    syntax: str
    doc: str
    work: Callable[[Commands, str], str]


class Commands:
    """Does commands on a session and returns what there is to print."""

    #: Whether a command that is no move must end where it began.
    stays = False

    def __init__(self, session: Session, spec_name: str = "mncore2") -> None:
        """Remember the session. `spec_name` is the machine of files that `parts` reads."""
        self.session = session
        self.spec_name = spec_name
        self.done = False
        self.failed = False

    def do(self, text: str) -> str:
        """Do one command. An empty text does nothing.

        Raises EmulatorError D0004 for an unknown command, and the errors of its parts.
        """
        word, _, rest = text.strip().partition(" ")
        if not word:
            return ""
        known = COMMANDS.get(SHORT.get(word, word))
        if known is None:
            raise bad_command(f"no command is called `{word}`", "`help` lists the commands")
        return known.work(self, rest.strip())

    def stopped(self, stop: Stop) -> str:
        """Return the text of a stop: dump lines, why it stands here, and where."""
        lines = list(stop["dump"])
        self.failed = stop["error"] is not None
        if stop["error"] is not None:
            error = stop["error"]
            lines.append(f"error[{error['code']}]: {error['message']}")
            lines.append(f"  help: {error['help']}")
        elif stop["reason"] == "breakpoint":
            numbers = ", ".join(map(str, stop["breakpoints"]))
            lines += [f"breakpoint {numbers}: {text}" for text in stop["text"].split("\n")]
        elif stop["reason"] != "step":
            lines.append({"end": "end of the program"}.get(stop["reason"], stop["reason"]))
        lines.append(self.where())
        lines += [f"  {expression} = {value}" for expression, value in self.session.watched()]
        return "\n".join(lines)

    def where(self) -> str:
        """Return the line that comes next, with its number and its note."""
        if not self.session.stopped:
            return "no kernel is stopped"
        line = self.session.run.line
        note = self.session.note(line)
        shown = f"{line}: {self.session.line_text(line).strip()}"
        if self.session.at_end:
            shown = f"after {shown}"
        return f"{shown}    [{note}]" if note else shown

    def step(self, unit: str, rest: str, *, back: bool) -> str:
        """Step by `unit`, as often as `rest` says."""
        return self.stopped(self.session.run.step(unit, back=back, count=number(rest or "1")))

    def back(self, rest: str) -> str:
        """Step back: `back`, `back 3`, `back step`, `back region 2`."""
        words = rest.split()
        unit = words.pop(0) if words and words[0] in UNITS else "line"
        return self.step(unit, " ".join(words), back=True)

    def go(self, rest: str) -> str:
        """Go to a line, cycle, tag or position."""
        kind, _, value = rest.partition(" ")
        run = self.session.run
        if kind == "line":
            position = run.at_line(number(value))
        elif kind == "cycle":
            position = run.at_cycle(number(value))
        elif kind == "tag":
            position = run.at_tag(number("0x" + value.strip().removeprefix("i")))
        elif kind == "position":
            position = number(value)
        else:
            raise bad_command(
                f"`to {rest}`", "write to line 12, to cycle 400, to tag i01, or to position 7"
            )
        return self.stopped(run.go(position))

    def list_source(self, rest: str) -> str:
        """Return lines of the source around the one that comes next, or around a line."""
        here = self.session.run.line
        middle = number(rest) if rest else here
        if rest and not 0 < middle <= len(self.session.lines):
            message = f"the source has no line {middle}"
            remedy = f"name a line from 1 to {len(self.session.lines)}"
            raise emu2.EmulatorError(code="D0002", message=message, help=remedy)
        stops = {found["line"] for found in self.session.run.breakpoints}
        shown = []
        for line in range(
            max(1, middle - _AROUND), min(len(self.session.lines), middle + _AROUND) + 1
        ):
            mark = ("*" if line in stops else " ") + (">" if line == here else " ")
            shown.append(f"{mark}{line:6} {self.session.line_text(line)}")
        return "\n".join(shown)

    def show(self, rest: str) -> str:
        """Return the words of a place."""
        found = self.session.evaluate(rest, most=_LISTED)
        if found.whole:
            return found.text
        words = found.words
        return "\n".join(f"{word['unit']}[{word['addr']}] = {word['text']}" for word in words)

    def registers(self, rest: str) -> str:
        """Return what the registers and the first words of the memories of a PE hold."""
        unit = rest or "".join(f"{letter}0" for _, letter in self.session.run.levels)
        unit_numbers(self.session.run, unit)
        shown = []
        for name, count in register_sizes(self.session.spec).items():
            words = self.session.run.evaluate(f"{name}[0:{count}].x of {unit}", most=count)
            values = " ".join(word["text"].removeprefix("0x") for word in words)
            shown.append(f"{name:6} {values}")
        return "\n".join(shown)

    def set(self, rest: str) -> str:
        """Write a long word: `set lm0[3] of n0c0b0m0p0 = 0x10`."""
        place, equals, value = rest.partition("=")
        if not equals:
            raise bad_command(f"`set {rest}`", "write set lm0[3] of n0c0b0m0p0 = 0x10")
        self.session.write(place.strip(), value.strip())
        return self.show(place.strip())

    def watch(self, rest: str) -> str:
        """Show a place at every stop."""
        value = self.session.evaluate(rest).text
        self.session.watches.append(rest)
        return f"{rest} = {value}"

    def unwatch(self, rest: str) -> str:
        """Forget a watch, or all of them."""
        if rest and rest not in self.session.watches:
            raise bad_command(f"`{rest}` is not watched", "`watches` lists them")
        self.session.watches = [one for one in self.session.watches if rest and one != rest]
        return ""

    def differences(self, rest: str) -> str:
        """Return the words that differ between two positions, or between one and here."""
        ends = [number(word) for word in rest.split()]
        if not 1 <= len(ends) <= 2:
            raise bad_command(f"`diff {rest}`", "write diff POSITION, or diff POSITION POSITION")
        first, second = ends[0], ends[1] if len(ends) == 2 else self.session.run.position
        found = self.session.run.differences(first, second, most=_LISTED)
        return _changes(found["count"], found["words"], f"between positions {first} and {second}")

    def parts(self, rest: str) -> str:
        """Return the first statement after which this run and that of another file differ.

        The run stands there then, unless the commands may not move it.
        """
        other = open_session(rest, self.spec_name)
        here = self.session.run.position
        found = self.session.run.parting(other.run, most=_LISTED)
        if found is None or self.stays:
            self.session.run.go(here)
        if found is None:
            return "the runs never part"
        ours, theirs = found["lines"]
        place = (
            f"after line {ours} here and line {theirs} there" if ours or theirs else "at the start"
        )
        text = _changes(found["count"], found["words"], "here and there")
        return f"the runs part {place}\n{text}" + ("" if self.stays else f"\n{self.where()}")

    def breakpoints(self) -> str:
        """Return the list of breakpoints."""
        found = self.session.run.breakpoints
        return "\n".join(f"{one['id']}: {one['text']}" for one in found) or "no breakpoints"

    def add(self, rest: str) -> str:
        """Add a breakpoint."""
        added = self.session.run.add(rest)
        return f"breakpoint {added['id']}: {added['text']}"

    def remove(self, rest: str) -> str:
        """Remove a breakpoint."""
        self.session.run.remove(number(rest))
        return ""

    def info(self) -> str:
        """Return where the run stands, and what its history takes."""
        run = self.session.run
        images, size = run.history
        return (
            f"position {run.position} of {run.statements}, {run.steps} steps, {run.cycles} cycles\n"
            f"{images} images of the run, {size / 1e6:.1f} MB"
        )

    def quit(self) -> str:
        """End the session."""
        self.done = True
        return ""


def register_sizes(spec: emu2.Spec) -> dict[str, int]:
    """Return the memories and paths of a PE, with the number of words that a list shows."""
    few = spec.counts["cycle"] * 2
    own = {
        name: memory["words"] for name, memory in spec.memories.items() if memory["level"] == "pe"
    }
    return {name: min(words, few) for name, words in own.items()} | dict.fromkeys(
        spec.forwards, few
    )


def number(text: str) -> int:
    """Return a number that is not negative. Raises EmulatorError D0004 for another text."""
    try:
        found = int(text.strip(), 0)
    except ValueError:
        found = -1
    if not 0 <= found < 1 << 32:
        raise bad_command(f"`{text.strip()}` is not a number", "write a number from 0 on")
    return found


def _changes(count: int, words: list[dict[str, object]], between: str) -> str:
    lines = [f"{count} words differ {between}"]
    for word in words:
        lines.append(
            f"  {word['memory']}[{word['addr']}] of {word['unit']}: "
            f"0x{word['before']:016x} -> 0x{word['after']:016x}"
        )
    if count > len(words):
        lines.append(f"  and {count - len(words)} more")
    return "\n".join(lines)


def _help(commands: Commands, rest: str) -> str:
    width = max(len(known.syntax) for known in COMMANDS.values())
    return "\n".join(f"{known.syntax:{width}}  {known.doc}" for known in COMMANDS.values())


COMMANDS: dict[str, Command] = {
    "line": Command("line [N]", "run N statements", lambda c, r: c.step("line", r, back=False)),
    "step": Command(
        "step [N]",
        "run to the end of N steps of the machine",
        lambda c, r: c.step("step", r, back=False),
    ),
    "region": Command(
        "region [N]",
        "run to the next MV or debug statement",
        lambda c, r: c.step("region", r, back=False),
    ),
    "back": Command("back [UNIT] [N]", "go back N lines, steps or regions", Commands.back),
    "run": Command(
        "run", "run to the next breakpoint", lambda c, r: c.stopped(c.session.run.run())
    ),
    "reverse": Command(
        "reverse",
        "go back to the last breakpoint",
        lambda c, r: c.stopped(c.session.run.run(back=True)),
    ),
    "to": Command(
        "to KIND N", "go to a line, cycle, tag or position, forwards or backwards", Commands.go
    ),
    "break": Command(
        "break TEXT",
        "stop: line N [if CONDITION], when CONDITION, write PLACE, "
        "infinity, flag, overflow, hazard",
        Commands.add,
    ),
    "breaks": Command("breaks", "list the breakpoints", lambda c, r: c.breakpoints()),
    "delete": Command("delete N", "remove a breakpoint", Commands.remove),
    "print": Command("print PLACE", "print words, such as lm0[0:4].f of n0c0b0m0p0", Commands.show),
    "watch": Command("watch PLACE", "print words at every stop", Commands.watch),
    "unwatch": Command("unwatch [PLACE]", "forget a watch, or all", Commands.unwatch),
    "registers": Command("registers [UNIT]", "print the registers of a PE", Commands.registers),
    "set": Command("set PLACE = WORD", "write a long word", Commands.set),
    "list": Command("list [LINE]", "print the source", Commands.list_source),
    "where": Command("where", "print the line that comes next", lambda c, r: c.where()),
    "info": Command(
        "info", "print position, steps, cycles, and the size of the history", lambda c, r: c.info()
    ),
    "diff": Command(
        "diff P [P]",
        "print the words that differ between two positions, or one and here",
        Commands.differences,
    ),
    "parts": Command(
        "parts FILE", "run another program too, and find where the runs part", Commands.parts
    ),
    "help": Command("help", "print this list", _help),
    "quit": Command("quit", "end", lambda c, r: c.quit()),
}
"""The commands by name."""

SHORT = {
    "l": "line", "n": "line", "s": "step", "r": "run", "c": "run", "b": "break", "p": "print",
    "w": "watch", "q": "quit", "h": "help", "?": "help",
}  # fmt: skip
"""Short names of commands."""


def read_commands(commands: Commands, lines: Iterable[str], out: TextIO | None = None) -> bool:
    """Do commands line by line and print what they say. Returns whether all of them went well.

    A command that fails prints one diagnostic, and the next one is read.
    """
    good = True
    for line in lines:
        try:
            text = commands.do(line)
        except emu2.Emu2Error as error:
            text, good = str(error), False
        if text:
            print(text, file=out or sys.stdout, flush=True)
        if commands.done:
            break
    return good and not commands.failed
