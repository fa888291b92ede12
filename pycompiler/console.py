"""How commands show diagnostics and warnings: on stderr, one each."""

from __future__ import annotations

import os
import sys
import traceback
import warnings

from .errors import HostFallbackWarning, PycompilerError

#: If set, diagnostics come with Python's traceback.
TRACEBACK_VARIABLE = "PYCOMPILER_TRACEBACK"


def report_problem(problem: PycompilerError) -> int:
    """Print a diagnostic to stderr; its exit code."""
    sys.stdout.flush()
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(problem)
    print(problem.render(), file=sys.stderr)
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
