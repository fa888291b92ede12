"""Loads an app from its file; no torch is needed."""

from __future__ import annotations

from pathlib import Path

from ..app.model import App
from ..app.reader import read_app
from ..app.verify import verify_app
from ..errors import PycompilerError, error
from ..files import read_input
from ..machine import Target
from ..report.codegen_dir import MODEL_APP, read_file
from .device import Board, find_device
from .executable import DeviceFunction
from .places import with_places
from .registered_values import Registry


def app_of(folder: Path) -> App:
    """Return the app of a codegen_dir. P0004, P0501, P0502."""
    return read_app(read_file(folder, MODEL_APP), str(folder / MODEL_APP))


def target_of(app: App, path: Path | str, device: str | None) -> Target:
    """Return the machine of an app, or of ``device`` if it is that one. P0503, P0601."""
    found = find_device(device or f"emu2:{app.target}")
    if found.machine is None or found.target.name != app.target:
        raise error("P0503", path=path, found=app.target, device=found.name)
    return found.target


def load_app(path: Path | str, device: str | None = None) -> DeviceFunction:
    """Return the function of an app file, on a board of its own. P0001, P0501 to P0503, P0601.

    ``device`` names the machine if it is not found by the name in the file.
    """
    app = read_app(read_input(Path(path)), str(path))
    return _function(app, str(path), Board(target_of(app, path, device)), None)


def placed_app(data: bytes, path: str, device: str | None = None) -> App:
    """Return the app of a file's bytes with the place of every value in DRAM.

    P0501 to P0503, P0601. A plain compile leaves the places out: only the reader without the
    compiler needs them. ``device`` is that of :func:`load_app`.
    """
    app = read_app(data, path)
    target = target_of(app, path, device)
    verify_app(app, target, path)
    return with_places(app, target)


def function_of(
    data: bytes, path: str, board: Board, registry: Registry | None = None
) -> DeviceFunction:
    """Return the function of an app's bytes; ``path`` names it in diagnostics. P0501 to P0503."""
    return _function(read_app(data, path), path, board, registry)


def _function(app: App, path: str, board: Board, registry: Registry | None) -> DeviceFunction:
    if app.target != board.target.name:
        raise error("P0503", path=path, found=app.target, device=board.target.name)
    verify_app(app, board.target, path)
    try:
        return DeviceFunction(app, board, registry)
    except PycompilerError as problem:
        if problem.code not in ("P0401", "P0402", "P0403"):
            raise
        reason = f"its program is damaged ({problem})"
        raise error("P0501", path=path, reason=reason) from problem
