"""What the command-line programs share: diagnostics, files, exit codes.

Exit codes: 0 done, 1 the user's file, 2 usage, 3 a fault of emu2 itself. Diagnostics go to stderr.
"""

from __future__ import annotations

import io
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
from emu2.streams import drop, leave, need_stdin, open_closed_streams, tell

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
    tell(explained(text))
    sys.exit(EXIT_FILE)


PLACE = re.compile(r"^( *)--> (?P<file>.+):(?P<line>\d+):\d+$", re.MULTILINE)
"""The place of a fault in a diagnostic."""


def with_origin(place: re.Match[str]) -> str:
    """Return a place in linked assembly together with the line of the source behind it."""
    from emu2.link.origins import MARK, origins

    try:
        text = Path(place["file"]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return place[0]
    if f"\n{MARK} " not in f"\n{text}":
        return place[0]
    found = origins(text)[int(place["line"]) - 1 : int(place["line"])]
    return "\n".join([place[0], *(f" {place[1]}= from {o[0]}:{o[1]}" for o in found if o)])


def explained(text: str) -> str:
    """Return diagnostics with a last line that says how to read more about the first of them."""
    text = PLACE.sub(with_origin, text)
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
        tell(as_json if form == "json" else explained(program.render_warnings()))
    return program


@contextmanager
def reporting(form: Form) -> Iterator[None]:
    """Print the diagnostics of a source that is refused as JSON to stderr if `form` says so."""
    try:
        yield
    except emu2.AssembleError as error:
        if form == "text":
            raise
        tell(json.dumps(error.diagnostics, indent=2))
        sys.exit(EXIT_FILE)


def read_bytes(path: str | None) -> bytes:
    """Return what the file at `path` holds, or what stdin holds for none or `-`.

    Fails with a diagnostic, also for more bytes than a source may have.
    """
    if path is not None and path != "-":
        return read_source(path)
    limit = stream_limit()
    with reading_stdin():
        data = sys.stdin.buffer.read(limit + 1)
    if len(data) > limit:
        fail(diagnostic("F0007", f"<stdin>: more than {limit} bytes", "write it to a file first"))
    return data


@contextmanager
def reading_stdin() -> Iterator[None]:
    """Fail with a diagnostic if stdin cannot be read, at once if it is closed."""
    try:
        need_stdin()
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        reason = error.strerror or str(error)
        fail(diagnostic("F0001", f"<stdin>: {reason}", "check what stdin is connected to"))


def stdin_lines() -> Iterator[str]:
    """Yield the lines of stdin, or fail with a diagnostic."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    with reading_stdin():
        yield from sys.stdin


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


def lost_output(error: OSError) -> int:
    """Report that stdout takes no more; the exit code. That nobody reads needs no words."""
    drop(sys.stdout)
    if not isinstance(error, BrokenPipeError):
        reason = error.strerror or str(error)
        text = diagnostic("F0005", f"the output: {reason}", "check the folder and its permissions")
        tell(explained(text))
    return EXIT_FILE


def guarded(command: click.Command, name: str, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `command` under `name` and leave with the exit code that its outcome means."""
    open_closed_streams()
    leave(_outcome(command, name, arguments))


def _outcome(command: click.Command, name: str, arguments: Sequence[str] | None) -> int:
    try:
        code = _called(command, name, arguments)
        sys.stdout.flush()
        return code
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        tell("interrupted")
        return EXIT_INTERRUPTED
    except emu2.Emu2Error as error:
        tell(explained(str(error)))
        return EXIT_FILE
    except OSError as error:
        # The files of a command have diagnostics of their own: this is stdout.
        return lost_output(error)
    except Exception as error:  # a fault of emu2 is a diagnostic, never a traceback
        text = f"{type(error).__name__}: {error}"
        tell(explained(diagnostic("B0001", f"a fault of emu2: {text}", "please report it")))
        return EXIT_OURS


def _called(command: click.Command, name: str, arguments: Sequence[str] | None) -> int:
    """Run a command; the exit code that it asks for."""
    try:
        command.main(args=arguments, prog_name=name, standalone_mode=False)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    return 0
