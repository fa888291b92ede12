"""Diagnostics: one exception hierarchy and the table of everything pycompiler can refuse.

A diagnostic is raised with :func:`error` by its code; message, remedy and exit code come from
:data:`TABLE`. Code, fields and place stay attributes of the exception, so that callers never parse
text. ``render`` gives the form every command prints.
"""

from __future__ import annotations

from typing import Any

from .kinds import (
    BUG_EXIT,
    USAGE_EXIT,
    USER_EXIT,
    ExportError,
    FileError,
    GraphError,
    HostFallbackWarning,
    InternalError,
    Kind,
    LayoutSpecWarning,
    NoRoomError,
    NoSwitchError,
    OptionError,
    OptionWarning,
    PlanError,
    PycompilerError,
    PycompilerWarning,
    RunError,
    ShapeWarning,
    SourceLocation,
    UsageError,
    located,
    place_of,
)
from .table import TABLE

__all__ = [
    "BUG_EXIT",
    "TABLE",
    "USAGE_EXIT",
    "USER_EXIT",
    "ExportError",
    "FileError",
    "GraphError",
    "HostFallbackWarning",
    "InternalError",
    "Kind",
    "LayoutSpecWarning",
    "NoRoomError",
    "NoSwitchError",
    "OptionError",
    "OptionWarning",
    "PlanError",
    "PycompilerError",
    "PycompilerWarning",
    "RunError",
    "ShapeWarning",
    "SourceLocation",
    "UsageError",
    "error",
    "internal",
    "located",
    "place_of",
]


def error(code: str, *, place: SourceLocation | None = None, **fields: Any) -> PycompilerError:
    """Return the exception of row ``code``; ``fields`` fill its templates. The caller raises it.

    ``near`` asks for the name that may be meant (:func:`emu2.near.did_you_mean`), if one is near.
    """
    kind = TABLE[code]
    message, help = kind.message.format(**fields), kind.help.format(**{"near": "", **fields})
    return kind.raises(code, message, help, place, **fields)


def internal(problem: BaseException) -> PycompilerError:
    """Return an unexpected exception as the diagnostic of a bug, or of a host without memory."""
    if isinstance(problem, MemoryError):
        return error("P0902", reason=str(problem) or "MemoryError")
    return error("P0901", reason=f"{type(problem).__name__}: {problem}")
