"""How each pass changed the graph: the lines of its text that differ, node by node."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import PycompilerError
from ..report.codegen_dir import read_file

MOST_CHANGES = 2000
_NODE = re.compile(r' node=("(?:[^"\\]|\\.)*")')


@dataclass
class Change:
    """A node of the text with lines that one pass has removed and added."""

    title: str
    removed: list[str]
    added: list[str]


@dataclass
class PassChanges:
    """What one pass changed. ``total`` counts changes, also those that are not listed."""

    name: str
    before: str
    total: int = 0
    changes: list[Change] = field(default_factory=list)


def pass_changes(folder: Path, passes: Sequence[Mapping[str, Any]]) -> list[PassChanges]:
    """Return the changes between the dumps of a codegen_dir, in the order of the passes."""
    found: list[PassChanges] = []
    before: tuple[str, dict[str, list[str]]] | None = None
    for row in passes:
        name = str(row.get("pass", ""))
        path = f"layout.{name}.txt"
        if not re.fullmatch(r"\w+", name) or not (folder / path).is_file():
            continue
        try:
            blocks = _blocks(read_file(folder, path).decode(errors="replace"))
        except PycompilerError:
            continue
        if before is not None:
            found.append(_compare(name, before[0], before[1], blocks))
        before = name, blocks
    return found


def _blocks(text: str) -> dict[str, list[str]]:
    """Return the lines of each node by its name; those in front of all nodes by ''."""
    blocks: dict[str, list[str]] = {"": []}
    own = blocks[""]
    for line in text.split("\n"):
        if not line:
            continue
        named = None if line.startswith(" ") else _NODE.search(line)
        if named is not None:
            own = blocks.setdefault(named[1].strip('"'), [])
        own.append(line)
    return blocks


def _compare(
    name: str, earlier: str, before: Mapping[str, list[str]], after: Mapping[str, list[str]]
) -> PassChanges:
    found = PassChanges(name, earlier)
    for node in dict.fromkeys((*after, *before)):
        old, new = before.get(node, []), after.get(node, [])
        if old == new:
            continue
        kept, there = set(old) & set(new), node or "the graph"
        change = Change(
            there,
            [line.strip() for line in old if line not in kept],
            [line.strip() for line in new if line not in kept],
        )
        if change.removed or change.added:
            found.total += 1
            if found.total <= MOST_CHANGES:
                found.changes.append(change)
    return found
