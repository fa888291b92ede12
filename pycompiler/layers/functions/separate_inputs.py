"""Inputs that one instruction cannot read together: some are copied to registers first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .program import Flags, Input, Program, Result, Row

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
    moved: dict[Row, Result] = {row: again.alu("lpassa", row) for row in copied}
    new: list[Result] = []

    def renewed(row: Row) -> Row:
        if isinstance(row, Result):
            return new[row.index]
        return moved.get(row, row)

    for operation in program.operations:
        sources = [replace(s, row=renewed(s.row)) for s in operation.sources]
        flush = operation.flush
        flush = None if flush is None else Flags(new[flush.index].index)
        new.append(
            again.op(
                operation.unit,
                operation.mnemonic,
                *sources,
                flush=flush,
                first_word=operation.first_word,
            )
        )
    assert program.result is not None
    return again.finish(new[program.result.index])
