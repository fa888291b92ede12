"""When a value of a model is in its words: behind the lines of its node, before others write there.

Nodes share lines and run ahead, so the order of nodes does not tell. The table of lines does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import emu2
from emu2.errors import EmulatorError

from ..app.make_app import programs_of
from ..app.model import App
from ..graph.graph import Location, MNGraph, MNValue
from ..layers.base import layout_of
from ..layers.dram_transfer_plan import dram_words
from ..machine import Target


class Moments:
    """The lines that make the values of a graph, and the notes of lines."""

    def __init__(self, graph: MNGraph, target: Target, app: App, path: Path) -> None:
        """Remember the lines of an app. P0504; ``path`` names the app."""
        self._target, self._made = target, graph.producers()
        self._programs = list(programs_of(app, path))
        #: By node: its first line, and the line behind its last one, from 1.
        self._of: dict[str, tuple[int, int]] = {}
        #: Lines that write to DRAM: number, first long word, and the one behind the last.
        self._written: list[tuple[int, int, int]] = []
        for before, segment in self._programs:
            lines = segment.code.split("\n")
            for node, (first, end) in segment.lines.ranges(len(lines) - 1).items():
                self._of[node] = before + first + 1, before + end + 1
            self._written += _to_dram(before, lines, target)

    def notes(self) -> dict[int, str]:
        """Return what the debugger shows beside lines (from 1): each counts to the next one."""
        return {
            before + run.line + 1: segment.lines.note(run.line)
            for before, segment in self._programs
            for run in segment.lines.runs
        }

    def missing(self, value: MNValue, run: emu2.Debugger) -> str:
        """Return why the words of ``value`` do not hold it where ``run`` stands; empty if they do.

        Words that an instruction may have written at an address that only a register knows count as
        written.
        """
        node, begin, end = self._maker(value.name)
        ready = _position(run, end)
        if run.position < ready:
            if run.position <= _position(run, begin):
                return f"not computed yet: {node} does that from line {begin} on"
            return f"not computed yet: lines of {node} run up to line {end - 1}"
        line = self._overwritten(value, run, ready)
        return f"its words were used again at line {line}{self._whose(line)}" if line else ""

    def _maker(self, name: str) -> tuple[str, int, int]:
        """Return the node that makes a value, its first line, and the line behind its last one.

        A node without lines leaves its operands where they are.
        """
        node = self._made.get(name)
        if node is None:
            return "", 0, 0
        if node.name in self._of:
            return (node.name, *self._of[node.name])
        found = [self._maker(operand) for operand in node.inputs if operand]
        return max(found, key=lambda one: one[2], default=("", 0, 0))

    def _overwritten(self, value: MNValue, run: emu2.Debugger, ready: int) -> int:
        """Return the first line behind ``ready`` that writes to words of a value; 0 for none."""
        first = value.addr or 0
        if value.location is not Location.DRAM:
            end = first + (value.num_lw or 1)
            place = f"{value.location.memory}[{first}:{end}]"
            at = run.first_write(place, ready, run.position)
            return 0 if at is None else run.line_of(at)
        end = first + dram_words(layout_of(value), self._target)
        since, now = run.line_of(ready), run.line_of(run.position)
        now += run.position == run.statements
        for line, low, high in self._written:
            if since <= line < now and low < end and first < high:
                return line
        return 0

    def _whose(self, line: int) -> str:
        for before, segment in reversed(self._programs):
            if line > before:
                own = [owner.node for owner in segment.lines.of(line - before - 1)]
                return f" ({' and '.join(own)})" if own else ""
        return ""


def _position(run: emu2.Debugger, line: int) -> int:
    """Return the number of the first statement at or behind a line."""
    try:
        return run.at_line(line)
    except EmulatorError:  # behind the last statement
        return run.statements


def _to_dram(before: int, lines: Sequence[str], target: Target) -> Iterator[tuple[int, int, int]]:
    letter = re.escape(f"${target.letter('dram')}")
    move = re.compile(rf"mv\w*/{target.syntax['mv_size']}(\d+)\S* \S+ {letter}(\d+)")
    for number, line in enumerate(lines, before + 1):
        found = move.match(line)
        if found is not None:
            yield number, int(found[2]), int(found[2]) + int(found[1])
