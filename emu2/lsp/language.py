"""What an editor asks about a text: faults, pages, proposals, definitions. Knows no protocol."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import emu2
from emu2.errors import Diagnostic
from emu2.link.manual import DIRECTIVES
from emu2.lsp import linked
from emu2.lsp.entries import Entries, Operand, SpecLine
from emu2.source_text import code, comment

Kind = Literal["instruction", "operand"]
_WORD = re.compile(r"-?\$?[A-Za-z_][\w.]*")


@dataclass(frozen=True)
class Word:
    """A word of a line: its first and its last column (from 0, the end is exclusive)."""

    text: str
    start: int
    end: int
    kind: Kind


@dataclass(frozen=True)
class Proposal:
    """A text to insert, with a line about it."""

    text: str
    kind: Kind
    about: str


class Language:
    """The assembly of one machine."""

    def __init__(self, spec_name: str) -> None:
        """Load the machine. EmulatorError if there is none of that name."""
        self.entries = Entries(spec_name)
        self.spec = self.entries.spec

    def diagnostics(self, text: str, path: str) -> list[Diagnostic]:
        """Return the faults and warnings of a source, as `emu2 check` or `emu2 link` finds them."""
        if path.endswith(linked.ENDING):
            return linked.diagnostics(text, path, self.spec)
        try:
            return emu2.assemble(text, self.spec, filename=path, policy="check").warnings
        except emu2.AssembleError as refused:
            return refused.diagnostics

    def page(self, line: str, column: int) -> tuple[str, Word] | None:
        """Return the manual's page about the word at a column."""
        directive = linked.directive_at(line, column)
        if directive is not None:
            page = linked.page(directive[0])
            return None if page is None else (page, Word(*directive, "instruction"))
        word = word_at(line, column)
        if word is None:
            return None
        if word.kind == "instruction":
            page = self.spec.page(word.text)
            return None if page is None else (page.rstrip(), word)
        operand = self.entries.operand(_name(word))
        if operand is None:
            return None
        title = f"${operand.text} ({operand.name or operand.section})"
        return f"{title}\n\n{operand.doc}", word

    def definition(self, line: str, column: int) -> SpecLine | None:
        """Return the entry of the spec that the word at a column comes from."""
        word = word_at(line, column)
        if word is None:
            return None
        if word.kind == "instruction":
            return self.entries.instruction(word.text)
        operand = self.entries.operand(_name(word))
        return None if operand is None else self.entries.place(operand.section, operand.name)

    def proposals(self, line: str, column: int) -> list[Proposal]:
        """Return what may stand at a column: mnemonics, or behind `$` operands."""
        before = line[:column]
        if comment(before) is not None or before.count('"') % 2:
            return []
        if re.fullmatch(r"\s*@\w*", before):
            return [Proposal(name, "instruction", form) for name, (form, _) in DIRECTIVES.items()]
        statement = before.rsplit(";", 1)[-1]
        if re.search(r"\$[a-z0-9]*$", statement):
            return [self._proposed(one) for one in reversed(self.entries.operands)]
        if re.fullmatch(r"\s*\w*", statement):
            return [
                Proposal(name, "instruction", _first_line(self.spec.page(name)))
                for name in self.spec.mnemonics
            ]
        return []

    @staticmethod
    def _proposed(operand: Operand) -> Proposal:
        return Proposal(f"${operand.text}", "operand", operand.doc.split("\n")[0])


def words(line: str) -> Iterator[Word]:
    """Yield the mnemonics and operands of a line; comments and literals have none."""
    statements = re.sub(r'"[^"]*"', lambda text: '"' * len(text[0]), code(line))
    start = 0
    for statement in statements.split(";"):
        first = True
        for found in _WORD.finditer(statement):
            text = found[0]
            operand = text.lstrip("-").startswith("$")
            place = start + found.start()
            if operand or first:
                kind: Kind = "operand" if operand else "instruction"
                yield Word(text, place, place + len(text), kind)
            first = False
        start += len(statement) + 1


def word_at(line: str, column: int) -> Word | None:
    """Return the word that holds a column, or ends there."""
    return next((word for word in words(line) if word.start <= column <= word.end), None)


def _name(word: Word) -> str:
    return word.text.lstrip("-").lstrip("$")


def _first_line(page: str | None) -> str:
    """Return the first line of a page's text, which stands below its title."""
    lines = (page or "").split("\n\n")
    return lines[1].split("\n")[0] if len(lines) > 1 else ""
