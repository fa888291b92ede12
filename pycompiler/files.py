"""Reading and writing files of users: bounded, and in one piece.

Input must be a regular file: a device or a pipe may never end. A file that is written is built
beside its place, in a temporary one, and renamed when it is complete.

Whoever makes a temporary file or folder holds a lock on it (``flock``) for as long as it lives. The
system drops the lock when the process ends, however it ends. Thus every writer can tell leftovers
of dead processes, which it removes, from those of living ones.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import error

#: Most bytes of a model or an app, as in the reader of apps that is written in Rust.
MODEL_BYTES = 1 << 34
#: Most bytes of a file that people write: a list of layouts, a script.
TEXT_BYTES = 1 << 26

#: Behind the name of a file: that of the one beside it with its large tensors.
DATA = ".data"

#: Rows and columns of an array that are brought in order together.
_TILE = 128

#: What a file gets: bytes, or parts of which none is copied before it is written.
Content = bytes | Sequence[bytes | NDArray[Any]]

_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.pycompiler\Z", re.DOTALL)
_SHOWN = 32  # characters of the final name in the name of a temporary file
_PATIENCE = 60.0  # seconds to wait for another writer; it needs milliseconds
_PAUSE = 0.001

_KINDS: dict[Callable[[int], bool], str] = {
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a named pipe",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
    stat.S_ISSOCK: "a socket",
}


def reason_of(problem: BaseException) -> str:
    """Return why the system refuses, without the number of the error and the path."""
    return problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)


def read_input(path: Path, most: int = MODEL_BYTES) -> bytes:
    """Return the bytes of a regular file. P0001 if it cannot be read or has more than ``most``."""
    try:
        return read_regular(path, most)
    except (OSError, ValueError) as problem:
        raise error("P0001", path=path, reason=reason_of(problem)) from problem


def read_regular(path: Path, most: int) -> bytes:
    """Return the bytes of a regular file. OSError, also if it has more than ``most``."""
    # Opening a pipe would otherwise wait for somebody who writes to it.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        kind = next((text for test, text in _KINDS.items() if test(status.st_mode)), None)
        if kind is not None:
            raise OSError(f"it is {kind}, not a regular file")
        if status.st_size > most:
            raise OSError(f"it has {status.st_size} bytes, {most} is the most")
        # A file that grows meanwhile, or whose size the system does not know, is bounded too.
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(f"it has more than {most} bytes")
    return data


def trim(paths: Iterable[Path], most: int) -> None:
    """Remove the files that were not used for the longest time, until ``most`` bytes are left.

    The time of a change counts as use; whoever reads a file sets it with ``os.utime``. Files that
    other processes remove meanwhile are no error.
    """
    entries: list[tuple[float, int, Path]] = []
    for path in paths:
        with contextlib.suppress(OSError):
            facts = path.stat()
            entries.append((facts.st_mtime, facts.st_size, path))
    size = sum(own for _, own, _ in entries)
    for _, own, path in sorted(entries):
        if size <= most:
            return
        with contextlib.suppress(OSError):
            path.unlink()
            size -= own


def raw(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the bytes of an array, row-major and little-endian."""
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    return little.reshape(-1).view(np.uint8)


def pieces(content: Content) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a content, part by part."""
    for part in [content] if isinstance(content, bytes) else content:
        yield from [part] if isinstance(part, bytes) else (raw(one).data for one in _rows(part))


def _rows(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield an array in parts, which are brought in order tile by tile: columns miss the caches."""
    if array.ndim < 2 or array.flags.c_contiguous:
        yield array
        return
    for row in range(0, len(array), _TILE):
        rows, at = array[row : row + _TILE], range(0, array.shape[-1], _TILE)
        yield np.concatenate([rows[..., one : one + _TILE].copy() for one in at], axis=-1)


def put(path: Path | int, content: Content) -> None:
    """Write a content to a path, or to an open file, which is closed then."""
    with open(path, "wb") as file:
        file.writelines(pieces(content))


def write_file(path: Path, content: Content) -> None:
    """Write one file, and make the folders above it. P0003 if it cannot.

    What was there stays until the new content is complete. A device or a pipe gets the content
    directly.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            _write_directly(target, content)
            return
        with temporary_file(target.parent, target.name) as building:
            put(building, content)
            if target.exists():
                building.chmod(stat.S_IMODE(target.stat().st_mode))
            building.replace(target)
    except (OSError, ValueError) as problem:
        raise error("P0003", path=path, reason=blame(problem, path)) from problem


def _write_directly(path: Path, content: Content) -> None:
    if path.is_dir():
        raise IsADirectoryError("it is a folder")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as problem:
        if problem.errno == errno.ENXIO:
            raise OSError("nobody reads this pipe") from problem
        raise
    os.set_blocking(handle, True)
    put(handle, content)


def blame(problem: BaseException, path: Path) -> str:
    """Why the system refuses ``path``; names the folder above it that is to blame, if one is."""
    if not isinstance(problem, OSError) or not problem.strerror:
        return str(problem)
    blamed = Path(os.fsdecode(problem.filename or ""))
    if blamed not in path.absolute().parents:
        return problem.strerror
    file = isinstance(problem, FileExistsError | NotADirectoryError)
    return f"{blamed} is no folder" if file else f"{problem.strerror}: {blamed}"


# -- temporary files and folders, and their locks --------------------------------------------------


@contextlib.contextmanager
def temporary_folder(parent: Path, name: str) -> Iterator[Path]:
    """Make a hidden folder in ``parent`` for what will be ``name``; it is removed at the end.

    Leftovers of dead processes in ``parent`` are removed first.
    """
    remove_leftovers(parent)
    with _temporary(parent, name, os.mkdir) as path:
        yield path


@contextlib.contextmanager
def temporary_file(parent: Path, name: str) -> Iterator[Path]:
    """Make a hidden empty file in ``parent``, to become ``name``; it is removed if it is not moved.

    Leftovers of dead processes in ``parent`` are removed first.
    """
    remove_leftovers(parent)
    with _temporary(parent, name, lambda path: path.open("xb").close()) as path:
        yield path


@contextlib.contextmanager
def _temporary(parent: Path, name: str, make: Callable[[Path], None]) -> Iterator[Path]:
    path, lock = None, None
    try:
        while lock is None:
            path = parent / f".{name[:_SHOWN]}.{secrets.token_hex(8)}.pycompiler"
            make(path)
            # Until it is locked, another process may take it for a leftover and remove it.
            with contextlib.suppress(FileNotFoundError):
                lock = lock_of(path)
        yield path  # type: ignore[misc]
    finally:
        if path is not None:
            _remove(path)
        if lock is not None:
            os.close(lock)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def remove_leftovers(parent: Path) -> None:
    """Remove temporary files and folders in ``parent`` whose processes are dead."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for path in [Path(entry.path) for entry in entries if _TEMPORARY.match(entry.name)]:
            with contextlib.suppress(OSError):
                handle = _opened(path)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(path)
                finally:
                    os.close(handle)


def is_temporary(name: str) -> bool:
    """Whether files and folders of that name are temporary ones of ours."""
    return _TEMPORARY.match(name) is not None


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def lock_of(path: Path) -> int:
    """Wait for the lock of a file or folder; closing the returned handle gives it back.

    FileNotFoundError if ``path`` is removed or replaced meanwhile, TimeoutError if somebody holds
    the lock for a minute. File systems without locks give one to everybody.
    """
    handle = _opened(path)
    try:
        give_up = time.monotonic() + _PATIENCE
        while not _try_lock(handle):
            if time.monotonic() > give_up:
                raise TimeoutError(f"another process has been writing it for {_PATIENCE:.0f} s")
            time.sleep(_PAUSE)
        if not os.path.samestat(os.fstat(handle), os.lstat(path)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    except BaseException:
        os.close(handle)
        raise
    return handle


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # this file system has no locks
        return True
    return True
