"""Diagnostics: one exception hierarchy and the table of everything pycompiler can refuse.

A diagnostic is raised with :func:`error` by its code; message, remedy and exit code come from
:data:`TABLE`. Code, fields and place stay attributes of the exception, so that callers never parse
text. ``render`` gives the form every command prints.
"""

from __future__ import annotations

from typing import Any

from .kinds import BUG_EXIT as BUG_EXIT
from .kinds import USAGE_EXIT as USAGE_EXIT
from .kinds import USER_EXIT as USER_EXIT
from .kinds import ExportError as ExportError
from .kinds import FileError as FileError
from .kinds import GraphError as GraphError
from .kinds import HostFallbackWarning as HostFallbackWarning
from .kinds import InternalError as InternalError
from .kinds import Kind as Kind
from .kinds import LayoutSpecWarning as LayoutSpecWarning
from .kinds import NoRoomError as NoRoomError
from .kinds import NoSwitchError as NoSwitchError
from .kinds import OptionError as OptionError
from .kinds import OptionWarning as OptionWarning
from .kinds import PlanError as PlanError
from .kinds import PycompilerError as PycompilerError
from .kinds import PycompilerWarning as PycompilerWarning
from .kinds import RunError as RunError
from .kinds import ShapeWarning as ShapeWarning
from .kinds import SourceLocation as SourceLocation
from .kinds import UsageError as UsageError
from .kinds import located as located
from .kinds import place_of as place_of
from .table import TABLE as TABLE


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
