"""Inputs that one instruction cannot read together: some are copied to registers first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .program import Input, Program, Result, Row, moved

#: The home of an input that is copied to registers before the first row.
HELD = "held"


def separate(program: Program, homes: Sequence[str]) -> Program:
    """Copy inputs to registers first where an instruction would read two inputs of one LM."""
    copied: dict[Input, Input] = {}
    for operation in program.operations:
        rows = dict.fromkeys(s.row for s in operation.sources if isinstance(s.row, Input))
        seen: set[str] = set()
        for row in rows:
            if homes[row.number] == HELD:
                continue
            if homes[row.number] in seen and row not in copied:
                copied[row] = row
            if row not in copied:
                seen.add(homes[row.number])
    if not copied:
        return program
    again = Program()
    copies: dict[Row, Row] = {row: again.alu("lpassa", row) for row in copied}
    new: list[Result] = []
    for operation in program.operations:
        made = moved(operation, new)
        sources = tuple(replace(s, row=copies.get(s.row, s.row)) for s in made.sources)
        new.append(again.add_operation(replace(made, sources=sources)))
    assert program.result is not None
    return again.finish(new[program.result.index])
