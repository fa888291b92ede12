"""The folder of a compilation, written in one piece.

It is built beside its final place and renamed when complete. A failed compile leaves an older
folder as it was and writes its own report under ``<folder>.failed``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..errors import PycompilerError, error

MODEL_ONNX, MODEL_VSM, MODEL_APP = "model.onnx", "model.vsm", "model.app"
L3IR, REPORT = "l3ir.txt", "report.json"
_OWN = frozenset({MODEL_ONNX, MODEL_VSM, MODEL_APP, L3IR, REPORT})


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make ``folder`` hold ``files``, and of an older one only what no compile wrote.

    P0003 if it cannot.
    """
    try:
        folder = folder.resolve()
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"it is there and no folder: {folder}")
        building = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            # mkdtemp makes a folder only its owner may read; the result gets the usual mode.
            building.chmod(0o777 & ~_umask())
            for name, content in files.items():
                (building / name).write_bytes(content)
            _swap(building, folder)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    except OSError as problem:
        raise error("P0003", path=folder, reason=problem.strerror or str(problem)) from problem


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _swap(building: Path, folder: Path) -> None:
    """Put ``building`` in the place of ``folder``; on failure the old folder is back.

    Files that no compile wrote, the user's own, move along.
    """
    if not folder.exists():
        building.rename(folder)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent))
    old = aside / "folder"
    kept = [entry.name for entry in folder.iterdir() if entry.name not in _OWN]
    folder.rename(old)
    try:
        for name in kept:
            (old / name).rename(building / name)
        building.rename(folder)
    except OSError:
        for name in kept:
            if (building / name).exists():
                (building / name).rename(old / name)
        old.rename(folder)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def write_failure(folder: Path, report: str) -> None:
    """Leaves the report of a failed compile under ``<folder>.failed``, if it can."""
    # If there is no place for it, the compile's own diagnostic says more than that.
    with contextlib.suppress(PycompilerError):
        write_folder(folder.with_name(folder.name + ".failed"), {REPORT: report.encode()})


def clear_failure(folder: Path) -> None:
    """Remove the report of an earlier failure."""
    failed = folder.with_name(folder.name + ".failed")
    with contextlib.suppress(OSError):
        (failed / REPORT).unlink()
        failed.rmdir()


def read_file(folder: Path, name: str) -> bytes:
    """One file of a codegen_dir. P0004 if it is not there."""
    path = folder / name
    if not folder.is_dir():
        raise error("P0004", path=folder, reason="there is no such folder", wanted=name)
    if not path.is_file():
        raise error("P0004", path=folder, reason=f"{name} is missing", wanted=name)
    try:
        return path.read_bytes()
    except OSError as problem:
        raise error("P0001", path=path, reason=problem.strerror or str(problem)) from problem
