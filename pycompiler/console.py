"""How commands show diagnostics and warnings: on stderr, one each."""

from __future__ import annotations

import os
import sys
import traceback
import warnings

from rich.console import Console

from .errors import HostFallbackWarning, PycompilerError

#: If set, diagnostics come with Python's traceback.
TRACEBACK_VARIABLE = "PYCOMPILER_TRACEBACK"

_WIDTH = 160  # characters of a table in a file or a pipe


def table_console() -> Console:
    """Return a console for tables on stdout, wide enough for layouts where it is no terminal."""
    given = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, width=None if given else _WIDTH)


def report_problem(problem: PycompilerError) -> int:
    """Print a diagnostic to stderr; its exit code."""
    sys.stdout.flush()
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(problem)
    print(f"{problem.render()}\nmore: pycompiler explain {problem.code}", file=sys.stderr)
    return problem.exit_code


def show_warnings_plainly() -> None:
    """From now on host fallback is shown as one line without the place in our source."""
    before = warnings.showwarning

    def show(
        message: Warning | str, category: type[Warning], *args: object, **kwargs: object
    ) -> None:
        if issubclass(category, HostFallbackWarning):
            print(f"warning: {message}", file=sys.stderr)
        else:
            before(message, category, *args, **kwargs)  # type: ignore[arg-type]

    warnings.showwarning = show
