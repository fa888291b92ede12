"""The folder of a compilation, written in one piece.

It is built beside its final place and renamed when complete; where an older folder holds files of
the user, or is the current one, its files are renamed into that. A failed compile leaves an older
folder as it was and writes its own report under ``<folder>.failed``.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..errors import PycompilerError, error

MODEL_ONNX, MODEL_VSM, MODEL_APP = "model.onnx", "model.vsm", "model.app"
L3IR, REPORT = "l3ir.txt", "report.json"
_OWN = frozenset({MODEL_ONNX, MODEL_VSM, MODEL_APP, L3IR, REPORT})
_DUMP = re.compile(r"layout\.\w+\.txt\Z")
_SHOWN = 32  # characters of the folder's name in names of temporary folders beside it


def _is_own(name: str) -> bool:
    """Whether a compile writes files of that name."""
    return name in _OWN or _DUMP.match(name) is not None


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make ``folder`` hold ``files``, and of an older one only what no compile wrote.

    P0003 if it cannot.
    """
    try:
        target = folder.resolve()
        if not target.name:
            raise OSError("it is the root folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not target.is_dir():
            raise NotADirectoryError(f"{target} is no folder")
        building = Path(tempfile.mkdtemp(prefix=f".{target.name[:_SHOWN]}.", dir=target.parent))
        try:
            # mkdtemp makes a folder only its owner may read; the result gets the usual mode.
            building.chmod(0o777 & ~_umask())
            for name, content in files.items():
                (building / name).write_bytes(content)
            _put(building, target, set(files))
        finally:
            shutil.rmtree(building, ignore_errors=True)
    except (OSError, ValueError) as problem:
        raise error("P0003", path=folder, reason=_reason(problem, folder)) from problem


def write_file(path: Path, content: bytes) -> None:
    """Write one file, and make the folders above it. P0003 if it cannot."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except (OSError, ValueError) as problem:
        raise error("P0003", path=path, reason=_reason(problem, path)) from problem


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _put(building: Path, folder: Path, names: set[str]) -> None:
    """Put ``building`` in the place of ``folder``; on failure the old files are back."""
    if not folder.exists():
        building.rename(folder)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name[:_SHOWN]}.old.", dir=folder.parent))
    try:
        if _only_ours(folder):
            _swap_folder(building, folder, aside / "folder")
        else:
            _swap_files(building, folder, aside, names)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _only_ours(folder: Path) -> bool:
    """Whether nobody would miss the folder itself: no file of the user, no current folder."""
    here = Path.cwd().is_relative_to(folder)
    return not here and all(_is_own(entry.name) for entry in folder.iterdir())


def _swap_folder(building: Path, folder: Path, old: Path) -> None:
    folder.rename(old)
    try:
        building.rename(folder)
    except OSError:
        old.rename(folder)
        raise


def _swap_files(building: Path, folder: Path, aside: Path, names: set[str]) -> None:
    """File by file, for a folder that must stay the one it is."""
    there = {e.name for e in folder.iterdir() if _is_own(e.name) and e.is_file()}
    done: list[tuple[Path, Path]] = []
    try:
        moves = [(folder / name, aside / name) for name in sorted(there)]
        moves += [(building / name, folder / name) for name in sorted(names)]
        for source, destination in moves:
            source.rename(destination)
            done.append((source, destination))
    except OSError:
        for source, destination in reversed(done):
            destination.rename(source)
        raise


def _failure_folder(folder: Path) -> Path:
    # `.` and `..` have no name of their own.
    plain = folder.absolute()
    named = plain.resolve() if plain.name in ("", "..") else plain
    return named.with_name(named.name + ".failed")


def write_failure(folder: Path, report: str) -> None:
    """Leaves the report of a failed compile under ``<folder>.failed``, if it can."""
    # If there is no place for it, the compile's own diagnostic says more than that.
    with contextlib.suppress(PycompilerError, OSError, ValueError):
        write_folder(_failure_folder(folder), {REPORT: report.encode()})


def clear_failure(folder: Path) -> None:
    """Remove the report of an earlier failure."""
    with contextlib.suppress(OSError, ValueError):
        failed = _failure_folder(folder)
        (failed / REPORT).unlink()
        failed.rmdir()


def _reason(problem: Exception, folder: Path) -> str:
    """Why the system refuses ``folder``; names the folder above it that is to blame, if one is."""
    if not isinstance(problem, OSError) or not problem.strerror:
        return str(problem)
    blamed = Path(os.fsdecode(problem.filename or ""))
    if blamed not in folder.absolute().parents:
        return problem.strerror
    file = isinstance(problem, FileExistsError | NotADirectoryError)
    return f"{blamed} is no folder" if file else f"{problem.strerror}: {blamed}"


def read_file(folder: Path, name: str) -> bytes:
    """One file of a codegen_dir. P0004 if it is not there."""
    path = folder / name
    if not folder.is_dir():
        reason = "it is no folder" if folder.exists() else "there is no such folder"
        raise error("P0004", path=folder, reason=reason, wanted=name)
    if not path.is_file():
        raise error("P0004", path=folder, reason=f"{name} is missing", wanted=name)
    try:
        return path.read_bytes()
    except OSError as problem:
        raise error("P0001", path=path, reason=problem.strerror or str(problem)) from problem
