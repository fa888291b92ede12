"""The folder of a compilation: at any moment it is the whole old one or the whole new one.

A new folder is built under a temporary name and renamed when it is complete. A folder of an
earlier compile is exchanged with the new one in one system call. A folder that holds files of the
user, or is the current folder, cannot be replaced; :func:`_switch` changes all its files together.
A failed compile leaves an older folder as it was and writes its own report under
``<folder>.failed``.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import PycompilerError, error
from ..files import (
    DATA,
    MODEL_BYTES,
    Content,
    blame,
    lock_of,
    put,
    read_regular,
    reason_of,
    remove_leftovers,
    temporary_folder,
)

MODEL_ONNX, MODEL_VSM, MODEL_APP = "model.onnx", "model.vsm", "model.app"
MODEL_DATA = f"{MODEL_ONNX}{DATA}"
L3IR, STRIPPED, TRACE = "l3ir.txt", "l3ir_stripped.onnx", "trace.json"
REPORT, LOG_TEXT, LOG_JSON = "report.json", "out.txt", "out.json"
SIMULATION = "simulation_result.json"
_OWN = frozenset(
    {
        *(MODEL_ONNX, MODEL_DATA, MODEL_VSM, MODEL_APP, L3IR, STRIPPED, TRACE),
        *(REPORT, LOG_TEXT, LOG_JSON, SIMULATION),
    }
)
#: The names of the dumps of planners begin so.
DUMPS = "layout."
#: So do those of the graph behind each rewrite that changed it.
REWRITE = "rewrite."
_DUMP = re.compile(r"(layout|rewrite\.\d+)\.\w+\.txt\Z")

#: While the files of a folder are changed: a link to the folder that holds the current ones.
_FILES = ".pycompiler"
_ATTEMPTS = 100  # how often other processes may replace or remove the folder meanwhile

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # constants of Linux: <fcntl.h>, renameat2(2)


def files_of(folder: Path) -> list[Path]:
    """Return the files that a compile writes to a folder, and the dumps that it replaces there."""
    return [folder / name for name in sorted(_OWN)] + [
        one for kind in (DUMPS, REWRITE) for one in sorted(folder.glob(f"{kind}*.txt"))
    ]


def _is_own(name: str) -> bool:
    """Whether a compile writes files of that name."""
    return name in _OWN or _DUMP.match(name) is not None


def write_folder(folder: Path, files: Mapping[str, Content]) -> None:
    """Write ``files`` to ``folder`` and remove files of earlier compiles; other files stay.

    Several processes may write one folder; the last one wins. P0003 if the folder cannot be
    written; then it is unchanged.
    """
    try:
        target = Path(os.path.realpath(folder))
        if not target.name:
            raise OSError("it is the root folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not _written(target, files):
            raise OSError("other processes replace or remove it all the time")
    except (OSError, ValueError) as problem:
        raise error("P0003", path=folder, reason=blame(problem, folder)) from problem


def _written(folder: Path, files: Mapping[str, Content]) -> bool:
    inside = False
    for attempt in range(_ATTEMPTS):
        try:
            if not folder.exists():
                done = _create(folder, files)
            elif not folder.is_dir():
                raise NotADirectoryError(f"{folder} is no folder")
            elif inside or _must_stay(folder):
                done = _put_inside(folder, files)
            else:
                done = _exchange(folder, files)
                inside = not done
        except FileNotFoundError:
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        if done:
            return True
    return False


def _must_stay(folder: Path) -> bool:
    """Whether the folder cannot be replaced: it is the current one, or has files of the user."""
    with contextlib.suppress(FileNotFoundError):  # the current folder may be removed
        if Path.cwd().is_relative_to(folder):
            return True
    return not all(_is_own(path.name) and not path.is_dir() for path in folder.iterdir())


def _fill(folder: Path, files: Mapping[str, Content]) -> None:
    folder.mkdir()
    for name, content in files.items():
        put(folder / name, content)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder against other writers. FileNotFoundError if one replaces it meanwhile."""
    lock = lock_of(folder)
    try:
        yield
    finally:
        os.close(lock)


def _create(folder: Path, files: Mapping[str, Content]) -> bool:
    """Make the folder; False if another process made it meanwhile."""
    with temporary_folder(folder.parent, folder.name) as place:
        new = place / "new"
        _fill(new, files)
        try:
            new.rename(folder)
        except OSError:
            if folder.exists():
                return False
            raise
    return True


def _exchange(folder: Path, files: Mapping[str, Content]) -> bool:
    """Exchange the folder with a new one.

    False if the folder must stay after all, or if the system, the file system or the permissions
    of the parent folder do not allow the exchange.
    """
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None or not os.access(folder.parent, os.W_OK | os.X_OK):
        return False
    with temporary_folder(folder.parent, folder.name) as place:
        new = place / "new"
        _fill(new, files)
        with _locked(folder):
            if _must_stay(folder):
                return False
            new.chmod(stat.S_IMODE(folder.stat().st_mode))
            names = os.fsencode(new), os.fsencode(folder)
            return not rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE)


def _put_inside(folder: Path, files: Mapping[str, Content]) -> bool:
    """Replace the files of a folder that must stay."""
    with _locked(folder):
        _settle(folder)
        with temporary_folder(folder, "files") as place:
            _fill(place / "new", files)
            _switch(folder, place)
    return True


def _switch(folder: Path, place: Path) -> None:
    """Replace all files of ``folder`` by those of ``place/new`` in one step.

    First every file becomes a link through the single link ``.pycompiler``. Then that link changes
    its target from ``place/old`` to ``place/new``. Last, files replace the links. At any time, also
    after the process was killed, a reader sees either all old files or all new ones.
    """
    old, links = place / "old", place / "links"
    old.mkdir()
    links.mkdir()
    there = {path.name for path in folder.iterdir() if _is_own(path.name) and path.exists()}
    for name in there:
        if (folder / name).is_dir():
            raise IsADirectoryError(f"{folder / name} is a folder")
        _copy(folder / name, old / name)
    try:
        _point(folder / _FILES, Path(place.name, "old"), links)
        for name in sorted(there | {entry.name for entry in (place / "new").iterdir()}):
            _point(folder / name, Path(_FILES, name), links)
        _point(folder / _FILES, Path(place.name, "new"), links)
    finally:
        _settle(folder)


def _copy(source: Path, copy: Path) -> None:
    try:
        os.link(source.resolve(), copy)
    except OSError:  # a file of another user or file system, or a file system without hard links
        shutil.copy2(source, copy)


def _point(link: Path, target: Path, made_in: Path) -> None:
    """Make ``link`` a symbolic link to ``target``, in one step."""
    (pending := made_in / link.name).symlink_to(target)
    pending.replace(link)


def _settle(folder: Path) -> None:
    """Replace links by files after a switch, even one that was killed, and clean up."""
    if (folder / _FILES).is_symlink():
        for path in list(folder.iterdir()):
            link = Path(_FILES, path.name)
            if path.is_symlink() and path.readlink() == link:
                try:
                    (folder / link).replace(path)
                except FileNotFoundError:  # the new files have none of that name
                    path.unlink()
        (folder / _FILES).unlink()
    remove_leftovers(folder)


def _failure_folder(folder: Path) -> Path:
    # `.` and `..` must be resolved to get a name.
    plain = folder.absolute()
    named = Path(os.path.realpath(plain)) if plain.name in ("", "..") else plain
    return named.with_name(named.name + ".failed")


def write_failure(folder: Path, report: str, files: Mapping[str, Content] | None = None) -> None:
    """Write what a failed compile leaves to ``<folder>.failed``, if possible."""
    # If that fails, the diagnostic of the compile is more useful than this one.
    written = {**(files or {}), REPORT: report.encode(errors="backslashreplace")}
    with contextlib.suppress(PycompilerError, OSError, ValueError):
        write_folder(_failure_folder(folder), written)


def clear_failure(folder: Path) -> None:
    """Remove what an earlier failure left; files of the user stay."""
    with contextlib.suppress(OSError, ValueError):
        failed = _failure_folder(folder)
        for path in failed.iterdir():
            if _is_own(path.name):
                path.unlink()
        failed.rmdir()


def read_file(folder: Path, name: str) -> bytes:
    """Return the content of one file of a codegen_dir. P0004 if it is missing."""
    path = folder / name
    if not folder.is_dir():
        reason = "it is no folder" if folder.exists() else "there is no such folder"
        raise error("P0004", path=folder, reason=reason, wanted=name)
    for _ in range(_ATTEMPTS):
        # A writer may have moved the file on while the system followed the link to it.
        try:
            return read_regular(path, MODEL_BYTES)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as problem:
            raise error("P0001", path=path, reason=reason_of(problem)) from problem
    raise error("P0004", path=folder, reason=f"{name} is missing", wanted=name)
