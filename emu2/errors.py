"""The exceptions of emu2. Each carries its code, message and remedy as attributes."""

from __future__ import annotations

import pickle
from typing import Any, TypedDict


class Diagnostic(TypedDict):
    """One fault in a source text. Lines and columns count from 1; the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    code: str
    severity: str
    message: str
    help: str


class Finding(Diagnostic):
    """What a sanitized run has found. The line is 0 for words that the host reads.

    `memory`, `unit` and `address` name the first word, as dump lines do; `earlier_line` is the
    line that the finding goes back to; `count` says how often the same was found.
    """

    memory: str | None
    unit: str | None
    address: int | None
    earlier_line: int | None
    count: int


class PortableError(Exception):
    """An exception that `pickle` and `copy` bring back with all its attributes.

    Python would call the class with the text of the exception alone. An attribute that cannot be
    pickled becomes its text.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Say how the exception is made again."""
        return _restored, (type(self), self.args, _portable(self.__dict__))


def _restored(kind: type[PortableError], args: tuple[Any, ...], state: dict[str, Any]) -> Any:
    made = kind.__new__(kind, *args)
    made.__dict__.update(state)
    return made


def _portable(value: Any) -> Any:
    if type(value) is dict:
        return {key: _portable(own) for key, own in value.items()}
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:  # pickle raises what the value raises
        return str(value)
    return value


class Emu2Error(PortableError):
    """Base of every exception that emu2 raises on purpose."""


class EmulatorError(Emu2Error):
    """A fault outside any program text: spec, file, memory access.

    Attributes:
        code: the row of the table of diagnostics, such as ``R0001``.
        message: what is wrong.
        help: what to do about it.
    """

    def __init__(self, *, code: str, message: str, help: str) -> None:
        """Keep the parts and show them all."""
        super().__init__(f"error[{code}]: {message}\n  help: {help}")
        self.code = code
        self.message = message
        self.help = help


class RunError(EmulatorError):
    """A program stopped half way; its machine refuses to run until it is reset.

    Attributes:
        file: name of the program's source.
        line: line of the statement, from 1; 0 if nothing had run.
    """

    def __init__(self, *, code: str, message: str, help: str, file: str, line: int) -> None:
        """Keep the parts and show them all."""
        super().__init__(code=code, message=f"{file}:{line}: {message}", help=help)
        self.file = file
        self.line = line


class AssembleError(Emu2Error):
    """A source text that does not assemble.

    Attributes:
        diagnostics: every fault found, warnings included.
    """

    def __init__(self, *, rendered: str, diagnostics: list[Diagnostic]) -> None:
        """Show the faults in their source lines."""
        super().__init__(rendered)
        self.diagnostics = diagnostics
