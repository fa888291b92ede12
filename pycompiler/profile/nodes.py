"""Cycles by node, by operator and by line of the model, and how two compiles differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from emu2.profiling import profile

from ..app.make_app import programs_of
from ..app.model import App
from ..machine import Target

View = Literal["node", "operator", "module", "source", "line"]
VIEWS: tuple[View, ...] = ("node", "operator", "module", "source", "line")

#: What the compiler puts behind the name of a node, with the name of a value behind it.
_INSERTED = re.compile(r"\.(?:download|upload|copy|forget|switch)\..*", re.DOTALL)


@dataclass
class Group:
    """Nodes that count together.

    ``cycles`` include ``waits``, the cycles of waiting for MVs. ``words`` are long words from and
    to DRAM. ``busy`` has the steps in which a slot has an instruction. ``owners`` are the nodes of
    a line.
    """

    name: str
    nodes: int = 0
    steps: int = 0
    cycles: int = 0
    waits: int = 0
    words: int = 0
    multiply_adds: int = 0
    busy: Counter[str] = field(default_factory=Counter)
    owners: list[str] = field(default_factory=list)

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a row of the report's ``nodes``."""
        self.nodes += 1
        self.steps += row["steps"]
        self.cycles += row["cycles"]
        self.waits += row["wait_cycles"]
        self.words += row["dram_words"]["read"] + row["dram_words"]["written"]
        self.multiply_adds += row.get("multiply_adds", 0)
        self.busy.update(row["busy_steps"])

    @property
    def slots(self) -> list[tuple[str, float]]:
        """The share of the steps that have an instruction in each slot, the busiest first.

        Nodes that share lines have instructions in steps of others: no share is above 1.
        """
        order = sorted(self.busy, key=lambda name: (-self.busy[name], name))
        return [(name, min(1.0, self.busy[name] / self.steps)) for name in order if self.steps]

    def json(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {**vars(self), "busy": dict(self.busy)}


def grouped(rows: Iterable[Mapping[str, Any]], view: View) -> list[Group]:
    """Return the rows of a report in groups, the most cycles first."""
    groups: dict[str, Group] = {}
    for row in rows:
        name = name_of(row, view)
        groups.setdefault(name, Group(name)).add(row)
    return sorted(groups.values(), key=lambda group: (-group.cycles, group.name))


def lines(app: App, target: Target) -> list[Group]:
    """Return the lines of ``model.vsm``, the most cycles first; MVs count their DRAM words. P0504.

    ``owners`` of a line are the report's names of its nodes. It counts for the first one.
    """
    found = []
    for before, segment in programs_of(app, "model.app"):
        program = target.assemble(segment.code, "model.app")
        for row in profile(program).rows["line"]:
            note = f"  # {row.note}" if row.note else ""
            group = Group(f"{row.line + before}: {row.text}{note}", row.count, row.steps)
            group.owners = [owner.row for owner in segment.lines.of(row.line - 1)]
            group.cycles, group.waits = row.cycles + row.stalls, row.stalls
            group.words = row.dram
            group.busy.update({slot: row.steps for slot in row.slots if row.steps})
            found.append(group)
    return sorted(found, key=lambda group: -group.cycles)


def name_of(row: Mapping[str, Any], view: View) -> str:
    """Return the name of the group that a row of the report's ``nodes`` counts in."""
    if view == "operator":
        return str(row["op"])
    if view == "source":
        return str(row["source"] or "(no line of the model)")
    if view == "module":
        # The exporter writes `encoder.0/linear`, and other exporters `/encoder/encoder.0/Gemm`.
        return _INSERTED.sub("", row["node"]).rpartition("/")[0] or "(no module)"
    return f"{row['node']} ({row['op']})"


def changes(
    before: Sequence[Group], after: Sequence[Group]
) -> list[tuple[str, Group | None, Group | None]]:
    """Return the groups of two compiles side by side, the largest change of cycles first."""
    old, new = ({group.name: group for group in own} for own in (before, after))
    rows = [(name, old.get(name), new.get(name)) for name in sorted({*old, *new})]
    return sorted(rows, key=lambda row: -abs(_cycles(row[2]) - _cycles(row[1])))


def _cycles(group: Group | None) -> int:
    return 0 if group is None else group.cycles
