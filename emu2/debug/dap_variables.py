"""What an editor shows of a stopped program: registers and memories of a chosen unit, watches."""

from __future__ import annotations

from typing import Any

import emu2
from emu2.debug.commands import register_sizes
from emu2.debug.session import Session, Watched, bad_command, unit_numbers

RUN, REGISTERS, MEMORIES, WATCHES = 1, 2, 3, 4
_MEMORY = 100
_KEPT = 1000
_SHOWN = 64
_MOST_BYTES = 1 << 20
_BYTES = 8


class Variables:
    """The variables of a session. One unit is chosen; it is the first PE at the start."""

    def __init__(self, session: Session) -> None:
        """Choose the first PE."""
        self._session = session
        self._run = session.run
        self._unit = "".join(f"{letter}0" for _, letter in session.run.levels)
        self._kept: list[tuple[str, Watched]] = []

    def scopes(self) -> list[dict[str, Any]]:
        """Return the scopes. Numbers of earlier values become invalid."""
        self._kept.clear()
        names = {
            RUN: "Run",
            REGISTERS: f"Registers of {self._unit}",
            MEMORIES: f"Memories of {self._unit}",
            WATCHES: "Watches",
        }
        return [
            {"name": name, "variablesReference": number, "expensive": number == MEMORIES}
            for number, name in names.items()
        ]

    def _memories(self) -> list[str]:
        return list(self._run.spec.memories)

    def _owner(self, name: str) -> str:
        """Return the part of the chosen unit that a memory belongs to."""
        memory = self._run.spec.memories.get(name)
        level = memory["level"] if memory else self._run.levels[-1][0]
        unit = ""
        numbers = unit_numbers(self._run, self._unit)
        for own, letter in self._run.levels:
            unit += f"{letter}{numbers.get(own, 0)}"
            if own == level:
                break
        return unit

    def _words(self, name: str, first: int, count: int) -> list[dict[str, Any]]:
        place = f"{name}[{first}:{first + count}] of {self._owner(name)}"
        words = self._run.evaluate(place, most=count)
        return [
            {"name": f"[{word['addr']}]", "value": word["text"], "variablesReference": 0}
            for word in words
        ]

    def _memory(self, name: str, size: int, number: int) -> dict[str, Any]:
        owner = self._owner(name)
        return {
            "name": name,
            "value": f"{size} long words of {owner}",
            "variablesReference": number,
            "indexedVariables": size,
            "memoryReference": f"{name}@{owner}",
        }

    def below(self, reference: int, start: int | None, count: int | None) -> list[dict[str, Any]]:
        """Return the variables with this number of their parent."""
        run = self._run
        if reference == RUN:
            if not self._session.stopped:
                return []
            values: dict[str, Any] = {
                "unit": self._unit,
                "position": f"{run.position} of {run.statements}",
                "steps": run.steps,
                "cycles": run.cycles,
                "note": self._session.note(run.line),
            }
            return [
                {"name": name, "value": str(value), "variablesReference": 0}
                for name, value in values.items()
            ]
        if reference == REGISTERS:
            shown = []
            for name, size in register_sizes(run.spec).items():
                words = run.evaluate(f"{name}[0:{size}] of {self._owner(name)}", most=size)
                text = " ".join(word["text"].removeprefix("0x") for word in words)
                number = self._number(name) if name in run.spec.memories else 0
                shown.append({"name": name, "value": text, "variablesReference": number})
            return shown
        if reference == MEMORIES:
            return [
                self._memory(name, memory["words"], self._number(name))
                for name, memory in run.spec.memories.items()
            ]
        if reference == WATCHES:
            return [
                {"name": name, "value": value, "variablesReference": 0}
                for name, value in self._session.watched()
            ]
        names = self._memories()
        if _MEMORY <= reference < _MEMORY + len(names):
            name = names[reference - _MEMORY]
            size = run.spec.memories[name]["words"]
            first = min(start or 0, size)
            return (
                self._words(name, first, min(count or _SHOWN, size - first)) if first < size else []
            )
        if _KEPT <= reference < _KEPT + len(self._kept):
            _, found = self._kept[reference - _KEPT]
            return [
                {
                    "name": f"{word['unit']}[{word['addr']}]",
                    "value": word["text"],
                    "variablesReference": 0,
                }
                for word in found.words
            ]
        raise emu2.EmulatorError(
            code="D0005",
            message=f"there is no variable with the number {reference}",
            help="use a number that `scopes` or `variables` has returned since the last stop",
        )

    def _number(self, name: str) -> int:
        return _MEMORY + self._memories().index(name)

    def keep(self, text: str, found: Watched) -> int:
        """Keep the words of a value, and return the number under which `below` finds them."""
        self._kept.append((text, found))
        return _KEPT + len(self._kept) - 1

    def place(self, reference: int, name: str) -> str:
        """Return the place that a variable stands for."""
        names = self._memories()
        if _MEMORY <= reference < _MEMORY + len(names):
            memory = names[reference - _MEMORY]
            return f"{memory}{name} of {self._owner(memory)}"
        if reference in (REGISTERS, MEMORIES):
            size = register_sizes(self._run.spec).get(name)
            size = size or self._run.spec.memories[name]["words"]
            return f"{name}[0:{size}] of {self._owner(name)}"
        return name

    def set(self, reference: int, name: str, value: str) -> str:
        """Write a long word, or choose another unit, and return the new value as text."""
        if reference == RUN and name == "unit":
            numbers = unit_numbers(self._run, value)
            full = "".join(f"{letter}{numbers.get(own, 0)}" for own, letter in self._run.levels)
            first = next(iter(self._run.spec.forwards))
            self._run.evaluate(f"{first}[0] of {full}", most=1)
            self._unit = full
            return full
        place = self.place(reference, name)
        if place == name:
            raise bad_command(f"`{name}` cannot be set", "set a word of a memory, or `unit`")
        self._session.write(place, value)
        return str(self._run.evaluate(place, most=1)[0]["text"])

    def reference(self, place: str) -> str | None:
        """Return the memory reference of a place that begins with the name of a memory."""
        name = place.split("[", 1)[0].strip()
        if name not in self._run.spec.memories:
            return None
        return f"{name}@{self._owner(name)}"

    def memory(self, reference: str, offset: int, count: int) -> tuple[int, bytes, int]:
        """Return the address, bytes of a memory, and how many bytes behind them do not exist."""
        name, _, owner = reference.partition("@")
        memory = self._run.spec.memories.get(name)
        if memory is None or count < 0:
            raise emu2.EmulatorError(
                code="D0005",
                message=f"`{reference}` is no memory",
                help="write a memory and a unit, such as lm0@n0c0b0m0p0",
            )
        size = memory["words"] * _BYTES
        first = min(max(offset, 0), size)
        end = min(first + min(count, _MOST_BYTES), size)
        words = slice(first // _BYTES, -(-end // _BYTES))
        if words.stop <= words.start:
            return first, b"", count
        units = unit_numbers(self._run, owner or self._owner(name))
        missing = [own for own, _ in self._run.levels if own not in units]
        kept = self._run.levels[: [own for own, _ in self._run.levels].index(memory["level"]) + 1]
        units |= {own: 0 for own, _ in kept if own in missing}
        found = self._run.read(name, addr=words.start, count=words.stop - words.start, **units)
        data = found.astype(">u8").tobytes()[first - words.start * _BYTES :][: end - first]
        return first, data, count - len(data)

    def statements(self, session: Session, first: int, count: int) -> list[dict[str, Any]]:
        """Return statements by position. Outside the program they are empty."""
        found: list[dict[str, Any]] = []
        for position in range(first, first + count):
            if not 0 <= position < self._run.statements:
                found.append(
                    {"address": hex(position), "instruction": "", "presentationHint": "invalid"}
                )
                continue
            line = self._run.line_of(position)
            text = session.line_text(line).strip()
            found.append({"address": hex(position), "instruction": text, "line": line})
        return found
