"""Sources of the linker in an editor: faults, and the manual of directives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import emu2
from emu2.errors import Diagnostic
from emu2.link import LinkError, link, origins
from emu2.link.manual import DIRECTIVES

ENDING = "._vsm"
_DIRECTIVE = re.compile(r"\s*(@\w*)")


def directive_at(line: str, column: int) -> tuple[str, int, int] | None:
    """Return the directive that holds a column, or ends there, and its columns."""
    found = _DIRECTIVE.match(line)
    inside = found is not None and found.start(1) <= column <= found.end(1)
    return (found[1], found.start(1), found.end(1)) if found is not None and inside else None


def page(name: str) -> str | None:
    """Return the manual of a directive."""
    found = DIRECTIVES.get(name)
    return None if found is None else f"{found[0]}\n\n{name[1:]} {found[1]}."


def diagnostics(text: str, path: str, spec: emu2.Spec) -> list[Diagnostic]:
    """Return the faults of a source: those of the linker, or those of the linked assembly.

    The placement and the structure lie beside the source, with its name. Without them only unknown
    directives are found.
    """
    stem = path.removesuffix(ENDING)
    files = [Path(f"{stem}.{ending}") for ending in ("param", "stparam")]
    found = _Found(path, text.split("\n"))
    if not all(file.is_file() for file in files):
        for number, line in enumerate(found.lines, 1):
            start = _DIRECTIVE.match(line)
            if start is not None and start[1] not in DIRECTIVES:
                found.add(number, "", "error", f"unknown directive `{start[1]}`")
        return found.all
    try:
        beside = [file.read_text(encoding="utf-8") for file in files]
        linked = link(text, beside[0], beside[1], spec, (path, str(files[0]), str(files[1])))
    except LinkError as error:
        for one in error.faults:
            found.add(one.line or 1, one.number or "", "error", one.text)
        return found.all
    except (OSError, UnicodeDecodeError):
        return []
    for one in linked.warnings:
        found.add(one.line or 1, one.number or "", "warning", one.text)
    try:
        assembled = emu2.assemble(linked.text, spec, filename=path, policy="check").warnings
    except emu2.AssembleError as refused:
        assembled = refused.diagnostics
    places = origins(linked.text)
    for fault in assembled:
        place = places[fault["line"] - 1]
        if place is not None:
            severity, message = fault["severity"], fault["message"]
            found.add(place[1], fault["code"], severity, message, fault["help"])
    return found.all


@dataclass
class _Found:
    """The faults of a source, each of which is a whole line."""

    path: str
    lines: Sequence[str]
    all: list[Diagnostic] = field(default_factory=list)

    def add(self, line: int, code: str, severity: str, message: str, help: str = "") -> None:
        end = len(self.lines[line - 1].rstrip("\r")) + 1 if line <= len(self.lines) else 1
        one: Diagnostic = {
            "file": self.path,
            "line": line,
            "column": 1,
            "end_line": line,
            "end_column": end,
            "code": code,
            "severity": severity,
            "message": message,
            "help": help,
        }
        if one not in self.all:
            self.all.append(one)
