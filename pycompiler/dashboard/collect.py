"""Finds the codegen_dirs below folders, and reads what their files say."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..app.model import App
from ..errors import PycompilerError, error
from ..files import TEXT_BYTES, is_temporary, read_input
from ..graph.graph import MNGraph
from ..graph.text import parse_graph
from ..machine import Target, load_target
from ..report.codegen_dir import L3IR, MODEL_APP, REPORT, read_file
from ..runtime.app_file import app_of

_DEEP = 8  # levels of folders that are searched
_REPORT_BYTES = 1 << 28
_LOGS = (".log", "out.txt")


@dataclass(eq=False)
class Compile:
    """One codegen_dir. ``problems`` say why a part is missing; a failed compile has few parts."""

    folder: Path
    name: str
    report: dict[str, Any] = field(default_factory=dict)
    graph: MNGraph | None = None
    target: Target | None = None
    app: App | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the report's nodes."""
        found: list[dict[str, Any]] = self.report.get("nodes", [])
        return found


def find(folders: Sequence[Path]) -> list[Path]:
    """Return the codegen_dirs that are, or lie below, ``folders``. P0004 if a folder has none."""
    found: dict[Path, None] = {}
    for folder in folders:
        own = list(_below(folder, _DEEP)) if folder.is_dir() else []
        # A compile that failed lies beside the folder that it was to write.
        failed = folder.with_name(f"{folder.name}.failed") if folder.name else folder
        if (failed / REPORT).is_file() and failed not in own:
            own.append(failed)
        if not own:
            reason = "it has no report, and no folder below it has one"
            if not folder.is_dir():
                reason = "there is no such folder"
            raise error("P0004", path=folder, reason=reason, wanted=REPORT)
        found.update(dict.fromkeys(own))
    return list(found)


def _below(folder: Path, deep: int) -> Iterator[Path]:
    if (folder / REPORT).is_file():
        yield folder
        return
    if not deep:
        return
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in names:
        if not is_temporary(name):
            yield from _below(folder / name, deep - 1)


def read_compile(folder: Path, name: str) -> Compile:
    """Return what the files of a codegen_dir say. A damaged file is a line of ``problems``."""
    found = Compile(folder, name)
    try:
        found.report = _checked(json.loads(read_input(folder / REPORT, _REPORT_BYTES)))
    except (ValueError, RecursionError, PycompilerError) as problem:
        found.problems.append(f"{REPORT}: {problem}")
        found.report = {"status": "damaged", "nodes": []}
    for wanted, read in ((L3IR, _read_graph), (MODEL_APP, _read_app)):
        if (folder / wanted).is_file():
            try:
                read(found)
            except (ValueError, PycompilerError) as problem:
                found.problems.append(f"{wanted}: {problem}")
    return found


def _checked(report: Any) -> dict[str, Any]:
    """Return a report whose parts have the types that the pages need. ValueError."""
    if not isinstance(report, dict):
        raise ValueError("it is no object")
    shapes = {"nodes": list, "passes": list, "notes": list, "host_fallback": list, "options": dict}
    for key, kind in shapes.items():
        if not isinstance(report.setdefault(key, kind()), kind):
            raise ValueError(f"`{key}` is no {kind.__name__}")
    for row in report["nodes"]:
        if not isinstance(row, dict):
            raise ValueError("a row of `nodes` is no object")
        for name, blank in _ROW.items():
            if not isinstance(row.setdefault(name, blank), type(blank)):
                raise ValueError(f"`{name}` of a node is no {type(blank).__name__}")
        for number in row["dram_words"].values():
            if not isinstance(number, int):
                raise ValueError("`dram_words` of a node has no numbers")
    if not all(isinstance(row, dict) for row in report["passes"]):
        raise ValueError("a row of `passes` is no object")
    report.setdefault("status", "unknown")
    return report


_ROW: dict[str, Any] = {
    **{"node": "", "op": "", "output": "", "layout": "", "location": "", "shape": []},
    **{"steps": 0, "cycles": 0, "wait_cycles": 0, "slices": 1, "multiply_adds": 0},
    **{"dram_words": {}, "busy_steps": {}, "operand_words": 0},
}


def _read_graph(found: Compile) -> None:
    graph = parse_graph(read_file(found.folder, L3IR).decode())
    found.graph, found.target = graph, load_target(graph.target)


def _read_app(found: Compile) -> None:
    found.app = app_of(found.folder)


def logs(folder: Path) -> list[tuple[str, str]]:
    """Return the log files of a folder with their text; long ones are cut at the front."""
    texts = []
    for path in sorted(folder.iterdir()):
        if path.name.endswith(_LOGS) and path.is_file():
            try:
                text = read_input(path, TEXT_BYTES).decode(errors="replace")
            except PycompilerError as problem:
                text = str(problem)
            texts.append((path.name, text[-_LOG_CHARACTERS:]))
    return texts


_LOG_CHARACTERS = 1 << 18
_SOURCE_LINES = 4  # around the line of a node


class Sources:
    """Lines of the Python files that nodes come from."""

    def __init__(self) -> None:
        self._files: dict[str, list[str] | None] = {}

    def around(self, place: str | None) -> list[tuple[int, str]]:
        """Return the lines around ``file:line`` with their numbers; none if they are not there.

        Only Python files are read, because a codegen_dir of somebody else may name any file.
        """
        path, _, number = (place or "").rpartition(":")
        if not path.endswith(".py") or not number.isdigit():
            return []
        if path not in self._files:
            try:
                text = read_input(Path(path), TEXT_BYTES).decode()
                # Python ends no line at a form feed.
                self._files[path] = re.split(r"\r\n|\r|\n", re.sub(r"\r?\n\Z", "", text))
            except (PycompilerError, ValueError):
                self._files[path] = None
        lines, at = self._files[path], int(number)
        if lines is None or not 1 <= at <= len(lines):
            return []
        first, last = max(1, at - _SOURCE_LINES), min(len(lines), at + _SOURCE_LINES)
        return [(k, lines[k - 1]) for k in range(first, last + 1)]
