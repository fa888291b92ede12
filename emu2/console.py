"""What the command-line programs share: diagnostics, files, exit codes.

Exit codes: 0 done, 1 the user's file, 2 usage, 3 a fault of emu2 itself. Diagnostics go to stderr.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, NoReturn, TextIO

import click

import emu2
from emu2._core import read_source, stream_limit

EXIT_FILE = 1
EXIT_USAGE = 2
EXIT_OURS = 3
EXIT_INTERRUPTED = 130

Form = Literal["text", "json"]
"""How diagnostics are printed."""

form_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print diagnostics.",
)


def fail(text: str) -> NoReturn:
    """Print one diagnostic and leave with the exit code of a faulty file."""
    click.echo(explained(text), err=True)
    sys.exit(EXIT_FILE)


def explained(text: str) -> str:
    """Return diagnostics with a last line that says how to read more about the first of them."""
    first = re.search(r"^(?:error|warning)\[([A-Z]\d{4})\]", text, re.MULTILINE)
    more = f"\nmore: emu2 explain {first[1]}" if first else ""
    return text.rstrip() + more


def diagnostic(code: str, message: str, remedy: str) -> str:
    """Return the text of a diagnostic that has no place in a source."""
    return f"error[{code}]: {message}\n  help: {remedy}"


def warned(program: emu2.Program, form: Form = "text") -> emu2.Program:
    """Print the program's warnings to stderr and return it."""
    if program.warnings:
        as_json = json.dumps(program.warnings, indent=2)
        click.echo(as_json if form == "json" else explained(program.render_warnings()), err=True)
    return program


@contextmanager
def reporting(form: Form) -> Iterator[None]:
    """Print the diagnostics of a source that is refused as JSON to stderr if `form` says so."""
    try:
        yield
    except emu2.AssembleError as error:
        if form == "text":
            raise
        click.echo(json.dumps(error.diagnostics, indent=2), err=True)
        sys.exit(EXIT_FILE)


def read_bytes(path: str | None) -> bytes:
    """Return what the file at `path` holds, or what stdin holds for none or `-`.

    Fails with a diagnostic, also for more bytes than a source may have.
    """
    if path is not None and path != "-":
        return read_source(path)
    limit = stream_limit()
    try:
        data = sys.stdin.buffer.read(limit + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        fail(diagnostic("F0001", f"<stdin>: {reason}", "check what stdin is connected to"))
    if len(data) > limit:
        fail(diagnostic("F0007", f"<stdin>: more than {limit} bytes", "write it to a file first"))
    return data


def cannot_write(path: str, error: OSError) -> NoReturn:
    """Fail with the diagnostic of a file that cannot be written."""
    reason = error.strerror or str(error)
    fail(diagnostic("F0005", f"{path}: {reason}", "check the folder and its permissions"))


class Output:
    """A text file that is opened when the first text for it comes, or at the end.

    An error before that leaves an older file as it was. Without a path, or with `-`, `stream` takes
    the text.
    """

    def __init__(self, path: str | None, stream: TextIO) -> None:
        """Remember where the text shall go."""
        self.path = None if path == "-" else path
        self.file: TextIO | None = stream if self.path is None else None

    def open(self) -> TextIO:
        """Return the open file, or fail with a diagnostic."""
        if self.file is None:
            self.file = self._create()
        return self.file

    def _create(self) -> TextIO:
        path = self.path or ""
        try:
            if Path(path).is_fifo():
                # Fails at once if nobody reads, where opening it for good would wait.
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            return open(path, "w", encoding="utf-8")
        except ValueError as error:
            # No file can have such a name.
            self._fail(OSError(str(error)))
        except OSError as error:
            self._fail(error)

    def write(self, text: str) -> None:
        """Write `text`, or fail with a diagnostic."""
        try:
            self.open().write(text)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> NoReturn:
        # Nobody reads any more: that is the reader's choice.
        if isinstance(error, BrokenPipeError):
            raise error
        cannot_write(self.path or "the output", error)

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.open()
            if self.file is not None:
                self.file.flush()
                if self.path is not None:
                    self.file.close()
        except OSError as failure:
            self._fail(failure)


def close_output() -> None:
    """Write what stdout still holds; fail with a diagnostic if it cannot be written.

    Python would report that itself when it ends, with a traceback.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        leave_output(error)


def leave_output(error: OSError) -> NoReturn:
    """Leave after stdout could not be written, and keep Python from trying again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    # Nobody reads any more: that is the reader's choice.
    if isinstance(error, BrokenPipeError):
        sys.exit(EXIT_FILE)
    cannot_write("the output", error)


def guarded(command: click.Command, name: str, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `command` under `name` and leave with the exit code that its outcome means."""
    try:
        command.main(args=arguments, prog_name=name, standalone_mode=False)
        close_output()
    except click.exceptions.Exit as leave:
        close_output()
        sys.exit(leave.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except emu2.Emu2Error as error:
        fail(str(error))
    except OSError as error:
        # The files of a command have diagnostics of their own: this is stdout.
        leave_output(error)
    except Exception as error:  # a fault of emu2 is a diagnostic, never a traceback
        text = f"{type(error).__name__}: {error}"
        found = diagnostic("B0001", f"a fault of emu2: {text}", "please report it")
        click.echo(explained(found), err=True)
        sys.exit(EXIT_OURS)
    sys.exit(0)
