"""Standard streams of a command: what is closed, what nobody reads any more, how a command ends."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn, TextIO

_STREAMS = (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_RDWR))


def open_closed_streams(*, drop_output: bool = False) -> None:
    """Open the standard streams that the caller has closed, so that no file takes their numbers.

    Reading such a stdin and writing to such a stdout are errors (EBADF). Text for such a stderr is
    dropped, and with ``drop_output`` text for stdout too.
    """
    for number, (name, mode, flags) in enumerate(_STREAMS):
        if getattr(sys, name) is not None:
            continue
        handle = os.open(os.devnull, os.O_RDWR if drop_output and mode == "w" else flags)
        if handle != number and not _is_open(number):
            os.dup2(handle, number)
            os.close(handle)
            handle = number
        stream = open(  # noqa: SIM115
            handle, mode, encoding="utf-8", errors="backslashreplace", closefd=False
        )
        setattr(sys, name, stream)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def need_stdin() -> None:
    """Raise OSError if nothing can be read from stdin."""
    with suppress(ValueError):
        os.read(sys.stdin.fileno(), 0)


def tell(text: str) -> None:
    """Print a line to stderr. That nobody reads it is no error."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        drop(sys.stderr)


def drop(stream: TextIO) -> None:
    """Drop what a stream holds and will get: Python would fail when it writes it at the end."""
    with suppress(OSError, ValueError, AttributeError):
        handle = os.open(os.devnull, os.O_WRONLY)
        os.dup2(handle, stream.fileno())
        os.close(handle)


def leave(code: int) -> NoReturn:
    """End the command with this exit code, whatever becomes of text that is still to be written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            drop(stream)
    sys.exit(code)
