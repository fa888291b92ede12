"""Files of a command: what it reads and what it writes must be different files."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from emu2.errors import EmulatorError

_Key = tuple[str, int | str, int | str]
_META = "emu2.file_roles"

if TYPE_CHECKING:
    _Type = click.ParamType[Any, Any]
else:  # older versions of click have no parameters for it
    _Type = click.ParamType


def _key(path: str | os.PathLike[str] | int) -> _Key | None:
    """Return what all names of a file share; None for what is no file, such as `-` or a pipe."""
    if path == "-":
        return None
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        # A file that is still to be made; links to it lead to the same name.
        return None if isinstance(path, int) else ("name", os.path.realpath(os.fspath(path)), "")
    return ("file", facts.st_dev, facts.st_ino) if stat.S_ISREG(facts.st_mode) else None


class FileRoles:
    """The files that a command reads and writes so far, with what each is to the user."""

    def __init__(self) -> None:
        """Begin with the files that the standard streams are connected to."""
        self._read: dict[_Key, str] = {}
        self._written: dict[_Key, str] = {}
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            key = _key(number)
            if key is not None:
                (self._written if number else self._read).setdefault(key, name)

    def read(self, title: str, *paths: str | os.PathLike[str]) -> str | None:
        """Add files that are read. Returns which output would overwrite one, if there is one."""
        for key in (key for key in map(_key, paths) if key is not None):
            if key in self._written:
                return f"{self._written[key]} would overwrite {title}"
            self._read.setdefault(key, title)
        return None

    def write(self, title: str, *paths: str | os.PathLike[str]) -> str | None:
        """Add files that are written. Returns what they would overwrite, if there is something."""
        for key in (key for key in map(_key, paths) if key is not None):
            other = self._read.get(key, self._written.get(key))
            if other is not None:
                return f"{title} would overwrite {other}"
            self._written[key] = title
        return None


def roles_of(context: click.Context) -> FileRoles:
    """Return the files of the command that runs."""
    found: FileRoles = context.meta.setdefault(_META, FileRoles())
    return found


class FileType(_Type):
    """A file of a command: two parameters never name one file, if one of them is written."""

    name = "path"

    def __init__(self, *, written: bool) -> None:
        """Remember whether the file is written."""
        self.written = written

    def files(self, path: str) -> Iterable[str | os.PathLike[str]]:
        """Return the files that a parameter stands for."""
        return [path]

    def refuse(self, path: str, reason: str) -> Exception:
        """Return the error of a file with two roles."""
        return overwrites(path, reason)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Compare the file with those of the other parameters."""
        if ctx is not None and param is not None:
            named = isinstance(param, click.Option)
            title = max(param.opts, key=len) if named else param.human_readable_name
            roles, path = roles_of(ctx), os.fspath(value)
            reason = (roles.write if self.written else roles.read)(title, *self.files(path))
            if reason is not None:
                raise self.refuse(path, reason)
        return value


class SpecType(FileType):
    """A machine: the name of a built-in one, a file, or a folder of files."""

    def __init__(self) -> None:
        """Say that a machine is read."""
        super().__init__(written=False)

    def files(self, path: str) -> Iterable[str | os.PathLike[str]]:
        """Return the files of a machine that is no built-in one."""
        if os.path.isdir(path):
            return [entry.path for entry in os.scandir(path) if entry.name.endswith(".toml")]
        return [path] if os.path.isfile(path) else []


READ = FileType(written=False)
WRITTEN = FileType(written=True)


def overwrites(path: str | os.PathLike[str], reason: str) -> EmulatorError:
    """Return the error of a file that is read and written, or written twice."""
    help = "name another file"
    return EmulatorError(code="F0008", message=f"{os.fspath(path)}: {reason}", help=help)


def claim(
    path: str | os.PathLike[str],
    title: str,
    *,
    written: bool,
    refuse: Callable[[str | os.PathLike[str], str], Exception] = overwrites,
) -> None:
    """Add a file that no parameter of the command names. EmulatorError F0008, or `refuse`'s."""
    roles = roles_of(click.get_current_context())
    reason = (roles.write if written else roles.read)(title, path)
    if reason is not None:
        raise refuse(path, reason)


def spec_option(command: Any) -> Any:
    """Add the option `--spec`."""
    help = "Built-in spec, folder of TOML files, or TOML file."
    return click.option(
        "--spec", "spec_name", default="mncore2", show_default=True, type=SpecType(), help=help
    )(command)
