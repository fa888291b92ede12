"""The kinds of diagnostics, and what they are made of."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emu2.errors import PortableError

USER_EXIT, USAGE_EXIT, BUG_EXIT = 1, 2, 3


@dataclass(frozen=True)
class SourceLocation:
    """Where a diagnostic points: a file, and line and column (from 1) where known."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        parts = [self.file] + [str(n) for n in (self.line, self.column) if n is not None]
        return ":".join(parts)


def place_of(source: str | None) -> SourceLocation | None:
    """Return the place that ``file:line`` names."""
    if source is None:
        return None
    file, _, line = source.rpartition(":")
    return SourceLocation(file, int(line))


class PycompilerError(PortableError):
    """A diagnostic of pycompiler. ``code``, ``fields``, ``place`` and ``help`` say it in parts."""

    exit_code = USER_EXIT

    def __init__(
        self, code: str, message: str, help: str, place: SourceLocation | None, **fields: Any
    ):
        super().__init__(f"[{code}] {message} ({help})")
        self.add_note(self.more(code))
        self.code = code
        self.message = message
        self.help = help
        self.place = place
        self.fields = fields

    @staticmethod
    def more(code: str) -> str:
        """Return the line that says where a code is explained; tracebacks end with it."""
        return f"more: pycompiler explain {code}"

    def render(self) -> str:
        """Return the diagnostic as commands print it."""
        lines = [f"error[{self.code}]: {self.message}"]
        if self.place is not None:
            lines.append(f"  --> {self.place}")
        lines.append(f"  help: {self.help}")
        return "\n".join(lines)


class UsageError(PycompilerError):
    """The command line or an API call is wrong before any file is looked at."""

    exit_code = USAGE_EXIT


class FileError(PycompilerError):
    """A file or folder is missing, unreadable, or not what it should be."""


class ExportError(PycompilerError):
    """The function cannot become a static ONNX graph."""


class GraphError(PycompilerError):
    """A graph or a layout is malformed."""


class PlanError(PycompilerError):
    """No plan fits the machine or the options."""


@contextmanager
def located(path: Path, also: type[PycompilerError] = GraphError) -> Iterator[None]:
    """Make ``path`` the place of diagnostics of a model, and of ``also``, that name no other."""
    try:
        yield
    except (ExportError, GraphError, PlanError, also) as problem:
        problem.place = problem.place or SourceLocation(str(path))
        raise


class NoRoomError(PlanError):
    """The tensors of a node do not fit LM."""


class NoSwitchError(PlanError):
    """No passes lead from one layout to another within LM."""


class OptionError(PycompilerError):
    """An option has an unknown key or value."""


class RunError(PycompilerError):
    """A call, a device or a device program failed at run time."""


class InternalError(PycompilerError):
    """A bug of pycompiler."""

    exit_code = BUG_EXIT


@dataclass(frozen=True)
class Kind:
    """One row of the table. ``example`` fills the template in tests and documentation."""

    raises: type[PycompilerError]
    message: str
    help: str
    example: dict[str, Any] = field(default_factory=dict)


class PycompilerWarning(UserWarning):
    """A compile does something else than its caller may expect."""


class LayoutSpecWarning(PycompilerWarning):
    """An entry of a file of forced layouts fits no operator."""


class ShapeWarning(PycompilerWarning):
    """A model declares shapes that do not follow from its inputs."""


class HostFallbackWarning(PycompilerWarning):
    """Operators that the device cannot run run on the host between device segments."""


class OptionWarning(PycompilerWarning):
    """Options or arguments of a compile change nothing."""
