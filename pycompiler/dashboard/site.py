"""Writes the folder of pages: scripts of ours, and the data of compiles as scripts.

A browser that opens a page from disk fetches no other files, but it loads scripts. So every piece
of data is a script that hands one JSON text over. Pages put texts of models into text nodes only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

from ..errors import PycompilerError
from ..files import TEXT_BYTES, read_input, write_file
from ..profile.programs import Program, read_program
from ..profile.roofline import roofline
from .collect import Compile, logs, read_compile
from .details import Details, rows_of_nodes
from .graphs import graph_parts, time_line
from .passes import pass_changes
from .simulated import SIMULATION

CHUNK = 100  # nodes whose pages share a file of data
MODELS = ("model.onnx", "l3ir_stripped.onnx")
#: What other tools leave in a codegen_dir; it is shown as it is.
_MORE = (SIMULATION,)
_SCRIPTS = (
    *("base", "tables", "scene", "layout", "lists", "node", "graph", "memory"),
    *("timeline", "switches", "shares", "others", "compare"),
)
_ASSETS = ("index.html", "dashboard.css", *(f"{name}.js" for name in _SCRIPTS))


def write_site(
    out: Path, folders: Sequence[Path], files: Sequence[tuple[dict[str, str], Any]] = ()
) -> list[Compile]:
    """Write pages about the codegen_dirs ``folders`` to ``out``; return the compiles. P0003.

    ``files`` are those of :func:`.files.read_files`.
    """
    compiles = []
    summaries = []
    for number, (folder, name) in enumerate(zip(folders, _names(folders), strict=True)):
        found = read_compile(folder, name)
        parts: dict[str, Any] = {}
        for key, part in _parts(found):
            _write(out, f"{number}/{key}", part)
            if "-" not in key:
                parts[key] = True
        summaries.append({**_summary(found), "parts": sorted(parts)})
        compiles.append(found)
    _write(out, "index", summaries)
    _write(out, "files", {"files": [facts for facts, _ in files]})
    for number, (_, content) in enumerate(files):
        _write(out, f"file-{number}", content)
    _write(out, "served", {})
    package = resources.files(__package__)
    for asset in _ASSETS:
        write_file(out / asset, (package / asset).read_bytes())
    return compiles


def _names(folders: Sequence[Path]) -> list[str]:
    """Return the shortest ends of the paths that tell the folders apart."""
    parts = [folder.absolute().parts for folder in folders]
    deep = 1
    while len({own[-deep:] for own in parts}) < len(parts) and deep < 64:
        deep += 1
    return ["/".join(own[-deep:]) for own in parts]


def data_script(key: str, part: Any) -> bytes:
    """Return a piece of data as a script. JSON.parse takes any key, `__proto__` too."""
    text = json.dumps(json.dumps(part, separators=(",", ":")))
    return f"dashboard.take({json.dumps(key)}, {text});\n".encode()


def _write(out: Path, key: str, part: Any) -> None:
    write_file(out / "data" / f"{key}.js", data_script(key, part))


def _summary(found: Compile) -> dict[str, Any]:
    report = found.report
    keys = (
        *("status", "device", "version", "steps", "cycles", "dram_words", "bound"),
        *("cycle_shares", "error", "operators", "options"),
    )
    return {
        **{key: report.get(key) for key in keys},
        "name": found.name,
        "folder": str(found.folder),
        "nodes": len(found.rows),
        "hosted": len(report["host_fallback"]) if found.report.get("host_fallback") else 0,
        "seconds": _seconds(report.get("passes", [])),
        "models": [name for name in MODELS if (found.folder / name).is_file()],
        "time": (found.folder / "report.json").stat().st_mtime,
    }


def _seconds(passes: Sequence[dict[str, Any]]) -> float:
    found = [row.get("seconds") for row in passes]
    return float(sum(one for one in found if isinstance(one, int | float)))


def _parts(found: Compile) -> Iterator[tuple[str, Any]]:
    """Yield the pieces of data of a compile; a piece that its files do not give is left out."""
    program, rows = _program_of(found), rows_of_nodes(found)
    if rows:
        yield "nodes", rows
    details = Details(found, program, rows)
    for first in range(0, len(rows), CHUNK):
        chunk = [details.of(first + k, row) for k, row in enumerate(rows[first : first + CHUNK])]
        yield f"nodes-{first // CHUNK}", chunk
    places = {row["node"]: k for k, row in enumerate(rows)}
    if found.graph is not None and found.target is not None:
        yield from graph_parts(found, program, rows, places)
    if program is not None and program.events:
        yield "timeline", time_line(program, places, found)
    if found.target is not None:
        if any(row["multiply_adds"] for row in found.rows):
            yield "products", roofline(found.rows, found.target, found.name)
        if any(row.get("expected") or row["mads"] for row in rows):
            yield "roofline", {}
    tuning = found.report.get("tuning")
    if isinstance(tuning, dict) and isinstance(tuning.get("tried"), list) and tuning["tried"]:
        yield "tuning", tuning
    changes = pass_changes(found.folder, found.report.get("passes", []))
    if changes:
        yield "passes", [asdict(one) for one in changes]
    yield "log", _log(found)


def _program_of(found: Compile) -> Program | None:
    """Return the program of a compile's app, and add what is wrong with it to the problems."""
    program = None
    if found.app is not None and found.target is not None:
        try:
            program = read_program(found.app, found.target)
            found.problems += program.problems
        except PycompilerError as problem:
            found.problems.append(str(problem))
    return program


def _log(found: Compile) -> dict[str, Any]:
    report = found.report
    keys = ("notes", "passes", "host_fallback", "environment", "cache", "schedule", "error")
    more = {}
    for name in _MORE:
        if (found.folder / name).is_file():
            try:
                more[name] = read_input(found.folder / name, TEXT_BYTES).decode(errors="replace")
            except PycompilerError as problem:
                more[name] = str(problem)
    try:
        files = sorted(path.name for path in found.folder.iterdir() if path.is_file())
        texts = logs(found.folder)
    except OSError:
        files, texts = [], []
    return {
        **{key: report.get(key) for key in keys},
        "unused": report.get("layout_spec_unused"),
        "problems": found.problems,
        "files": files,
        "logs": texts,
        "more": more,
    }
