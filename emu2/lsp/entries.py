"""The entries of a spec: where each stands in its files, and what may stand after `$`."""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import emu2
from emu2._core import spec_texts
from emu2.source_text import lines


@dataclass(frozen=True)
class SpecLine:
    """A line (from 0) of a file of a spec."""

    path: Path
    line: int


@dataclass(frozen=True)
class Operand:
    """What may stand after `$`: how it begins, its section in the spec, and its manual text."""

    text: str
    section: str
    name: str
    doc: str


#: Sections whose entries stand after `$`; the key that holds their text.
_OPERANDS = {
    **{"operand": "letter", "forward": "name", "fixed": "name", "base": "name", "bank": "name"},
    **{"turnaround": "name"},
}


class Entries:
    """The entries of the spec called ``name``."""

    def __init__(self, name: str) -> None:
        """Read the files. EmulatorError if there is no such spec."""
        self.spec = emu2.Spec.load(name)
        self._texts = spec_texts(name)

    @cached_property
    def _places(self) -> dict[tuple[str, str], SpecLine]:
        found: dict[tuple[str, str], SpecLine] = {}
        for file, text in self._texts:  # the files of the spec itself come first
            section = ""
            for number, line in enumerate(lines(text)):
                head = re.match(r"\[(\[?)([\w.]+)\]", line)
                if head is not None:
                    section = head[2] if head[1] else ""
                    if not head[1]:
                        place = SpecLine(_on_disk(file, text), number)
                        found.setdefault((head[2], ""), place)
                named = re.match(r'name\s*=\s*"([^"]+)"', line)
                if named is not None and section:
                    found.setdefault((section, named[1]), SpecLine(_on_disk(file, text), number))
        return found

    @cached_property
    def operands(self) -> list[Operand]:
        """All operands, those with the longest text first."""
        found: dict[tuple[str, str], Operand] = {}
        for _, text in self._texts:
            tables = tomllib.loads(text)
            for section, key in _OPERANDS.items():
                entries = tables.get(section, [])
                for entry in [entries] if isinstance(entries, dict) else entries:
                    for operand in _written(section, key, entry):
                        found.setdefault((section, operand.text), operand)
            mask = tables.get("mask", {})
            operands = tables.get("operand", [])
            # A mask has the width of the access that it guards.
            widths = dict.fromkeys(one for entry in operands for one in entry.get("widths", []))
            for key in ("destination", "source"):
                for width in widths if key in mask else ():
                    text_of = f"{width}{mask[key]}"
                    own = Operand(text_of, "mask", "", str(mask.get("doc", "")).strip())
                    found.setdefault(("mask", text_of), own)
        return sorted(found.values(), key=lambda one: (-len(one.text), one.text))

    def place(self, section: str, name: str) -> SpecLine | None:
        """Return where an entry of the spec stands; a section with one entry may have no name."""
        return self._places.get((section, name)) or self._places.get((section, ""))

    def instruction(self, mnemonic: str) -> SpecLine | None:
        """Return where the entry of a mnemonic stands; its manual page begins with its name."""
        page = self.spec.page(mnemonic)
        head = None if page is None else re.match(r"(\S+) \((\w+)\)", page)
        if head is None:
            return None
        section, name = head[2], head[1]
        return self.place(section, name) or next(
            (place for (_, own), place in self._places.items() if own == name), None
        )

    def operand(self, text: str) -> Operand | None:
        """Return the operand that ``text``, which stands behind `$`, is."""
        letters = re.match(r"[a-z]+", text)
        if letters is None:
            return None
        fits = [one for one in self.operands if text.startswith(one.text)]
        return next((one for one in fits if one.text == letters[0]), fits[0] if fits else None)


def _written(section: str, key: str, entry: dict[str, Any]) -> Iterator[Operand]:
    if not isinstance(entry.get(key), str):
        return
    doc = str(entry.get("doc", "")).strip()
    for width in entry.get("widths", [""]):
        yield Operand(f"{width}{entry[key]}", section, str(entry["name"]), doc)


def _on_disk(file: str, text: str) -> Path:
    """Return a file with the text: its own, or a copy of one that is part of the program."""
    path = Path(file)
    if path.is_absolute() and path.is_file():
        return path
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "emu2" / f"spec-{digest}"
    copy = folder / path.name
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return path.resolve()
    if not copy.is_file() or copy.read_text(encoding="utf-8") != text:
        folder.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, encoding="utf-8")
    return copy
