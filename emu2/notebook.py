"""The cell magic `%%vsm` of IPython and Jupyter: `%load_ext emu2`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable
from html import escape
from typing import Any, NoReturn

from emu2._core import Machine, Program, Report, Spec, assemble
from emu2.errors import Diagnostic, Emu2Error, Finding, PortableError
from emu2.source_text import lines

_MOST = 64  # rows of a table
_LEFT = "style='text-align:left'"
_PROSE = ("message", "help")
_SHOWN = ("steps", "cycles", "stall_cycles", "mvs")


class ArgumentsError(Exception):
    """The line of the magic is wrong; the text says how it must be."""


class CellError(PortableError):
    """A cell has failed, and with it a notebook that runs without a user."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows instead of a traceback."""
        return [str(self)]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ArgumentsError(f"{message}\n{self.format_usage().strip()}")


def _parser() -> _Parser:
    parser = _Parser(prog="%%vsm", add_help=False)
    parser.add_argument("--spec", default="mncore2", help="the machine's description")
    parser.add_argument("--machine", help="a variable with an emu2.Machine to run on")
    parser.add_argument("--sanitize", action="store_true", help="look for undefined values")
    parser.add_argument("--check", action="store_true", help="refuse hazards, and do not run")
    parser.add_argument("--name", help="a variable that the result is stored in too")
    return parser


class Result:
    """A cell that has run: ``program``, ``machine``, and ``report`` (None with ``--check``)."""

    def __init__(
        self, source: str, program: Program, machine: Machine, report: Report | None
    ) -> None:
        """Keep the parts."""
        self.source, self.program, self.machine, self.report = source, program, machine, report

    @property
    def dump(self) -> list[str]:
        """The dump lines."""
        return [] if self.report is None else self.report.dump

    @property
    def findings(self) -> list[Finding]:
        """What a sanitized run has found."""
        return [] if self.report is None else self.report.findings

    def __repr__(self) -> str:
        lines = [self.program.render_warnings().rstrip()] if self.program.warnings else []
        if self.report is None:
            return "\n".join([*lines, "checked"])
        facts = self.program.report()
        lines.append(", ".join(f"{key} {facts[key]}" for key in _SHOWN if key in facts))
        lines += [line.rstrip() for line in (*self.report.host, *self.dump)]
        if self.findings:
            lines.append(self.report.render_findings().rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return counters, diagnostics and dump lines as tables."""
        facts = self.program.report()
        words = facts.get("words", {})
        rows = [(key.replace("_", " "), facts[key]) for key in _SHOWN if key in facts]
        rows += [
            (f"{name} words", f"{own['read']} read, {own['written']} written")
            for name, own in words.items()
        ]
        busy = (f"{slot} {count}" for slot, count in facts.get("busy_steps", {}).items())
        rows.append(("steps with an instruction", ", ".join(busy) or "none"))
        parts = [] if self.report is None else [_table(("counter", ""), rows)]
        source = lines(self.source)
        parts += [_faults(found, source) for found in (self.program.warnings, self.findings)]
        if self.dump:
            cells = [line.rstrip().removeprefix("DEBUG-").partition("):") for line in self.dump]
            dump = [(f"{place})", value.split(" #")[0]) for place, _, value in cells]
            parts.append(_table(("place", "value"), dump))
        if self.report is not None and self.report.host:
            parts.append(_table(("host",), [(line,) for line in self.report.host]))
        return "<div>" + "".join(part for part in parts if part) + "</div>"


def _faults(found: Iterable[Diagnostic], source: list[str]) -> str:
    rows = [
        (one["code"], one["line"], _line(source, one["line"]), one["message"], one["help"])
        for one in found
    ]
    return _table(("code", "line", "", "message", "help"), rows) if rows else ""


def _line(source: list[str], number: int) -> str:
    return source[number - 1] if 1 <= number <= len(source) else ""


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    """Return an HTML table; every text is escaped."""
    top = "".join(f"<th {_LEFT}>{escape(one)}</th>" for one in head)
    body = "".join(
        "<tr>" + "".join(map(_cell, head, map(str, row))) + "</tr>" for row in rows[:_MOST]
    )
    more = f"<p>{len(rows) - _MOST} more rows</p>" if len(rows) > _MOST else ""
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(title: str, text: str) -> str:
    shown = escape(text) if title in _PROSE or not text else f"<code>{escape(text)}</code>"
    return f"<td {_LEFT}>{shown}</td>"


def run_cell(line: str, cell: str, names: dict[str, Any]) -> Result:
    """Run the magic; ``names`` are the variables of the user.

    Raises CellError for a fault of the line or the program. The variable of ``--name`` goes then.
    """
    given = None
    try:
        given = _parser().parse_args(shlex.split(line))
        machine = _machine(given, names)
        policy: Any = "check" if given.check else "run"
        program = assemble(cell, machine.spec, filename="<cell>", policy=policy)
        report = None if given.check else machine.run(program, sanitize=given.sanitize)
    except (ArgumentsError, ValueError, Emu2Error) as problem:
        if given is not None and given.name:
            names.pop(given.name, None)
        raise CellError(str(problem)) from None
    result = Result(cell, program, machine, report)
    if given.name:
        names[given.name] = result
    return result


def _machine(given: argparse.Namespace, names: dict[str, Any]) -> Machine:
    if given.machine is None:
        return Machine(Spec.load(given.spec))
    found = names.get(given.machine)
    if not isinstance(found, Machine):
        raise ArgumentsError(f"--machine {given.machine}: there is no emu2.Machine of that name")
    return found


def register(shell: Any) -> None:
    """Add the magic to an IPython shell."""

    def vsm(line: str, cell: str) -> Result:
        return run_cell(line, cell, shell.user_ns)

    vsm.__doc__ = f"Assemble and run the cell on the emulator.\n\n{_parser().format_help()}"
    shell.register_magic_function(vsm, "cell", "vsm")
