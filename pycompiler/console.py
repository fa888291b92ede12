"""How commands show diagnostics and warnings: on stderr, one each."""

from __future__ import annotations

import io
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress

import click
from rich.console import Console

from emu2.streams import drop, tell

from .errors import USER_EXIT, PycompilerError, PycompilerWarning, error, internal

#: If set, diagnostics come with Python's traceback.
TRACEBACK_VARIABLE = "PYCOMPILER_TRACEBACK"

#: Exit code of a command that the user stopped: 128 and the number of SIGINT.
INTERRUPTED_EXIT = 130

_WIDTH = 160  # characters of a table in a file or a pipe


def table_console() -> Console:
    """Return a console for tables on stdout, wide enough for layouts where it is no terminal."""
    given = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, width=None if given else _WIDTH)


def report_problem(problem: PycompilerError) -> int:
    """Print a diagnostic to stderr; its exit code."""
    with suppress(OSError):
        sys.stdout.flush()
    if os.environ.get(TRACEBACK_VARIABLE):
        tell("".join(traceback.format_exception(problem)).rstrip())
    tell(f"{problem.render()}\n{problem.more(problem.code)}")
    return problem.exit_code


def interrupted(problem: BaseException) -> int:
    """Say that the user stopped the command, and where; its exit code.

    If threads still work on tasks, Python would wait for them: then this ends the process.
    """
    tell(" ".join(("interrupted", *getattr(problem, "__notes__", ()))))
    if any(not thread.daemon for thread in threading.enumerate()[1:]):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(INTERRUPTED_EXIT)
    return INTERRUPTED_EXIT


def report_lost_output(problem: OSError) -> int:
    """Report that stdout takes no more; the exit code. A closed pipe needs no words."""
    drop(sys.stdout)
    if isinstance(problem, BrokenPipeError):
        return USER_EXIT
    return report_problem(error("P0003", path="standard output", reason=problem.strerror))


def outcome(work: Callable[[], int]) -> int:
    """Return the exit code of the work of a command; its exceptions are one diagnostic each."""
    try:
        code = work()
        sys.stdout.flush()
        return code
    except PycompilerError as problem:
        return report_problem(problem)
    except (KeyboardInterrupt, click.Abort) as problem:
        return interrupted(problem)
    except click.ClickException as problem:
        with suppress(OSError):
            problem.show()
        return problem.exit_code
    except OSError as problem:
        if problem.filename is not None:
            return report_problem(internal(problem))
        return report_lost_output(problem)
    except Exception as problem:
        return report_problem(internal(problem))


def show_any_text() -> None:
    """From now on, print names that are no UTF-8 with escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def show_warnings_plainly() -> None:
    """From now on, show our own warnings as one line each, without a place in the source."""
    before = warnings.showwarning

    def show(
        message: Warning | str, category: type[Warning], *args: object, **kwargs: object
    ) -> None:
        if issubclass(category, PycompilerWarning):
            tell(f"warning: {message}")
        else:
            before(message, category, *args, **kwargs)  # type: ignore[arg-type]

    warnings.showwarning = show
