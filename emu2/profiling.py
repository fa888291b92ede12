"""Where the cycles of a program go: by line, by instruction, by MV that is waited for.

All numbers come from the cycle model, as those of a trace do: nothing runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import emu2

from .source_text import code
from .trace_events import Event, TraceReader

_ADDRESS = re.compile(r"(\$[a-z]+)\d+")

View = Literal["line", "instruction", "mv"]
VIEWS: tuple[View, ...] = ("line", "instruction", "mv")


@dataclass
class Row:
    """Cycles of one line, instruction or MV. ``text`` is what stands there.

    ``line`` counts from 1, 0 for what has no single line. ``cycles`` are those of ``steps``, and
    ``stalls`` behind them. ``words`` are the long words of MVs. ``dram`` and ``pdm`` are those that
    they read and write there, in all groups. ``slots`` are those that have an instruction. ``note``
    tells what a stall waits for.
    """

    text: str
    line: int = 0
    count: int = 0
    steps: int = 0
    cycles: int = 0
    stalls: int = 0
    words: int = 0
    dram: int = 0
    pdm: int = 0
    note: str = ""
    slots: list[str] = field(default_factory=list)


@dataclass
class Profile:
    """The counters of a program, and its rows by view, the most cycles first."""

    name: str
    counters: Mapping[str, Any]
    rows: Mapping[View, list[Row]] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """Return what `emu2 profile --json` writes."""
        found: dict[str, Any] = {"program": self.name, "counters": dict(self.counters)}
        for view, rows in self.rows.items():
            found[view] = [vars(row) for row in rows]
        return found


def profile(program: emu2.Program) -> Profile:
    """Return the profile of a program."""
    found = _Collector()
    program.trace(found)
    found.close()
    slots = Slots(program.spec)
    for row in (*found.lines.values(), *found.instructions.values()):
        row.slots = slots.of(row.text)
    for row in found.mvs.values():
        row.dram, row.pdm = slots.moved(row.text)
        for own in (found.lines[row.line], found.instructions[_mnemonic(row.text)]):
            own.dram += row.dram
            own.pdm += row.pdm
    rows: dict[View, list[Row]] = {
        "line": _sorted(found.lines.values()),
        "instruction": _sorted(found.instructions.values()),
        "mv": _sorted(found.mvs.values()),
    }
    return Profile(program.filename, program.report(), rows)


def with_places(found: Profile, place: Callable[[int], str]) -> Profile:
    """Begin the note of each row that has a line with its place in the source."""
    for row in (*found.rows["line"], *found.rows["mv"]):
        row.note = f"{place(row.line)} {row.note}".strip()
    return found


def _sorted(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (-(row.cycles + row.stalls), row.line, row.text))


class _Collector(TraceReader):
    """Adds up the events of a trace."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[int, Row] = {}
        self.instructions: dict[str, Row] = {}
        self.mvs: dict[int, Row] = {}
        #: the last MV by tag
        self._tagged: dict[str, Event] = {}

    def take(self, process: str, track: str, event: Event) -> None:
        reader = _READERS.get((process, track if process == "PE" else ""))
        if reader is not None:
            reader(self, event)

    def _step(self, event: Event) -> None:
        number, text = event["args"]["line"], event["name"]
        rows = [self.lines.setdefault(number, Row(text, number))]
        rows[0].text = text  # a wait is told before its line
        rows += [self.instructions.setdefault(name, Row(name)) for name in _mnemonics(text)]
        for row in rows:
            row.count += 1
            row.steps += event["args"]["steps"]
            row.cycles += event["dur"]

    def _wait(self, event: Event) -> None:
        number, stalled = event["args"]["line"], int(event.get("dur", 0))
        row = self.lines.setdefault(number, Row(event["name"], number))
        row.stalls += stalled
        own = self.instructions.setdefault("wait", Row("wait"))
        own.count += 1
        own.stalls += stalled
        mv = self._tagged.get(event["name"].split()[-1].removeprefix("i"))
        if mv is not None and stalled:
            line = mv["line"]
            waited = self.mvs[line]
            waited.stalls += stalled
            row.note = f"waits for line {line}: queued {mv['queued']}, holds {mv['held']} cycles"

    def _mv(self, event: Event) -> None:
        facts = event["args"]
        number = facts["line"]
        row = self.mvs.setdefault(number, Row(event["name"], number))
        row.count += 1
        row.words += facts["long words"]
        row.note = f"queued {facts['queued']}, holds {facts['holds memories for']} cycles"
        line = self.lines.setdefault(number, Row(event["name"], number))
        line.count += 1
        line.words += facts["long words"]
        name = _mnemonic(event["name"])
        own = self.instructions.setdefault(name, Row(name))
        own.count += 1
        own.words += facts["long words"]
        tag = facts.get("tag")
        if tag is not None:
            held = facts["holds memories for"]
            self._tagged[tag] = {"line": number, "queued": facts["queued"], "held": held}


_READERS: dict[tuple[str, str], Callable[[_Collector, Event], None]] = {
    ("PE", "steps"): _Collector._step,
    ("PE", "waits"): _Collector._wait,
    ("MV", ""): _Collector._mv,
}


def _mnemonic(text: str) -> str:
    return text.split()[0].split("/")[0]


def _mnemonics(text: str) -> Iterator[str]:
    """Yield the instructions of a line, each once; a wait is no instruction of the PEs."""
    seen = set()
    for part in text.split(";"):
        name = part.split()[0].split("/")[0] if part.split() else ""
        if name and name != "wait" and name not in seen:
            seen.add(name)
            yield name


class Slots:
    """The slots that instructions take, as the assembler counts them; MVs have the slot `mv`."""

    def __init__(self, spec: emu2.Spec) -> None:
        """Remember the machine."""
        self._spec = spec
        self._known: dict[str, list[str]] = {}
        self._words: dict[str, tuple[int, int]] = {}

    def of(self, line: str) -> list[str]:
        """Return the slots of a line, in the order of its instructions, each once."""
        found: dict[str, None] = {}
        for part in code(line).split(";"):
            words = part.split()
            if words and words[0] != "wait":
                name = words[0].split("/")[0]
                if name not in self._known:
                    self._known[name] = self._ask(part.strip())
                found.update(dict.fromkeys(self._known[name]))
        return list(found)

    def moved(self, mv: str) -> tuple[int, int]:
        """Return the long words that an MV reads and writes in DRAM and in PDM, in all groups."""
        # The number of words does not depend on addresses, so one of them stands for all.
        text = _ADDRESS.sub(r"\g<1>0", code(mv))
        if text not in self._words:
            words = emu2.assemble(text, self._spec).report()["words"]
            dram, pdm = (sum(words.get(name, {}).values()) for name in ("dram", "pdm"))
            self._words[text] = (dram, pdm)
        return self._words[text]

    def _ask(self, instruction: str) -> list[str]:
        try:
            facts = emu2.assemble(instruction, self._spec).report()
        except emu2.Emu2Error:
            return []
        return ["mv"] if facts["mvs"] else sorted(facts["busy_steps"])


@dataclass(frozen=True)
class Change:
    """A row in two profiles, before and after; None where it is missing."""

    text: str
    before: Row | None
    after: Row | None

    @property
    def cycles(self) -> int:
        """Cycles after, less those before."""
        return _all(self.after) - _all(self.before)


def _all(row: Row | None) -> int:
    return 0 if row is None else row.cycles + row.stalls


def changes(before: Profile, after: Profile) -> list[Change]:
    """Return how the cycles of each instruction changed, the largest change first."""
    old, new = ({row.text: row for row in own.rows["instruction"]} for own in (before, after))
    made = [Change(name, old.get(name), new.get(name)) for name in sorted({*old, *new})]
    return sorted(made, key=lambda change: -abs(change.cycles))
