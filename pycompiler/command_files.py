"""Files of the commands: what a command reads and what it writes must be different files."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click

from emu2 import file_roles
from emu2.file_roles import FileRoles, FileType

from .errors import PycompilerError, error
from .report.codegen_dir import files_of


class _PathType(FileType):
    """A file or a codegen_dir, as a Path."""

    def files(self, path: str) -> Iterable[Path]:
        """Return the file, or the files that a compile writes to the folder."""
        return files_of(Path(path)) if Path(path).is_dir() else [Path(path)]

    def refuse(self, path: str, reason: str) -> Exception:
        """Return P0010."""
        return overwrites(Path(path), reason)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path."""
        return Path(super().convert(value, param, ctx))


class _NewFolder(_PathType):
    """The folder of a compile, which need not exist."""

    def files(self, path: str) -> Iterable[Path]:
        """Return the files that the compile will write."""
        return [Path(path), *files_of(Path(path))]


#: Adds a file that no parameter of the command names: path, title, `written`. P0010.
claim = partial(file_roles.claim, refuse=lambda path, reason: overwrites(Path(path), reason))
#: Adds a file of data that belongs to a model.
claim_data = partial(claim, title="data of MODEL", written=False)

READ = _PathType(written=False)
WRITTEN = _PathType(written=True)
NEW_FOLDER = _NewFolder(written=True)


def overwrites(path: Path, reason: str) -> PycompilerError:
    """Return P0010 for a file that is read and written, or written twice."""
    return error("P0010", path=path, reason=reason)


def check_written(named: Iterable[tuple[str, Path | None]]) -> None:
    """Check that outputs, each with the option that names it, are different files. P0010."""
    roles = FileRoles()
    for option, path in named:
        if path is not None and (reason := roles.write(option, path)) is not None:
            raise overwrites(path, reason)
