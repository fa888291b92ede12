"""A program under the debugger: its run, its source, notes on its lines, watches."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

import emu2
from emu2.link.origins import MARK, origins
from emu2.source_text import lines
from emu2.words_cli import CONTAINER_MAGIC, load_program

Stop = dict[str, Any]
"""What `emu2.Debugger` says about a stop."""


@dataclass(frozen=True)
class Watched:
    """What an expression is worth now. `whole`: the text says it all, as for a tensor."""

    text: str
    words: list[dict[str, Any]] = field(default_factory=list)
    whole: bool = False


Named = Callable[[str], Sequence[str] | Watched | None]
"""Returns the places of a name, such as an element of a tensor, or its value; None for no name."""

_SOURCE = re.compile(r", ([^,]+\.py):(\d+)\Z")


@dataclass(frozen=True)
class Files:
    """The memory files and the state of a run, as the options of `emu2 run` name them."""

    config: str | None = None
    load: str | None = None
    state: str | None = None


class Session:
    """A program under the debugger."""

    def __init__(
        self,
        path: str,
        program: emu2.Program,
        machine: emu2.Machine | None = None,
        *,
        source: str | None = None,
        notes: Mapping[int, str] | None = None,
        named: Named | None = None,
        room: int = 1 << 30,
    ) -> None:
        """Stand before the first statement of `program`.

        `notes` are shown beside lines (numbers from 1): each counts from its line to the next note.
        `named` gives places for names that the machine does not know.
        """
        self._path = path
        self.run = emu2.Debugger(program, machine, room=room)
        text = Path(path).read_bytes().decode(errors="replace") if source is None else source
        self._set_text(text)
        self._notes = sorted((notes or {}).items())
        self._named = named
        self.watches: list[str] = []

    def _set_text(self, text: str) -> None:
        self._lines: Sequence[str] = lines(text)
        self._origins = origins(text) if MARK in text else []

    @property
    def path(self) -> str:
        """The file of the program."""
        return self._path

    @property
    def lines(self) -> Sequence[str]:
        """The lines of the program."""
        return self._lines

    @property
    def stopped(self) -> bool:
        """Whether the run stands at a statement."""
        return True

    @property
    def spec(self) -> emu2.Spec:
        """The spec of the machine."""
        return self.run.spec

    @property
    def at_end(self) -> bool:
        """Whether every statement has run."""
        return self.run.position == self.run.statements

    def note(self, line: int) -> str:
        """Return the note that counts at `line`; empty if there is none."""
        number = bisect_right(self._notes, line, key=itemgetter(0))
        if number:
            return self._notes[number - 1][1]
        place = self.origin_of(line)
        return f"{Path(place[0]).name}:{place[1]}" if place else ""

    def origin_of(self, line: int) -> tuple[str, int] | None:
        """Return the file and line of the source that a line of a linked program comes from."""
        return self._origins[line - 1] if 0 < line <= len(self._origins) else None

    def origin(self, line: int) -> tuple[str, int] | None:
        """Return the file and the line of the model or the source that `line` comes from."""
        place = self.origin_of(line)
        if place is not None:
            return place
        found = _SOURCE.search(self.note(line))
        return (found[1], int(found[2])) if found else None

    def line_text(self, line: int) -> str:
        """Return a line of the source, from 1; empty outside it."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""

    def evaluate(self, expression: str, most: int = 16) -> Watched:
        """Return the words of a place or of a name, as text and one by one.

        Raises EmulatorError D0001 for anything else.
        """
        places = self._named(expression) if self._named is not None else None
        if isinstance(places, Watched):
            return places
        words: list[dict[str, Any]] = []
        for place in [expression] if places is None else places:
            words += self.run.evaluate(place, most=most)
        shown = [word["text"] for word in words[:most]]
        alike = len(set(shown)) == 1 and len(shown) > 1
        text = f"{shown[0]} (all {len(shown)})" if alike else ", ".join(shown)
        return Watched(text, words)

    def watched(self) -> list[tuple[str, str]]:
        """Return every watch with its value, or with what is wrong with it."""
        found = []
        for expression in self.watches:
            try:
                value = self.evaluate(expression).text
            except emu2.EmulatorError as error:
                value = error.message
            found.append((expression, value))
        return found

    def add_at(self, source: str, text: str, line: int) -> dict[str, Any]:
        """Add a breakpoint at a line of the program, or of the source that it was linked from.

        Raises EmulatorError D0003 for another file, and those of `Debugger.add`.
        """
        if source and Path(source).resolve() != Path(self.path).resolve():
            found = [
                (place[1], number)
                for number, place in enumerate(self._origins, 1)
                if place and Path(place[0]).name == Path(source).name and place[1] >= line
            ]
            if not found:
                remedy = "name the program, or the source that it was linked from"
                message = "this file is not the program"
                raise emu2.EmulatorError(code="D0003", message=message, help=remedy)
            line = min(found)[1]
        return self.run.add(f"line {line}{text}")

    def close(self) -> None:
        """End the session."""

    def write(self, place: str, value: str) -> None:
        """Write a number to the long words of a place without a format.

        Raises EmulatorError D0001 for another place, D0004 for no number.
        """
        try:
            word = int(value, 0)
        except ValueError:
            word = -1
        if not 0 <= word < 1 << 64:
            raise bad_command(f"`{value}` is no long word", "write 0x and up to 16 hex digits")
        memory, _, rest = place.partition("[")
        memory = memory.strip()
        if rest.partition("]")[2].partition(" of ")[0].strip():
            remedy = "write whole long words, such as lm0[12] of n0c0b0m0p0"
            raise bad_command(f"`{place}` has a format", remedy)
        for found in self.run.evaluate(place, most=1 << 16):
            units = unit_numbers(self.run, found["unit"])
            if memory in self.spec.forwards or place.startswith("$"):
                raise bad_command(f"`{place}` cannot be written", "write a memory, such as lm0[12]")
            self.run.write(memory, np.array([word], np.uint64), addr=found["addr"], **units)


def bad_command(message: str, remedy: str) -> emu2.EmulatorError:
    """Return the error of a command that is malformed."""
    return emu2.EmulatorError(code="D0004", message=message, help=remedy)


def unit_numbers(run: emu2.Debugger, unit: str) -> dict[str, int]:
    """Return the numbers of a unit such as `n0c1b2m3p0` by level.

    Raises EmulatorError D0001 for a malformed name. Numbers are checked where they are used.
    """
    letters = {letter: level for level, letter in run.levels}
    found: dict[str, int] = {}
    rest = unit
    while rest:
        letter, rest = rest[0], rest[1:]
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        rest = rest[len(digits) :]
        if letter not in letters or not digits or letters[letter] in found:
            raise emu2.EmulatorError(
                code="D0001",
                message=f"`{unit}` is not a unit",
                help="write a unit such as n0c1b2m3p0",
            )
        found[letters[letter]] = int(digits)
    return found


def open_session(
    path: str,
    spec_name: str,
    files: Files | None = None,
    *,
    notes: Mapping[int, str] | None = None,
    named: Named | None = None,
) -> Session:
    """Load a program and its memory files, and stand before its first statement.

    Raises the exceptions of `emu2.assemble` and `emu2.MemoryFiles`.
    """
    spec = emu2.Spec.load(spec_name)
    program = load_program(path, spec, "run")
    machine = emu2.Machine(spec)
    files = files or Files()
    if files.state is not None:
        machine.load_state(files.state)
    emu2.MemoryFiles(spec, config=files.config, load=files.load).load(machine)
    source = source_of(path, program)
    return Session(path, program, machine, source=source, notes=notes, named=named)


def source_of(path: str, program: emu2.Program) -> str:
    """Return the text in which a program counts its lines, statements for machine words."""
    data = Path(path).read_bytes()
    if data.startswith(CONTAINER_MAGIC):
        return emu2.unpack(data)
    text = data.decode("utf-8", errors="replace")
    if Path(path).suffix != ".asm":
        return text
    statements = emu2.to_text(program)
    same = len(lines(statements)) == len(lines(text))
    return statements if same else text
